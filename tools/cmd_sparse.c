/* SPDX-License-Identifier: MIT
 * `bitconv sparse`: predictors of active neurons, and runs that compute those alone. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/utf8.h"
#include "bitconv/sparse.h"
#include "bitconv/tokenize.h"
#include "cmd.h"
#include "id_list.h"
#include "sparse_view.h"
#include "text_lines.h"

struct settings {
    const char *prompts, *eval, *text, *tokens;
    const char *share, *threshold, *ridge;
    unsigned rank, top_k, n_generate;
    uint64_t memory;
    const char *outfile, *predictor, *mode;
    bool f32, force;
};

#define AT(member) offsetof(struct settings, member)

static const struct option_row options[] = {
    {"prompts", 0, OPTION_STRING, AT(prompts), "FILE",
     "calibrate: one text a line (-: standard input)"},
    {"prompt", 'p', OPTION_STRING, AT(text), "TEXT", "one text; run: what to go on from"},
    {"tokens", 0, OPTION_STRING, AT(tokens), "IDS", "the text as token ids: 1,2,3"},
    {"eval", 0, OPTION_STRING, AT(eval), "FILE", "calibrate: held-out texts, for the report"},
    {"rank", 'r', OPTION_WIDTH, AT(rank), "R", "calibrate: rank of the predictor (32)"},
    {"top-k", 'k', OPTION_UINT, AT(top_k), "K", "neurons that are computed for a token"},
    {"share", 0, OPTION_STRING, AT(share), "S",
     "the same as a share of all (0.3); 1 computes\nall of them and equals dense exactly"},
    {"threshold", 0, OPTION_STRING, AT(threshold), "T", "those with a score of at least T"},
    {"ridge", 0, OPTION_STRING, AT(ridge), "L",
     "calibrate: ridge, times the mean square of\nthe inputs (0.01)"},
    {"memory", 0, OPTION_SIZE, AT(memory), "SIZE",
     "calibrate: for sums over the samples (2G);\nless takes more passes"},
    {"f32", 0, OPTION_FLAG, AT(f32), NULL, "calibrate: store F32, not F16"},
    {"outfile", 'o', OPTION_OUTPUT, AT(outfile), "FILE", "calibrate: the predictor (required)"},
    {"force", 'f', OPTION_FLAG, AT(force), NULL, "replace an existing output"},
    {"predictor", 0, OPTION_STRING, AT(predictor), "FILE", "run: from calibrate (required)"},
    {"n-predict", 'n', OPTION_UINT, AT(n_generate), "N", "run: tokens to generate, greedily (0)"},
    {"mode", 0, OPTION_STRING, AT(mode), "M", "float (default) or int8 activations"},
    {NULL, 0, OPTION_FLAG, 0, NULL, NULL},
};

/* Texts as the library wants them. Zero-initialise. */
struct texts {
    struct bitconv_sparse_text *items;
    size_t n, cap;
};

static void release_texts(struct texts *t)
{
    for (size_t i = 0; i < t->n; i++)
        bc_free((void *)(uintptr_t)t->items[i].tokens);
    bc_free(t->items);
}

/* ---- texts ---- */

static enum bitconv_status add_ids(struct texts *t, const uint32_t *ids, size_t n,
                                   struct bitconv_error *err)
{
    int32_t *tokens = bc_alloc_array(n, sizeof *tokens);
    if (tokens == NULL || !bc_grow((void **)&t->items, &t->cap, t->n, sizeof *t->items)) {
        bc_free(tokens);
        return bc_fail_nomem(err, "texts");
    }
    for (size_t i = 0; i < n; i++)
        tokens[i] = ids[i] <= INT32_MAX ? (int32_t)ids[i] : -1;
    t->items[t->n++] = (struct bitconv_sparse_text){tokens, n};
    return BITCONV_OK;
}

/* Texts without tokens are passed over. */
static enum bitconv_status add_text(struct texts *t, const struct bitconv_tokenizer *tok,
                                    const char *text, size_t len, struct bitconv_error *err)
{
    struct bitconv_ids ids = {0};
    enum bitconv_status status = bitconv_tokenizer_encode(tok, text, len, true, &ids, err);
    if (status == BITCONV_OK && ids.n > 0) status = add_ids(t, ids.ids, ids.n, err);
    bitconv_ids_release(&ids);
    return status;
}

struct adding {
    struct texts *texts;
    const struct bitconv_tokenizer *tok;
};

static enum bitconv_status on_line(void *user, const struct text_line *line,
                                   struct bitconv_error *err)
{
    const struct adding *const a = user;
    return line->len > 0 ? add_text(a->texts, a->tok, line->text, line->len, err) : BITCONV_OK;
}

static enum bitconv_status add_file(struct texts *t, const struct bitconv_tokenizer *tok,
                                    const char *path, const struct bitconv_sink *sink,
                                    struct bitconv_error *err)
{
    struct adding adding = {t, tok};
    const size_t before = t->n;
    BC_TRY(text_lines_each(path, false, NULL, sink, on_line, &adding, err));
    if (t->n == before)
        return bc_fail(err, BITCONV_E_ARG, "%s: no texts, wanted one a line",
                       strcmp(path, "-") == 0 ? "standard input" : path);
    return BITCONV_OK;
}

static enum bitconv_status add_list(struct texts *t, const char *list, struct bitconv_error *err)
{
    struct bitconv_ids ids = {0};
    enum bitconv_status status = id_list_parse("--tokens", list, &ids, err);
    if (status == BITCONV_OK) status = add_ids(t, ids.ids, ids.n, err);
    bitconv_ids_release(&ids);
    return status;
}

/* --prompts, -p and --tokens into `texts`, --eval into `eval`. */
static enum bitconv_status read_texts(const struct settings *s, const struct bitconv_tokenizer *tok,
                                      const struct bitconv_sink *sink, struct texts *texts,
                                      struct texts *eval, struct bitconv_error *err)
{
    if (s->prompts != NULL) BC_TRY(add_file(texts, tok, s->prompts, sink, err));
    if (s->text != NULL) BC_TRY(add_text(texts, tok, s->text, strlen(s->text), err));
    if (s->tokens != NULL) BC_TRY(add_list(texts, s->tokens, err));
    if (s->eval != NULL) BC_TRY(add_file(eval, tok, s->eval, sink, err));
    return BITCONV_OK;
}

/* ---- numbers ---- */

static enum bitconv_status read_number(const char *name, const char *text, double *out,
                                       struct bitconv_error *err)
{
    char *end;
    if (text == NULL) return BITCONV_OK;
    *out = strtod(text, &end);
    if (end == text || *end != '\0' || !(*out - *out == 0))
        return bc_fail(err, BITCONV_E_ARG, "%s: \"%s\" is not a number", name, text);
    return BITCONV_OK;
}

static enum bitconv_status read_options(const struct settings *s, const struct globals *globals,
                                        struct bitconv_sparse_options *o, struct bitconv_error *err)
{
    *o = (struct bitconv_sparse_options){.n_threads = globals->threads,
                                         .cpu = globals->cpu,
                                         .mode = s->mode,
                                         .rank = s->rank,
                                         .memory = s->memory,
                                         .f32 = s->f32,
                                         .outfile = s->outfile,
                                         .force = s->force,
                                         .predictor = s->predictor,
                                         .n_generate = s->n_generate};
    o->rule.top_k = s->top_k;
    o->rule.has_threshold = s->threshold != NULL;
    BC_TRY(read_number("--threshold", s->threshold, &o->rule.threshold, err));
    BC_TRY(read_number("--share", s->share, &o->rule.share, err));
    if (s->share != NULL && o->rule.share == 0)
        return bc_fail(err, BITCONV_E_ARG, "--share: 0 is not above 0 and at most 1");
    return read_number("--ridge", s->ridge, &o->ridge, err);
}

/* ---- the two commands ---- */

static enum bitconv_status calibrate(struct ui *ui, const char *path,
                                     const struct bitconv_sparse_options *o, struct bc_buf *out,
                                     struct bitconv_error *err)
{
    struct bitconv_sparse_report *r;
    BC_TRY(bitconv_sparse_calibrate(path, o, &ui->sink, &r, err));
    if (ui->globals->json) {
        sparse_json(r, o->outfile, NULL, 0, out);
    } else {
        ui_cell(out, o->outfile, 0, false);
        bc_buf_puts(out, ": ");
        sparse_table(ui, r, out);
    }
    bitconv_sparse_report_free(r);
    return BITCONV_OK;
}

/* Generated ids as text; left empty without a tokenizer. */
static enum bitconv_status decode(const struct bitconv_tokenizer *tok,
                                  const struct bitconv_sparse_report *r, struct bitconv_text *text,
                                  struct bitconv_error *err)
{
    if (tok == NULL || r->n_generated == 0) return BITCONV_OK;
    uint32_t *ids = bc_alloc_array(r->n_generated, sizeof *ids);
    if (ids == NULL) return bc_fail_nomem(err, "a text");
    for (size_t i = 0; i < r->n_generated; i++)
        ids[i] = (uint32_t)r->generated[i];
    const enum bitconv_status status =
        bitconv_tokenizer_decode(tok, ids, r->n_generated, true, text, err);
    bc_free(ids);
    return status;
}

static void put_run(const struct ui *ui, const struct bitconv_sparse_report *r,
                    const struct bitconv_text *text, struct bc_buf *out)
{
    if (text->data != NULL) {
        bc_utf8_mask(out, text->data, text->size, 0);
        bc_buf_putc(out, '\n');
    } else if (r->n_generated > 0) {
        for (size_t i = 0; i < r->n_generated; i++)
            bc_buf_printf(out, "%s%" PRId32, i == 0 ? "" : ",", r->generated[i]);
        bc_buf_putc(out, '\n');
    }
    sparse_table(ui, r, out);
}

static enum bitconv_status generate(struct ui *ui, const char *path,
                                    const struct bitconv_sparse_options *o,
                                    const struct bitconv_tokenizer *tok, struct bc_buf *out,
                                    struct bitconv_error *err)
{
    struct bitconv_sparse_report *r;
    struct bitconv_text text = {0};
    BC_TRY(bitconv_sparse_run(path, o, &ui->sink, &r, err));
    const enum bitconv_status status = decode(tok, r, &text, err);
    if (status == BITCONV_OK && ui->globals->json)
        sparse_json(r, NULL, text.data, text.size, out);
    else if (status == BITCONV_OK)
        put_run(ui, r, &text, out);
    bitconv_text_release(&text);
    bitconv_sparse_report_free(r);
    return status;
}

static enum bitconv_status run_with(struct ui *ui, const struct settings *s, bool calibrating,
                                    const char *path, struct bitconv_tokenizer *tok,
                                    struct texts *texts, struct texts *eval, struct bc_buf *out,
                                    struct bitconv_error *err)
{
    struct bitconv_sparse_options o;
    BC_TRY(read_options(s, ui->globals, &o, err));
    const char *const inputs[] = {s->prompts, s->eval};
    const struct bc_out_options out_options = {
        .force = s->force, .input_paths = inputs, .n_input_paths = 2};
    if (calibrating) BC_TRY(bc_out_probe(s->outfile, &out_options, err));
    BC_TRY(read_texts(s, tok, &ui->sink, texts, eval, err));
    if (texts->n == 0) return bc_fail(err, BITCONV_E_ARG, "the text has no tokens");
    if (!calibrating) {
        o.prompt = texts->items[0];
        return generate(ui, path, &o, tok, out, err);
    }
    o.texts = texts->items;
    o.n_texts = texts->n;
    o.eval = eval->items;
    o.n_eval = eval->n;
    return calibrate(ui, path, &o, out, err);
}

static int run_open(struct ui *ui, const struct settings *s, bool calibrating, const char *path,
                    struct bitconv_tokenizer *tok)
{
    struct texts texts = {0}, eval = {0};
    struct bc_buf out = {0};
    struct bitconv_error err = {0};
    const enum bitconv_status status =
        run_with(ui, s, calibrating, path, tok, &texts, &eval, &out, &err);
    release_texts(&texts);
    release_texts(&eval);
    if (status == BITCONV_OK) return ui_finish(ui, &out);
    bc_buf_release(&out);
    return ui_fail_to_do(ui, &err);
}

static const char *what_is_missing(const struct settings *s, bool calibrating)
{
    const int n = (s->text != NULL) + (s->tokens != NULL) + (s->prompts != NULL);
    const bool one_stdin = s->prompts != NULL && s->eval != NULL && strcmp(s->prompts, "-") == 0 &&
                           strcmp(s->eval, "-") == 0;
    if (calibrating)
        return s->outfile == NULL ? "-o FILE is missing"
               : n == 0           ? "texts are missing: --prompts FILE, -p TEXT or --tokens IDS"
               : one_stdin        ? "--prompts and --eval cannot both be standard input"
                                  : NULL;
    return s->predictor == NULL           ? "--predictor FILE is missing"
           : n != 1 || s->prompts != NULL ? "one text is wanted: -p TEXT or --tokens IDS"
           : s->eval != NULL              ? "--eval is for calibrate"
                                          : NULL;
}

static int run(struct ui *ui, const struct globals *globals, const void *settings,
               const char *const *args, size_t n_args)
{
    const struct settings *s = settings;
    struct bitconv_tokenizer *tok = NULL;
    struct bitconv_error err = {0};
    (void)globals;
    const bool calibrating = n_args > 0 && strcmp(args[0], "calibrate") == 0;
    if (n_args == 0 || (!calibrating && strcmp(args[0], "run") != 0))
        return ui_usage(ui, "sparse", "calibrate or run was expected first");
    if (n_args != 2)
        return ui_usage(ui, "sparse", "one file or folder was expected, %zu given", n_args - 1);
    const char *missing = what_is_missing(s, calibrating);
    if (missing != NULL) return ui_usage(ui, "sparse", "%s", missing);
    /* ids need no tokenizer */
    if ((s->text != NULL || s->prompts != NULL || s->eval != NULL) &&
        bitconv_tokenizer_open(args[1], &ui->sink, &tok, &err) != BITCONV_OK)
        return ui_fail_to_do(ui, &err);
    const int status = run_open(ui, s, calibrating, args[1], tok);
    bitconv_tokenizer_close(tok);
    return status;
}

const struct command command_sparse = {
    .name = "sparse",
    .summary = "predict which neurons of a model are active, and compute only those",
    .usage = "sparse calibrate|run FILE|DIR [options]",
    .examples = "  bitconv sparse calibrate model.gguf --prompts lines.txt --eval more.txt \\\n"
                "          --rank 64 --share 0.3 -o predictor.gguf\n"
                "  bitconv sparse run model.gguf --predictor predictor.gguf -p \"Once\" -n 32\n"
                "  bitconv sparse run model.gguf --predictor predictor.gguf --share 0.1 \\\n"
                "          -p \"Once\" -n 32 --mode int8 --json\n"
                "  bitconv sparse calibrate checkpoint/ --tokens 1,17,42 -o predictor.gguf\n",
    .options = options,
    .settings_size = sizeof(struct settings),
    .run = run,
};
