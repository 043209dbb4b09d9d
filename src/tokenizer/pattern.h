/* SPDX-License-Identifier: MIT
 * What a tokenizer looks for in a text: a string, a regular expression, or characters of a kind.
 * pattern.c and model/model_select.c are the only files that include pcre2.h. */
#ifndef BC_TOKENIZER_PATTERN_H
#define BC_TOKENIZER_PATTERN_H

#include "base/error.h"

struct bc_pattern; /* immutable once made: any number of threads may search with it */

/* A regular expression as tokenizer.json has it: Oniguruma's Ruby syntax, of which the differences
 * to PCRE2 are translated (\s and \S are White_Space; \h a hexadecimal digit; ^ and $ at every
 * line; classes within classes). UNSUPPORTED, with the reason and place, when PCRE2 does not accept
 * it or it intersects classes. `where` names its place in messages. Free with bc_pattern_free. */
enum bitconv_status bc_pattern_regex(const char *regex, const char *where, struct bc_pattern **out,
                                     struct bitconv_error *err);
/* The bytes of text, which are copied. */
enum bitconv_status bc_pattern_string(const char *text, size_t len, struct bc_pattern **out,
                                      struct bitconv_error *err);
/* Every single character for which `is` holds. */
enum bitconv_status bc_pattern_kind(bool (*is)(uint32_t cp), struct bc_pattern **out,
                                    struct bitconv_error *err);
void bc_pattern_free(struct bc_pattern *pattern); /* NULL is fine */

/* A search through one text, well-formed UTF-8. */
struct bc_search {
    const struct bc_pattern *pattern;
    const char *text;
    size_t len;
    size_t from;       /* where to go on */
    size_t start, end; /* the last match, which may be empty */
    void *regex_state;
};
enum bitconv_status bc_search_begin(struct bc_search *search, const struct bc_pattern *pattern,
                                    const char *text, size_t len, struct bitconv_error *err);
/* *found false when there are no more. LIMIT when an expression needs more steps than a bound that
 * grows with the text allows: no expression in use comes near it, and exponential ones stop there.
 */
enum bitconv_status bc_search_next(struct bc_search *search, bool *found,
                                   struct bitconv_error *err);
void bc_search_end(struct bc_search *search);

#endif
