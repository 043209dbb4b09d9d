/* SPDX-License-Identifier: MIT
 * Every tensor of the checkpoint by the family's table: a weight of the file, part of one, dropped
 * with a reason, or a finding; and every tensor of the table that is not there. */
#include <stdlib.h>
#include <string.h>

#include "model/model_internal.h"

/* Which tensors of the table were met: one entry per row and layer. */
struct seen {
    uint8_t *flags; /* bits 1 << enum bc_match_part */
    size_t n_layers;
};

static size_t count_rows(const struct bc_arch *arch)
{
    size_t n = 0;
    while (arch->tensors[n].role != BC_ROLE_NONE)
        n++;
    return n;
}

static uint8_t *seen_at(const struct seen *seen, const struct bc_loading *load,
                        const struct bc_arch_tensor *row, uint32_t layer)
{
    return &seen->flags[(size_t)(row - load->model->arch->tensors) * seen->n_layers + layer];
}

enum bitconv_status bc_model_drop(struct bc_model *model, const char *name, const char *why,
                                  struct bitconv_error *err)
{
    /* the arena owns the list: it doubles, the old halves stay behind until the model is freed */
    if (model->n_dropped == 0 || (model->n_dropped & (model->n_dropped - 1)) == 0) {
        const size_t cap = model->n_dropped == 0 ? 1 : model->n_dropped * 2;
        struct bc_dropped *grown = bc_arena_alloc(&model->arena, cap, sizeof *grown);
        if (grown == NULL) return bc_fail_nomem(err, "list of dropped tensors");
        if (model->n_dropped != 0) memcpy(grown, model->dropped, model->n_dropped * sizeof *grown);
        model->dropped = grown;
    }
    model->dropped[model->n_dropped++] = (struct bc_dropped){name, why};
    return BITCONV_OK;
}

enum bitconv_status bc_model_pend(struct bc_loading *load, const struct bc_weight *weight,
                                  size_t pos, unsigned sub, struct bitconv_error *err)
{
    void *items = load->pending;
    if (!bc_grow(&items, &load->cap_pending, load->n_pending, sizeof *load->pending))
        return bc_fail_nomem(err, "list of weights");
    load->pending = items;
    load->pending[load->n_pending++] = (struct bc_pending){*weight, pos, sub};
    return BITCONV_OK;
}

/* The heads whose rows are interleaved: those of q and k and their biases, where files of the
 * family rotate neighbouring pairs. */
static uint32_t permuted_heads(const struct bc_model *model, const struct bc_match *match)
{
    const enum bc_dim rows = match->row->shape[0];
    if (!model->arch->traits.permute_qk || match->part == BC_MATCH_NORM_IN) return 0;
    if (rows == BC_N_Q) return model->hp.n_head;
    return rows == BC_N_K ? model->hp.n_head_kv : 0;
}

/* The logical shape of a part of a row: *cols 0 for vectors. */
static void part_shape(const struct bc_hparams *hp, const struct bc_match *match, uint64_t *rows,
                       uint64_t *cols)
{
    const enum bc_dim *shape = match->row->shape;
    *rows = bc_dim_size(hp, match->part == BC_MATCH_NORM_IN ? shape[1] : shape[0]);
    *cols = match->part != BC_MATCH_WEIGHT || shape[1] == BC_N_NONE ? 0 : bc_dim_size(hp, shape[1]);
}

/* A weight that comes from one tensor. */
static enum bitconv_status map_one(struct bc_loading *load, size_t index, struct bitconv_error *err)
{
    struct bc_model *model = load->model;
    const struct bc_match *match = &load->matches[index];
    const struct bc_arch_tensor *row = match->row;
    struct bc_weight w = {.ne = {1, 1, 1, 1}, .n_sources = 1, .role = row->role};
    uint64_t rows = 0, cols = 0;
    part_shape(&model->hp, match, &rows, &cols);
    w.n_dims = cols == 0 ? 1 : 2;
    w.ne[0] = cols == 0 ? rows : cols;
    w.ne[1] = cols == 0 ? 1 : rows;
    if (row->role == BC_ROLE_LAYER_NORM) w.role = BC_ROLE_NORM;
    if (match->part == BC_MATCH_BIAS) w.role = BC_ROLE_BIAS;
    if (match->part == BC_MATCH_NORM_IN) w.role = BC_ROLE_NORM;
    w.permute_heads = permuted_heads(model, match);
    /* the norms in front of projections are BitLinear's own, which multiplies by w */
    w.add_one = row->role == BC_ROLE_NORM && model->arch->traits.norm_plus_one;
    w.keep = w.role == BC_ROLE_LINEAR && bc_model_is_kept(load, load->ckpt->tensors[index]->name);
    w.name = bc_match_gguf_name(match, &model->arena);
    w.sources = bc_arena_alloc(&model->arena, 1, sizeof *w.sources);
    if (w.name == NULL || w.sources == NULL) return bc_fail_nomem(err, "list of weights");
    w.sources[0] = bc_model_source(load, index, rows, cols, &w.packed);
    return bc_model_pend(load, &w, index, 0, err);
}

/* A weight_scale belongs to the weight of its name, in whichever shard that is. */
static void check_scale_has_weight(struct bc_loading *load, const struct bitconv_tensor *scale)
{
    const size_t len = strlen(scale->name) - strlen("_scale");
    uint64_t index = 0;
    if (!bc_map_get(&load->ckpt->by_name, scale->name, len, &index))
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: %s: a scale without its weight: there is no %.*s", scale->file, scale->name,
                   (int)len, scale->name);
}

/* A tensor of a layer that the config does not have, or has with another kind of block. */
static bool is_misplaced(struct bc_loading *load, const struct bitconv_tensor *tensor,
                         const struct bc_match *match)
{
    const struct bc_hparams *hp = &load->model->hp;
    const enum bc_layers layers = bc_pattern_layers(match->row->hf[0]);
    if (!match->has_layer) return false;
    if (match->layer >= hp->n_layers)
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: %s: layer %u, but num_hidden_layers is %u", tensor->file, tensor->name,
                   (unsigned)match->layer, (unsigned)hp->n_layers);
    else if (!bc_layer_is_one_of(hp, layers, match->layer))
        bc_finding(&load->findings, BITCONV_E_CORRUPT, "%s: %s: by the config layer %u is %s",
                   tensor->file, tensor->name, (unsigned)match->layer,
                   layers == BC_LAYERS_CONV ? "one of attention" : "a convolution");
    else
        return false;
    return true;
}

/* One tensor of the checkpoint. */
static enum bitconv_status map_tensor(struct bc_loading *load, size_t index, struct seen *seen,
                                      struct bc_finding_kind *unknown, struct bitconv_error *err)
{
    const struct bitconv_tensor *tensor = load->ckpt->tensors[index];
    const struct bc_match *match = &load->matches[index];
    bool carry = true;
    if (match->row == NULL) {
        if (bc_finding_wanted(unknown))
            bc_finding(&load->findings, BITCONV_E_UNSUPPORTED,
                       "%s: %s: not a tensor that the %s family has", tensor->file, tensor->name,
                       load->model->arch->name);
        return BITCONV_OK;
    }
    if (match->row->role == BC_ROLE_SKIP)
        return bc_model_drop(load->model, tensor->name, "computed from the config", err);
    if (match->row->role == BC_ROLE_UNUSED)
        return bc_model_drop(load->model, tensor->name, "embeddings do not use it", err);
    if (is_misplaced(load, tensor, match)) return BITCONV_OK;
    uint8_t *flags = seen_at(seen, load, match->row, match->layer);
    *flags = (uint8_t)(*flags | 1u << match->part);
    if (match->part == BC_MATCH_SCALE) {
        check_scale_has_weight(load, tensor);
        return BITCONV_OK;
    }
    if (match->row->role == BC_ROLE_EXPERT) return BITCONV_OK; /* bc_model_map_experts */
    if (match->row->role == BC_ROLE_OUTPUT) BC_TRY(bc_model_map_output(load, tensor, &carry, err));
    return carry ? map_one(load, index, err) : BITCONV_OK;
}

/* The name a table row has in this checkpoint, for messages. */
static void report_missing(struct bc_loading *load, const struct bc_arch_tensor *row,
                           uint32_t layer, const char *suffix, const char *why)
{
    struct bc_arena arena = {NULL};
    const char *name = bc_pattern_fill(&arena, row->hf[0], layer, 0, suffix);
    bc_finding(&load->findings, BITCONV_E_CORRUPT, "%s: %s: missing%s", load->ckpt->dir,
               name != NULL ? name : row->hf[0], why);
    bc_arena_release(&arena);
}

static bool has_part(const struct seen *seen, const struct bc_loading *load,
                     const struct bc_arch_tensor *row, uint32_t layer, enum bc_match_part part)
{
    return (*seen_at(seen, load, row, layer) & 1u << part) != 0;
}

/* What one row lacks in one layer. */
static void check_layer(struct bc_loading *load, const struct seen *seen,
                        const struct bc_arch_tensor *row, uint32_t layer, bool bias_elsewhere,
                        struct bc_finding_kind *missing)
{
    const struct bc_model *model = load->model;
    const bool needs_norm_in =
        (model->has_norm_in || load->use_rms_norm) && row->role == BC_ROLE_LINEAR;
    const bool head = row->role == BC_ROLE_OUTPUT;
    const bool dropped = row->role == BC_ROLE_SKIP || row->role == BC_ROLE_UNUSED;
    const bool needed = head ? !model->hp.tied && !model->embedding_model : !dropped;
    if (needed && !has_part(seen, load, row, layer, BC_MATCH_WEIGHT) && bc_finding_wanted(missing))
        report_missing(load, row, layer,
                       row->role == BC_ROLE_EXPERT ? ".weight (every expert)" : ".weight",
                       head ? ", and tie_word_embeddings is false" : "");
    if (needs_norm_in && !has_part(seen, load, row, layer, BC_MATCH_NORM_IN) &&
        bc_finding_wanted(missing))
        report_missing(load, row, layer, load->use_rms_norm ? ".rms_norm.weight" : ".norm.weight",
                       ", and the other projections have it");
    if (bias_elsewhere && !has_part(seen, load, row, layer, BC_MATCH_BIAS) &&
        bc_finding_wanted(missing))
        report_missing(load, row, layer, ".bias",
                       ", and the class, the config or another layer has it");
}

static void check_missing(struct bc_loading *load, const struct seen *seen)
{
    struct bc_finding_kind missing = {.what = "tensors missing"};
    for (const struct bc_arch_tensor *row = load->model->arch->tensors; row->role != BC_ROLE_NONE;
         row++) {
        const enum bc_layers layers = bc_pattern_layers(row->hf[0]);
        const uint32_t n_layers = layers == BC_LAYERS_NONE ? 1 : load->model->hp.n_layers;
        bool any_bias = false;
        for (uint32_t layer = 0; layer < n_layers; layer++)
            any_bias = any_bias || has_part(seen, load, row, layer, BC_MATCH_BIAS);
        const bool biased = bc_model_check_bias(load, row, any_bias);
        for (uint32_t layer = 0; layer < n_layers; layer++)
            if (bc_layer_is_one_of(&load->model->hp, layers, layer))
                check_layer(load, seen, row, layer, biased, &missing);
    }
    bc_finding_rest(&load->findings, &missing);
}

static int by_place(const void *a, const void *b)
{
    const struct bc_pending *x = a, *y = b;
    if (x->pos != y->pos) return x->pos < y->pos ? -1 : 1;
    return x->sub < y->sub ? -1 : x->sub > y->sub;
}

static const char *source_name(const struct bc_weight *w)
{
    return w->n_sources != 0 ? w->sources[0].tensor->name : "(generated)";
}

/* Two source tensors that would become one tensor of the file. */
static enum bitconv_status check_unique(struct bc_loading *load, struct bitconv_error *err)
{
    struct bc_map names = {0};
    enum bitconv_status status = BITCONV_OK;
    for (size_t i = 0; i < load->n_pending && status == BITCONV_OK; i++) {
        const struct bc_weight *w = &load->pending[i].weight;
        uint64_t first = 0;
        const enum bc_map_result result = bc_map_put(&names, w->name, strlen(w->name), i, &first);
        if (result == BC_MAP_NOMEM) status = bc_fail_nomem(err, "names of weights");
        if (result == BC_MAP_EXISTS)
            bc_finding(&load->findings, BITCONV_E_CORRUPT, "%s: %s and %s would both become %s",
                       load->ckpt->dir, source_name(&load->pending[first].weight), source_name(w),
                       w->name);
    }
    bc_map_release(&names);
    return status;
}

static struct bc_weight rope_weight(const struct bc_model *model, const char *name,
                                    const float *factors)
{
    return (struct bc_weight){.name = name,
                              .role = BC_ROLE_ROPE,
                              .n_dims = 1,
                              .ne = {model->hp.rope_dims / 2, 1, 1, 1},
                              .generated = factors};
}

static size_t n_rope_weights(const struct bc_hparams *hp)
{
    if (hp->rope_scaling == BC_ROPE_LLAMA3) return 1;
    return hp->rope_scaling == BC_ROPE_LONGROPE ? 2 : 0;
}

/* Frequency divisors of the scalings that have some (n_rope_weights tensors): in front of all other
 * tensors, as readers' own converters do. */
static enum bitconv_status add_rope_weights(struct bc_model *model, struct bc_weight *out,
                                            struct bitconv_error *err)
{
    const struct bc_hparams *hp = &model->hp;
    if (hp->rope_scaling == BC_ROPE_LONGROPE) {
        out[0] = rope_weight(model, "rope_factors_long.weight", hp->rope_long_factors);
        out[1] = rope_weight(model, "rope_factors_short.weight", hp->rope_short_factors);
    }
    if (hp->rope_scaling != BC_ROPE_LLAMA3) return BITCONV_OK;
    float *factors = bc_arena_alloc(&model->arena, hp->rope_dims / 2, sizeof *factors);
    if (factors == NULL) return bc_fail_nomem(err, "rope_freqs");
    bc_rope_llama3_factors(hp, factors);
    out[0] = rope_weight(model, "rope_freqs.weight", factors);
    return BITCONV_OK;
}

/* Moves the pending weights into the model, in file order. */
static enum bitconv_status settle(struct bc_loading *load, struct bitconv_error *err)
{
    struct bc_model *model = load->model;
    const size_t n_first = n_rope_weights(&model->hp);
    if (load->n_pending > 1) qsort(load->pending, load->n_pending, sizeof *load->pending, by_place);
    model->weights =
        bc_arena_alloc(&model->arena, load->n_pending + n_first, sizeof *model->weights);
    if (model->weights == NULL) return bc_fail_nomem(err, "list of weights");
    BC_TRY(add_rope_weights(model, model->weights, err));
    for (size_t i = 0; i < load->n_pending; i++)
        model->weights[n_first + i] = load->pending[i].weight;
    model->n_weights = load->n_pending + n_first;
    return BITCONV_OK;
}

enum bitconv_status bc_model_map(struct bc_loading *load, struct bitconv_error *err)
{
    struct bc_finding_kind unknown = {.what = "tensors that the family does not have"};
    struct seen seen = {.n_layers = load->model->hp.n_layers};
    enum bitconv_status status = BITCONV_OK;
    seen.flags = bc_alloc_array(count_rows(load->model->arch), seen.n_layers);
    if (seen.flags == NULL) return bc_fail_nomem(err, "list of weights");
    for (size_t i = 0; i < load->ckpt->n_tensors && status == BITCONV_OK; i++)
        status = map_tensor(load, i, &seen, &unknown, err);
    bc_finding_rest(&load->findings, &unknown);
    if (status == BITCONV_OK) check_missing(load, &seen);
    bc_free(seen.flags);
    if (status == BITCONV_OK) status = bc_model_map_experts(load, err);
    if (status == BITCONV_OK) status = check_unique(load, err);
    /* what follows allocates by the config's numbers: only once the tensors agree with them */
    if (status == BITCONV_OK && load->findings.n == 0) status = settle(load, err);
    return status;
}
