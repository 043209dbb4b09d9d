/* SPDX-License-Identifier: MIT
 * How `bitconv tokenize` shows what it found. */
#include "tokenize_view.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"

static const char *const check_names[BITCONV_N_CHECK_TEXTS] = {
    [BITCONV_CHECK_UPSTREAM] = "convert_hf_to_gguf.py, convert-hf-to-gguf-bitnet.py",
    [BITCONV_CHECK_EMBEDDING] = "convert-bitnet-embedding-to-gguf.py",
};
static const char *const check_keys[BITCONV_N_CHECK_TEXTS] = {
    [BITCONV_CHECK_UPSTREAM] = "upstream",
    [BITCONV_CHECK_EMBEDDING] = "embedding",
};

static void put_about(const struct bitconv_tokenizer *tok, struct bc_buf *out)
{
    struct bitconv_tokenizer_info info;
    bitconv_tokenizer_info(tok, &info);
    bc_buf_printf(out, "%s, %" PRIu32 " tokens, from %s", info.algorithm, info.n_tokens,
                  info.source);
    if (info.pre != NULL) {
        bc_buf_puts(out, ", pre-tokenizer ");
        bc_utf8_mask(out, info.pre, strlen(info.pre), 40);
    }
    bc_buf_putc(out, '\n');
}

void tokenize_table(const struct ui *ui, const struct bitconv_tokenizer *tok,
                    const struct bitconv_ids *ids, struct bc_buf *out)
{
    put_about(tok, out);
    bc_buf_printf(out, "%s%8s  %s%s\n", ui_on(ui, UI_BOLD), "id", "token", ui_off(ui));
    for (size_t i = 0; i < ids->n; i++) {
        bool special = false;
        const char *const piece = bitconv_tokenizer_piece(tok, ids->ids[i], &special);
        bc_buf_printf(out, "%8" PRIu32 "  %s", ids->ids[i], special ? ui_on(ui, UI_DIM) : "");
        if (piece != NULL) bc_utf8_mask(out, piece, strlen(piece), 66);
        bc_buf_printf(out, "%s\n", special ? ui_off(ui) : "");
    }
    bc_buf_printf(out, "%zu token%s\n", ids->n, ids->n == 1 ? "" : "s");
}

void tokenize_ids(const struct bitconv_ids *ids, struct bc_buf *out)
{
    for (size_t i = 0; i < ids->n; i++)
        bc_buf_printf(out, "%s%" PRIu32, i == 0 ? "" : ",", ids->ids[i]);
    bc_buf_putc(out, '\n');
}

void tokenize_json(const struct bitconv_tokenizer *tok, const char *text,
                   const struct bitconv_ids *ids, struct bc_buf *out)
{
    struct bc_jw w = {.buf = out, .first = true};
    struct bitconv_tokenizer_info info;
    bitconv_tokenizer_info(tok, &info);
    bc_jw_begin_object(&w);
    bc_jw_key_string(&w, "algorithm", info.algorithm);
    bc_jw_key_string(&w, "source", info.source);
    bc_jw_key_string(&w, "tokenizer", info.model);
    bc_jw_key_string(&w, "pre", info.pre);
    bc_jw_key_u64(&w, "vocab_size", info.n_tokens);
    bc_jw_key_string(&w, "text", text);
    bc_jw_key(&w, "tokens");
    bc_jw_begin_array(&w);
    for (size_t i = 0; i < ids->n; i++) {
        bool special = false;
        const char *const piece = bitconv_tokenizer_piece(tok, ids->ids[i], &special);
        bc_jw_begin_object(&w);
        bc_jw_key_u64(&w, "id", ids->ids[i]);
        bc_jw_key_string(&w, "piece", piece);
        bc_jw_key_bool(&w, "special", special);
        bc_jw_end_object(&w);
    }
    bc_jw_end_array(&w);
    bc_jw_end_object(&w);
    bc_buf_putc(out, '\n');
}

/* A string of the JSON writer, which indents only containers. */
static void put_string(struct bc_buf *out, const char *s, size_t len)
{
    struct bc_jw w = {.buf = out, .first = true, .after_key = true};
    bc_jw_string_n(&w, s, len);
}

void tokenize_json_line(const struct bitconv_tokenizer *tok, const char *text, size_t len,
                        const struct bitconv_ids *ids, struct bc_buf *out)
{
    bc_buf_puts(out, "{\"text\": ");
    put_string(out, text, len);
    bc_buf_puts(out, ", \"ids\": [");
    for (size_t i = 0; i < ids->n; i++)
        bc_buf_printf(out, "%s%" PRIu32, i == 0 ? "" : ", ", ids->ids[i]);
    bc_buf_puts(out, "], \"pieces\": [");
    for (size_t i = 0; i < ids->n; i++) {
        const char *const piece = bitconv_tokenizer_piece(tok, ids->ids[i], NULL);
        if (i > 0) bc_buf_puts(out, ", ");
        put_string(out, piece == NULL ? "" : piece, piece == NULL ? 0 : strlen(piece));
    }
    bc_buf_puts(out, "]}\n");
}

void tokenize_decoded_json(const struct bitconv_text *text, struct bc_buf *out)
{
    struct bc_jw w = {.buf = out, .first = true};
    struct bc_buf hex = {0};
    bc_jw_begin_object(&w);
    bc_jw_key(&w, "text");
    bc_jw_string_n(&w, text->data, text->size);
    if (!bc_utf8_valid(text->data, text->size)) {
        for (size_t i = 0; i < text->size; i++)
            bc_buf_printf(&hex, "%02x", (unsigned)(uint8_t)text->data[i]);
        bc_jw_key_string(&w, "bytes", bc_buf_str(&hex));
    }
    bc_jw_end_object(&w);
    bc_buf_putc(out, '\n');
    out->failed = out->failed || hex.failed;
    bc_buf_release(&hex);
}

static const char *verdict_of(const struct bitconv_tokenizer_info *info,
                              const struct bitconv_check_hash *hash)
{
    if (hash->name == NULL) return "not in the converters' lists";
    if (info->pre == NULL) return "listed";
    return hash->agrees ? "agrees with the structure" : "CONTRADICTS the structure";
}

void tokenize_hashes(const struct bitconv_tokenizer *tok, const struct bitconv_check_hash *hashes,
                     struct bc_buf *out)
{
    struct bitconv_tokenizer_info info;
    bitconv_tokenizer_info(tok, &info);
    put_about(tok, out);
    for (int i = 0; i < BITCONV_N_CHECK_TEXTS; i++) {
        bc_buf_printf(out, "%s:\n  %s\n  %s%s%s\n", check_names[i], hashes[i].sha256,
                      hashes[i].name == NULL ? "" : hashes[i].name,
                      hashes[i].name == NULL ? "" : ": ", verdict_of(&info, &hashes[i]));
    }
}

void tokenize_hashes_json(const struct bitconv_tokenizer *tok,
                          const struct bitconv_check_hash *hashes, struct bc_buf *out)
{
    struct bc_jw w = {.buf = out, .first = true};
    struct bitconv_tokenizer_info info;
    bitconv_tokenizer_info(tok, &info);
    bc_jw_begin_object(&w);
    bc_jw_key_string(&w, "pre", info.pre);
    bc_jw_key(&w, "hashes");
    bc_jw_begin_object(&w);
    for (int i = 0; i < BITCONV_N_CHECK_TEXTS; i++) {
        bc_jw_key(&w, check_keys[i]);
        bc_jw_begin_object(&w);
        bc_jw_key_string(&w, "sha256", hashes[i].sha256);
        bc_jw_key_string(&w, "name", hashes[i].name);
        bc_jw_key_bool(&w, "agrees", hashes[i].agrees);
        bc_jw_end_object(&w);
    }
    bc_jw_end_object(&w);
    bc_jw_end_object(&w);
    bc_buf_putc(out, '\n');
}
