/* SPDX-License-Identifier: MIT
 * Steps from tokenizer.json: one reader for each `type`. */
#include <string.h>

#include "base/utf8.h"
#include "tokenizer/steps_read.h"

#define DEFAULT_MARK "\xe2\x96\x81"

typedef enum bitconv_status read_fn(const struct bc_json *node, struct bc_steps *out,
                                    struct bitconv_error *err);

static bool flag(const struct bc_json *node, const char *key, bool fallback)
{
    bool value = fallback;
    (void)bc_json_bool(bc_json_get(node, key), &value);
    return value;
}

static const char *text_of(const struct bc_json *node, const char *key, const char *fallback)
{
    const char *const text = bc_json_string(bc_json_get(node, key));
    return text == NULL ? fallback : text;
}

static enum bitconv_status add(struct bc_steps *out, bc_step_fn *run, struct bc_step **step,
                               struct bitconv_error *err)
{
    *step = bc_steps_add(out, run);
    return *step == NULL ? bc_fail_nomem(err, "tokenizer") : BITCONV_OK;
}

static enum bitconv_status add_plain(struct bc_steps *out, bc_step_fn *run,
                                     struct bitconv_error *err)
{
    struct bc_step *step;
    return add(out, run, &step, err);
}

/* {"Regex": ...} or {"String": ...}; older files have the string itself. */
static enum bitconv_status read_pattern(const struct bc_json *node, struct bc_pattern **out,
                                        struct bitconv_error *err)
{
    const struct bc_json *const pattern = bc_json_get(node, "pattern");
    const char *const regex = bc_json_string(bc_json_get(pattern, "Regex"));
    if (regex != NULL) return bc_pattern_regex(regex, "tokenizer.json", out, err);
    const char *string = bc_json_string(pattern);
    if (string == NULL) string = bc_json_string(bc_json_get(pattern, "String"));
    if (string == NULL || string[0] == '\0')
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "tokenizer.json: %.32s: pattern is neither {\"Regex\"} nor {\"String\"}",
                       text_of(node, "type", "?"));
    return bc_pattern_string(string, strlen(string), out, err);
}

static enum bitconv_status read_behavior(const struct bc_json *node, enum bc_behavior fallback,
                                         enum bc_behavior *out, struct bitconv_error *err)
{
    static const char *const names[] = {
        [BC_REMOVED] = "Removed",
        [BC_ISOLATED] = "Isolated",
        [BC_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
        [BC_MERGED_WITH_NEXT] = "MergedWithNext",
        [BC_CONTIGUOUS] = "Contiguous",
    };
    const char *const name = text_of(node, "behavior", NULL);
    *out = fallback;
    if (name == NULL) return BITCONV_OK;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        *out = (enum bc_behavior)i;
        if (strcmp(name, names[i]) == 0) return BITCONV_OK;
    }
    return bc_fail(err, BITCONV_E_UNSUPPORTED, "tokenizer.json: behavior \"%.32s\" is not known",
                   name);
}

/* ---- normalizers ---- */

static enum bitconv_status read_unicode(const struct bc_json *node, struct bc_steps *out,
                                        struct bitconv_error *err)
{
    static const char *const names[] = {
        [BC_NFC] = "NFC", [BC_NFD] = "NFD", [BC_NFKC] = "NFKC", [BC_NFKD] = "NFKD"};
    struct bc_step *step;
    BC_TRY(add(out, bc_step_unicode, &step, err));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(text_of(node, "type", ""), names[i]) == 0) step->form = (enum bc_unicode_form)i;
    return BITCONV_OK;
}

static enum bitconv_status read_lowercase(const struct bc_json *node, struct bc_steps *out,
                                          struct bitconv_error *err)
{
    (void)node;
    return add_plain(out, bc_step_lowercase, err);
}

static enum bitconv_status read_strip_accents(const struct bc_json *node, struct bc_steps *out,
                                              struct bitconv_error *err)
{
    (void)node;
    return add_plain(out, bc_step_strip_accents, err);
}

static enum bitconv_status read_strip(const struct bc_json *node, struct bc_steps *out,
                                      struct bitconv_error *err)
{
    struct bc_step *step;
    BC_TRY(add(out, bc_step_strip, &step, err));
    step->left = flag(node, "strip_left", true);
    step->right = flag(node, "strip_right", true);
    return BITCONV_OK;
}

static enum bitconv_status read_replace(const struct bc_json *node, struct bc_steps *out,
                                        struct bitconv_error *err)
{
    struct bc_step *step;
    BC_TRY(bc_steps_add_text(out, bc_step_replace, text_of(node, "content", ""), &step, err));
    return read_pattern(node, &step->pattern, err);
}

static enum bitconv_status read_prepend(const struct bc_json *node, struct bc_steps *out,
                                        struct bitconv_error *err)
{
    struct bc_step *step;
    return bc_steps_add_text(out, bc_step_prepend, text_of(node, "prepend", ""), &step, err);
}

static int base64_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *const at = c == '\0' ? NULL : strchr(digits, c);
    return at == NULL ? -1 : (int)(at - digits);
}

/* RFC 4648 with or without padding; false at any other character. */
static bool decode_base64(const char *text, struct bc_buf *out)
{
    uint32_t bits = 0;
    unsigned n_bits = 0;
    for (; *text != '\0' && *text != '='; text++) {
        const int digit = base64_digit(*text);
        if (digit < 0) return false;
        bits = bits << 6 | (uint32_t)digit;
        n_bits += 6;
        if (n_bits < 8) continue;
        n_bits -= 8;
        bc_buf_u8(out, (uint8_t)(bits >> n_bits));
    }
    return text[strspn(text, "=")] == '\0';
}

static enum bitconv_status read_precompiled(const struct bc_json *node, struct bc_steps *out,
                                            struct bitconv_error *err)
{
    struct bc_step *step;
    struct bc_buf blob = {0};
    BC_TRY(add(out, bc_step_charsmap, &step, err));
    enum bitconv_status status = BITCONV_OK;
    if (!decode_base64(text_of(node, "precompiled_charsmap", ""), &blob))
        status =
            bc_fail(err, BITCONV_E_CORRUPT, "tokenizer.json: precompiled_charsmap is not base64");
    if (status == BITCONV_OK && blob.failed) status = bc_fail_nomem(err, "charsmap");
    if (status == BITCONV_OK) status = bc_charsmap_open(blob.data, blob.size, &step->map, err);
    bc_buf_release(&blob);
    return status;
}

static enum bitconv_status read_bert_normalizer(const struct bc_json *node, struct bc_steps *out,
                                                struct bitconv_error *err)
{
    struct bc_step *step;
    BC_TRY(add(out, bc_step_bert, &step, err));
    step->clean = flag(node, "clean_text", true);
    step->cjk_blanks = flag(node, "handle_chinese_chars", true);
    step->lower = flag(node, "lowercase", true);
    step->accents = flag(node, "strip_accents", step->lower); /* null: with the lower case */
    return BITCONV_OK;
}

/* ---- pre-tokenizers ---- */

static enum bitconv_status read_split(const struct bc_json *node, struct bc_steps *out,
                                      struct bitconv_error *err)
{
    struct bc_step *step;
    BC_TRY(add(out, bc_step_split, &step, err));
    step->invert = flag(node, "invert", false);
    BC_TRY(read_behavior(node, BC_ISOLATED, &step->behavior, err));
    return read_pattern(node, &step->pattern, err);
}

static enum bitconv_status read_byte_level(const struct bc_json *node, struct bc_steps *out,
                                           struct bitconv_error *err)
{
    return bc_steps_add_bytes(out, flag(node, "add_prefix_space", true),
                              flag(node, "use_regex", true), err);
}

static enum bitconv_status read_digits(const struct bc_json *node, struct bc_steps *out,
                                       struct bitconv_error *err)
{
    const bool each = flag(node, "individual_digits", false);
    return bc_steps_add_kind(out, bc_unicode_is_number, each ? BC_ISOLATED : BC_CONTIGUOUS, err);
}

static enum bitconv_status read_punctuation(const struct bc_json *node, struct bc_steps *out,
                                            struct bitconv_error *err)
{
    enum bc_behavior behavior;
    BC_TRY(read_behavior(node, BC_ISOLATED, &behavior, err));
    return bc_steps_add_kind(out, bc_is_bert_punctuation, behavior, err);
}

/* \w as the Unicode Standard recommends it (UTS 18, annex C), which is the one of pre-tokenizers that
 * bring their own expression: unlike Oniguruma's with the joiners, and without numbers of Latin-1. */
#define UTS18_WORD                                                                                 \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{200c}\\x{200d}\\x{24b6}-\\x{24e9}"                       \
    "\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"

static enum bitconv_status read_whitespace(const struct bc_json *node, struct bc_steps *out,
                                           struct bitconv_error *err)
{
    (void)node;
    return bc_steps_add_regex(out, "[" UTS18_WORD "]+|[^\\s" UTS18_WORD "]+", "Whitespace",
                              BC_REMOVED, true, err);
}

static enum bitconv_status read_whitespace_split(const struct bc_json *node, struct bc_steps *out,
                                                 struct bitconv_error *err)
{
    (void)node;
    return bc_steps_add_kind(out, bc_unicode_is_space, BC_REMOVED, err);
}

static enum bitconv_status read_bert_pre(const struct bc_json *node, struct bc_steps *out,
                                         struct bitconv_error *err)
{
    (void)node;
    BC_TRY(bc_steps_add_kind(out, bc_unicode_is_space, BC_REMOVED, err));
    return bc_steps_add_kind(out, bc_is_bert_punctuation, BC_ISOLATED, err);
}

/* prepend_scheme is newer than add_prefix_space. */
static enum bc_prefix prefix_of(const struct bc_json *node)
{
    const char *const scheme = text_of(node, "prepend_scheme", NULL);
    if (scheme == NULL)
        return flag(node, "add_prefix_space", true) ? BC_PREFIX_ALWAYS : BC_PREFIX_NEVER;
    if (strcmp(scheme, "first") == 0) return BC_PREFIX_FIRST;
    return strcmp(scheme, "never") == 0 ? BC_PREFIX_NEVER : BC_PREFIX_ALWAYS;
}

static enum bitconv_status add_metaspace(const struct bc_json *node, bc_step_fn *run,
                                         struct bc_steps *out, struct bitconv_error *err)
{
    struct bc_step *step;
    const char *const mark = text_of(node, "replacement", DEFAULT_MARK);
    if (mark[0] == '\0')
        return bc_fail(err, BITCONV_E_CORRUPT, "tokenizer.json: Metaspace: replacement is empty");
    BC_TRY(bc_steps_add_text(out, run, mark, &step, err));
    step->prefix = prefix_of(node);
    step->splits = flag(node, "split", true);
    return BITCONV_OK;
}

static enum bitconv_status read_metaspace(const struct bc_json *node, struct bc_steps *out,
                                          struct bitconv_error *err)
{
    return add_metaspace(node, bc_step_metaspace, out, err);
}

static enum bitconv_status read_delimiter(const struct bc_json *node, struct bc_steps *out,
                                          struct bitconv_error *err)
{
    struct bc_step *step;
    const char *const delimiter = text_of(node, "delimiter", "");
    if (delimiter[0] == '\0')
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "tokenizer.json: CharDelimiterSplit without its delimiter");
    BC_TRY(add(out, bc_step_split, &step, err));
    step->behavior = BC_REMOVED;
    return bc_pattern_string(delimiter, strlen(delimiter), &step->pattern, err);
}

/* ---- decoders ---- */

static enum bitconv_status read_unbytes(const struct bc_json *node, struct bc_steps *out,
                                        struct bitconv_error *err)
{
    (void)node;
    return add_plain(out, bc_step_unbytes, err);
}

static enum bitconv_status read_byte_fallback(const struct bc_json *node, struct bc_steps *out,
                                              struct bitconv_error *err)
{
    (void)node;
    return add_plain(out, bc_step_byte_fallback, err);
}

static enum bitconv_status read_fuse(const struct bc_json *node, struct bc_steps *out,
                                     struct bitconv_error *err)
{
    (void)node;
    return add_plain(out, bc_step_fuse, err);
}

static unsigned count_of(const struct bc_json *node, const char *key)
{
    uint64_t n = 0;
    (void)bc_json_u64(bc_json_get(node, key), &n);
    return n > UINT32_MAX ? UINT32_MAX : (unsigned)n;
}

static enum bitconv_status read_strip_text(const struct bc_json *node, struct bc_steps *out,
                                           struct bitconv_error *err)
{
    struct bc_step *step;
    BC_TRY(bc_steps_add_text(out, bc_step_strip_text, text_of(node, "content", " "), &step, err));
    step->start = count_of(node, "start");
    step->stop = count_of(node, "stop");
    return BITCONV_OK;
}

static enum bitconv_status read_unmetaspace(const struct bc_json *node, struct bc_steps *out,
                                            struct bitconv_error *err)
{
    return add_metaspace(node, bc_step_unmetaspace, out, err);
}

static enum bitconv_status read_words(const struct bc_json *node, struct bc_steps *out,
                                      struct bitconv_error *err)
{
    return bc_steps_add_words_decoder(out, text_of(node, "prefix", "##"),
                                      flag(node, "cleanup", true), err);
}

/* ---- the tables ---- */

struct reader {
    const char *type;
    read_fn *read;
};

struct reader_table {
    const char *what;     /* the member of tokenizer.json */
    const char *list_key; /* of a Sequence */
    const struct reader *readers;
    size_t n;
};

static const struct reader normalizers[] = {
    {"NFC", read_unicode},
    {"NFD", read_unicode},
    {"NFKC", read_unicode},
    {"NFKD", read_unicode},
    {"Lowercase", read_lowercase},
    {"Strip", read_strip},
    {"StripAccents", read_strip_accents},
    {"Replace", read_replace},
    {"Prepend", read_prepend},
    {"Precompiled", read_precompiled},
    {"BertNormalizer", read_bert_normalizer},
};

static const struct reader pre_tokenizers[] = {
    {"Split", read_split},
    {"ByteLevel", read_byte_level},
    {"Digits", read_digits},
    {"Punctuation", read_punctuation},
    {"Whitespace", read_whitespace},
    {"WhitespaceSplit", read_whitespace_split},
    {"BertPreTokenizer", read_bert_pre},
    {"Metaspace", read_metaspace},
    {"CharDelimiterSplit", read_delimiter},
};

static const struct reader decoders[] = {
    {"ByteLevel", read_unbytes}, {"Replace", read_replace},  {"ByteFallback", read_byte_fallback},
    {"Fuse", read_fuse},         {"Strip", read_strip_text}, {"Metaspace", read_unmetaspace},
    {"WordPiece", read_words},
};

static const struct reader_table normalizer_table = {"normalizer", "normalizers", normalizers,
                                                     sizeof normalizers / sizeof normalizers[0]};
static const struct reader_table pre_table = {"pre_tokenizer", "pretokenizers", pre_tokenizers,
                                              sizeof pre_tokenizers / sizeof pre_tokenizers[0]};
static const struct reader_table decoder_table = {"decoder", "decoders", decoders,
                                                  sizeof decoders / sizeof decoders[0]};

/* Sequences within a Sequence apply one after the other all the same; their depth is that of the
 * JSON text, which is bounded. */
static enum bitconv_status read_steps(const struct reader_table *table, const struct bc_json *node,
                                      struct bc_steps *out, struct bitconv_error *err)
{
    if (node == NULL || bc_json_is(node, BC_JSON_NULL)) return BITCONV_OK;
    const char *const type = text_of(node, "type", "?");
    if (strcmp(type, "Sequence") == 0) {
        for (const struct bc_json *step = bc_json_first(bc_json_get(node, table->list_key));
             step != NULL; step = bc_json_next(step))
            BC_TRY(read_steps(table, step, out, err));
        return BITCONV_OK;
    }
    for (size_t i = 0; i < table->n; i++)
        if (strcmp(type, table->readers[i].type) == 0)
            return table->readers[i].read(node, out, err);
    return bc_fail(err, BITCONV_E_UNSUPPORTED,
                   "tokenizer.json: %s of type %.48s is not supported; text cannot be tokenized",
                   table->what, type);
}

enum bitconv_status bc_steps_read_normalizer(const struct bc_json *node, struct bc_steps *out,
                                             struct bitconv_error *err)
{
    return read_steps(&normalizer_table, node, out, err);
}

enum bitconv_status bc_steps_read_pre(const struct bc_json *node, struct bc_steps *out,
                                      struct bitconv_error *err)
{
    return read_steps(&pre_table, node, out, err);
}

enum bitconv_status bc_steps_read_decoder(const struct bc_json *node, struct bc_steps *out,
                                          struct bitconv_error *err)
{
    return read_steps(&decoder_table, node, out, err);
}
