/* SPDX-License-Identifier: MIT
 * bitconv generate: texts that go on from prompts, or the logits behind them. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "generate_view.h"

enum { DEFAULT_TOKENS = 128, DEFAULT_CANDIDATES = 10 };

struct settings {
    struct model_settings model;
    struct option_count n_predict;
    unsigned top_k;
    uint64_t seed;
    const char *temperature, *top_p;
    bool ignore_eos, special, logits;
};

static const struct option_row options[] = {
    MODEL_RUN_OPTIONS(struct settings, model),
    {"n-predict", 'n', OPTION_COUNT, offsetof(struct settings, n_predict), "N",
     "tokens at most (default 128)"},
    {"temp", 0, OPTION_STRING, offsetof(struct settings, temperature), "T",
     "draw tokens, logits divided by T; 0 (default):\nalways the likeliest"},
    {"top-k", 0, OPTION_UINT, offsetof(struct settings, top_k), "K", "draw from the K likeliest"},
    {"top-p", 0, OPTION_STRING, offsetof(struct settings, top_p), "P",
     "draw from the likeliest that together have\nprobability P"},
    {"seed", 0, OPTION_NUMBER, offsetof(struct settings, seed), "N",
     "of the random numbers (default 0); for each\ntext anew"},
    {"ignore-eos", 0, OPTION_FLAG, offsetof(struct settings, ignore_eos), NULL,
     "go on behind the end of the text"},
    {"special", 0, OPTION_FLAG, offsetof(struct settings, special), NULL,
     "show special tokens in the text"},
    {"logits", 0, OPTION_FLAG, offsetof(struct settings, logits), NULL,
     "no text: the --top-k (default 10) likeliest\nnext tokens; with --json all logits too"},
    {NULL, 0, OPTION_FLAG, 0, NULL, NULL},
};

struct generating {
    struct ui *ui;
    const struct settings *s;
    struct model_run model;
    struct bitconv_generate_options options;
    struct bitconv_ids stop_ids, prompt;
    bool as_json, as_lines, terminal; /* one document; a line for each input; stdout's kind */
    bool any_failed, any_written;
    struct bc_buf out;
};

/* ---- output ---- */

/* Text as it comes. */
static enum bitconv_status on_text(void *user, const char *text, size_t len,
                                   struct bitconv_error *err)
{
    struct generating *g = user;
    generate_put_text(text, len, g->terminal, &g->out);
    if (g->out.failed) return bc_fail_nomem(err, "text");
    const enum bitconv_status status = ui_stream(&g->out, err);
    (void)fflush(stdout); /* a failure stays in ferror: the next piece ends it */
    return status;
}

static void say_statistics(struct generating *g, const struct bitconv_generation *r)
{
    const double p = r->prompt_seconds, s = r->generate_seconds;
    bc_say(&g->ui->sink, BITCONV_NOTE,
           "%zu tokens of prompt in %.2f s (%.1f/s), %zu generated in %.2f s (%.1f/s), %u threads, "
           "%s, %s; ended by %s",
           g->prompt.n, p, p > 0 ? (double)g->prompt.n / p : 0, r->tokens.n, s,
           s > 0 ? (double)r->tokens.n / s : 0, g->model.info.n_threads, g->model.info.cpu,
           g->model.info.mode, bitconv_stop_name(r->stop));
}

static void say_context_is_full(struct generating *g, const struct model_input *input)
{
    const uint32_t n = g->model.info.n_ctx, all = g->model.info.n_ctx_model;
    if (n < all)
        ui_warn(g->ui, "text %zu ends as its context of %u tokens is full (-c up to %u gives more)",
                input->index + 1, n, all);
    else
        ui_warn(g->ui, "text %zu ends as the model's context of %u tokens is full",
                input->index + 1, n);
}

/* Ends a record and writes it: lines of JSON. Members of the document's list are kept until all of
 * them are there: half a document is none. */
static enum bitconv_status write_record(struct generating *g, struct bitconv_error *err)
{
    if (g->as_lines) bc_buf_putc(&g->out, '\n');
    if (g->out.failed) return bc_fail_nomem(err, "output");
    return g->as_json ? BITCONV_OK : ui_stream(&g->out, err);
}

/* In front of a record. */
static void begin_record(struct generating *g)
{
    if (g->as_json) bc_buf_puts(&g->out, g->any_written ? ",\n    " : "\n    ");
    if (!g->as_json && !g->as_lines && g->any_written) bc_buf_putc(&g->out, '\n');
    g->any_written = true;
}

/* ---- one prompt ---- */

static enum bitconv_status show_logits(struct generating *g, const struct model_input *input,
                                       struct bitconv_error *err)
{
    struct bitconv_run run = {.want_logits = BITCONV_LOGITS_LAST};
    const size_t n_top = g->s->top_k > 0 ? g->s->top_k : DEFAULT_CANDIDATES;
    int32_t *tokens = bc_alloc_array(g->prompt.n, sizeof *tokens);
    if (tokens == NULL) return bc_fail_nomem(err, "token ids");
    for (size_t i = 0; i < g->prompt.n; i++)
        tokens[i] = g->prompt.ids[i] > INT32_MAX ? -1 : (int32_t)g->prompt.ids[i];
    bitconv_session_reset(g->model.session);
    const enum bitconv_status status =
        bitconv_session_run(g->model.session, tokens, g->prompt.n, &run, err);
    bc_free(tokens);
    BC_TRY(status);
    begin_record(g);
    if (g->as_json || g->as_lines)
        generate_logits_json(&g->model, input, &g->prompt, run.logits, n_top, &g->out);
    else
        generate_logits_table(g->ui, &g->model, run.logits, n_top, &g->out);
    return write_record(g, err);
}

static enum bitconv_status show_text(struct generating *g, const struct model_input *input,
                                     struct bitconv_error *err)
{
    struct bitconv_generation result = {.stop = BITCONV_STOP_LENGTH};
    const bool streams = !g->as_json && !g->as_lines;
    if (streams) begin_record(g);
    enum bitconv_status status =
        bitconv_generate(g->model.session, g->model.tok, g->prompt.ids, g->prompt.n, &g->options,
                         &g->ui->sink, &result, err);
    if (streams && (status == BITCONV_OK || result.text.size > 0)) {
        bc_buf_putc(&g->out, '\n');
        ui_write(&g->out);
        bc_buf_clear(&g->out);
    }
    if (status == BITCONV_OK && !streams) {
        begin_record(g);
        generate_json(input, &g->prompt, &result, g->ui->globals->verbose, &g->out);
        status = write_record(g, err);
    }
    if (status == BITCONV_OK) say_statistics(g, &result);
    if (status == BITCONV_OK && result.stop == BITCONV_STOP_CONTEXT) say_context_is_full(g, input);
    bitconv_generation_release(&result);
    return status;
}

static enum bitconv_status on_input(void *user, const struct model_input *input,
                                    struct bitconv_error *err)
{
    struct generating *g = user;
    enum bitconv_status status =
        model_encode(&g->model, input, bitconv_prompt_encode, &g->prompt, err);
    if (status == BITCONV_OK)
        status = g->s->logits ? show_logits(g, input, err) : show_text(g, input, err);
    if (status == BITCONV_OK || !g->as_lines || !model_failed_input(status)) return status;
    model_put_failure(&g->out, input, err);
    g->any_failed = true;
    *err = (struct bitconv_error){.status = BITCONV_OK};
    return write_record(g, err);
}

/* ---- the command ---- */

static void open_document(struct generating *g)
{
    bc_buf_puts(&g->out, "{\n  \"file\": ");
    model_put_string(&g->out, g->model.path, strlen(g->model.path));
    bc_buf_printf(&g->out, ",\n  \"family\": \"%s\",\n  \"mode\": \"%s\",\n  \"results\": [",
                  g->model.info.family, g->model.info.mode);
}

static int generate_all(struct generating *g, const char *const *args, size_t n_args)
{
    struct ui *ui = g->ui;
    struct bitconv_error err = {0};
    if (model_open(ui, ui->globals, args[0], &g->s->model, &g->model, &err) != BITCONV_OK ||
        bitconv_stop_ids(args[0], g->model.tok, &g->stop_ids, &err) != BITCONV_OK)
        return ui_fail_to_do(ui, &err);
    if (!g->model.info.causal) {
        bc_fail(&err, BITCONV_E_ARG,
                "%s: a model that attends in both directions gives embeddings, no next tokens",
                args[0]);
        return ui_fail_to_do(ui, &err);
    }
    g->options.stop_ids = g->stop_ids.ids;
    g->options.n_stop_ids = g->s->ignore_eos ? 0 : g->stop_ids.n;
    if (!g->as_json && !g->as_lines) g->options.on_text = on_text;
    if (g->as_json) open_document(g);
    if (model_each_input(ui, &g->s->model, args, n_args, "generating", on_input, g, &err) !=
        BITCONV_OK)
        return ui_fail_to_do(ui, &err);
    if (g->as_json) {
        bc_buf_puts(&g->out, "\n  ]\n}\n");
        return ui_finish(ui, &g->out);
    }
    if (g->any_failed) ui_warn(ui, "some texts could not be run: see \"error\" in their lines");
    return g->any_failed ? 2 : 0;
}

static int read_sampling(struct ui *ui, const struct settings *s, struct bitconv_sampling *out)
{
    out->top_k = s->top_k;
    out->seed = s->seed;
    if (s->temperature != NULL &&
        (!model_parse_number(s->temperature, &out->temperature) || out->temperature < 0))
        return ui_usage(ui, "generate", "--temp: a number of 0 or more was expected");
    if (s->top_p != NULL &&
        (!model_parse_number(s->top_p, &out->top_p) || out->top_p <= 0 || out->top_p > 1))
        return ui_usage(ui, "generate", "--top-p: a number above 0 and up to 1 was expected");
    if (out->temperature == 0 && (s->top_p != NULL || (s->top_k > 0 && !s->logits)))
        ui_warn(ui, "the likeliest token is always taken: --top-k and --top-p need --temp");
    return 0;
}

static int run(struct ui *ui, const struct globals *globals, const void *settings,
               const char *const *args, size_t n_args)
{
    const struct settings *s = settings;
    struct generating g = {.ui = ui, .s = s, .terminal = isatty(STDOUT_FILENO) == 1};
    int status = model_check_usage(ui, "generate", &s->model, n_args);
    if (status == 0) status = read_sampling(ui, s, &g.options.sampling);
    if (status != 0) return status;
    g.as_json = globals->json && s->model.file == NULL;
    g.as_lines = s->model.file != NULL;
    g.options.n_predict = s->n_predict.given ? s->n_predict.n : DEFAULT_TOKENS;
    g.options.show_special = s->special;
    g.options.user = &g;
    status = generate_all(&g, args, n_args);
    bc_buf_release(&g.out);
    bitconv_ids_release(&g.prompt);
    bitconv_ids_release(&g.stop_ids);
    model_close(&g.model);
    return status;
}

const struct command command_generate = {
    .name = "generate",
    .summary = "go on from a prompt, or show the logits behind it",
    .usage = "generate FILE|DIR -p TEXT [options]",
    .examples = "  bitconv generate model.gguf -p \"The capital of France is\" -n 16\n"
                "  bitconv generate model.gguf -p \"Once\" --temp 0.8 --top-k 40 --seed 7\n"
                "  bitconv generate model.gguf -p \"The capital of France is\" --logits\n"
                "  bitconv generate model.gguf --file prompts.txt -n 32 > texts.jsonl\n"
                "  bitconv generate checkpoint/ --tokens 1,450,7483 -n 4 --json\n",
    .options = options,
    .settings_size = sizeof(struct settings),
    .run = run,
};
