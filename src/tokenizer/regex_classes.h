/* SPDX-License-Identifier: MIT
 * Characters of general categories that are younger than the oldest PCRE2 in use. */
#ifndef BC_TOKENIZER_REGEX_CLASSES_H
#define BC_TOKENIZER_REGEX_CLASSES_H

#include <stddef.h>

/* The members, in the syntax of a class, that Unicode 15.0 to 16.0 have given to a general category
 * ("L", "Lu", "N"...; `len` bytes), "" when none; NULL when the name is another one. A PCRE2 that
 * knows them already matches them twice. */
const char *bc_regex_later_members(const char *name, size_t len);

#endif
