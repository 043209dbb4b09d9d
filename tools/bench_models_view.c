/* SPDX-License-Identifier: MIT
 * The report of `bitconv bench FILE`: tokens per second, and generation as a share of its bound. */
#include "bench_models_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"
#include "view_text.h"

enum { NAME_WIDTH = 20 };

/* "pp128", "tg32": what llama-bench calls them. */
static const char *test_name(const struct bitconv_model_rate *r, char buf[32])
{
    snprintf(buf, 32, "%s%u", r->is_prompt ? "pp" : "tg", r->n_tokens);
    return buf;
}

void bench_models_markdown(const struct bitconv_model_bench *bench, struct bc_buf *out)
{
    char test[32];
    bc_buf_printf(out, "%s, %s, mean of %u; read bandwidth", bench->cpu,
                  bench->n_models > 0 ? bench->models[0].mode : "", bench->repetitions);
    for (size_t i = 0; i < bench->n_bandwidths; i++) {
        const struct bitconv_read_bandwidth *b = &bench->bandwidths[i];
        bc_buf_printf(out, "%s %.2f ± %.2f GB/s (%u thread%s)", i > 0 ? "," : "",
                      1e-9 * b->bytes_per_second.mean, 1e-9 * b->bytes_per_second.deviation,
                      b->n_threads, view_plural(b->n_threads));
    }
    bc_buf_printf(out, "\n\n| %-*s | MB/token | threads | test  |         tokens/s | bound |\n",
                  NAME_WIDTH, "model");
    bc_buf_puts(out, "| -------------------- | -------: | ------: | ----- "
                     "| ---------------: | ----: |\n");
    for (size_t i = 0; i < bench->n_rates; i++) {
        const struct bitconv_model_rate *r = &bench->rates[i];
        const struct bitconv_benched_model *m = &bench->models[r->model];
        bc_buf_puts(out, "| ");
        ui_cell(out, bc_path_base(m->path), NAME_WIDTH, true);
        bc_buf_printf(out, " | %8.1f | %7u | %-5s | %7.1f ± %6.1f | ",
                      1e-6 * (double)m->weight_bytes, bench->bandwidths[r->threads].n_threads,
                      test_name(r, test), r->rate.mean, r->rate.deviation);
        if (r->bound_share > 0)
            bc_buf_printf(out, "%3.0f %% |\n", 100 * r->bound_share);
        else
            bc_buf_puts(out, "      |\n");
    }
}

/* RFC 4180: quotes around, quotes inside doubled. */
static void put_csv_text(const char *text, struct bc_buf *out)
{
    bc_buf_putc(out, '"');
    for (; *text != '\0'; text++) {
        if (*text == '"') bc_buf_putc(out, '"');
        bc_buf_putc(out, *text);
    }
    bc_buf_putc(out, '"');
}

void bench_models_csv(const struct bitconv_model_bench *bench, struct bc_buf *out)
{
    bc_buf_puts(out,
                "model,family,mode,cpu,threads,repetitions,test,n_tokens,tokens_per_s,deviation,"
                "best,weight_bytes,read_bytes_per_s,bound_share\n");
    for (size_t i = 0; i < bench->n_rates; i++) {
        const struct bitconv_model_rate *r = &bench->rates[i];
        const struct bitconv_benched_model *m = &bench->models[r->model];
        const struct bitconv_read_bandwidth *b = &bench->bandwidths[r->threads];
        put_csv_text(m->path, out);
        bc_buf_printf(out, ",%s,%s,%s,%u,%u,%s,%u,%.4f,%.4f,%.4f,%" PRIu64 ",%.0f,%.4f\n",
                      m->family, m->mode, bench->cpu, b->n_threads, bench->repetitions,
                      r->is_prompt ? "prompt" : "generation", r->n_tokens, r->rate.mean,
                      r->rate.deviation, r->rate.best, m->weight_bytes, b->bytes_per_second.mean,
                      r->bound_share);
    }
}

/* ---- JSON ---- */

static void write_measured(struct bc_jw *w, const char *key, const struct bitconv_measured *m)
{
    bc_jw_key(w, key);
    bc_jw_begin_object(w);
    bc_jw_key_f64(w, "mean", m->mean);
    bc_jw_key_f64(w, "deviation", m->deviation);
    bc_jw_key_f64(w, "best", m->best);
    bc_jw_end_object(w);
}

static void write_rate(struct bc_jw *w, const struct bitconv_model_bench *bench,
                       const struct bitconv_model_rate *r)
{
    const struct bitconv_benched_model *m = &bench->models[r->model];
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "file", m->path);
    bc_jw_key_string(w, "family", m->family);
    bc_jw_key_string(w, "mode", m->mode);
    bc_jw_key_count(w, "weight_bytes", m->weight_bytes);
    bc_jw_key_u64(w, "threads", bench->bandwidths[r->threads].n_threads);
    bc_jw_key_string(w, "test", r->is_prompt ? "prompt" : "generation");
    bc_jw_key_u64(w, "n_tokens", r->n_tokens);
    write_measured(w, "tokens_per_second", &r->rate);
    bc_jw_key_known_f64(w, "bound_share", r->bound_share > 0, r->bound_share);
    bc_jw_end_object(w);
}

void bench_models_json(const struct bitconv_model_bench *bench, struct bc_buf *out)
{
    struct bc_jw w = {.buf = out, .first = true};
    bc_jw_begin_object(&w);
    bc_jw_key_string(&w, "cpu", bench->cpu);
    bc_jw_key_u64(&w, "repetitions", bench->repetitions);
    bc_jw_key(&w, "read_bandwidth");
    bc_jw_begin_array(&w);
    for (size_t i = 0; i < bench->n_bandwidths; i++) {
        bc_jw_begin_object(&w);
        bc_jw_key_u64(&w, "threads", bench->bandwidths[i].n_threads);
        write_measured(&w, "bytes_per_second", &bench->bandwidths[i].bytes_per_second);
        bc_jw_end_object(&w);
    }
    bc_jw_end_array(&w);
    bc_jw_key(&w, "rates");
    bc_jw_begin_array(&w);
    for (size_t i = 0; i < bench->n_rates; i++)
        write_rate(&w, bench, &bench->rates[i]);
    bc_jw_end_array(&w);
    bc_jw_end_object(&w);
    bc_buf_putc(out, '\n');
}
