/* SPDX-License-Identifier: MIT
 * Token ids on the command line. */
#include "id_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

enum { MAX_DIGITS = 9 }; /* below 2^31 */

enum bitconv_status id_list_parse(const char *option, const char *text, struct bitconv_ids *ids,
                                  struct bitconv_error *err)
{
    const char *at = text + strspn(text, " ");
    for (;;) {
        const size_t n = strspn(at, "0123456789");
        if (n == 0 || n > MAX_DIGITS) break;
        if (!bc_grow((void **)&ids->ids, &ids->cap, ids->n, sizeof *ids->ids))
            return bc_fail_nomem(err, "token ids");
        ids->ids[ids->n++] = (uint32_t)strtoul(at, NULL, 10);
        at += n + strspn(at + n, " ");
        if (*at == '\0') return BITCONV_OK;
        if (*at == ',') at += 1 + strspn(at + 1, " ");
    }
    return bc_fail(err, BITCONV_E_ARG, "%s: \"%.64s\" is not a list of ids (1,2,3)", option, text);
}
