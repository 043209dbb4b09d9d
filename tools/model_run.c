/* SPDX-License-Identifier: MIT
 * What `embed` and `generate` share: an open model with its tokenizer, and texts to run. */
#include "model_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "id_list.h"
#include "text_lines.h"

int model_check_usage(struct ui *ui, const char *command, const struct model_settings *s,
                      size_t n_args)
{
    const int n_sources = (s->texts.n > 0 || n_args > 1) + (s->file != NULL) + (s->tokens != NULL);
    if (n_args == 0)
        return ui_usage(ui, command, "a GGUF or a folder was expected, and a text to run");
    if (n_sources == 0)
        return ui_usage(ui, command, "nothing to run: -p TEXT, --file FILE or --tokens IDS");
    if (n_sources > 1)
        return ui_usage(ui, command, "only one of -p, --file and --tokens at a time");
    if (s->escaped && s->file == NULL)
        return ui_usage(ui, command, "--escaped says how the lines of --file are written");
    return 0;
}

enum bitconv_status model_open(struct ui *ui, const struct globals *globals, const char *path,
                               const struct model_settings *s, struct model_run *run,
                               struct bitconv_error *err)
{
    /* check: NaN in the weights would make vectors of zeros and texts of the first token */
    const struct bitconv_engine_options options = {.check = true,
                                                   .n_threads = globals->threads,
                                                   .cpu = globals->cpu,
                                                   .mode = s->mode != NULL ? s->mode : "int8",
                                                   .n_ctx = s->n_ctx};
    *run = (struct model_run){.path = path};
    BC_TRY(bitconv_engine_open(path, &options, &ui->sink, &run->engine, err));
    bitconv_engine_info(run->engine, &run->info);
    BC_TRY(bitconv_session_new(run->engine, &run->session, err));
    return bitconv_tokenizer_open(path, &ui->sink, &run->tok, err);
}

void model_close(struct model_run *run)
{
    bitconv_tokenizer_close(run->tok);
    bitconv_session_free(run->session);
    bitconv_engine_close(run->engine);
    *run = (struct model_run){.path = NULL};
}

/* ---- texts ---- */

struct line_caller {
    model_input_fn *fn;
    void *user;
};

static enum bitconv_status call_with_line(void *user, const struct text_line *line,
                                          struct bitconv_error *err)
{
    const struct line_caller *caller = user;
    const struct model_input input = {line->index, line->text, line->len, NULL};
    return caller->fn(caller->user, &input, err);
}

enum bitconv_status model_each_input(struct ui *ui, const struct model_settings *s,
                                     const char *const *args, size_t n_args, const char *progress,
                                     model_input_fn *fn, void *user, struct bitconv_error *err)
{
    struct line_caller caller = {fn, user};
    const size_t n_texts = s->tokens != NULL ? 1 : s->texts.n + n_args - 1;
    if (s->file != NULL)
        return text_lines_each(s->file, s->escaped, progress, &ui->sink, call_with_line, &caller,
                               err);
    for (size_t i = 0; i < n_texts; i++) {
        struct model_input input = {.index = i, .ids = s->tokens};
        if (s->tokens == NULL) {
            input.text = i < s->texts.n ? s->texts.items[i] : args[1 + i - s->texts.n];
            input.len = strlen(input.text);
        }
        BC_TRY(fn(user, &input, err));
    }
    return BITCONV_OK;
}

enum bitconv_status model_encode(const struct model_run *run, const struct model_input *input,
                                 model_encode_fn *encode, struct bitconv_ids *ids,
                                 struct bitconv_error *err)
{
    ids->n = 0;
    if (input->text != NULL) return encode(run->tok, input->text, input->len, ids, err);
    return id_list_parse("--tokens", input->ids, ids, err);
}

bool model_failed_input(enum bitconv_status status)
{
    return status == BITCONV_E_ARG || status == BITCONV_E_LIMIT;
}

/* ---- JSON on one line ---- */

/* The JSON writer indents only containers. */
void model_put_string(struct bc_buf *out, const char *s, size_t len)
{
    struct bc_jw w = {.buf = out, .first = true, .after_key = true};
    bc_jw_string_n(&w, s, len);
}

void model_put_ids(struct bc_buf *out, const struct bitconv_ids *ids)
{
    bc_buf_putc(out, '[');
    for (size_t i = 0; i < ids->n; i++)
        bc_buf_printf(out, "%s%" PRIu32, i == 0 ? "" : ", ", ids->ids[i]);
    bc_buf_putc(out, ']');
}

void model_put_floats(struct bc_buf *out, const float *values, size_t n)
{
    struct bc_jw w = {.buf = out, .first = true};
    bc_buf_putc(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i > 0) bc_buf_puts(out, ", ");
        w.after_key = true;
        bc_jw_f32(&w, values[i]);
    }
    bc_buf_putc(out, ']');
}

void model_put_input(struct bc_buf *out, const struct model_input *input)
{
    struct bitconv_ids ids = {0};
    bc_buf_printf(out, "{\"index\": %zu, ", input->index);
    if (input->text != NULL) {
        bc_buf_puts(out, "\"text\": ");
        model_put_string(out, input->text, input->len);
    } else {
        bc_buf_puts(out, "\"ids\": ");
        if (id_list_parse("--tokens", input->ids, &ids, NULL) == BITCONV_OK)
            model_put_ids(out, &ids);
        bitconv_ids_release(&ids);
    }
}

void model_put_failure(struct bc_buf *out, const struct model_input *input,
                       const struct bitconv_error *err)
{
    model_put_input(out, input);
    bc_buf_puts(out, ", \"error\": ");
    model_put_string(out, err->text, strlen(err->text));
    bc_buf_putc(out, '}');
}

bool model_parse_number(const char *text, double *out)
{
    char *end = NULL;
    *out = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*out);
}
