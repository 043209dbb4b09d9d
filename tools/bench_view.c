/* SPDX-License-Identifier: MIT
 * Text, Markdown, CSV and JSON of what `bitconv bench --pack` measured. */
#include "bench_view.h"

#include <inttypes.h>

#include "base/json.h"
#include "view_text.h"

enum { N_RATES = 3 };

/* Names of the operations and their rates, in the order of the columns. */
static const char *const operations[N_RATES] = {"pack", "unpack", "gemv"};

static void rates_of(const struct bitconv_pack_rate *r, double rates[N_RATES])
{
    rates[0] = r->pack;
    rates[1] = r->unpack;
    rates[2] = r->gemv;
}

static double share(const struct bitconv_pack_bench *bench, double rate)
{
    return bench->memcpy_rate > 0 ? rate / bench->memcpy_rate : 0;
}

/* ---- text ---- */

static void put_setting(const struct bitconv_pack_bench *bench, struct bc_buf *out)
{
    bc_buf_printf(out,
                  "%" PRIu64 " x %" PRIu64 " weights, %.1f %% zeros, %s, %u thread%s, median of %u",
                  bench->rows, bench->cols, 100 * bench->zeros, bench->cpu, bench->n_threads,
                  view_plural(bench->n_threads), bench->repetitions);
}

static void put_misfits(const struct bitconv_pack_bench *bench, struct bc_buf *out)
{
    for (size_t i = 0; i < bench->n_rates; i++) {
        const struct bitconv_pack_rate *r = &bench->rates[i];
        if (r->misfit[0] == '\0') continue;
        bc_buf_printf(out, "%-9s ", r->name);
        view_wrap(out, r->misfit, 10, ui_columns());
        bc_buf_putc(out, '\n');
    }
}

void bench_packs_text(const struct ui *ui, const struct bitconv_pack_bench *bench,
                      struct bc_buf *out)
{
    bc_buf_printf(out, "%sternary packs%s: ", ui_on(ui, UI_BOLD), ui_off(ui));
    put_setting(bench, out);
    bc_buf_printf(out,
                  "\n10^9 weights per second, and the share of memcpy of the unpacked int8 trits:\n"
                  "memcpy %.2f GB/s in the same run\n\n",
                  1e-9 * bench->memcpy_rate);
    bc_buf_printf(out, "%-9s%9s%11s%7s%11s%7s%11s%7s\n", "pack", "bits", "pack", "share", "unpack",
                  "share", "GEMV", "share");
    for (size_t i = 0; i < bench->n_rates; i++) {
        const struct bitconv_pack_rate *r = &bench->rates[i];
        double rates[N_RATES];
        if (r->misfit[0] != '\0') continue;
        rates_of(r, rates);
        bc_buf_printf(out, "%-9s%9.4f", r->name, r->bits_per_weight);
        for (size_t j = 0; j < N_RATES; j++)
            bc_buf_printf(out, "%11.2f%5.0f %%", 1e-9 * rates[j], 100 * share(bench, rates[j]));
        bc_buf_putc(out, '\n');
    }
    put_misfits(bench, out);
}

/* ---- Markdown and CSV ---- */

void bench_packs_markdown(const struct ui *ui, const struct bitconv_pack_bench *bench,
                          struct bc_buf *out)
{
    (void)ui;
    put_setting(bench, out);
    bc_buf_printf(out,
                  "; memcpy %.2f GB/s\n\n"
                  "| pack | bits per weight | pack (Gweights/s) | of memcpy | unpack (Gweights/s) "
                  "| of memcpy | GEMV (Gweights/s) | of memcpy |\n"
                  "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
                  1e-9 * bench->memcpy_rate);
    for (size_t i = 0; i < bench->n_rates; i++) {
        const struct bitconv_pack_rate *r = &bench->rates[i];
        double rates[N_RATES];
        if (r->misfit[0] != '\0') continue;
        rates_of(r, rates);
        bc_buf_printf(out, "| %s | %.4f |", r->name, r->bits_per_weight);
        for (size_t j = 0; j < N_RATES; j++)
            bc_buf_printf(out, " %.2f | %.0f %% |", 1e-9 * rates[j], 100 * share(bench, rates[j]));
        bc_buf_putc(out, '\n');
    }
}

void bench_packs_csv(const struct ui *ui, const struct bitconv_pack_bench *bench,
                     struct bc_buf *out)
{
    (void)ui;
    bc_buf_puts(out, "pack,rows,cols,zeros,cpu,threads,repetitions,bits_per_weight,memcpy_per_s");
    for (size_t j = 0; j < N_RATES; j++)
        bc_buf_printf(out, ",%s_per_s,%s_share", operations[j], operations[j]);
    bc_buf_putc(out, '\n');
    for (size_t i = 0; i < bench->n_rates; i++) {
        const struct bitconv_pack_rate *r = &bench->rates[i];
        double rates[N_RATES];
        if (r->misfit[0] != '\0') continue;
        rates_of(r, rates);
        bc_buf_printf(out, "%s,%" PRIu64 ",%" PRIu64 ",%.4f,%s,%u,%u,%.6f,%.0f", r->name,
                      bench->rows, bench->cols, bench->zeros, bench->cpu, bench->n_threads,
                      bench->repetitions, r->bits_per_weight, bench->memcpy_rate);
        for (size_t j = 0; j < N_RATES; j++)
            bc_buf_printf(out, ",%.0f,%.4f", rates[j], share(bench, rates[j]));
        bc_buf_putc(out, '\n');
    }
}

/* ---- JSON ---- */

static void write_rate(struct bc_jw *w, const struct bitconv_pack_bench *bench,
                       const struct bitconv_pack_rate *r)
{
    double rates[N_RATES];
    rates_of(r, rates);
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "name", r->name);
    bc_jw_key_string(w, "misfit", r->misfit[0] != '\0' ? r->misfit : NULL);
    if (r->misfit[0] == '\0') {
        bc_jw_key_f64(w, "bits_per_weight", r->bits_per_weight);
        for (size_t j = 0; j < N_RATES; j++) {
            bc_jw_key(w, operations[j]);
            bc_jw_begin_object(w);
            bc_jw_key_f64(w, "weights_per_second", rates[j]);
            bc_jw_key_f64(w, "share_of_memcpy", share(bench, rates[j]));
            bc_jw_end_object(w);
        }
    }
    bc_jw_end_object(w);
}

void bench_packs_json(const struct ui *ui, const struct bitconv_pack_bench *bench,
                      struct bc_buf *out)
{
    struct bc_jw w = {.buf = out, .first = true};
    (void)ui;
    bc_jw_begin_object(&w);
    bc_jw_key_u64(&w, "rows", bench->rows);
    bc_jw_key_u64(&w, "cols", bench->cols);
    bc_jw_key_f64(&w, "zeros", bench->zeros);
    bc_jw_key_string(&w, "cpu", bench->cpu);
    bc_jw_key_u64(&w, "threads", bench->n_threads);
    bc_jw_key_u64(&w, "repetitions", bench->repetitions);
    bc_jw_key_f64(&w, "memcpy_bytes_per_second", bench->memcpy_rate);
    bc_jw_key(&w, "packs");
    bc_jw_begin_array(&w);
    for (size_t i = 0; i < bench->n_rates; i++)
        write_rate(&w, bench, &bench->rates[i]);
    bc_jw_end_array(&w);
    bc_jw_end_object(&w);
    bc_buf_putc(out, '\n');
}
