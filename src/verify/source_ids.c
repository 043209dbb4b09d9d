/* SPDX-License-Identifier: MIT
 * Whether keys of a tokenizer that only the file has change what texts become: both tokenizers, as
 * metadata says them, encode the same text. */
#include <inttypes.h>
#include <string.h>

#include "bitconv/tokenize.h"
#include "verify/source_state.h"

/* Spaces in front, behind and in pairs, capitals, accents, digits, lines, a script of its own. */
static const char probe[] =
    "  The caf\xc3\xa9's 12,345 Words:\n\ttwo  spaces, \xe4\xb8\x96\xe7\x95\x8c! ";

static enum bitconv_status encode(const struct bitconv_gguf *file, struct bitconv_ids *ids,
                                  struct bitconv_error *err)
{
    struct bitconv_tokenizer *tok = NULL;
    BC_TRY(bitconv_tokenizer_open_gguf(file, NULL, &tok, err));
    const enum bitconv_status status =
        bitconv_tokenizer_encode(tok, probe, strlen(probe), true, ids, err);
    bitconv_tokenizer_close(tok);
    return status;
}

static void compare(struct bc_verifier *v, struct bitconv_proof *proof,
                    const struct bitconv_ids *file, const struct bitconv_ids *wanted)
{
    size_t i = 0;
    while (i < file->n && i < wanted->n && file->ids[i] == wanted->ids[i])
        i++;
    if (i == file->n && i == wanted->n) return;
    bc_problem(
        v, proof, BC_NO_TENSOR,
        "tokenizer.*: a text becomes %zu ids, those that the checkpoint's keys give are %zu, "
        "others from id %zu on; the keys that the checkpoint does not give are to blame, or "
        "those that differ",
        file->n, wanted->n, i);
}

enum bitconv_status bc_source_compare_ids(struct bc_verifier *v, struct bitconv_proof *proof,
                                          const struct bitconv_gguf *wanted,
                                          struct bitconv_error *err)
{
    struct bitconv_ids a = {0}, b = {0};
    struct bitconv_error why = {.status = BITCONV_OK};
    enum bitconv_status status = encode(v->container.gguf, &a, &why);
    if (status == BITCONV_OK) status = encode(wanted, &b, &why);
    if (status == BITCONV_OK) compare(v, proof, &a, &b);
    bitconv_ids_release(&a);
    bitconv_ids_release(&b);
    /* a tokenizer that bitconv cannot run says nothing about the keys */
    return status == BITCONV_E_NOMEM ? bc_fail_nomem(err, "the tokenizer") : BITCONV_OK;
}
