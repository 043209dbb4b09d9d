/* SPDX-License-Identifier: MIT
 * How `bitconv embed` shows embeddings. */
#include "embed_view.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "view_text.h"

enum { FIRST_VALUES = 6, MAX_COSINES = 8 };

const char *embed_pooling_name(int pooling)
{
    static const char *const names[] = {"none", "mean", "cls", "last"};
    return pooling >= 0 && pooling < (int)(sizeof names / sizeof *names) ? names[pooling] : NULL;
}

static size_t count_rows(const struct embed_view *v)
{
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++)
        n += v->items[i].n_rows;
    return n;
}

/* Row `at`, counted over all texts. */
static const float *row_at(const struct embed_view *v, size_t at)
{
    size_t i = 0;
    while (at >= v->items[i].n_rows)
        at -= v->items[i++].n_rows;
    return v->items[i].values + at * v->info->n_embd;
}

/* 0 where one of them has no direction. */
static double cosine(const float *a, const float *b, size_t n)
{
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < n; i++) {
        ab += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

/* With the largest magnitude at 32760 the values are meant as 16-bit integers. */
static void put_vector(const struct embed_view *v, const float *values, struct bc_buf *out)
{
    if (v->normalize != 0) {
        model_put_floats(out, values, v->info->n_embd);
        return;
    }
    bc_buf_putc(out, '[');
    for (uint32_t i = 0; i < v->info->n_embd; i++)
        bc_buf_printf(out, "%s%.0f", i == 0 ? "" : ", ", (double)values[i]);
    bc_buf_putc(out, ']');
}

/* ---- for people ---- */

static void put_head(const struct embed_view *v, struct bc_buf *out)
{
    static const char *const norms[] = {"no norm", "largest magnitude 32760", "taxicab norm",
                                        "Euclidean norm"};
    bc_utf8_mask(out, v->info->path, strlen(v->info->path), 0);
    bc_buf_printf(out, "\n%s, %" PRIu32 " dimensions, %s pooling, ", v->info->family,
                  v->info->n_embd, embed_pooling_name(v->pooling));
    if (v->normalize <= 2)
        bc_buf_puts(out, norms[v->normalize + 1]);
    else
        bc_buf_printf(out, "%d-norm", v->normalize);
    bc_buf_printf(out, ", %s\n\n", v->info->mode);
}

static void put_item(const struct embed_view *v, const struct embedding *item, struct bc_buf *out)
{
    const uint32_t width = v->info->n_embd;
    bc_buf_printf(out, "%s%4zu%s  ", ui_on(v->ui, UI_BOLD), item->input.index + 1, ui_off(v->ui));
    if (item->input.text != NULL)
        ui_cell(out, item->input.text, 60, true);
    else
        ui_cell(out, item->input.ids, 60, true);
    bc_buf_printf(out, "%5zu token%s\n", item->ids.n, view_plural(item->ids.n));
    for (size_t r = 0; r < item->n_rows; r++) {
        bc_buf_puts(out, "    ");
        for (uint32_t i = 0; i < width && i < FIRST_VALUES; i++)
            bc_buf_printf(out, " %10.4g", (double)item->values[r * width + i]);
        bc_buf_puts(out, width > FIRST_VALUES ? " ...\n" : "\n");
    }
}

static void put_cosines(const struct embed_view *v, size_t n, struct bc_buf *out)
{
    bc_buf_puts(out, "\ncosine similarity\n    ");
    for (size_t j = 0; j < n; j++)
        bc_buf_printf(out, "%8zu", j + 1);
    bc_buf_putc(out, '\n');
    for (size_t i = 0; i < n; i++) {
        bc_buf_printf(out, "%4zu", i + 1);
        for (size_t j = 0; j < n; j++)
            bc_buf_printf(out, "%8.4f", cosine(row_at(v, i), row_at(v, j), v->info->n_embd));
        bc_buf_putc(out, '\n');
    }
}

void embed_text(const struct embed_view *v, struct bc_buf *out)
{
    const size_t n = count_rows(v);
    put_head(v, out);
    for (size_t i = 0; i < v->n; i++)
        put_item(v, &v->items[i], out);
    if (n != v->n || n < 2) return;
    if (n <= MAX_COSINES)
        put_cosines(v, n, out);
    else
        bc_buf_puts(out, "\n(--embd-output-format json+ gives the cosines of all)\n");
}

/* ---- for programs ---- */

void embed_array(const struct embed_view *v, struct bc_buf *out)
{
    const size_t n = count_rows(v);
    bc_buf_putc(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i > 0) bc_buf_putc(out, ',');
        put_vector(v, row_at(v, i), out);
    }
    bc_buf_puts(out, "]\n");
}

/* Row `r` of an item as an object of OpenAI's list; with details what it is of. */
static void put_datum(const struct embed_view *v, const struct embedding *item, size_t r,
                      size_t index, bool details, struct bc_buf *out)
{
    bc_buf_printf(out, "%s\n    {\n      \"object\": \"embedding\",\n      \"index\": %zu,\n",
                  index > 0 ? "," : "", index);
    if (details) {
        if (item->input.text != NULL) {
            bc_buf_puts(out, "      \"text\": ");
            model_put_string(out, item->input.text, item->input.len);
            bc_buf_puts(out, ",\n");
        }
        bc_buf_puts(out, "      \"ids\": ");
        model_put_ids(out, &item->ids);
        bc_buf_puts(out, ",\n");
    }
    bc_buf_puts(out, "      \"embedding\": ");
    put_vector(v, item->values + r * v->info->n_embd, out);
    bc_buf_puts(out, "\n    }");
}

static void put_data(const struct embed_view *v, bool details, struct bc_buf *out)
{
    size_t index = 0;
    bc_buf_puts(out, "  \"data\": [");
    for (size_t i = 0; i < v->n; i++)
        for (size_t r = 0; r < v->items[i].n_rows; r++)
            put_datum(v, &v->items[i], r, index++, details, out);
    bc_buf_puts(out, "\n  ]");
}

void embed_openai(const struct embed_view *v, struct bc_buf *out)
{
    bc_buf_puts(out, "{\n  \"object\": \"list\",\n");
    put_data(v, false, out);
    bc_buf_puts(out, "\n}\n");
}

void embed_openai_cosines(const struct embed_view *v, struct bc_buf *out)
{
    const size_t n = count_rows(v);
    bc_buf_puts(out, "{\n  \"object\": \"list\",\n");
    put_data(v, false, out);
    bc_buf_puts(out, ",\n  \"cosineSimilarity\": [");
    for (size_t i = 0; i < n; i++) {
        bc_buf_puts(out, i > 0 ? ",\n    [" : "\n    [");
        for (size_t j = 0; j < n; j++)
            bc_buf_printf(out, "%s%.6f", j > 0 ? ", " : "",
                          cosine(row_at(v, i), row_at(v, j), v->info->n_embd));
        bc_buf_putc(out, ']');
    }
    bc_buf_puts(out, "\n  ]\n}\n");
}

void embed_json(const struct embed_view *v, struct bc_buf *out)
{
    bc_buf_puts(out, "{\n  \"object\": \"list\",\n  \"file\": ");
    model_put_string(out, v->info->path, strlen(v->info->path));
    bc_buf_printf(out,
                  ",\n  \"family\": \"%s\",\n  \"mode\": \"%s\",\n  \"dimensions\": %" PRIu32
                  ",\n  \"pooling\": \"%s\",\n  \"normalize\": %d,\n",
                  v->info->family, v->info->mode, v->info->n_embd, embed_pooling_name(v->pooling),
                  v->normalize);
    put_data(v, true, out);
    bc_buf_puts(out, "\n}\n");
}

void embed_json_line(const struct embed_view *v, const struct embedding *item, struct bc_buf *out)
{
    model_put_input(out, &item->input);
    bc_buf_printf(out, ", \"n_tokens\": %zu, \"%s\": ", item->ids.n,
                  v->pooling == 0 ? "embeddings" : "embedding");
    if (v->pooling == 0) bc_buf_putc(out, '[');
    for (size_t r = 0; r < item->n_rows; r++) {
        if (r > 0) bc_buf_puts(out, ", ");
        put_vector(v, item->values + r * v->info->n_embd, out);
    }
    bc_buf_puts(out, v->pooling == 0 ? "]}" : "}");
}
