/* SPDX-License-Identifier: MIT
 * Token ids on the command line. */
#ifndef ID_LIST_H
#define ID_LIST_H

#include "bitconv/status.h"
#include "bitconv/tokenize.h"

/* Appends the ids of "1,2,3" (a comma or blanks between two) to `ids`. Fails on what is no id, on an
 * empty list and out of memory; the line begins with `option` ("--tokens"). */
enum bitconv_status id_list_parse(const char *option, const char *text, struct bitconv_ids *ids,
                                  struct bitconv_error *err);

#endif
