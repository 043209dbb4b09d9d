/* SPDX-License-Identifier: MIT
 * The engine against plain loops in double precision, written for these tests alone: decoders with
 * neighbouring or half rotations, sub-norms, and a mixture of experts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "engine/rotation.h"
#include "support/engine_run.h"

enum { N = 6, D = 128, FF = 128, HEADS = 4, KV = 2, HD = 32, VOCAB = 320, MAX_EXPERTS = 3 };

struct naive {
    const struct bitconv_gguf *file;
    bool neighbours, squared_relu;
    double theta, eps, linear_factor;
    int n_layers, n_expert;
    double x[N][D];
};

/* Row `row` of an F32 tensor; NULL when there is no such tensor. */
static const uint8_t *row_of(const struct naive *m, const char *name, uint64_t row)
{
    const struct bitconv_gguf_tensor *t = bitconv_gguf_find_tensor(m->file, name);
    if (t == NULL) return NULL;
    assert_string_equal(t->type_name, "F32");
    return t->data + 4 * row * t->ne[0];
}

static const uint8_t *layer_row(const struct naive *m, int layer, const char *base, uint64_t row)
{
    char name[64];
    snprintf(name, sizeof name, "blk.%d.%s.weight", layer, base);
    return row_of(m, name, row);
}

static double dot(const uint8_t *w, const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (double)bc_get_f32(w + 4 * (size_t)i) * x[i];
    return sum;
}

static void norm(const struct naive *m, const uint8_t *w, const double *x, int n, double *y)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * x[i];
    for (int i = 0; i < n; i++)
        y[i] = x[i] / sqrt(sum / n + m->eps) * (double)bc_get_f32(w + 4 * (size_t)i);
}

static void rotate(const struct naive *m, double *head, int position)
{
    for (int i = 0; i < HD / 2; i++) {
        const double angle = position / pow(m->theta, 2.0 * i / HD) / m->linear_factor;
        const int a = m->neighbours ? 2 * i : i, b = m->neighbours ? 2 * i + 1 : i + HD / 2;
        const double xa = head[a], xb = head[b];
        head[a] = xa * cos(angle) - xb * sin(angle);
        head[b] = xb * cos(angle) + xa * sin(angle);
    }
}

static void attention(struct naive *m, int layer)
{
    static double q[N][D], k[N][KV * HD], v[N][KV * HD];
    for (int t = 0; t < N; t++) {
        double h[D];
        norm(m, layer_row(m, layer, "attn_norm", 0), m->x[t], D, h);
        for (int r = 0; r < D; r++)
            q[t][r] = dot(layer_row(m, layer, "attn_q", (uint64_t)r), h, D);
        for (int r = 0; r < KV * HD; r++) {
            k[t][r] = dot(layer_row(m, layer, "attn_k", (uint64_t)r), h, D);
            v[t][r] = dot(layer_row(m, layer, "attn_v", (uint64_t)r), h, D);
        }
        for (int i = 0; i < HEADS; i++)
            rotate(m, q[t] + i * HD, t);
        for (int i = 0; i < KV; i++)
            rotate(m, k[t] + i * HD, t);
    }
    for (int t = 0; t < N; t++) {
        double out[D] = {0};
        for (int i = 0; i < HEADS; i++) {
            double p[N], total = 0;
            const int group = i / (HEADS / KV) * HD;
            for (int j = 0; j <= t; j++) {
                p[j] = 0;
                for (int c = 0; c < HD; c++)
                    p[j] += q[t][i * HD + c] * k[j][group + c];
                p[j] = exp(p[j] / sqrt(HD));
                total += p[j];
            }
            for (int j = 0; j <= t; j++)
                for (int c = 0; c < HD; c++)
                    out[i * HD + c] += p[j] / total * v[j][group + c];
        }
        const uint8_t *sub = layer_row(m, layer, "attn_sub_norm", 0);
        if (sub != NULL) norm(m, sub, out, D, out);
        for (int r = 0; r < D; r++)
            m->x[t][r] += dot(layer_row(m, layer, "attn_output", (uint64_t)r), out, D);
    }
}

/* Adds share * ffn(h) of one block to y; first: its rows in a stack. */
static void block(const struct naive *m, int layer, const char *suffix, int expert, double share,
                  const double *h, double *y)
{
    char gate[32], up[32], down[32];
    double act[FF];
    snprintf(gate, sizeof gate, "ffn_gate%s", suffix);
    snprintf(up, sizeof up, "ffn_up%s", suffix);
    snprintf(down, sizeof down, "ffn_down%s", suffix);
    for (int r = 0; r < FF; r++) {
        const uint64_t row = (uint64_t)(expert * FF + r);
        const double g = dot(layer_row(m, layer, gate, row), h, D);
        const double positive = g > 0 ? g : 0;
        act[r] = (m->squared_relu ? positive * positive : g / (1 + exp(-g))) *
                 dot(layer_row(m, layer, up, row), h, D);
    }
    const uint8_t *sub = layer_row(m, layer, "ffn_sub_norm", 0);
    if (sub != NULL) norm(m, sub, act, FF, act);
    for (int r = 0; r < D; r++)
        y[r] += share * dot(layer_row(m, layer, down, (uint64_t)(expert * D + r)), act, FF);
}

static void experts(const struct naive *m, int layer, const double *h, double *y)
{
    double share[MAX_EXPERTS], total = 0;
    int worst = 0;
    for (int e = 0; e < m->n_expert; e++) {
        share[e] = exp(dot(layer_row(m, layer, "ffn_gate_inp", (uint64_t)e), h, D));
        if (share[e] < share[worst]) worst = e;
    }
    assert_int_equal(m->n_expert, 3); /* of which two are used: all but the worst */
    for (int e = 0; e < m->n_expert; e++)
        total += e == worst ? 0 : share[e];
    for (int e = 0; e < m->n_expert; e++)
        if (e != worst) block(m, layer, "_exps", e, share[e] / total, h, y);
}

static void feed_forward(struct naive *m, int layer)
{
    for (int t = 0; t < N; t++) {
        double h[D];
        norm(m, layer_row(m, layer, "ffn_norm", 0), m->x[t], D, h);
        if (m->n_expert > 0)
            experts(m, layer, h, m->x[t]);
        else
            block(m, layer, "", 0, 1, h, m->x[t]);
    }
}

static void close_to(const float *got, const double *wanted, size_t n, const char *what)
{
    double largest = 0, worst = 0;
    for (size_t i = 0; i < n; i++) {
        largest = fmax(largest, fabs(wanted[i]));
        worst = fmax(worst, fabs((double)got[i] - wanted[i]));
        assert_true(got[i] == got[i]); /* no NaN */
    }
    if (worst > 1e-5 * largest) print_error("%s: %g of %g\n", what, worst, largest);
    assert_true(worst <= 1e-5 * largest);
}

/* Converts the fixture to F32, runs both. */
static void compare(struct convert_run *r, const char *fixture, struct naive *m)
{
    int32_t tokens[N];
    double wanted[VOCAB], h[D];
    struct engine_result got;
    const struct bitconv_engine_options options = {.n_threads = 2};
    convert_run_model(r, fixture, NULL, 0);
    convert_run_accept(r, "f32");
    m->file = r->gguf;
    engine_tokens(tokens, N);
    for (int t = 0; t < N; t++)
        for (int i = 0; i < D; i++)
            m->x[t][i] = (double)bc_get_f32(row_of(m, "token_embd.weight", (uint64_t)tokens[t]) +
                                            4 * (size_t)i);
    for (int l = 0; l < m->n_layers; l++) {
        attention(m, l);
        feed_forward(m, l);
    }
    struct bitconv_engine *engine = engine_of_file(r, &options);
    engine_run(engine, tokens, N, 0, &got);
    close_to(got.pre_norm, &m->x[0][0], (size_t)N * D, fixture);
    for (int t = 0; t < N; t++) {
        const char *head =
            row_of(m, "output.weight", 0) != NULL ? "output.weight" : "token_embd.weight";
        norm(m, row_of(m, "output_norm.weight", 0), m->x[t], D, h);
        for (int i = 0; i < VOCAB; i++)
            wanted[i] = dot(row_of(m, head, (uint64_t)i), h, D);
        close_to(got.hidden + (size_t)t * D, h, D, fixture);
        close_to(got.logits + (size_t)t * VOCAB, wanted, VOCAB, fixture);
    }
    engine_result_free(&got);
    bitconv_engine_close(engine);
}

static void llama(void **state)
{
    struct naive m = {
        .neighbours = true, .theta = 10000, .eps = 1e-5, .linear_factor = 2, .n_layers = 1};
    compare(*state, "llama-ternary", &m);
}

static void mixtral(void **state)
{
    struct naive m = {.neighbours = true,
                      .theta = 1000000,
                      .eps = 1e-5,
                      .linear_factor = 1,
                      .n_layers = 1,
                      .n_expert = 3};
    compare(*state, "mixtral", &m);
}

static void bitnet(void **state)
{
    struct naive m = {
        .squared_relu = true, .theta = 500000, .eps = 1e-5, .linear_factor = 1, .n_layers = 2};
    compare(*state, "bitnet", &m);
}

static void bitnet_silu(void **state)
{
    struct naive m = {.theta = 10000, .eps = 1e-5, .linear_factor = 1, .n_layers = 2};
    compare(*state, "bitnet-1bitllm", &m);
}

/* Values of transformers' formula for factor 4, 32 dimensions, base 10000, original context 64: the
 * first frequencies are kept, the last divided by 4, those between mixed. */
static void yarn(void **state)
{
    const struct bc_hparams hp = {.rope_dims = 32,
                                  .rope_theta = 10000,
                                  .rope_scaling = BC_ROPE_YARN,
                                  .rope_factor = 4,
                                  .rope_orig_ctx = 64};
    static const double mixed[][2] = {
        {0, 1},    {1, 0.477990126},  {2, 0.221359436}, {3, 0.0978053676},
        {4, 0.04}, {5, 0.0140585331}, {8, 0.0025},      {15, 4.44569853e-05}};
    float frequencies[16];
    struct bc_rotation rotation = {.dims = 32, .frequencies = frequencies};
    (void)state;
    bc_rotation_plain(32, 10000, frequencies);
    bc_rotation_scale(&hp, NULL, &rotation);
    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++)
        assert_true(fabs((double)frequencies[(size_t)mixed[i][0]] / mixed[i][1] - 1) < 1e-5);
    assert_true(fabs((double)rotation.magnitude - 1.1386294361119891) < 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(llama, convert_run_set_up, convert_run_tear_down),
        cmocka_unit_test_setup_teardown(mixtral, convert_run_set_up, convert_run_tear_down),
        cmocka_unit_test_setup_teardown(bitnet, convert_run_set_up, convert_run_tear_down),
        cmocka_unit_test_setup_teardown(bitnet_silu, convert_run_set_up, convert_run_tear_down),
        cmocka_unit_test(yarn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
