/* SPDX-License-Identifier: MIT
 * bitconv tokenize: texts to token ids and back, and the hash of a pre-tokenizer. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "bitconv/tokenize.h"
#include "cmd.h"
#include "id_list.h"
#include "model_run.h"
#include "text_lines.h"
#include "tokenize_view.h"

struct settings {
    bool ids, no_special, escaped, check_hash;
    const char *file, *decode;
};

static const struct option_row options[] = {
    {"ids", 0, OPTION_FLAG, offsetof(struct settings, ids), NULL, "print nothing but the ids"},
    {"no-special", 0, OPTION_FLAG, offsetof(struct settings, no_special), NULL,
     "add no bos, eos, [CLS]...; with --decode\nleave special tokens out"},
    {"file", 0, OPTION_STRING, offsetof(struct settings, file), "FILE",
     "one text a line (-: standard input); one line\nof JSON (or ids) for each"},
    {"escaped", 0, OPTION_FLAG, offsetof(struct settings, escaped), NULL,
     "the lines of FILE are JSON strings: \"a\\nb\""},
    {"decode", 0, OPTION_STRING, offsetof(struct settings, decode), "IDS",
     "the text of ids: 1,2,3"},
    {"check-hash", 0, OPTION_FLAG, offsetof(struct settings, check_hash), NULL,
     "the hashes by which Python converters name\nthe pre-tokenizer; 1 where they contradict it"},
    {NULL, 0, OPTION_FLAG, 0, NULL, NULL},
};

/* ---- one text ---- */

static int encode_text(struct ui *ui, const struct globals *globals, const struct settings *s,
                       const struct bitconv_tokenizer *tok, const char *text)
{
    struct bitconv_ids ids = {0};
    struct bitconv_error err = {0};
    struct bc_buf out = {0};
    int status;
    if (bitconv_tokenizer_encode(tok, text, strlen(text), !s->no_special, &ids, &err) !=
        BITCONV_OK) {
        status = ui_fail(ui, &err);
    } else {
        if (globals->json)
            tokenize_json(tok, text, &ids, &out);
        else if (s->ids)
            tokenize_ids(&ids, &out);
        else
            tokenize_table(ui, tok, &ids, &out);
        status = ui_finish(ui, &out);
    }
    bitconv_ids_release(&ids);
    return status;
}

/* ---- a file of texts ---- */

struct encoding {
    const struct settings *s;
    const struct bitconv_tokenizer *tok;
    struct bitconv_ids ids;
    struct bc_buf out;
};

static enum bitconv_status encode_line(void *user, const struct text_line *line,
                                       struct bitconv_error *err)
{
    struct encoding *e = user;
    e->ids.n = 0;
    BC_TRY(
        bitconv_tokenizer_encode(e->tok, line->text, line->len, !e->s->no_special, &e->ids, err));
    if (e->s->ids)
        tokenize_ids(&e->ids, &e->out);
    else
        tokenize_json_line(e->tok, line->text, line->len, &e->ids, &e->out);
    if (e->out.failed) return bc_fail_nomem(err, "output");
    return ui_stream(&e->out, err);
}

static int encode_file(struct ui *ui, const struct settings *s, const struct bitconv_tokenizer *tok)
{
    struct encoding e = {.s = s, .tok = tok};
    struct bitconv_error err = {0};
    const enum bitconv_status status =
        text_lines_each(s->file, s->escaped, NULL, &ui->sink, encode_line, &e, &err);
    bitconv_ids_release(&e.ids);
    bc_buf_release(&e.out);
    return status == BITCONV_OK ? 0 : ui_fail(ui, &err);
}

/* ---- ids to text ---- */

static void put_text(const struct globals *globals, const struct bitconv_text *text,
                     struct bc_buf *out)
{
    if (globals->json) {
        tokenize_decoded_json(text, out);
        return;
    }
    /* Bytes for a file or a pipe; what a terminal would obey is masked. */
    if (isatty(STDOUT_FILENO) == 1)
        bc_utf8_mask(out, text->data, text->size, 0);
    else
        bc_buf_append(out, text->data, text->size);
    bc_buf_putc(out, '\n');
}

static int decode_ids(struct ui *ui, const struct globals *globals, const struct settings *s,
                      const struct bitconv_tokenizer *tok)
{
    struct bitconv_ids ids = {0};
    struct bitconv_text text = {0};
    struct bitconv_error err = {0};
    struct bc_buf out = {0};
    int status;
    if (id_list_parse("--decode", s->decode, &ids, &err) != BITCONV_OK ||
        bitconv_tokenizer_decode(tok, ids.ids, ids.n, s->no_special, &text, &err) != BITCONV_OK) {
        status = ui_fail(ui, &err);
    } else {
        put_text(globals, &text, &out);
        status = ui_finish(ui, &out);
    }
    bitconv_ids_release(&ids);
    bitconv_text_release(&text);
    return status;
}

/* ---- hashes ---- */

static int check_hash(struct ui *ui, const struct globals *globals,
                      const struct bitconv_tokenizer *tok)
{
    struct bitconv_check_hash hashes[BITCONV_N_CHECK_TEXTS];
    struct bitconv_error err = {0};
    struct bc_buf out = {0};
    for (int i = 0; i < BITCONV_N_CHECK_TEXTS; i++)
        if (bitconv_tokenizer_check_hash(tok, (enum bitconv_check_text)i, &hashes[i], &err) !=
            BITCONV_OK)
            return ui_fail(ui, &err);
    if (globals->json)
        tokenize_hashes_json(tok, hashes, &out);
    else
        tokenize_hashes(tok, hashes, &out);
    int status = ui_finish(ui, &out);
    for (int i = 0; status == 0 && i < BITCONV_N_CHECK_TEXTS; i++)
        if (!hashes[i].agrees) status = 1;
    return status;
}

static int run_open(struct ui *ui, const struct globals *globals, const struct settings *s,
                    const struct bitconv_tokenizer *tok, const char *text)
{
    if (s->check_hash) return check_hash(ui, globals, tok);
    if (s->decode != NULL) return decode_ids(ui, globals, s, tok);
    if (s->file != NULL) return encode_file(ui, s, tok);
    return encode_text(ui, globals, s, tok, text);
}

static int run(struct ui *ui, const struct globals *globals, const void *settings,
               const char *const *args, size_t n_args)
{
    const struct settings *s = settings;
    const int n_tasks = s->check_hash + (s->decode != NULL) + (s->file != NULL);
    struct bitconv_tokenizer *tok = NULL;
    struct bitconv_error err = {0};
    if (n_tasks > 1)
        return ui_usage(ui, "tokenize", "only one of --file, --decode and --check-hash at a time");
    if (n_args != (n_tasks == 0 ? 2u : 1u))
        return ui_usage(
            ui, "tokenize",
            n_tasks == 0
                ? "a file or folder and one text were expected, %zu given (quote texts with spaces)"
                : "one file or folder was expected, %zu given",
            n_args);
    if (s->escaped && s->file == NULL)
        return ui_usage(ui, "tokenize", "--escaped says how the lines of --file are written");
    if (bitconv_tokenizer_open(args[0], &ui->sink, &tok, &err) != BITCONV_OK)
        return ui_fail(ui, &err);
    const int status = run_open(ui, globals, s, tok, n_args > 1 ? args[1] : NULL);
    bitconv_tokenizer_close(tok);
    return status;
}

const struct command command_tokenize = {
    .name = "tokenize",
    .summary = "turn text into token ids and back, from a GGUF or a checkpoint",
    .usage = "tokenize FILE|DIR TEXT [options]",
    .examples = "  bitconv tokenize model.gguf \"Hello, world\"\n"
                "  bitconv tokenize checkpoint/ \"Hello, world\" --ids --no-special\n"
                "  bitconv tokenize model.gguf --file lines.txt > ids.jsonl\n"
                "  bitconv tokenize model.gguf --decode 9906,11,1917\n"
                "  bitconv tokenize checkpoint/ --check-hash\n",
    .options = options,
    .settings_size = sizeof(struct settings),
    .run = run,
};
