/* SPDX-License-Identifier: MIT
 * The tokenizer files: which ones, and tokenizer_config.json with the special tokens and the chat
 * templates. */
#include <string.h>

#include "base/utf8.h"
#include "export/export_folder.h"
#include "export/export_vocab.h"

#define TEMPLATE_KEY "tokenizer.chat_template"

/* ---- special tokens by name ---- */

/* The key under which a file names the token of a kind: where a template ends every text with eos,
 * what is called eos_token there is the chat's end of turn. NULL: the kind has no name. */
static const char *key_of(const struct bc_export_vocab *v, enum bc_special kind)
{
    const struct bc_export_specials *s = &v->e->specials;
    const bool bert = v->kind == BC_VOCAB_WORDPIECE;
    if (bert && kind == BC_SPECIAL_BOS) return "cls_token"; /* convert makes bos and eos of them */
    if (bert && kind == BC_SPECIAL_EOS) return NULL;
    if (s->end_known && kind == BC_SPECIAL_EOT) return "eos_token";
    if (s->end_known && kind == BC_SPECIAL_EOS && s->id[BC_SPECIAL_EOT] >= 0) return NULL;
    return bc_special_name(kind)->token_key;
}

/* The tokens that a file may name: those that no earlier file is to name first. */
static void put_named(struct bc_jw *w, const struct bc_export_vocab *v, enum bc_export_says file)
{
    const struct bc_export_specials *s = &v->e->specials;
    for (int kind = 0; kind < BC_N_SPECIALS; kind++) {
        const struct bc_export_token *t = bc_export_token_at(v, s->id[kind]);
        const char *key = key_of(v, (enum bc_special)kind);
        const bool cls = v->kind == BC_VOCAB_WORDPIECE && kind == BC_SPECIAL_BOS;
        if (t == NULL || key == NULL || (s->from[kind] > file && !cls)) continue;
        bc_jw_key(w, key);
        bc_jw_string_n(w, t->text, t->len);
    }
}

static void put_switch(struct bc_jw *w, const char *key, int value)
{
    if (value >= 0) bc_jw_key_bool(w, key, value != 0);
}

/* ---- chat templates ---- */

/* A template's text; false when no JSON text of ours could hold it. */
static bool template_text(const struct bc_exporter *e, const struct bitconv_gguf_key *key,
                          const char **text, size_t *len)
{
    if (!bitconv_gguf_value_string(&key->value, text, len)) return false;
    if (bc_utf8_valid(*text, *len) && memchr(*text, '\0', *len) == NULL) return true;
    bc_say(e->sink, BITCONV_WARNING, "%s: %s: not a text in UTF-8, not carried", e->path,
           key->name);
    return false;
}

/* "default" for the plain key, NAME for ".NAME", NULL for other keys. */
static const char *template_name(const struct bitconv_gguf_key *key)
{
    const size_t n = strlen(TEMPLATE_KEY);
    if (strncmp(key->name, TEMPLATE_KEY, n) != 0 || strlen(key->name) != key->name_len) return NULL;
    if (key->name[n] == '\0') return "default";
    return key->name[n] == '.' && key->name[n + 1] != '\0' ? key->name + n + 1 : NULL;
}

static void put_templates(struct bc_jw *w, const struct bc_exporter *e)
{
    const char *text = NULL;
    size_t len = 0, n = 0;
    const struct bitconv_gguf_key *only = NULL;
    for (size_t i = 0; i < bitconv_gguf_n_keys(e->file); i++) {
        const struct bitconv_gguf_key *key = bitconv_gguf_key_at(e->file, i);
        if (template_name(key) != NULL && ++n == 1) only = key;
    }
    if (n == 0) return;
    if (n == 1 && strcmp(template_name(only), "default") == 0) {
        if (!template_text(e, only, &text, &len)) return;
        bc_jw_key(w, "chat_template");
        bc_jw_string_n(w, text, len);
        return;
    }
    bc_jw_key(w, "chat_template");
    bc_jw_begin_array(w);
    for (size_t i = 0; i < bitconv_gguf_n_keys(e->file); i++) {
        const struct bitconv_gguf_key *key = bitconv_gguf_key_at(e->file, i);
        const char *name = template_name(key);
        if (name == NULL || !template_text(e, key, &text, &len)) continue;
        bc_jw_begin_object(w);
        bc_jw_key_string(w, "name", name);
        bc_jw_key(w, "template");
        bc_jw_string_n(w, text, len);
        bc_jw_end_object(w);
    }
    bc_jw_end_array(w);
}

/* ---- tokenizer_config.json ---- */

/* tokenizer.model has no list of added tokens: this is where convert and transformers look. */
static void put_decoder(struct bc_jw *w, const struct bc_export_vocab *v)
{
    bc_jw_key(w, "added_tokens_decoder");
    bc_jw_begin_object(w);
    for (uint32_t id = 0; id < v->n; id++) {
        const struct bc_export_token *t = &v->tokens[id];
        char key[16];
        struct bc_buf text = {0};
        if (!t->added) continue;
        bc_buf_printf(&text, "%u", (unsigned)id);
        memcpy(key, bc_buf_str(&text), text.size + 1); /* ten digits at most */
        bc_buf_release(&text);
        bc_jw_key(w, key);
        bc_jw_begin_object(w);
        bc_jw_key(w, "content");
        bc_jw_string_n(w, t->text, t->len);
        bc_jw_key_bool(w, "lstrip", false);
        bc_jw_key_bool(w, "normalized", false);
        bc_jw_key_bool(w, "rstrip", false);
        bc_jw_key_bool(w, "single_word", false);
        bc_jw_key_bool(w, "special", t->type != BC_TOKEN_USER_DEFINED);
        bc_jw_end_object(w);
    }
    bc_jw_end_object(w);
}

static const char *class_of(enum bc_vocab_kind kind)
{
    switch (kind) {
    case BC_VOCAB_SPM:
        return "LlamaTokenizer";
    case BC_VOCAB_WORDPIECE:
        return "BertTokenizer";
    case BC_VOCAB_BYTE_LEVEL:
    case BC_VOCAB_BPE_FALLBACK:
        break;
    }
    return "PreTrainedTokenizerFast"; /* whatever tokenizer.json says */
}

static void config_text(const struct bc_export_vocab *v, struct bc_buf *text)
{
    const struct bc_export_specials *s = &v->e->specials;
    struct bc_jw w = {.buf = text};
    bc_jw_begin_object(&w);
    put_switch(&w, "add_bos_token", s->bos);
    put_switch(&w, "add_eos_token", s->eos);
    put_switch(&w, "add_sep_token", s->sep);
    if (v->kind == BC_VOCAB_SPM) put_decoder(&w, v);
    put_named(&w, v, BC_SAYS_CONFIG);
    put_templates(&w, v->e);
    bc_jw_key_bool(&w, "clean_up_tokenization_spaces", false);
    if (v->kind == BC_VOCAB_WORDPIECE) {
        put_switch(&w, "do_lower_case", v->lowercase);
        put_switch(&w, "strip_accents", v->strip_accents);
    }
    bc_jw_key_u64(&w, "model_max_length", v->e->hp.n_ctx);
    bc_jw_key_string(&w, "tokenizer_class", class_of(v->kind));
    bc_jw_end_object(&w);
    bc_buf_putc(text, '\n');
}

static void map_text(const struct bc_export_vocab *v, struct bc_buf *text)
{
    struct bc_jw w = {.buf = text};
    bc_jw_begin_object(&w);
    put_named(&w, v, BC_SAYS_MAP);
    bc_jw_end_object(&w);
    bc_buf_putc(text, '\n');
}

/* ---- which files ---- */

/* vocab.txt: the token of id n on line n. */
static enum bitconv_status put_lines(const struct bc_export_vocab *v,
                                     struct bc_export_folder *folder, struct bitconv_error *err)
{
    struct bc_buf text = {0};
    for (uint32_t id = 0; id < v->n && !v->tokens[id].padding; id++) {
        bc_buf_append(&text, v->tokens[id].text, v->tokens[id].len);
        bc_buf_putc(&text, '\n');
    }
    const enum bitconv_status status = bc_export_put(folder, "vocab.txt", &text, err);
    bc_buf_release(&text);
    return status;
}

static enum bitconv_status put_model(const struct bc_export_vocab *v,
                                     struct bc_export_folder *folder, struct bitconv_error *err)
{
    struct bc_buf model = {0};
    bc_export_spm(v, &model);
    const enum bitconv_status status = bc_export_put(folder, "tokenizer.model", &model, err);
    bc_buf_release(&model);
    return status;
}

static enum bitconv_status put_json(const struct bc_export_vocab *v,
                                    struct bc_export_folder *folder, struct bitconv_error *err)
{
    struct bc_buf text = {0};
    enum bitconv_status status = bc_export_tokenizer_json(v, &text, err);
    if (status == BITCONV_OK) status = bc_export_put(folder, "tokenizer.json", &text, err);
    bc_buf_release(&text);
    return status;
}

/* The source kind decides what convert writes, so the files are those that gave the metadata:
 * tokenizer.model where its scores are there (with a tokenizer.json beside it where convert prefers
 * the model, without where it would not), vocab.txt where nothing speaks of a post-processor. */
static enum bitconv_status put_vocabulary(const struct bc_export_vocab *v,
                                          struct bc_export_folder *folder,
                                          struct bitconv_error *err)
{
    const struct bc_exporter *e = v->e;
    if (v->kind == BC_VOCAB_WORDPIECE && e->specials.bos < 0 && e->specials.eos < 0)
        return put_lines(v, folder, err);
    if (v->kind == BC_VOCAB_SPM) {
        BC_TRY(put_model(v, folder, err));
        if (!bc_tokenizer_rules(e->arch->traits.tokenizer, e->target)->spm_first) return BITCONV_OK;
    }
    return put_json(v, folder, err);
}

/* The tokenizers library numbers added tokens behind the vocabulary: where they do not stand just
 * there, they are put into it, which gives them their ids. */
static void settle_ids(struct bc_export_vocab *v)
{
    uint32_t next = 0, n_base = 0;
    bool ordered = true;
    for (uint32_t id = 0; id < v->n; id++)
        n_base += v->tokens[id].base;
    next = n_base;
    for (uint32_t id = 0; id < v->n; id++) {
        const struct bc_export_token *t = &v->tokens[id];
        if (t->base && id >= n_base) ordered = false;
        if (!t->base && t->added && id != next++) ordered = false;
    }
    for (uint32_t id = 0; id < v->n && !ordered; id++)
        v->tokens[id].base = !v->tokens[id].padding;
}

enum bitconv_status bc_export_tokenizer(struct bc_exporter *e, struct bc_export_folder *folder,
                                        struct bitconv_error *err)
{
    struct bc_export_vocab v = {.e = e};
    struct bc_buf config = {0}, map = {0};
    bool found = false;
    enum bitconv_status status = bc_export_vocab_read(e, &v, &found, err);
    if (status == BITCONV_OK && !found)
        bc_say(e->sink, BITCONV_WARNING,
               "%s: no tokenizer in the metadata: no tokenizer files are written", e->path);
    if (status == BITCONV_OK && found) {
        settle_ids(&v);
        config_text(&v, &config);
        map_text(&v, &map);
        status = put_vocabulary(&v, folder, err);
        if (status == BITCONV_OK)
            status = bc_export_put(folder, "tokenizer_config.json", &config, err);
        if (status == BITCONV_OK)
            status = bc_export_put(folder, "special_tokens_map.json", &map, err);
    }
    bc_buf_release(&config);
    bc_buf_release(&map);
    bc_export_vocab_release(&v);
    return status;
}
