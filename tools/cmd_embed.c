/* SPDX-License-Identifier: MIT
 * bitconv embed: vectors of texts. */
#include <string.h>

#include "cmd.h"
#include "embed_view.h"

enum { MAX_NORM = 1000 };

struct settings {
    struct model_settings model;
    const char *pooling, *normalize, *format;
};

static const struct option_row options[] = {
    MODEL_RUN_OPTIONS(struct settings, model),
    {"pooling", 0, OPTION_STRING, offsetof(struct settings, pooling), "TYPE",
     "none, mean, cls or last (default: the model's,\nelse mean)"},
    {"embd-normalize", 0, OPTION_STRING, offsetof(struct settings, normalize), "N",
     "-1 not, 0 largest magnitude to 32760, 1\ntaxicab, 2 Euclidean (default), N: the N-norm"},
    {"embd-output-format", 0, OPTION_STRING, offsetof(struct settings, format), "FORMAT",
     "array, json (OpenAI's), json+ (with cosines)"},
    {NULL, 0, OPTION_FLAG, 0, NULL, NULL},
};

/* The formats of --embd-output-format and what stands without it. */
static const struct format {
    const char *name;
    void (*show)(const struct embed_view *view, struct bc_buf *out);
} formats[] = {{"array", embed_array}, {"json", embed_openai}, {"json+", embed_openai_cosines}};

struct embedding_run {
    struct ui *ui;
    const struct model_settings *s;
    struct model_run model;
    struct embed_view view;
    bool as_lines; /* each result is written as it comes */
    bool any_failed;
    int32_t *tokens; /* of one text */
    size_t cap_tokens;
    struct embedding *items;
    size_t n_items, cap_items;
    struct bc_arena texts;
};

/* ---- options ---- */

static bool read_pooling(const char *name, int *pooling)
{
    *pooling = -1;
    if (name == NULL) return true;
    for (int i = 0; embed_pooling_name(i) != NULL; i++)
        if (strcmp(embed_pooling_name(i), name) == 0) *pooling = i;
    return *pooling >= 0;
}

static bool read_normalize(const char *text, int *normalize)
{
    double value = 2;
    if (text != NULL && !model_parse_number(text, &value)) return false;
    if (!(value >= -1 && value <= MAX_NORM)) return false;
    *normalize = (int)value;
    return *normalize == value;
}

/* NULL: unknown. */
static const struct format *find_format(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, name) == 0) return &formats[i];
    return NULL;
}

/* ---- one text ---- */

static enum bitconv_status encode(const struct bitconv_tokenizer *tok, const char *text, size_t len,
                                  struct bitconv_ids *ids, struct bitconv_error *err)
{
    return bitconv_tokenizer_encode(tok, text, len, true, ids, err);
}

static enum bitconv_status signed_ids(struct embedding_run *r, const struct bitconv_ids *ids,
                                      struct bitconv_error *err)
{
    while (r->cap_tokens < ids->n)
        if (!bc_grow((void **)&r->tokens, &r->cap_tokens, r->cap_tokens, sizeof *r->tokens))
            return bc_fail_nomem(err, "token ids");
    for (size_t i = 0; i < ids->n; i++)
        r->tokens[i] = ids->ids[i] > INT32_MAX ? -1 : (int32_t)ids->ids[i];
    return BITCONV_OK;
}

static enum bitconv_status compute(struct embedding_run *r, struct embedding *item,
                                   struct bitconv_error *err)
{
    const struct bitconv_engine_info *info = &r->model.info;
    BC_TRY(model_encode(&r->model, &item->input, encode, &item->ids, err));
    if (item->ids.n > info->n_ctx)
        return bc_fail(err, BITCONV_E_LIMIT,
                       "%s: a text of %zu tokens does not fit into a context of %u (-c gives more "
                       "where the model has it: %u)",
                       info->path, item->ids.n, info->n_ctx, info->n_ctx_model);
    BC_TRY(signed_ids(r, &item->ids, err));
    item->n_rows = r->view.pooling == 0 ? item->ids.n : 1;
    item->values = bc_alloc_array(item->n_rows, info->n_embd * sizeof *item->values);
    if (item->values == NULL) return bc_fail_nomem(err, "an embedding");
    return bitconv_session_embed(r->model.session, r->tokens, item->ids.n, r->view.pooling,
                                 r->view.normalize, item->values, err);
}

static void release_item(struct embedding *item)
{
    bitconv_ids_release(&item->ids);
    bc_free(item->values);
}

static enum bitconv_status keep(struct embedding_run *r, struct embedding *item,
                                struct bitconv_error *err)
{
    if (item->input.text != NULL)
        item->input.text = bc_arena_strndup(&r->texts, item->input.text, item->input.len);
    if ((item->input.text == NULL && item->input.ids == NULL) ||
        !bc_grow((void **)&r->items, &r->cap_items, r->n_items, sizeof *r->items))
        return bc_fail_nomem(err, "embeddings");
    r->items[r->n_items++] = *item;
    *item = (struct embedding){.n_rows = 0};
    return BITCONV_OK;
}

/* A line of JSON, also for a text that failed. */
static enum bitconv_status write_line(struct embedding_run *r, const struct embedding *item,
                                      enum bitconv_status status, struct bitconv_error *err)
{
    struct bc_buf out = {0};
    if (status != BITCONV_OK && !model_failed_input(status)) return status;
    if (status == BITCONV_OK)
        embed_json_line(&r->view, item, &out);
    else
        model_put_failure(&out, &item->input, err);
    r->any_failed = r->any_failed || status != BITCONV_OK;
    *err = (struct bitconv_error){.status = BITCONV_OK};
    bc_buf_putc(&out, '\n');
    status = out.failed ? bc_fail_nomem(err, "output") : ui_stream(&out, err);
    bc_buf_release(&out);
    return status;
}

static enum bitconv_status on_input(void *user, const struct model_input *input,
                                    struct bitconv_error *err)
{
    struct embedding_run *r = user;
    struct embedding item = {.input = *input};
    enum bitconv_status status = compute(r, &item, err);
    if (r->as_lines)
        status = write_line(r, &item, status, err);
    else if (status == BITCONV_OK)
        status = keep(r, &item, err);
    release_item(&item);
    return status;
}

/* ---- the command ---- */

static int embed_all(struct embedding_run *r, const struct format *format, const char *const *args,
                     size_t n_args)
{
    struct bitconv_error err = {0};
    struct bc_buf out = {0};
    if (model_open(r->ui, r->ui->globals, args[0], r->s, &r->model, &err) != BITCONV_OK)
        return ui_fail_to_do(r->ui, &err);
    r->view.info = &r->model.info;
    if (r->view.pooling < 0) r->view.pooling = r->model.info.pooling;
    if (r->view.pooling < 0) r->view.pooling = 1;
    if (model_each_input(r->ui, r->s, args, n_args, "embedding", on_input, r, &err) != BITCONV_OK)
        return ui_fail_to_do(r->ui, &err);
    if (r->as_lines && r->any_failed) {
        ui_warn(r->ui, "some texts have no embedding: see \"error\" in their lines");
        return 2;
    }
    if (r->as_lines) return 0;
    r->view.items = r->items;
    r->view.n = r->n_items;
    if (format != NULL)
        format->show(&r->view, &out);
    else if (r->ui->globals->json)
        embed_json(&r->view, &out);
    else
        embed_text(&r->view, &out);
    return ui_finish(r->ui, &out);
}

static int run(struct ui *ui, const struct globals *globals, const void *settings,
               const char *const *args, size_t n_args)
{
    const struct settings *s = settings;
    struct embedding_run r = {.ui = ui, .s = &s->model, .view = {.ui = ui}};
    const struct format *const format = s->format != NULL ? find_format(s->format) : NULL;
    int status = model_check_usage(ui, "embed", &s->model, n_args);
    if (status != 0) return status;
    if (s->format != NULL && format == NULL)
        return ui_usage(ui, "embed", "--embd-output-format: array, json or json+ was expected");
    if (!read_pooling(s->pooling, &r.view.pooling))
        return ui_usage(ui, "embed", "--pooling: none, mean, cls or last was expected");
    if (!read_normalize(s->normalize, &r.view.normalize))
        return ui_usage(ui, "embed", "--embd-normalize: a whole number from -1 to %d was expected",
                        MAX_NORM);
    r.as_lines = s->model.file != NULL && format == NULL && !globals->json;
    status = embed_all(&r, format, args, n_args);
    for (size_t i = 0; i < r.n_items; i++)
        release_item(&r.items[i]);
    bc_free(r.items);
    bc_free(r.tokens);
    bc_arena_release(&r.texts);
    model_close(&r.model);
    return status;
}

const struct command command_embed = {
    .name = "embed",
    .summary = "vectors of texts from an embedding model, or any other",
    .usage = "embed FILE|DIR -p TEXT... [options]",
    .examples = "  bitconv embed model.gguf -p \"A cat sits on the mat\" \"It rains\"\n"
                "  bitconv embed checkpoint/ -p \"A cat\" --pooling last --embd-normalize -1\n"
                "  bitconv embed model.gguf -p \"A cat\" --embd-output-format json\n"
                "  bitconv embed model.gguf --file lines.txt > vectors.jsonl\n"
                "  bitconv embed model.gguf --tokens 101,1037,4937,102 --json\n",
    .options = options,
    .settings_size = sizeof(struct settings),
    .run = run,
};
