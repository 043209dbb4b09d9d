/* SPDX-License-Identifier: MIT
 * From the syntax in which tokenizers write regular expressions to that of PCRE2. */
#ifndef BC_TOKENIZER_REGEX_SYNTAX_H
#define BC_TOKENIZER_REGEX_SYNTAX_H

#include "base/mem.h"

/* Appends the PCRE2 form of an expression in Oniguruma's Ruby syntax (its doc/RE), as
 * bc_pattern_regex says. What is the same in both is passed on unread. UNSUPPORTED for what has no
 * counterpart: intersections (&&) and negated classes inside a class. */
enum bitconv_status bc_regex_translate(const char *regex, const char *where, struct bc_buf *out,
                                       struct bitconv_error *err);

#endif
