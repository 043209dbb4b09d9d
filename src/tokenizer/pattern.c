/* SPDX-License-Identifier: MIT
 * What a tokenizer looks for in a text: a string, a regular expression, or characters of a kind. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "tokenizer/pattern.h"

#include <pcre2.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "tokenizer/regex_syntax.h"

/* Backtracking steps from one start: a base, and some for each byte, because a run of blanks as
 * long as the text is tried in full by the usual expressions. */
#define MATCH_LIMIT      2000000u
#define MATCH_LIMIT_BYTE 16u
#define MATCH_LIMIT_MAX  1000000000u
/* KiB that one match may use for remembering where it came from. */
#define HEAP_LIMIT (256u * 1024u)

struct bc_pattern {
    bool (*is)(uint32_t cp);
    char *string;
    size_t n_string;
    pcre2_code *code;
    char where[64]; /* names the expression in messages */
};

static enum bitconv_status new_pattern(struct bc_pattern **out, struct bitconv_error *err)
{
    *out = bc_alloc_array(1, sizeof **out);
    return *out == NULL ? bc_fail_nomem(err, "pattern") : BITCONV_OK;
}

static enum bitconv_status compile(struct bc_pattern *pattern, const struct bc_buf *translated,
                                   const char *regex, struct bitconv_error *err)
{
    int code = 0;
    PCRE2_SIZE at = 0;
    pattern->code = pcre2_compile((PCRE2_SPTR)bc_buf_str(translated), translated->size,
                                  PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                                  &code, &at, NULL);
    if (pattern->code == NULL) {
        PCRE2_UCHAR reason[128] = "";
        (void)pcre2_get_error_message(code, reason, sizeof reason);
        return bc_fail(err, BITCONV_E_UNSUPPORTED,
                       "%s: the regular expression is not one that can be used: %s: %.300s",
                       pattern->where, (const char *)reason, regex);
    }
    /* Without a just-in-time compiler the interpreter gives the same matches. */
    (void)pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE);
    return BITCONV_OK;
}

enum bitconv_status bc_pattern_regex(const char *regex, const char *where, struct bc_pattern **out,
                                     struct bitconv_error *err)
{
    struct bc_buf translated = {0};
    BC_TRY(new_pattern(out, err));
    const size_t n = strlen(where);
    memcpy((*out)->where, where, n < sizeof(*out)->where ? n : sizeof(*out)->where - 1);
    enum bitconv_status status = bc_regex_translate(regex, where, &translated, err);
    if (status == BITCONV_OK && translated.failed) status = bc_fail_nomem(err, "pattern");
    if (status == BITCONV_OK) status = compile(*out, &translated, regex, err);
    bc_buf_release(&translated);
    if (status != BITCONV_OK) {
        bc_pattern_free(*out);
        *out = NULL;
    }
    return status;
}

enum bitconv_status bc_pattern_string(const char *text, size_t len, struct bc_pattern **out,
                                      struct bitconv_error *err)
{
    BC_TRY(new_pattern(out, err));
    (*out)->string = bc_alloc_array(len + 1, 1);
    if ((*out)->string == NULL) {
        bc_pattern_free(*out);
        *out = NULL;
        return bc_fail_nomem(err, "pattern");
    }
    memcpy((*out)->string, text, len);
    (*out)->n_string = len;
    return BITCONV_OK;
}

enum bitconv_status bc_pattern_kind(bool (*is)(uint32_t cp), struct bc_pattern **out,
                                    struct bitconv_error *err)
{
    BC_TRY(new_pattern(out, err));
    (*out)->is = is;
    return BITCONV_OK;
}

void bc_pattern_free(struct bc_pattern *pattern)
{
    if (pattern == NULL) return;
    pcre2_code_free(pattern->code);
    bc_free(pattern->string);
    bc_free(pattern);
}

/* What a search with an expression needs of its own. */
struct regex_state {
    pcre2_match_data *data;
    pcre2_match_context *context;
};

enum bitconv_status bc_search_begin(struct bc_search *search, const struct bc_pattern *pattern,
                                    const char *text, size_t len, struct bitconv_error *err)
{
    *search = (struct bc_search){.pattern = pattern, .text = text, .len = len};
    if (pattern->code == NULL) return BITCONV_OK;
    struct regex_state *const state = bc_alloc_array(1, sizeof *state);
    if (state != NULL) {
        state->data = pcre2_match_data_create_from_pattern(pattern->code, NULL);
        state->context = pcre2_match_context_create(NULL);
    }
    search->regex_state = state;
    if (state == NULL || state->data == NULL || state->context == NULL) {
        bc_search_end(search);
        return bc_fail_nomem(err, "regular expression");
    }
    const uint32_t most = MATCH_LIMIT_MAX;
    const uint32_t limit = len > (most - MATCH_LIMIT) / MATCH_LIMIT_BYTE
                               ? most
                               : MATCH_LIMIT + MATCH_LIMIT_BYTE * (uint32_t)len;
    pcre2_set_match_limit(state->context, limit);
    pcre2_set_heap_limit(state->context, HEAP_LIMIT);
    return BITCONV_OK;
}

void bc_search_end(struct bc_search *search)
{
    struct regex_state *const state = search->regex_state;
    if (state == NULL) return;
    pcre2_match_data_free(state->data);
    pcre2_match_context_free(state->context);
    bc_free(state);
    search->regex_state = NULL;
}

static enum bitconv_status next_of_regex(struct bc_search *s, bool *found,
                                         struct bitconv_error *err)
{
    struct regex_state *const state = s->regex_state;
    const PCRE2_SPTR text = (PCRE2_SPTR)s->text;
    int code = pcre2_match(s->pattern->code, text, s->len, s->from, PCRE2_NO_UTF_CHECK, state->data,
                           state->context);
    /* The compiled form has a small stack; the interpreter takes memory as it needs it. */
    if (code == PCRE2_ERROR_JIT_STACKLIMIT)
        code = pcre2_match(s->pattern->code, text, s->len, s->from,
                           PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, state->data, state->context);
    *found = code >= 0;
    if (*found) {
        const PCRE2_SIZE *const place = pcre2_get_ovector_pointer(state->data);
        s->start = place[0];
        s->end = place[1];
    }
    if (*found || code == PCRE2_ERROR_NOMATCH) return BITCONV_OK;
    PCRE2_UCHAR reason[128] = "";
    (void)pcre2_get_error_message(code, reason, sizeof reason);
    return bc_fail(err, code == PCRE2_ERROR_NOMEMORY ? BITCONV_E_NOMEM : BITCONV_E_LIMIT,
                   "%s: the regular expression cannot be applied to this text of %zu bytes: %s",
                   s->pattern->where, s->len, (const char *)reason);
}

static bool next_of_string(struct bc_search *s)
{
    const struct bc_pattern *const p = s->pattern;
    const char *at = s->text + s->from;
    const char *const end = s->text + s->len;
    if (p->n_string == 0) return false;
    while ((size_t)(end - at) >= p->n_string) {
        at = memchr(at, p->string[0], (size_t)(end - at) - p->n_string + 1);
        if (at == NULL) return false;
        if (memcmp(at, p->string, p->n_string) == 0) {
            s->start = (size_t)(at - s->text);
            s->end = s->start + p->n_string;
            return true;
        }
        at++;
    }
    return false;
}

static bool next_of_kind(struct bc_search *s)
{
    for (size_t at = s->from; at < s->len;) {
        uint32_t cp = 0;
        const size_t n = bc_utf8_decode(s->text + at, s->len - at, &cp);
        if (n == 0) return false;
        if (s->pattern->is(cp)) {
            s->start = at;
            s->end = at + n;
            return true;
        }
        at += n;
    }
    return false;
}

enum bitconv_status bc_search_next(struct bc_search *s, bool *found, struct bitconv_error *err)
{
    *found = false;
    if (s->from > s->len) return BITCONV_OK;
    if (s->pattern->is != NULL)
        *found = next_of_kind(s);
    else if (s->pattern->code == NULL)
        *found = next_of_string(s);
    else
        BC_TRY(next_of_regex(s, found, err));
    if (!*found) return BITCONV_OK;
    s->from = s->end;
    if (s->start < s->end) return BITCONV_OK;
    /* Behind an empty match the search goes on at the next character. */
    uint32_t cp = 0;
    const size_t n = bc_utf8_decode(s->text + s->end, s->len - s->end, &cp);
    s->from = s->end + (n == 0 ? 1 : n);
    return BITCONV_OK;
}
