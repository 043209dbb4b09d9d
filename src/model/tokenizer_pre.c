/* SPDX-License-Identifier: MIT
 * Recognising how a tokenizer splits text from its structure. Reference converters hash the ids of
 * a sample text, which fails for every fine-tune that adds a token; the regular expressions stay.
 */
#include "model/tokenizer_pre.h"

#include <string.h>

#include "base/error.h"

static const char *type_of(const struct bc_json *node)
{
    const char *const type = bc_json_string(bc_json_get(node, "type"));
    return type == NULL ? "" : type;
}

static bool flag(const struct bc_json *node, const char *key, bool fallback)
{
    bool value = fallback;
    (void)bc_json_bool(bc_json_get(node, key), &value);
    return value;
}

/* MergedWithPrevious -> merged-with-previous: one word of the signature. */
static void put_behavior(struct bc_buf *out, const struct bc_json *node)
{
    const char *const name = bc_json_string(bc_json_get(node, "behavior"));
    bc_buf_putc(out, '-');
    for (const char *c = name == NULL ? "?" : name; *c != '\0'; c++) {
        const bool upper = *c >= 'A' && *c <= 'Z';
        if (upper && c != name) bc_buf_putc(out, '-');
        bc_buf_putc(out, upper ? (char)(*c - 'A' + 'a') : *c);
    }
}

/* Line ends inside an expression mean the same as their escapes, which fit into a message. */
static void put_regex(struct bc_buf *out, const char *regex)
{
    for (; *regex != '\0'; regex++) {
        if (*regex == '\r')
            bc_buf_puts(out, "\\r");
        else if (*regex == '\n')
            bc_buf_puts(out, "\\n");
        else
            bc_buf_putc(out, *regex);
    }
}

/* {"Regex": ...} as /.../, {"String": ...} as '...'. */
static void put_pattern(struct bc_buf *out, const struct bc_json *pattern)
{
    const char *const regex = bc_json_string(bc_json_get(pattern, "Regex"));
    const char *const string = bc_json_string(bc_json_get(pattern, "String"));
    if (regex == NULL) {
        bc_buf_printf(out, "'%s'", string == NULL ? "?" : string);
        return;
    }
    bc_buf_putc(out, '/');
    put_regex(out, regex);
    bc_buf_putc(out, '/');
}

static void put_split(struct bc_buf *out, const struct bc_json *node)
{
    bc_buf_puts(out, "split");
    put_behavior(out, node);
    if (flag(node, "invert", false)) bc_buf_puts(out, "-inverted");
    put_pattern(out, bc_json_get(node, "pattern"));
}

/* use_regex (absent: true) means GPT-2's own expression inside the step. */
static void put_byte_level(struct bc_buf *out, const struct bc_json *node)
{
    bc_buf_puts(out, flag(node, "use_regex", true) ? "gpt2-bytes" : "bytes");
    if (flag(node, "add_prefix_space", true)) bc_buf_puts(out, "+space");
}

/* prepend_scheme is newer than add_prefix_space; both default to a space in front. */
static void put_metaspace(struct bc_buf *out, const struct bc_json *node)
{
    const char *const scheme = bc_json_string(bc_json_get(node, "prepend_scheme"));
    const char *const replacement = bc_json_string(bc_json_get(node, "replacement"));
    const bool prefix =
        scheme != NULL ? strcmp(scheme, "never") != 0 : flag(node, "add_prefix_space", true);
    bc_buf_printf(out, "metaspace'%s'%s", replacement == NULL ? "?" : replacement,
                  prefix ? "+space" : "");
}

/* One step that is not a Sequence. Types without a case show their name only: no row has them. */
static void put_step(struct bc_buf *out, const struct bc_json *node)
{
    const char *const type = type_of(node);
    if (strcmp(type, "Split") == 0) {
        put_split(out, node);
    } else if (strcmp(type, "ByteLevel") == 0) {
        put_byte_level(out, node);
    } else if (strcmp(type, "Metaspace") == 0) {
        put_metaspace(out, node);
    } else if (strcmp(type, "Digits") == 0) {
        bc_buf_puts(out, flag(node, "individual_digits", false) ? "digits-each" : "digits");
    } else if (strcmp(type, "Punctuation") == 0) {
        bc_buf_puts(out, "punctuation");
        if (bc_json_get(node, "behavior") != NULL)
            put_behavior(out, node);
        else
            bc_buf_puts(out, "-isolated");
    } else if (strcmp(type, "Replace") == 0) {
        bc_buf_puts(out, "replace");
        put_pattern(out, bc_json_get(node, "pattern"));
        const char *const content = bc_json_string(bc_json_get(node, "content"));
        bc_buf_printf(out, "'%s'", content == NULL ? "?" : content);
    } else if (strcmp(type, "Prepend") == 0) {
        const char *const text = bc_json_string(bc_json_get(node, "prepend"));
        bc_buf_printf(out, "prepend'%s'", text == NULL ? "?" : text);
    } else {
        bc_buf_puts(out, type[0] == '\0' ? "?" : type);
    }
}

/* The steps of a Sequence, those of Sequences within it in their place: they apply one after the
 * other all the same. The depth is that of the JSON text, which is bounded. */
static void put_list(struct bc_buf *out, const struct bc_json *node, const char *list_key,
                     size_t start)
{
    if (strcmp(type_of(node), "Sequence") != 0) {
        if (out->size > start) bc_buf_putc(out, ' ');
        put_step(out, node);
        return;
    }
    for (const struct bc_json *step = bc_json_first(bc_json_get(node, list_key)); step != NULL;
         step = bc_json_next(step))
        put_list(out, step, list_key, start);
}

/* A step or a Sequence of steps; "none" where there is no step. */
static void put_steps(struct bc_buf *out, const struct bc_json *node, const char *list_key)
{
    const size_t start = out->size;
    if (bc_json_is(node, BC_JSON_OBJECT)) put_list(out, node, list_key, start);
    if (out->size == start) bc_buf_puts(out, "none");
}

void bc_pre_signature(const struct bc_json *tokenizer, struct bc_buf *out)
{
    put_steps(out, bc_json_get(tokenizer, "normalizer"), "normalizers");
    bc_buf_puts(out, " | ");
    put_steps(out, bc_json_get(tokenizer, "pre_tokenizer"), "pretokenizers");
}

/* The splittings of SentencePiece-style BPE: blanks become U+2581, with or without one in front.
 * All are tokenizer.ggml.pre "default". */
static const struct {
    const char *signature;
    int space_prefix;
} spm_rows[] = {
    {"prepend'\xe2\x96\x81' replace' ''\xe2\x96\x81' | none", 1},    /* Llama 2 */
    {"replace' ''\xe2\x96\x81' | split-merged-with-previous' '", 0}, /* Gemma 3 */
    {"replace' ''\xe2\x96\x81' | none", 0},                          /* Gemma */
    {"none | metaspace'\xe2\x96\x81'+space", 1},                     /* Mistral */
    {"none | metaspace'\xe2\x96\x81'", 0},
};

static const char *find_llama(const char *signature, int *space_prefix)
{
    for (size_t i = 0; i < sizeof spm_rows / sizeof spm_rows[0]; i++) {
        if (strcmp(signature, spm_rows[i].signature) != 0) continue;
        if (*space_prefix < 0) *space_prefix = spm_rows[i].space_prefix;
        return "default";
    }
    return NULL;
}

static const char *find_gpt2(const char *signature, bool ignore_merges)
{
    for (size_t i = 0; i < bc_pre_n_rows; i++) {
        const struct bc_pre_row *const row = &bc_pre_rows[i];
        if (row->ignore_merges >= 0 && row->ignore_merges != (int)ignore_merges) continue;
        if (strcmp(row->signature, signature) == 0) return row->name;
    }
    return NULL;
}

static const char *find_name(const struct bc_json *tokenizer, const char *model,
                             const char *signature, int *space_prefix)
{
    if (strcmp(model, "llama") == 0) return find_llama(signature, space_prefix);
    return find_gpt2(signature, flag(bc_json_get(tokenizer, "model"), "ignore_merges", false));
}

const char *bc_pre_name(const struct bc_json *tokenizer, const char *model)
{
    struct bc_buf signature = {0};
    int space_prefix = -1;
    bc_pre_signature(tokenizer, &signature);
    const char *const name =
        signature.failed ? NULL
                         : find_name(tokenizer, model, bc_buf_str(&signature), &space_prefix);
    bc_buf_release(&signature);
    return name;
}

enum bitconv_status bc_pre_recognise(const struct bc_json *tokenizer, const char *name,
                                     const struct bitconv_sink *sink, struct bc_vocab *vocab,
                                     struct bitconv_error *err)
{
    struct bc_buf signature = {0};
    bc_pre_signature(tokenizer, &signature);
    if (signature.failed) {
        bc_buf_release(&signature);
        return bc_fail_nomem(err, "pre-tokenizer");
    }
    const char *const found =
        find_name(tokenizer, vocab->model, bc_buf_str(&signature), &vocab->space_prefix);
    enum bitconv_status status = BITCONV_OK;
    vocab->pre = name != NULL ? name : found;
    if (name != NULL && found != NULL && strcmp(name, found) != 0)
        bc_say(sink, BITCONV_WARNING,
               "tokenizer.json: the pre-tokenizer looks like %s; %s is written as asked", found,
               name);
    if (vocab->pre == NULL) {
        bc_say(sink, BITCONV_FINDING, "tokenizer.json: normalizer | pre_tokenizer: %s",
               bc_buf_str(&signature));
        status =
            bc_fail(err, BITCONV_E_UNSUPPORTED,
                    "tokenizer.json: the pre-tokenizer is not a known one; --pre NAME "
                    "(llama-bpe, qwen2, gpt-2...) says which of the readers' splits text alike: "
                    "%s",
                    bc_buf_str(&signature));
    }
    bc_buf_release(&signature);
    return status;
}

const char *bc_pre_of_class(const struct bc_json *config)
{
    static const char *const classes[][2] = {
        {"GPT2Tokenizer", "gpt-2"},
        {"GPT2TokenizerFast", "gpt-2"},
        {"Qwen2Tokenizer", "qwen2"},
        {"Qwen2TokenizerFast", "qwen2"},
    };
    const char *const name = bc_json_string(bc_json_get(config, "tokenizer_class"));
    for (size_t i = 0; name != NULL && i < sizeof classes / sizeof classes[0]; i++)
        if (strcmp(name, classes[i][0]) == 0) return classes[i][1];
    return NULL;
}
