/* SPDX-License-Identifier: MIT
 * The output projection (lm_head) beside tied embeddings, and in models made for embeddings. */
#include <math.h>
#include <string.h>

#include "model/model_internal.h"
#include "quant/quantize.h"

static const struct bitconv_tensor *find_embedding(const struct bc_loading *load)
{
    for (size_t i = 0; i < load->ckpt->n_tensors; i++) {
        const struct bc_match *match = &load->matches[i];
        if (match->row != NULL && match->row->role == BC_ROLE_EMBED &&
            match->part == BC_MATCH_WEIGHT)
            return load->ckpt->tensors[i];
    }
    return NULL;
}

void bc_model_read_vocab(struct bc_loading *load)
{
    struct bc_hparams *hp = &load->model->hp;
    const struct bitconv_tensor *embedding = find_embedding(load);
    const uint32_t stated = hp->n_vocab;
    if (!load->ckpt->has_weights && stated == 0)
        bc_finding(&load->findings, BITCONV_E_CORRUPT, "%s: vocab_size: missing",
                   load->config_path);
    if (embedding == NULL || embedding->n_dims != 2) return; /* a finding of the mapper */
    const uint64_t rows = embedding->shape[0];
    if (rows > UINT32_MAX || rows == 0) {
        bc_finding(&load->findings, BITCONV_E_LIMIT, "%s: %s: %llu rows, wanted 1 to 2^32 - 1",
                   embedding->file, embedding->name, (unsigned long long)rows);
        return;
    }
    hp->n_vocab = (uint32_t)rows;
    if (stated == 0 || stated == rows) return;
    if (rows < stated)
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: %s: %llu rows, but vocab_size is %u: rows are missing", embedding->file,
                   embedding->name, (unsigned long long)rows, (unsigned)stated);
    else
        bc_say(load->sink, BITCONV_WARNING,
               "%s: %s: %llu rows, vocab_size is %u: the rows count, the vocabulary is padded",
               embedding->file, embedding->name, (unsigned long long)rows, (unsigned)stated);
}

/* Largest |a - b| of two tensors of equal count; NaN anywhere gives NaN. */
static double max_difference(const struct bitconv_tensor *a, const struct bitconv_tensor *b)
{
    enum { CHUNK = 1024 };
    const struct bc_kernels *k = bc_kernels_best();
    const struct bc_values va = {a->dtype, a->data, a->n_elements};
    const struct bc_values vb = {b->dtype, b->data, b->n_elements};
    float fa[CHUNK], fb[CHUNK];
    double max = 0;
    for (uint64_t at = 0; at < a->n_elements; at += CHUNK) {
        const uint64_t left = a->n_elements - at;
        const size_t n = left < CHUNK ? (size_t)left : CHUNK;
        bc_widen(k, &va, at, n, fa);
        bc_widen(k, &vb, at, n, fb);
        for (size_t i = 0; i < n; i++) {
            const double d = fabs((double)fa[i] - (double)fb[i]);
            if (!(d <= max)) max = d;
        }
    }
    return max;
}

/* The runtime multiplies by the embedding: says so when the head holds something else. */
static void compare_tied(struct bc_loading *load, const struct bitconv_tensor *head)
{
    const struct bitconv_tensor *embedding = find_embedding(load);
    if (embedding == NULL) return; /* a finding of the mapper */
    if (embedding->n_elements != head->n_elements || !bitconv_dtype_is_float(head->dtype) ||
        !bitconv_dtype_is_float(embedding->dtype)) {
        bc_say(load->sink, BITCONV_WARNING,
               "%s: %s: dropped: tie_word_embeddings is true, so the model uses %s, though the two "
               "have other sizes or types",
               head->file, head->name, embedding->name);
        return;
    }
    if (head->dtype == embedding->dtype && head->size == embedding->size &&
        memcmp(head->data, embedding->data, (size_t)head->size) == 0)
        return;
    const double difference = max_difference(head, embedding);
    if (difference != 0)
        bc_say(load->sink, BITCONV_WARNING,
               "%s: %s: dropped: tie_word_embeddings is true, so the model uses %s, though they "
               "differ (by up to %g)",
               head->file, head->name, embedding->name, difference);
}

enum bitconv_status bc_model_map_output(struct bc_loading *load, const struct bitconv_tensor *head,
                                        bool *out_carry, struct bitconv_error *err)
{
    struct bc_model *model = load->model;
    /* llama.cpp's converter keeps the head of a ...ForCausalLM whatever else it is used for */
    const bool headless =
        load->class_row->backbone || (model->embedding_model && model->target == BC_TARGET_BITNET);
    *out_carry = false;
    if (headless) {
        bc_say(load->sink, BITCONV_NOTE, "%s: %s: dropped: embedding models do not use it",
               head->file, head->name);
        return bc_model_drop(model, head->name, "embedding models do not use it", err);
    }
    if (model->hp.tied) {
        compare_tied(load, head);
        return bc_model_drop(model, head->name, "tied to the embedding", err);
    }
    *out_carry = true;
    return BITCONV_OK;
}
