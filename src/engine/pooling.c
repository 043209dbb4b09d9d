/* SPDX-License-Identifier: MIT
 * One vector of a text: pooling as in sentence-transformers, then a norm. */
#include <math.h>
#include <string.h>

#include "engine/session.h"

enum { POOLING_NONE, POOLING_MEAN, POOLING_CLS, POOLING_LAST };

/* The mean over all tokens, each value summed in double in the order of the tokens. */
static void mean(const float *hidden, size_t n, size_t width, float *out)
{
    for (size_t i = 0; i < width; i++) {
        double sum = 0;
        for (size_t t = 0; t < n; t++)
            sum += (double)hidden[t * width + i];
        out[i] = (float)(sum / (double)n);
    }
}

static double largest(const float *x, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fabs((double)x[i]) > most ? fabs((double)x[i]) : most;
    return most;
}

/* The p-norm, of parts of the largest magnitude: high powers of the values would leave the range. */
static double high_norm(const float *x, size_t n, int p)
{
    const double most = largest(x, n);
    double sum = 0;
    for (size_t i = 0; most > 0 && i < n; i++)
        sum += pow(fabs((double)x[i]) / most, p);
    return most * pow(sum, 1.0 / p);
}

/* What a vector is divided by (as llama.cpp's common_embd_normalize). */
static double norm_of(const float *x, size_t n, int normalize)
{
    double norm = 0;
    if (normalize == 0) return largest(x, n) / 32760.0;
    if (normalize > 2) return high_norm(x, n, normalize);
    for (size_t i = 0; i < n; i++) {
        const double magnitude = fabs((double)x[i]);
        norm += normalize == 1 ? magnitude : magnitude * magnitude;
    }
    return normalize == 2 ? sqrt(norm) : norm;
}

static void normalise(float *x, size_t n, int normalize)
{
    if (normalize < 0) return;
    const double norm = norm_of(x, n, normalize);
    for (size_t i = 0; i < n; i++)
        x[i] = norm > 0 ? (float)((double)x[i] / norm) : 0.0f;
}

enum bitconv_status bitconv_session_embed(struct bitconv_session *session, const int32_t *tokens,
                                          size_t n, int pooling, int normalize, float *out,
                                          struct bitconv_error *err)
{
    const struct bc_hparams *hp = &session->g->hp;
    const size_t d = hp->n_embd;
    struct bitconv_run run = {.want_hidden = true};
    if (pooling < 0) pooling = hp->pooling >= 0 ? hp->pooling : POOLING_MEAN;
    if (pooling > POOLING_LAST)
        return bc_fail(err, BITCONV_E_ARG, "%s: pooling %d is not one of 0 to 3",
                       session->engine->provider->path, pooling);
    bitconv_session_reset(session);
    BC_TRY(bitconv_session_run(session, tokens, n, &run, err));
    const size_t rows = pooling == POOLING_NONE ? n : 1;
    if (pooling == POOLING_MEAN)
        mean(run.hidden, n, d, out);
    else
        memcpy(out, run.hidden + (pooling == POOLING_LAST ? n - 1 : 0) * d, rows * d * sizeof *out);
    for (size_t r = 0; r < rows; r++)
        normalise(out + r * d, d, normalize);
    return BITCONV_OK;
}
