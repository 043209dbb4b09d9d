/* SPDX-License-Identifier: MIT
 * Runs the proofs one after the other and keeps their results together. */
#include "bitconv/verify.h"

#include <inttypes.h>
#include <string.h>

#include "formats/fingerprint.h"
#include "verify/proofs.h"
#include "verify/source_state.h"

struct proof_row {
    const char *name;
    bc_prove *prove;
    bool gguf_only;
};

static const struct proof_row proof_rows[] = {
    {"structure", bc_prove_structure, false},
    {"metadata", bc_prove_metadata, true},
    {"packs", bc_prove_packs, true},
    {"fingerprints", bc_prove_fingerprints, true},
    {"floats", bc_prove_floats, false},
    {"source", bc_prove_source, true},
    {"source-metadata", bc_prove_source_metadata, true},
    {"manifest", bc_prove_manifest, false},
    {"forward", bc_prove_forward, true},
    {"kernels", bc_prove_kernels, true},
    {"unquantized", bc_prove_unquantized, true},
};
enum { N_PROOFS = sizeof proof_rows / sizeof proof_rows[0] };

static const char *format(struct bc_verifier *v, const char *fmt, va_list ap)
{
    struct bc_buf buf = {0};
    bc_buf_vprintf(&buf, fmt, ap);
    const char *text = buf.failed ? NULL : bc_arena_strdup(&v->data->arena, bc_buf_str(&buf));
    bc_buf_release(&buf);
    return text != NULL ? text : "out of memory while saying what is wrong";
}

void bc_problem(struct bc_verifier *v, struct bitconv_proof *proof, size_t tensor, const char *fmt,
                ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = format(v, fmt, ap);
    va_end(ap);
    if (proof->verdict != BITCONV_FAILED) proof->detail = text;
    proof->verdict = BITCONV_FAILED;
    v->n_problems++;
    if (tensor != BC_NO_TENSOR) {
        struct bitconv_verified_tensor *t = &v->result->tensors[tensor];
        if (t->problem == NULL) t->problem = text;
        t->ok = false;
    }
    bc_say(v->sink, BITCONV_FINDING, "%s", text);
}

void bc_conclude(struct bc_verifier *v, struct bitconv_proof *proof, const char *fmt, ...)
{
    if (proof->verdict == BITCONV_FAILED) {
        if (v->n_problems < 2) return;
        const char *text = bc_arena_printf(&v->data->arena, "%s (and %" PRIu64 " more)",
                                           proof->detail, v->n_problems - 1);
        if (text != NULL) proof->detail = text;
        return;
    }
    va_list ap;
    va_start(ap, fmt);
    proof->detail = format(v, fmt, ap);
    va_end(ap);
}

void bc_not_run(struct bc_verifier *v, struct bitconv_proof *proof, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    proof->detail = format(v, fmt, ap);
    va_end(ap);
    proof->verdict = BITCONV_NOT_RUN;
}

size_t bc_tensor_index(const struct bc_verifier *v, const char *name)
{
    const struct bitconv_gguf_tensor *t = bitconv_gguf_find_tensor(v->container.gguf, name);
    if (t == NULL) return BC_NO_TENSOR;
    return (size_t)(t - bitconv_gguf_tensor_at(v->container.gguf, 0));
}

size_t bc_subject(const struct bc_verifier *v, const char *text)
{
    static const char prefix[] = "tensor ";
    const size_t n_prefix = sizeof prefix - 1;
    size_t best = BC_NO_TENSOR;
    size_t best_len = 0;
    if (strncmp(text, prefix, n_prefix) != 0) return BC_NO_TENSOR;
    for (size_t i = 0; i < v->result->n_tensors; i++) {
        const char *name = v->result->tensors[i].name;
        const size_t len = strlen(name);
        if (strncmp(text + n_prefix, name, len) == 0 && text[n_prefix + len] == ':' &&
            len >= best_len) {
            best = i;
            best_len = len;
        }
    }
    return best;
}

static const char *container_noun(const struct bc_verifier *v)
{
    return v->container.kind == BITCONV_CONTAINER_CHECKPOINT ? "a checkpoint folder"
                                                             : "a safetensors file";
}

static enum bitconv_status run_proof(struct bc_verifier *v, const struct proof_row *row,
                                     struct bitconv_proof *proof, struct bitconv_error *err)
{
    proof->name = row->name;
    proof->verdict = BITCONV_PASSED;
    proof->detail = "";
    v->n_problems = 0;
    if (row->gguf_only && v->container.gguf == NULL) {
        bc_not_run(v, proof, "only a GGUF has it; this is %s", container_noun(v));
        return BITCONV_OK;
    }
    BC_TRY(row->prove(v, proof, err));
    if (proof->verdict == BITCONV_FAILED) v->result->ok = false;
    return BITCONV_OK;
}

/* The model's fingerprint, when every packed tensor has one. */
static enum bitconv_status model_fingerprint(struct bc_verifier *v, struct bitconv_error *err)
{
    struct bitconv_verification *result = v->result;
    struct bc_named_hash *named = bc_alloc_array(result->n_tensors, sizeof *named);
    if (named == NULL) return bc_fail_nomem(err, "fingerprints");
    size_t n = 0;
    bool complete = true;
    for (size_t i = 0; v->tensors != NULL && i < result->n_tensors; i++) {
        if (v->tensors[i].packed.format == NULL) continue;
        complete = complete && v->tensors[i].scanned && v->tensors[i].scan.has_fingerprint;
        named[n].name = result->tensors[i].name;
        named[n++].hash = v->tensors[i].scan.fingerprint;
    }
    enum bitconv_status status = BITCONV_OK;
    if (complete && n > 0) {
        struct bc_hash128 hash;
        status = bc_fingerprint_model(named, n, &hash, err);
        if (status == BITCONV_OK) bc_hash128_hex(hash, result->fingerprint);
    }
    bc_free(named);
    return status;
}

static enum bitconv_status run_proofs(struct bc_verifier *v, struct bitconv_error *err)
{
    v->result->n_proofs = N_PROOFS;
    v->result->ok = true;
    for (size_t i = 0; i < N_PROOFS; i++) {
        BC_TRY(run_proof(v, &proof_rows[i], &v->result->proofs[i], err));
        if (bc_canceled(v->sink)) return bc_fail(err, BITCONV_E_CANCELED, "canceled");
        /* The proofs behind it compare the model's fingerprint. */
        if (proof_rows[i].prove == bc_prove_packs) BC_TRY(model_fingerprint(v, err));
    }
    return BITCONV_OK;
}

/* A proof that was asked for and is not to be had must not look like one that was given. */
static enum bitconv_status check_asked(const struct bc_verifier *v, struct bitconv_error *err)
{
    const bool source = v->options->source != NULL;
    if (v->container.gguf != NULL || (!source && !v->options->forward)) return BITCONV_OK;
    return bc_fail(err, BITCONV_E_ARG, "%s: --%s proves something of a GGUF, this is %s", v->path,
                   source ? "source" : "forward", container_noun(v));
}

static enum bitconv_status open_all(struct bc_verifier *v, struct bitconv_error *err)
{
    bool known = false;
    const char *cpu = v->options->cpu;
    v->kernels = cpu != NULL ? bc_kernels_named(cpu, &known) : bc_kernels_best();
    if (v->kernels == NULL)
        return bc_fail(err, BITCONV_E_ARG,
                       known ? "this processor does not have the instruction set '%s'"
                             : "unknown instruction set '%s': wanted scalar, avx2, avx512 or neon",
                       cpu);
    const enum bitconv_status opened =
        bc_container_open(v->path, v->options->dialect, v->sink, &v->data->container, err);
    if (opened == BITCONV_E_CORRUPT || opened == BITCONV_E_UNSUPPORTED) bc_source_blame(v, err);
    BC_TRY(opened);
    v->container = v->data->container;
    BC_TRY(check_asked(v, err));
    BC_TRY(bc_pool_new(v->options->n_threads, &v->pool, err));
    return bc_result_list_tensors(v, err);
}

static enum bitconv_status verify(struct bc_verifier *v, struct bitconv_error *err)
{
    v->result->proofs = bc_arena_alloc(&v->data->arena, N_PROOFS, sizeof *v->result->proofs);
    if (v->result->proofs == NULL) return bc_fail_nomem(err, "the proofs");
    BC_TRY(open_all(v, err));
    return run_proofs(v, err);
}

enum bitconv_status bitconv_verify(const char *path, const struct bitconv_verify_options *options,
                                   const struct bitconv_sink *sink,
                                   struct bitconv_verification **out, struct bitconv_error *err)
{
    static const struct bitconv_verify_options defaults = {0};
    struct bc_verifier v = {.path = path, .sink = sink};
    v.options = options != NULL ? options : &defaults;
    *out = NULL;
    v.result = bc_alloc_array(1, sizeof *v.result);
    v.data = bc_alloc_array(1, sizeof *v.data);
    if (v.result == NULL || v.data == NULL) {
        bc_free(v.result);
        bc_free(v.data);
        return bc_fail_nomem(err, "the verification");
    }
    v.result->internal = v.data;
    const enum bitconv_status status = verify(&v, err);
    bc_forward_close(&v);
    bc_source_close(&v);
    bc_stated_release(&v.stated);
    bc_pool_free(v.pool);
    if (status != BITCONV_OK) {
        bitconv_verification_free(v.result);
        return status;
    }
    *out = v.result;
    return BITCONV_OK;
}

void bitconv_verification_free(struct bitconv_verification *verification)
{
    if (verification == NULL) return;
    struct bc_verification_data *data = verification->internal;
    bc_container_close(&data->container);
    bc_arena_release(&data->arena);
    bc_free(data);
    bc_free(verification);
}
