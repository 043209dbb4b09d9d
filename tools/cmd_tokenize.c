/* SPDX-License-Identifier: MIT
 * bitconv tokenize: texts to token ids and back, and the hash of a pre-tokenizer. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"
#include "bitconv/tokenize.h"
#include "cmd.h"
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
     "one text a line; one line of JSON (or ids)\nfor each"},
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

/* A line of the file as the text it stands for; `scratch` holds what a JSON string becomes. */
static enum bitconv_status text_of_line(const struct settings *s, const char **text, size_t *len,
                                        struct bc_buf *scratch, struct bitconv_error *err)
{
    struct bc_json *json = NULL;
    if (!s->escaped) return BITCONV_OK;
    BC_TRY(bc_json_parse(*text, *len, s->file, &json, err));
    const char *const string = bc_json_string(json);
    bc_buf_clear(scratch);
    if (string != NULL) bc_buf_puts(scratch, string);
    bc_json_free(json);
    if (string == NULL)
        return bc_fail(err, BITCONV_E_CORRUPT, "%s: a line is not a JSON string", s->file);
    if (scratch->failed) return bc_fail_nomem(err, "text");
    *text = bc_buf_str(scratch);
    *len = scratch->size;
    return BITCONV_OK;
}

static enum bitconv_status encode_line(const struct settings *s,
                                       const struct bitconv_tokenizer *tok, const char *text,
                                       size_t len, struct bitconv_ids *ids, struct bc_buf *scratch,
                                       struct bc_buf *out, struct bitconv_error *err)
{
    BC_TRY(text_of_line(s, &text, &len, scratch, err));
    ids->n = 0;
    BC_TRY(bitconv_tokenizer_encode(tok, text, len, !s->no_special, ids, err));
    if (s->ids)
        tokenize_ids(ids, out);
    else
        tokenize_json_line(tok, text, len, ids, out);
    return out->failed ? bc_fail_nomem(err, "output") : BITCONV_OK;
}

static enum bitconv_status encode_lines(const struct settings *s,
                                        const struct bitconv_tokenizer *tok,
                                        const struct bc_file *file, struct ui *ui,
                                        struct bitconv_error *err)
{
    struct bitconv_ids ids = {0};
    struct bc_buf out = {0};
    struct bc_buf scratch = {0};
    enum bitconv_status status = BITCONV_OK;
    const char *const text = (const char *)file->data;
    const size_t size = (size_t)file->size;
    for (size_t at = 0; at < size && status == BITCONV_OK;) {
        const char *const newline = memchr(text + at, '\n', size - at);
        const size_t len = newline == NULL ? size - at : (size_t)(newline - text) - at;
        status = encode_line(s, tok, text + at, len, &ids, &scratch, &out, err);
        at += len + 1;
        ui_write(&out);
        bc_buf_clear(&out);
        if (ui->sink.cancel != NULL && *ui->sink.cancel != 0)
            status = bc_fail(err, BITCONV_E_CANCELED, "interrupted");
    }
    bitconv_ids_release(&ids);
    bc_buf_release(&out);
    bc_buf_release(&scratch);
    return status;
}

static int encode_file(struct ui *ui, const struct settings *s, const struct bitconv_tokenizer *tok)
{
    struct bc_file file;
    struct bitconv_error err = {0};
    if (bc_file_open(s->file, &file, &err) != BITCONV_OK) return ui_fail(ui, &err);
    const enum bitconv_status status = encode_lines(s, tok, &file, ui, &err);
    bc_file_close(&file);
    return status == BITCONV_OK ? 0 : ui_fail(ui, &err);
}

/* ---- ids to text ---- */

/* "1,2,3" with commas or blanks between; false when it is something else. */
static bool parse_ids(const char *text, struct bitconv_ids *ids)
{
    while (*text != '\0') {
        text += strspn(text, ", ");
        if (*text == '\0') break;
        const size_t n = strspn(text, "0123456789");
        if (n == 0 || n > 9) return false;
        if (!bc_grow((void **)&ids->ids, &ids->cap, ids->n, sizeof *ids->ids)) return false;
        ids->ids[ids->n++] = (uint32_t)strtoul(text, NULL, 10);
        text += n;
    }
    return true;
}

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
    if (!parse_ids(s->decode, &ids)) {
        status =
            ui_usage(ui, "tokenize", "--decode: \"%s\" is not a list of ids (1,2,3)", s->decode);
    } else if (bitconv_tokenizer_decode(tok, ids.ids, ids.n, s->no_special, &text, &err) !=
               BITCONV_OK) {
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
        return ui_usage(ui, "tokenize",
                        n_tasks == 0
                            ? "a file or folder and one text were expected, %zu arguments given"
                            : "one file or folder was expected, %zu arguments given",
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
