/* SPDX-License-Identifier: MIT
 * The structural proof: what the reader found wrong, and the bytes that belong to nothing. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "io/gguf_impl.h"
#include "verify/proofs.h"

enum { HEADER_BYTES = 24, KEY_FIXED = 12, INFO_FIXED = 24 };

static void report_findings(struct bc_verifier *v, struct bitconv_proof *proof)
{
    const struct bitconv_gguf *file = v->container.gguf;
    for (size_t i = 0; i < bitconv_gguf_n_findings(file); i++) {
        const struct bitconv_gguf_finding *f = bitconv_gguf_finding_at(file, i);
        if (f->is_error)
            bc_problem(v, proof, bc_subject(v, f->text), "%s", f->text);
        else
            bc_say(v->sink, BITCONV_WARNING, "%s", f->text);
    }
}

/* bitconv writes zeros wherever nothing is stored, so anything else in its own files is damage;
 * other writers may leave what they like. */
static void report_padding(struct bc_verifier *v, struct bitconv_proof *proof, size_t tensor,
                           const char *what, const char *name, uint64_t offset)
{
    if (v->ours)
        bc_problem(v, proof, tensor,
                   "%s %s: the byte at offset %" PRIu64 " is padding and should be zero", what,
                   name, offset);
    else
        bc_say(v->sink, BITCONV_NOTE, "%s %s: the padding from offset %" PRIu64 " on is not zero",
               what, name, offset);
}

/* First non-zero byte of data[0, n), n when there is none. */
static uint64_t first_nonzero(const uint8_t *data, uint64_t n)
{
    uint64_t i = 0;
    while (i < n && data[i] == 0)
        i++;
    return i;
}

static void check_tensor_padding(struct bc_verifier *v, struct bitconv_proof *proof)
{
    for (size_t i = 0; i < v->result->n_tensors; i++) {
        const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(v->container.gguf, i);
        const uint64_t size = bc_gguf_tensor_bytes(t);
        if (size >= t->span) continue;
        const uint64_t rest = t->span - size;
        const uint64_t at = first_nonzero(t->data + size, rest);
        if (at < rest)
            report_padding(v, proof, i, "behind tensor", t->name, t->file_offset + size + at);
    }
}

static uint64_t key_bytes(const struct bitconv_gguf_key *key)
{
    const struct bitconv_gguf_value *v = &key->value;
    uint64_t n = KEY_FIXED + key->name_len + v->size;
    if (v->type == BITCONV_GGUF_STRING) n += 8; /* its length */
    if (v->type == BITCONV_GGUF_ARRAY) n += 12; /* element type and count */
    return n;
}

/* The bytes between the last tensor info and the data section. */
static void check_header_padding(struct bc_verifier *v, struct bitconv_proof *proof,
                                 const struct bc_gguf_shard *s, const struct bitconv_gguf_tensor *t)
{
    uint64_t end = HEADER_BYTES;
    for (size_t i = 0; i < s->n_keys; i++)
        end += key_bytes(&s->keys[i]);
    for (size_t i = 0; i < s->n_tensors; i++)
        end += INFO_FIXED + t[i].name_len + 8 * (uint64_t)t[i].n_dims;
    if (end > s->data_offset || s->data_offset > s->size) return;
    const uint64_t rest = s->data_offset - end;
    const uint64_t at = first_nonzero(s->data + end, rest);
    if (at < rest)
        report_padding(v, proof, BC_NO_TENSOR, "behind the tensor infos of", s->path, end + at);
}

static enum bitconv_status prove_safetensors(struct bc_verifier *v, struct bitconv_proof *proof)
{
    proof->checked = v->result->n_tensors;
    bc_conclude(v, proof, "header strict, %zu tensors, ranges without hole or overlap",
                v->result->n_tensors);
    return BITCONV_OK;
}

enum bitconv_status bc_prove_structure(struct bc_verifier *v, struct bitconv_proof *proof,
                                       struct bitconv_error *err)
{
    (void)err;
    const struct bitconv_gguf *file = v->container.gguf;
    if (file == NULL) return prove_safetensors(v, proof);
    report_findings(v, proof);
    check_tensor_padding(v, proof);
    const struct bitconv_gguf_tensor *t = file->tensors;
    for (uint32_t i = 0; i < file->n_shards; i++) {
        check_header_padding(v, proof, &file->shards[i], t);
        t += file->shards[i].n_tensors;
    }
    proof->checked = v->result->n_tensors;
    bc_conclude(v, proof, "GGUF version %" PRIu32 ", dialect %s, %zu keys, %zu tensors",
                bitconv_gguf_version(file), bitconv_dialect_name(bitconv_gguf_dialect(file)),
                bitconv_gguf_n_keys(file), v->result->n_tensors);
    return BITCONV_OK;
}
