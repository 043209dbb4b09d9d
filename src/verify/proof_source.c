/* SPDX-License-Identifier: MIT
 * The source proof: the file holds exactly the tensors that the checkpoint gives, with the same
 * trits and scale bits, or the same numbers rounded to the tensor's type, and every source tensor
 * is accounted for. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "formats/q8_0.h"
#include "model/scale_tensor.h"
#include "verify/source_blocks.h"
#include "verify/source_values.h"

static void check_shape(struct bc_verifier *v, struct bitconv_proof *proof,
                        const struct bc_weight *w, size_t index, bool *ok)
{
    const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(v->container.gguf, index);
    const struct bc_packed *packed = &v->tensors[index].packed;
    /* A payload has a shape of its own; in the file it is so many bytes. */
    const uint32_t n_dims = packed->format != NULL ? packed->n_dims : t->n_dims;
    const uint64_t *ne = packed->format != NULL ? packed->ne : t->ne;
    struct bc_buf found = {0};
    struct bc_buf wanted = {0};
    *ok = n_dims == w->n_dims;
    for (uint32_t d = 0; d < w->n_dims && *ok; d++)
        *ok = ne[d] == w->ne[d];
    if (*ok) return;
    for (uint32_t d = 0; d < n_dims; d++)
        bc_buf_printf(&found, "%s%" PRIu64, d > 0 ? " x " : "", ne[d]);
    for (uint32_t d = 0; d < w->n_dims; d++)
        bc_buf_printf(&wanted, "%s%" PRIu64, d > 0 ? " x " : "", w->ne[d]);
    bc_problem(v, proof, index, "%s: shape %s, the checkpoint gives %s", w->name,
               bc_buf_str(&found), bc_buf_str(&wanted));
    bc_buf_release(&found);
    bc_buf_release(&wanted);
}

static bool is_float_type(const char *type)
{
    return strcmp(type, "F32") == 0 || strcmp(type, "F16") == 0 || strcmp(type, "BF16") == 0 ||
           strcmp(type, "Q8_0") == 0;
}

/* Whether a linear weight may be stored as floats in a file of packs: it does not fit. */
static bool is_misfit(struct bc_verifier *v, const struct bc_weight *w)
{
    const struct bc_format *f = bc_format_at(0);
    char why[256];
    struct bc_pack_shape shape = {.cols = w->ne[0],
                                  .rows = w->n_dims > 1 ? w->ne[1] : 1,
                                  .slices = 1,
                                  .n = bc_weight_count(w)};
    for (size_t i = 0; i < v->result->n_tensors; i++)
        if (v->tensors[i].packed.format != NULL) f = v->tensors[i].packed.format;
    if (w->n_dims > 2) shape.slices = w->ne[2];
    /* Stacks whose scales differ have no room for them in a pack with one. */
    return !bc_format_fit(f, &v->stated.config, &shape, why, sizeof why) ||
           (w->n_sources > 1 && f->max_scales == 1) || bc_source_is_block_misfit(v, w, f);
}

static void check_type(struct bc_verifier *v, struct bitconv_proof *proof,
                       const struct bc_weight *w, size_t index)
{
    const char *type = v->result->tensors[index].type;
    const char *wanted = bc_expected_type(v->source, v->source->model, w);
    if (wanted == NULL) return;
    if (strcmp(wanted, BC_EXPECT_PACK) != 0) {
        char why[256];
        if (strcmp(wanted, "Q8_0") == 0 && is_float_type(type) && strcmp(type, "Q8_0") != 0 &&
            !bc_q8_0_check(w->ne[0], why, sizeof why))
            bc_say(v->sink, BITCONV_WARNING, "%s: %s; it is stored as %s", w->name, why, type);
        else if (strcmp(wanted, type) != 0)
            bc_problem(v, proof, index, "%s: type %s, the rules for this model give %s", w->name,
                       type, wanted);
        return;
    }
    if (v->tensors[index].packed.format != NULL) return;
    if (is_float_type(type) && is_misfit(v, w))
        bc_say(v->sink, BITCONV_WARNING, "%s: does not fit the pack and is stored as %s", w->name,
               type);
    else
        bc_problem(v, proof, index, "%s: type %s, the rules for this model give %s", w->name, type,
                   wanted);
}

static enum bitconv_status check_weight(struct bc_verifier *v, struct bitconv_proof *proof,
                                        const struct bc_weight *w, size_t index,
                                        struct bitconv_error *err)
{
    bool same_shape = false;
    check_shape(v, proof, w, index, &same_shape);
    check_type(v, proof, w, index);
    return same_shape ? bc_compare_values(v, proof, w, index, err) : BITCONV_OK;
}

/* The tensor of a packed weight's scales, which are compared with the weight. */
static void mark_scale_tensor(const struct bc_verifier *v, const struct bc_weight *w, size_t index,
                              bool *seen)
{
    const struct bc_packed *packed = &v->tensors[index].packed;
    if (packed->format == NULL || packed->scales == NULL || bc_source_is_by_block(v, w, packed))
        return;
    const struct bitconv_gguf_tensor *scale =
        bc_scale_tensor_of(v->container.gguf, bitconv_gguf_tensor_at(v->container.gguf, index));
    if (scale != NULL) seen[scale - bitconv_gguf_tensor_at(v->container.gguf, 0)] = true;
}

static enum bitconv_status check_weights(struct bc_verifier *v, struct bitconv_proof *proof,
                                         bool *seen, struct bitconv_error *err)
{
    const struct bc_model *model = v->source->model;
    const uint64_t total = bitconv_gguf_file_size(v->container.gguf);
    uint64_t done = 0;
    for (size_t i = 0; i < model->n_weights; i++) {
        const struct bc_weight *w = &model->weights[i];
        const size_t index = bc_tensor_index(v, w->name);
        if (bc_canceled(v->sink)) return bc_fail(err, BITCONV_E_CANCELED, "canceled");
        bc_progress(v->sink, "comparing", done, total);
        if (index == BC_NO_TENSOR) {
            bc_problem(v, proof, BC_NO_TENSOR, "%s: the checkpoint gives it%s%s, the file lacks it",
                       w->name, w->n_sources > 0 ? " from " : "",
                       w->n_sources > 0 ? w->sources[0].tensor->name : "");
            continue;
        }
        seen[index] = true;
        mark_scale_tensor(v, w, index, seen);
        done += bitconv_gguf_tensor_at(v->container.gguf, index)->size;
        BC_TRY(check_weight(v, proof, w, index, err));
        proof->checked++;
    }
    bc_progress(v->sink, "comparing", total, total);
    for (size_t i = 0; i < v->result->n_tensors; i++)
        if (!seen[i])
            bc_problem(v, proof, i, "%s: in the file, but nothing of the checkpoint gives it",
                       v->result->tensors[i].name);
    return BITCONV_OK;
}

static void mark_source(const struct bc_checkpoint *ckpt, const char *name, bool *used)
{
    uint64_t index = 0;
    if (bc_map_get(&ckpt->by_name, name, strlen(name), &index)) used[index] = true;
}

/* Nothing of the checkpoint may get lost unnoticed: each tensor is carried or dropped with a
 * reason. */
static void account(struct bc_verifier *v, struct bitconv_proof *proof, bool *used)
{
    const struct bc_checkpoint *ckpt = v->source->checkpoint;
    const struct bc_model *model = v->source->model;
    for (size_t i = 0; i < model->n_weights; i++) {
        for (uint32_t j = 0; j < model->weights[i].n_sources; j++) {
            const struct bc_source *source = &model->weights[i].sources[j];
            mark_source(ckpt, source->tensor->name, used);
            if (source->scale != NULL) mark_source(ckpt, source->scale->name, used);
        }
    }
    for (size_t i = 0; i < model->n_dropped; i++)
        mark_source(ckpt, model->dropped[i].name, used);
    for (size_t i = 0; i < ckpt->n_tensors; i++)
        if (!used[i])
            bc_problem(v, proof, BC_NO_TENSOR, "source tensor %s: neither carried nor dropped",
                       ckpt->tensors[i]->name);
    proof->skipped = model->n_dropped;
    for (size_t i = 0; i < model->n_dropped; i++)
        bc_say(v->sink, BITCONV_NOTE, "source tensor %s is not carried: %s", model->dropped[i].name,
               model->dropped[i].why);
}

static void conclude(struct bc_verifier *v, struct bitconv_proof *proof)
{
    const struct bc_model *model = v->source->model;
    uint64_t packed = 0;
    for (size_t i = 0; i < v->result->n_tensors; i++)
        packed += v->tensors[i].packed.format != NULL;
    struct bc_buf dropped = {0};
    if (model->n_dropped != 0)
        bc_buf_printf(&dropped, "; %zu source tensors dropped (%s: %s%s)", model->n_dropped,
                      model->dropped[0].name, model->dropped[0].why,
                      model->n_dropped > 1 ? ", ..." : "");
    bc_conclude(v, proof,
                "%s: %" PRIu64 " tensors with the same trits and scale bits, %" PRIu64
                " with the same values; all %zu source tensors accounted for%s",
                v->options->source, packed, proof->checked - packed,
                v->source->checkpoint->n_tensors, bc_buf_str(&dropped));
    bc_buf_release(&dropped);
}

enum bitconv_status bc_prove_source(struct bc_verifier *v, struct bitconv_proof *proof,
                                    struct bitconv_error *err)
{
    if (v->options->source == NULL) {
        bc_not_run(v, proof, "no --source DIR given");
        return BITCONV_OK;
    }
    BC_TRY(bc_source_open(v, err));
    bool *seen = bc_alloc_array(v->result->n_tensors, sizeof *seen);
    bool *used = bc_alloc_array(v->source->checkpoint->n_tensors, sizeof *used);
    enum bitconv_status status = BITCONV_OK;
    if (seen == NULL || used == NULL)
        status = bc_fail_nomem(err, "the source proof");
    else if (v->result->n_tensors == 0)
        bc_not_run(v, proof, "the file holds the vocabulary alone, no tensors");
    else
        status = check_weights(v, proof, seen, err);
    if (status == BITCONV_OK && v->result->n_tensors != 0) {
        account(v, proof, used);
        conclude(v, proof);
    }
    bc_free(seen);
    bc_free(used);
    return status;
}
