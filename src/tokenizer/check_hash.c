/* SPDX-License-Identifier: MIT
 * The hash by which Python converters recognise a pre-tokenizer. */
#include <inttypes.h>
#include <string.h>

#include "base/digest.h"
#include "base/mem.h"
#include "tokenizer/check_table.h"
#include "tokenizer/runtime.h"
#include "tokenizer/steps_read.h"

/* str([1, 2, 3]) of Python. */
static void print_list(const struct bitconv_ids *ids, struct bc_buf *out)
{
    bc_buf_putc(out, '[');
    for (size_t i = 0; i < ids->n; i++)
        bc_buf_printf(out, "%s%" PRIu32, i == 0 ? "" : ", ", ids->ids[i]);
    bc_buf_putc(out, ']');
}

static const char *find_name(enum bitconv_check_text which, const char *sha256)
{
    for (size_t i = 0; i < bc_check_n_rows; i++)
        if (bc_check_rows[i].text == which && strcmp(bc_check_rows[i].sha256, sha256) == 0)
            return bc_check_rows[i].name;
    return NULL;
}

enum bitconv_status bitconv_tokenizer_check_hash(const struct bitconv_tokenizer *tok,
                                                 enum bitconv_check_text which,
                                                 struct bitconv_check_hash *out,
                                                 struct bitconv_error *err)
{
    const char *const text = bc_check_texts[which];
    struct bitconv_ids ids = {0};
    struct bc_buf list = {0};
    enum bitconv_status status = bitconv_tokenizer_encode(tok, text, strlen(text), true, &ids, err);
    if (status == BITCONV_OK) print_list(&ids, &list);
    if (list.failed) status = bc_fail_nomem(err, "token ids");
    if (status == BITCONV_OK) {
        bc_sha256_hex(list.data, list.size, out->sha256);
        out->name = find_name(which, out->sha256);
        out->agrees = out->name == NULL || tok->pre == NULL || bc_pre_same(out->name, tok->pre);
    }
    bc_buf_release(&list);
    bitconv_ids_release(&ids);
    return status;
}
