/* SPDX-License-Identifier: MIT
 * tokenizer.json of the Hugging Face tokenizers library, from a vocabulary. */
#include <string.h>

#include "export/export_vocab.h"

#define WORD_START "\xe2\x96\x81" /* U+2581 */

static void put_text(struct bc_jw *w, const struct bc_export_token *t)
{
    bc_jw_string_n(w, t->text, t->len);
}

/* {"type": TYPE, KEY: VALUE, ...} of strings. */
static void put_step(struct bc_jw *w, const char *type, const char *key, const char *value)
{
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "type", type);
    if (key != NULL) bc_jw_key_string(w, key, value);
    bc_jw_end_object(w);
}

static void put_replace(struct bc_jw *w, const char *from, const char *to)
{
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "type", "Replace");
    bc_jw_key(w, "pattern");
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "String", from);
    bc_jw_end_object(w);
    bc_jw_key_string(w, "content", to);
    bc_jw_end_object(w);
}

static void begin_sequence(struct bc_jw *w, const char *list)
{
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "type", "Sequence");
    bc_jw_key(w, list);
    bc_jw_begin_array(w);
}

static void end_sequence(struct bc_jw *w)
{
    bc_jw_end_array(w);
    bc_jw_end_object(w);
}

/* ---- added tokens ---- */

static void put_added(struct bc_jw *w, const struct bc_export_vocab *v)
{
    bc_jw_key(w, "added_tokens");
    bc_jw_begin_array(w);
    for (uint32_t id = 0; id < v->n; id++) {
        const struct bc_export_token *t = &v->tokens[id];
        if (!t->added) continue;
        bc_jw_begin_object(w);
        bc_jw_key_u64(w, "id", id);
        bc_jw_key(w, "content");
        put_text(w, t);
        bc_jw_key_bool(w, "single_word", false);
        bc_jw_key_bool(w, "lstrip", false);
        bc_jw_key_bool(w, "rstrip", false);
        bc_jw_key_bool(w, "normalized", false);
        bc_jw_key_bool(w, "special", t->type != BC_TOKEN_USER_DEFINED);
        bc_jw_end_object(w);
    }
    bc_jw_end_array(w);
}

/* ---- what is put around a text ---- */

static void put_special(struct bc_jw *w, const struct bc_export_token *t, int type_id)
{
    bc_jw_begin_object(w);
    bc_jw_key(w, "SpecialToken");
    bc_jw_begin_object(w);
    bc_jw_key(w, "id");
    put_text(w, t);
    bc_jw_key_u64(w, "type_id", (uint64_t)type_id);
    bc_jw_end_object(w);
    bc_jw_end_object(w);
}

static void put_sequence(struct bc_jw *w, const char *name, int type_id)
{
    bc_jw_begin_object(w);
    bc_jw_key(w, "Sequence");
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "id", name);
    bc_jw_key_u64(w, "type_id", (uint64_t)type_id);
    bc_jw_end_object(w);
    bc_jw_end_object(w);
}

/* The tokens that a template has around a text, NULL for none. */
struct affixes {
    const struct bc_export_token *bos, *eos;
};

static struct affixes affixes_of(const struct bc_export_vocab *v)
{
    const struct bc_export_specials *s = &v->e->specials;
    struct affixes a = {NULL, NULL};
    if (s->bos == 1) a.bos = bc_export_token_at(v, s->id[BC_SPECIAL_BOS]);
    if (s->end_known) a.eos = bc_export_token_at(v, s->id[BC_SPECIAL_EOS]);
    return a;
}

/* What stands between the texts of a pair is how convert knows add_sep_token (tokenizer_affixes.c):
 * nothing when the file does not say, the end of a text twice when it is true. */
static void put_between(struct bc_jw *w, const struct bc_export_vocab *v, const struct affixes *a)
{
    const struct bc_export_specials *s = &v->e->specials;
    const struct bc_export_token *sep = bc_export_token_at(v, s->id[BC_SPECIAL_SEP]);
    if (s->sep < 0) return;
    if (a->eos != NULL) put_special(w, a->eos, 0);
    if (s->sep == 1 && sep != NULL) put_special(w, sep, 0);
    if (s->sep == 0 && a->eos == NULL && a->bos != NULL) put_special(w, a->bos, 1);
}

static void put_special_tokens(struct bc_jw *w, const struct bc_export_vocab *v)
{
    static const enum bc_special kinds[] = {BC_SPECIAL_BOS, BC_SPECIAL_EOS, BC_SPECIAL_SEP};
    const struct bc_export_specials *s = &v->e->specials;
    bc_jw_key(w, "special_tokens");
    bc_jw_begin_object(w);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const int64_t id = s->id[kinds[i]];
        const struct bc_export_token *t = bc_export_token_at(v, id);
        bool twice = t == NULL;
        for (size_t j = 0; j < i; j++)
            twice = twice || s->id[kinds[j]] == id;
        if (twice) continue;
        struct bc_buf key = {0};
        bc_buf_append(&key, t->text, t->len);
        bc_jw_key(w, bc_buf_str(&key));
        bc_buf_release(&key);
        bc_jw_begin_object(w);
        bc_jw_key(w, "id");
        put_text(w, t);
        bc_jw_key(w, "ids");
        bc_jw_begin_array(w);
        bc_jw_i64(w, id);
        bc_jw_end_array(w);
        bc_jw_key(w, "tokens");
        bc_jw_begin_array(w);
        put_text(w, t);
        bc_jw_end_array(w);
        bc_jw_end_object(w);
    }
    bc_jw_end_object(w);
}

static void put_post_processor(struct bc_jw *w, const struct bc_export_vocab *v)
{
    const struct affixes a = affixes_of(v);
    bc_jw_key(w, "post_processor");
    if (a.bos == NULL && a.eos == NULL) {
        bc_jw_null(w);
        return;
    }
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "type", "TemplateProcessing");
    for (int pair = 0; pair < 2; pair++) {
        bc_jw_key(w, pair ? "pair" : "single");
        bc_jw_begin_array(w);
        if (a.bos != NULL) put_special(w, a.bos, 0);
        put_sequence(w, "A", 0);
        if (pair) put_between(w, v, &a);
        if (pair) put_sequence(w, "B", 1);
        if (a.eos != NULL) put_special(w, a.eos, pair);
        bc_jw_end_array(w);
    }
    put_special_tokens(w, v);
    bc_jw_end_object(w);
}

/* ---- the model ---- */

static void put_vocab(struct bc_jw *w, const struct bc_export_vocab *v)
{
    struct bc_buf key = {0};
    bc_jw_key(w, "vocab");
    bc_jw_begin_object(w);
    for (uint32_t id = 0; id < v->n; id++) {
        const struct bc_export_token *t = &v->tokens[id];
        if (!t->base) continue;
        bc_buf_clear(&key);
        bc_buf_append(&key, t->text, t->len);
        bc_jw_key_u64(w, bc_buf_str(&key), id);
    }
    bc_jw_end_object(w);
    w->buf->failed = w->buf->failed || key.failed;
    bc_buf_release(&key);
}

/* Pairs may hold blanks; the older form "left right" may not. */
static void put_merges(struct bc_jw *w, const struct bc_export_vocab *v)
{
    bc_jw_key(w, "merges");
    bc_jw_begin_array(w);
    for (size_t i = 0; i < v->n_merges; i++) {
        bc_jw_begin_array(w);
        put_text(w, &v->tokens[v->merges[i].left]);
        put_text(w, &v->tokens[v->merges[i].right]);
        bc_jw_end_array(w);
    }
    bc_jw_end_array(w);
}

static void put_bpe(struct bc_jw *w, const struct bc_export_vocab *v, bool byte_level,
                    bool ignore_merges)
{
    const struct bc_export_token *unk = bc_export_token_at(v, v->e->specials.id[BC_SPECIAL_UNK]);
    for (uint32_t id = 0; id < v->n && unk == NULL && !byte_level; id++)
        if (v->tokens[id].type == BC_TOKEN_UNKNOWN) unk = &v->tokens[id];
    bc_jw_key(w, "model");
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "type", "BPE");
    bc_jw_key(w, "dropout");
    bc_jw_null(w);
    bc_jw_key(w, "unk_token");
    if (unk != NULL && unk->base)
        put_text(w, unk);
    else
        bc_jw_null(w);
    bc_jw_key_bool(w, "fuse_unk", !byte_level);
    bc_jw_key_bool(w, "byte_fallback", !byte_level);
    bc_jw_key_bool(w, "ignore_merges", ignore_merges);
    put_vocab(w, v);
    put_merges(w, v);
    bc_jw_end_object(w);
}

/* ---- kinds ---- */

static enum bitconv_status put_byte_level(struct bc_jw *w, const struct bc_export_vocab *v,
                                          struct bitconv_error *err)
{
    bool ignore_merges = false;
    if (!bc_export_pre(w, v->pre, &ignore_merges))
        return bc_fail(err, BITCONV_E_UNSUPPORTED,
                       "%s: tokenizer.ggml.pre: how \"%s\" splits text is not known: say which of "
                       "the known ones (llama-bpe, qwen2, gpt-2...) it is with --pre NAME",
                       v->e->path, v->pre != NULL ? v->pre : "");
    put_post_processor(w, v);
    bc_jw_key(w, "decoder");
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "type", "ByteLevel");
    bc_jw_key_bool(w, "add_prefix_space", true);
    bc_jw_key_bool(w, "trim_offsets", true);
    bc_jw_key_bool(w, "use_regex", true);
    bc_jw_end_object(w);
    put_bpe(w, v, true, ignore_merges);
    return BITCONV_OK;
}

/* Blanks become U+2581, with or without one in front; characters that are no token become bytes. */
static void put_fallback(struct bc_jw *w, const struct bc_export_vocab *v)
{
    bc_jw_key(w, "normalizer");
    if (v->space_prefix) {
        begin_sequence(w, "normalizers");
        put_step(w, "Prepend", "prepend", WORD_START);
        put_replace(w, " ", WORD_START);
        end_sequence(w);
    } else {
        put_replace(w, " ", WORD_START);
    }
    bc_jw_key(w, "pre_tokenizer");
    bc_jw_null(w);
    put_post_processor(w, v);
    bc_jw_key(w, "decoder");
    begin_sequence(w, "decoders");
    put_replace(w, WORD_START, " ");
    put_step(w, "ByteFallback", NULL, NULL);
    put_step(w, "Fuse", NULL, NULL);
    if (v->space_prefix) {
        bc_jw_begin_object(w);
        bc_jw_key_string(w, "type", "Strip");
        bc_jw_key_string(w, "content", " ");
        bc_jw_key_u64(w, "start", 1);
        bc_jw_key_u64(w, "stop", 0);
        bc_jw_end_object(w);
    }
    end_sequence(w);
    put_bpe(w, v, false, false);
}

static void put_tristate(struct bc_jw *w, const char *key, int value)
{
    bc_jw_key(w, key);
    if (value < 0)
        bc_jw_null(w);
    else
        bc_jw_bool(w, value != 0);
}

static void put_wordpiece(struct bc_jw *w, const struct bc_export_vocab *v)
{
    const struct bc_export_token *unk = bc_export_token_at(v, v->e->specials.id[BC_SPECIAL_UNK]);
    /* readers of files that do not say make everything lower case */
    const bool stated = v->lowercase >= 0 || v->strip_accents >= 0;
    bc_jw_key(w, "normalizer");
    if (stated || !v->e->complete) {
        bc_jw_begin_object(w);
        bc_jw_key_string(w, "type", "BertNormalizer");
        bc_jw_key_bool(w, "clean_text", true);
        bc_jw_key_bool(w, "handle_chinese_chars", true);
        put_tristate(w, "strip_accents", v->strip_accents);
        put_tristate(w, "lowercase", stated ? v->lowercase : 1);
        bc_jw_end_object(w);
    } else {
        bc_jw_null(w);
    }
    bc_jw_key(w, "pre_tokenizer");
    put_step(w, "BertPreTokenizer", NULL, NULL);
    put_post_processor(w, v);
    bc_jw_key(w, "decoder");
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "type", "WordPiece");
    bc_jw_key_string(w, "prefix", "##");
    bc_jw_key_bool(w, "cleanup", true);
    bc_jw_end_object(w);
    bc_jw_key(w, "model");
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "type", "WordPiece");
    bc_jw_key(w, "unk_token");
    if (unk != NULL)
        put_text(w, unk);
    else
        bc_jw_string(w, "[UNK]");
    bc_jw_key_string(w, "continuing_subword_prefix", "##");
    bc_jw_key_u64(w, "max_input_chars_per_word", 100);
    put_vocab(w, v);
    bc_jw_end_object(w);
}

enum bitconv_status bc_export_tokenizer_json(const struct bc_export_vocab *v, struct bc_buf *out,
                                             struct bitconv_error *err)
{
    struct bc_jw w = {.buf = out};
    bc_jw_begin_object(&w);
    bc_jw_key_string(&w, "version", "1.0");
    bc_jw_key(&w, "truncation");
    bc_jw_null(&w);
    bc_jw_key(&w, "padding");
    bc_jw_null(&w);
    put_added(&w, v);
    switch (v->kind) {
    case BC_VOCAB_BYTE_LEVEL:
        BC_TRY(put_byte_level(&w, v, err));
        break;
    case BC_VOCAB_BPE_FALLBACK:
    case BC_VOCAB_SPM:
        put_fallback(&w, v);
        break;
    case BC_VOCAB_WORDPIECE:
        put_wordpiece(&w, v);
        break;
    }
    bc_jw_end_object(&w);
    bc_buf_putc(out, '\n');
    return out->failed ? bc_fail_nomem(err, "tokenizer.json") : BITCONV_OK;
}
