/* SPDX-License-Identifier: MIT
 * Binds tensors to the graph by a table of slots. */
#include "engine/graph.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/map.h"

/* What a slot of a layer holds. */
enum slot_kind { SLOT_NORM, SLOT_LINEAR, SLOT_FLOATS };

struct slot {
    const char *gguf; /* behind "blk.N." */
    enum slot_kind kind;
    size_t offset;       /* into struct bc_layer */
    enum bc_dim rows[2]; /* NORM: length; the sum of both is meant where there are two */
    enum bc_dim cols;
    bool stack; /* one slice per expert */
};

#define AT(member) offsetof(struct bc_layer, member)
static const struct slot slots[] = {
    {"attn_norm", SLOT_NORM, AT(attn_norm), {BC_N_EMBD}, BC_N_NONE, false},
    {"attn_q_norm", SLOT_NORM, AT(q_norm), {BC_N_HEAD_K}, BC_N_NONE, false},
    {"attn_k_norm", SLOT_NORM, AT(k_norm), {BC_N_HEAD_K}, BC_N_NONE, false},
    {"attn_sub_norm", SLOT_NORM, AT(attn_sub_norm), {BC_N_O}, BC_N_NONE, false},
    {"post_attention_norm", SLOT_NORM, AT(post_attn_norm), {BC_N_EMBD}, BC_N_NONE, false},
    {"attn_output_norm", SLOT_NORM, AT(attn_out_norm), {BC_N_EMBD}, BC_N_NONE, false},
    {"ffn_norm", SLOT_NORM, AT(ffn_norm), {BC_N_EMBD}, BC_N_NONE, false},
    {"ffn_sub_norm", SLOT_NORM, AT(ffn_sub_norm), {BC_N_FF}, BC_N_NONE, false},
    {"post_ffw_norm", SLOT_NORM, AT(post_ffn_norm), {BC_N_EMBD}, BC_N_NONE, false},
    {"layer_output_norm", SLOT_NORM, AT(layer_out_norm), {BC_N_EMBD}, BC_N_NONE, false},
    {"attn_q", SLOT_LINEAR, AT(q), {BC_N_Q}, BC_N_EMBD, false},
    {"attn_k", SLOT_LINEAR, AT(k), {BC_N_K}, BC_N_EMBD, false},
    {"attn_v", SLOT_LINEAR, AT(v), {BC_N_V}, BC_N_EMBD, false},
    {"attn_qkv", SLOT_LINEAR, AT(qkv), {BC_N_QKV}, BC_N_EMBD, false},
    {"attn_output", SLOT_LINEAR, AT(o), {BC_N_EMBD}, BC_N_O, false},
    {"shortconv.in_proj", SLOT_LINEAR, AT(conv_in), {BC_N_EMBD3}, BC_N_EMBD, false},
    {"shortconv.out_proj", SLOT_LINEAR, AT(conv_out), {BC_N_EMBD}, BC_N_EMBD, false},
    {"shortconv.conv", SLOT_FLOATS, AT(conv), {BC_N_EMBD}, BC_N_CONV, false},
    {"ffn_gate", SLOT_LINEAR, AT(gate), {BC_N_FF}, BC_N_EMBD, false},
    {"ffn_up", SLOT_LINEAR, AT(up), {BC_N_FF, BC_N_FF2}, BC_N_EMBD, false},
    {"ffn_down", SLOT_LINEAR, AT(down), {BC_N_EMBD}, BC_N_FF, false},
    {"ffn_gate_inp", SLOT_LINEAR, AT(router), {BC_N_EXPERT}, BC_N_EMBD, false},
    {"ffn_gate_exps", SLOT_LINEAR, AT(gate_experts), {BC_N_FF}, BC_N_EMBD, true},
    {"ffn_up_exps", SLOT_LINEAR, AT(up_experts), {BC_N_FF}, BC_N_EMBD, true},
    {"ffn_down_exps", SLOT_LINEAR, AT(down_experts), {BC_N_EMBD}, BC_N_FF, true},
};
#undef AT

/* A graph being built. */
struct binder {
    struct bc_graph *g;
    const struct bitconv_sink *sink;
    struct bc_map used; /* names of tensors that were asked for and found */
    struct bitconv_error *err;
};

/* ---- single tensors ---- */

static char *name_of(struct binder *b, const char *base, const char *suffix)
{
    return bc_arena_printf(&b->g->arena, "%s%s", base, suffix);
}

/* Finds BASE + suffix; out->provider stays NULL when there is no such tensor. */
static enum bitconv_status look_up(struct binder *b, const char *base, const char *suffix,
                                   struct bc_tensor *out)
{
    bool found = false;
    const char *name = name_of(b, base, suffix);
    if (name == NULL) return bc_fail_nomem(b->err, "names of tensors");
    BC_TRY(bc_provider_find(b->g->provider, name, out, &found, b->err));
    if (!found) {
        *out = (struct bc_tensor){.name = name};
        return BITCONV_OK;
    }
    if (bc_map_put(&b->used, name, strlen(name), 1, NULL) == BC_MAP_NOMEM)
        return bc_fail_nomem(b->err, "names of tensors");
    return BITCONV_OK;
}

static enum bitconv_status check_shape(const struct binder *b, const struct bc_tensor *t,
                                       uint64_t cols, uint64_t rows, uint64_t slices)
{
    if (t->cols == cols && t->rows == rows && t->slices == slices) return BITCONV_OK;
    return bc_fail(b->err, BITCONV_E_CORRUPT,
                   "%s: %s: %" PRIu64 " x %" PRIu64 " x %" PRIu64
                   " values (columns, rows, slices), wanted %" PRIu64 " x %" PRIu64 " x %" PRIu64,
                   b->g->provider->path, t->name, t->cols, t->rows, t->slices, cols, rows, slices);
}

/* All values of a tensor, in memory of the graph. */
static enum bitconv_status load(struct binder *b, const struct bc_tensor *t, float **out)
{
    const uint64_t rows = bc_tensor_rows(t);
    uint64_t n = 0;
    *out = NULL;
    if (!bc_mul_u64(rows, t->cols, &n) || n > SIZE_MAX)
        return bc_fail_nomem(b->err, "values of a tensor");
    int8_t *scratch = bc_alloc_array((size_t)n, 1);
    *out = bc_arena_alloc(&b->g->arena, (size_t)n, sizeof **out);
    enum bitconv_status status = BITCONV_OK;
    if (scratch == NULL || *out == NULL)
        status = bc_fail_nomem(b->err, "values of a tensor");
    else
        status = bc_tensor_floats(t, 0, rows, scratch, *out, b->err);
    bc_free(scratch);
    return status;
}

/* An optional vector of n values. */
static enum bitconv_status load_vector(struct binder *b, const char *base, const char *suffix,
                                       uint64_t n, float **out)
{
    struct bc_tensor t;
    *out = NULL;
    BC_TRY(look_up(b, base, suffix, &t));
    if (t.provider == NULL) return BITCONV_OK;
    BC_TRY(check_shape(b, &t, n, 1, 1));
    return load(b, &t, out);
}

static enum bitconv_status bind_norm(struct binder *b, const char *base, uint64_t n,
                                     struct bc_norm *out)
{
    out->n = n;
    BC_TRY(load_vector(b, base, ".weight", n, &out->weight));
    return load_vector(b, base, ".bias", n, &out->bias);
}

/* rows[0] of 0: any number of rows. */
static enum bitconv_status bind_linear(struct binder *b, const char *base, uint64_t cols,
                                       const uint64_t rows[2], uint64_t slices,
                                       struct bc_linear *out)
{
    const struct bc_hparams *hp = &b->g->hp;
    BC_TRY(look_up(b, base, ".weight", &out->w));
    if (out->w.provider == NULL) return BITCONV_OK;
    const uint64_t wanted = rows[1] != 0 && out->w.rows == rows[1] ? rows[1] : rows[0];
    BC_TRY(check_shape(b, &out->w, cols, wanted, slices));
    if (cols > INT32_MAX / 128)
        return bc_fail(b->err, BITCONV_E_LIMIT,
                       "%s: %s: %" PRIu64 " columns, more than sums of int8 products have room for",
                       b->g->provider->path, out->w.name, cols);
    if (cols > b->g->max_cols) b->g->max_cols = cols;
    BC_TRY(load_vector(b, base, ".bias", wanted, &out->bias));
    BC_TRY(load_vector(b, base, "_norm_in.weight", cols, &out->norm_in));
    out->norm_in_eps = hp->norm_in_eps != 0 ? hp->norm_in_eps : hp->norm_eps;
    return BITCONV_OK;
}

/* ---- layers ---- */

static enum bitconv_status bind_slot(struct binder *b, uint32_t layer, const struct slot *s)
{
    const struct bc_hparams *hp = &b->g->hp;
    unsigned char *at = (unsigned char *)&b->g->layers[layer] + s->offset;
    const char *base = bc_arena_printf(&b->g->arena, "blk.%" PRIu32 ".%s", layer, s->gguf);
    if (base == NULL) return bc_fail_nomem(b->err, "names of tensors");
    const uint64_t rows[2] = {bc_dim_size(hp, s->rows[0]),
                              s->rows[1] != BC_N_NONE ? bc_dim_size(hp, s->rows[1]) : 0};
    const uint64_t cols = bc_dim_size(hp, s->cols);
    struct bc_tensor t;
    struct bc_norm norm = {.weight = NULL};
    struct bc_linear linear = {.bias = NULL};
    float *values = NULL;
    switch (s->kind) {
    case SLOT_NORM:
        BC_TRY(bind_norm(b, base, rows[0], &norm));
        memcpy(at, &norm, sizeof norm);
        break;
    case SLOT_LINEAR:
        BC_TRY(bind_linear(b, base, cols, rows, s->stack ? hp->n_expert : 1, &linear));
        memcpy(at, &linear, sizeof linear);
        break;
    case SLOT_FLOATS:
        BC_TRY(look_up(b, base, ".weight", &t));
        if (t.provider == NULL) break;
        BC_TRY(check_shape(b, &t, cols, rows[0], 1));
        BC_TRY(load(b, &t, &values));
        memcpy(at, &values, sizeof(float *));
        break;
    }
    return BITCONV_OK;
}

static enum bitconv_status bind_layers(struct binder *b)
{
    struct bc_graph *g = b->g;
    g->layers = bc_arena_alloc(&g->arena, g->hp.n_layers, sizeof *g->layers);
    if (g->layers == NULL) return bc_fail_nomem(b->err, "layers");
    for (uint32_t i = 0; i < g->hp.n_layers; i++) {
        for (size_t s = 0; s < sizeof slots / sizeof *slots; s++)
            BC_TRY(bind_slot(b, i, &slots[s]));
        g->layers[i].local = g->hp.layer_is_local != NULL && g->hp.layer_is_local[i];
        g->layers[i].fused_gate = bc_linear_is(&g->layers[i].up) &&
                                  !bc_linear_is(&g->layers[i].gate) &&
                                  g->layers[i].up.w.rows != g->hp.n_ff;
    }
    return BITCONV_OK;
}

/* ---- what must be there ---- */

static enum bitconv_status missing(struct binder *b, const char *name)
{
    return bc_fail(b->err, BITCONV_E_CORRUPT,
                   "%s: %s: missing, and models of the %s family need it", b->g->provider->path,
                   name, b->g->arch->name);
}

static enum bitconv_status layer_lacks(struct binder *b, uint32_t layer, const char *what)
{
    return bc_fail(b->err, BITCONV_E_CORRUPT, "%s: blk.%" PRIu32 ": %s", b->g->provider->path,
                   layer, what);
}

/* Whatever the tables say: the parts of a layer that need each other are there. */
static enum bitconv_status check_layer(struct binder *b, uint32_t i)
{
    struct bc_graph *g = b->g;
    const struct bc_layer *l = &g->layers[i];
    const bool qkv = bc_linear_is(&l->qkv) ||
                     (bc_linear_is(&l->q) && bc_linear_is(&l->k) && bc_linear_is(&l->v));
    if (l->conv != NULL && !(bc_linear_is(&l->conv_in) && bc_linear_is(&l->conv_out)))
        return layer_lacks(b, i, "its convolution has no shortconv.in_proj or shortconv.out_proj");
    if (l->conv == NULL && !(qkv && bc_linear_is(&l->o)))
        return layer_lacks(b, i,
                           "it has neither attn_q, attn_k, attn_v (or attn_qkv) and "
                           "attn_output, nor shortconv.conv");
    if (bc_linear_is(&l->router)) {
        if (!bc_linear_is(&l->gate_experts) || !bc_linear_is(&l->up_experts) ||
            !bc_linear_is(&l->down_experts))
            return layer_lacks(b, i, "a router without ffn_gate_exps, ffn_up_exps, ffn_down_exps");
    } else if (!bc_linear_is(&l->up) || !bc_linear_is(&l->down)) {
        return layer_lacks(b, i, "it has no ffn_up or no ffn_down");
    } else if (bc_linear_is(&l->gate) && l->up.w.rows != g->hp.n_ff) {
        return layer_lacks(b, i, "ffn_up holds two matrices, though ffn_gate is there");
    }
    g->has_conv = g->has_conv || l->conv != NULL;
    g->has_attention = g->has_attention || l->conv == NULL;
    g->has_fused_qkv = g->has_fused_qkv || bc_linear_is(&l->qkv);
    g->has_experts = g->has_experts || bc_linear_is(&l->router);
    return BITCONV_OK;
}

static enum bitconv_status check_layers(struct binder *b)
{
    for (uint32_t i = 0; i < b->g->hp.n_layers; i++)
        BC_TRY(check_layer(b, i));
    return BITCONV_OK;
}

static enum bitconv_status require(struct binder *b, const char *name)
{
    uint64_t found;
    return bc_map_get(&b->used, name, strlen(name), &found) ? BITCONV_OK : missing(b, name);
}

/* Every row of the table names a tensor that must be there, in each layer that has its kind. */
static enum bitconv_status check_required(struct binder *b)
{
    const struct bc_hparams *hp = &b->g->hp;
    for (const struct bc_arch_tensor *row = b->g->arch->tensors; row->hf[0] != NULL; row++) {
        if (row->gguf == NULL || row->role == BC_ROLE_OUTPUT) continue;
        const enum bc_layers kind = bc_pattern_layers(row->gguf);
        const uint32_t n = kind == BC_LAYERS_NONE ? 1 : hp->n_layers;
        for (uint32_t i = 0; i < n; i++) {
            if (kind != BC_LAYERS_NONE && !bc_layer_is_one_of(hp, kind, i)) continue;
            const char *name = bc_pattern_fill(&b->g->arena, row->gguf, i, 0, ".weight");
            if (name == NULL) return bc_fail_nomem(b->err, "names of tensors");
            BC_TRY(require(b, name));
            if (!bc_arch_has_bias(b->g->arch, row)) continue;
            name = bc_pattern_fill(&b->g->arena, row->gguf, i, 0, ".bias");
            if (name == NULL) return bc_fail_nomem(b->err, "names of tensors");
            BC_TRY(require(b, name));
        }
    }
    return BITCONV_OK;
}

/* BitLinear's norms are there for every projection of the layers, or for none. */
static enum bitconv_status check_norms_in(struct binder *b)
{
    const char *without = NULL;
    bool any = false;
    for (uint32_t i = 0; i < b->g->hp.n_layers; i++) {
        for (size_t s = 0; s < sizeof slots / sizeof *slots; s++) {
            struct bc_linear l;
            if (slots[s].kind != SLOT_LINEAR) continue;
            memcpy(&l, (const unsigned char *)&b->g->layers[i] + slots[s].offset, sizeof l);
            if (!bc_linear_is(&l)) continue;
            any = any || l.norm_in != NULL;
            if (l.norm_in == NULL && without == NULL) without = l.w.name;
        }
    }
    if (!any || without == NULL) return BITCONV_OK;
    return bc_fail(b->err, BITCONV_E_CORRUPT,
                   "%s: %s: other projections have a norm of their input (_norm_in), this one has "
                   "none",
                   b->g->provider->path, without);
}

/* A tensor that nothing multiplies by means that the model is another than the graph. */
static void tell_unused(struct binder *b)
{
    struct bc_buf names = {0};
    size_t n = 0;
    const char *name;
    for (size_t i = 0; (name = b->g->provider->ops->name_at(b->g->provider, i)) != NULL; i++) {
        uint64_t found;
        const size_t len = strlen(name);
        if (bc_map_get(&b->used, name, len, &found)) continue;
        if (len > 6 && strcmp(name + len - 6, ".scale") == 0) continue; /* part of its weight */
        if (n++ < 4) bc_buf_printf(&names, "%s%s", n > 1 ? ", " : "", name);
    }
    if (n > 0)
        bc_say(b->sink, BITCONV_WARNING, "%s: %zu tensors have no place in the %s graph: %s%s",
               b->g->provider->path, n, b->g->arch->name, bc_buf_str(&names), n > 4 ? ", ..." : "");
    bc_buf_release(&names);
}

/* ---- what is not a layer ---- */

static enum bitconv_status bind_embedding(struct binder *b)
{
    struct bc_graph *g = b->g;
    const struct bc_hparams *hp = &g->hp;
    struct bc_tensor t;
    BC_TRY(look_up(b, "token_embd", ".weight", &g->embedding));
    if (g->embedding.provider == NULL) return missing(b, "token_embd.weight");
    BC_TRY(check_shape(b, &g->embedding, hp->n_embd, hp->n_vocab, 1));
    g->embedding_scale = g->arch->graph.scaled_embedding ? sqrtf((float)hp->n_embd) : 1.0f;
    BC_TRY(look_up(b, "position_embd", ".weight", &t));
    if (t.provider != NULL) {
        BC_TRY(check_shape(b, &t, hp->n_embd, t.rows, 1));
        g->n_positions = t.rows;
        BC_TRY(load(b, &t, &g->positions));
    }
    BC_TRY(look_up(b, "token_types", ".weight", &t));
    if (t.provider != NULL) {
        BC_TRY(check_shape(b, &t, hp->n_embd, t.rows, 1));
        BC_TRY(load(b, &t, &g->token_type));
    }
    if (g->arch->graph.embedding_norm != NULL)
        BC_TRY(bind_norm(b, g->arch->graph.embedding_norm, hp->n_embd, &g->embedding_norm));
    return BITCONV_OK;
}

static enum bitconv_status bind_output(struct binder *b)
{
    struct bc_graph *g = b->g;
    const uint64_t rows[2] = {g->hp.n_vocab, 0};
    const char *norm = g->arch->graph.final_norm;
    BC_TRY(bind_norm(b, norm != NULL ? norm : "output_norm", g->hp.n_embd, &g->final_norm));
    BC_TRY(bind_linear(b, "output", g->hp.n_embd, rows, 1, &g->output));
    if (!bc_linear_is(&g->output)) g->output.w = g->embedding;
    return BITCONV_OK;
}

/* ---- rotations ---- */

static enum bitconv_status new_rotation(struct binder *b, float theta, struct bc_rotation *out)
{
    const uint32_t dims = b->g->hp.rope_dims;
    *out = (struct bc_rotation){.dims = dims, .magnitude = 1.0f};
    out->frequencies = bc_arena_alloc(&b->g->arena, dims / 2, sizeof *out->frequencies);
    if (out->frequencies == NULL) return bc_fail_nomem(b->err, "rotation");
    bc_rotation_plain(dims, theta, out->frequencies);
    return BITCONV_OK;
}

/* The divisors of a scaling, which it cannot do without. */
static enum bitconv_status load_divisors(struct binder *b, const char *base, bool needed,
                                         float **out)
{
    BC_TRY(load_vector(b, base, ".weight", b->g->hp.rope_dims / 2, out));
    return *out != NULL || !needed ? BITCONV_OK : missing(b, name_of(b, base, ".weight"));
}

static enum bitconv_status bind_longrope(struct binder *b)
{
    struct bc_graph *g = b->g;
    float *long_factors = NULL, *short_factors = NULL;
    BC_TRY(load_divisors(b, "rope_factors_long", true, &long_factors));
    BC_TRY(load_divisors(b, "rope_factors_short", true, &short_factors));
    bc_rotation_scale(&g->hp, short_factors, &g->rotation);
    BC_TRY(new_rotation(b, g->hp.rope_theta, &g->long_rotation));
    bc_rotation_scale(&g->hp, long_factors, &g->long_rotation);
    return BITCONV_OK;
}

static enum bitconv_status bind_rotations(struct binder *b)
{
    struct bc_graph *g = b->g;
    const struct bc_hparams *hp = &g->hp;
    float *divisors = NULL;
    if (g->arch->traits.positions == BC_POSITIONS_LEARNED || !g->has_attention) return BITCONV_OK;
    g->neighbours = g->arch->traits.permute_qk;
    BC_TRY(new_rotation(b, hp->rope_theta, &g->rotation));
    if (hp->rope_theta_local > 0 && hp->layer_is_local != NULL)
        BC_TRY(new_rotation(b, hp->rope_theta_local, &g->local_rotation));
    if (hp->rope_scaling == BC_ROPE_LONGROPE) return bind_longrope(b);
    const bool yarn = hp->rope_scaling == BC_ROPE_YARN;
    if ((yarn && hp->rope_orig_ctx == 0) ||
        ((yarn || hp->rope_scaling == BC_ROPE_LINEAR) && hp->rope_factor <= 0))
        return bc_fail(b->err, BITCONV_E_CORRUPT,
                       "%s: rope.scaling: its factor or its original context length is missing",
                       g->provider->path);
    BC_TRY(load_divisors(b, "rope_freqs", hp->rope_scaling == BC_ROPE_LLAMA3, &divisors));
    bc_rotation_scale(hp, divisors, &g->rotation);
    return BITCONV_OK;
}

/* ---- the whole ---- */

static float score_scale(const struct bc_hparams *hp)
{
    if (hp->attn_scale != 0) return hp->attn_scale;
    const float width =
        hp->query_pre_attn_scalar != 0 ? hp->query_pre_attn_scalar : (float)hp->head_dim_k;
    return 1.0f / sqrtf(width);
}

static enum bitconv_status check_hparams(const struct binder *b)
{
    const struct bc_hparams *hp = &b->g->hp;
    if (b->g->act == NULL)
        return bc_fail(b->err, BITCONV_E_UNSUPPORTED,
                       "%s: the activation '%s' is not one that bitconv computes",
                       b->g->provider->path, hp->hidden_act != NULL ? hp->hidden_act : "");
    if (hp->n_head_kv == 0 || hp->n_head % hp->n_head_kv != 0 || hp->rope_dims % 2 != 0 ||
        hp->rope_dims > hp->head_dim_k)
        return bc_fail(b->err, BITCONV_E_CORRUPT,
                       "%s: %" PRIu32 " heads in %" PRIu32 " groups, %" PRIu32 " of %" PRIu32
                       " dimensions rotated: not possible",
                       b->g->provider->path, hp->n_head, hp->n_head_kv, hp->rope_dims,
                       hp->head_dim_k);
    if (hp->n_expert > 0 && (hp->n_expert_used == 0 || hp->n_expert_used > hp->n_expert))
        return bc_fail(b->err, BITCONV_E_CORRUPT,
                       "%s: %" PRIu32 " of %" PRIu32 " experts a token are not possible",
                       b->g->provider->path, hp->n_expert_used, hp->n_expert);
    return BITCONV_OK;
}

static enum bitconv_status bind_all(struct binder *b)
{
    BC_TRY(check_hparams(b));
    BC_TRY(bind_embedding(b));
    BC_TRY(bind_layers(b));
    BC_TRY(bind_output(b));
    BC_TRY(check_required(b));
    BC_TRY(check_layers(b));
    BC_TRY(check_norms_in(b));
    BC_TRY(bind_rotations(b));
    tell_unused(b);
    return BITCONV_OK;
}

enum bitconv_status bc_graph_build(struct bc_provider *provider, const struct bc_arch *arch,
                                   const struct bc_hparams *hp, const struct bitconv_sink *sink,
                                   struct bc_graph **out, struct bitconv_error *err)
{
    struct bc_graph *g = bc_alloc_array(1, sizeof *g);
    *out = NULL;
    if (g == NULL) return bc_fail_nomem(err, "the graph");
    g->provider = provider;
    g->arch = arch;
    g->hp = *hp;
    g->act = bc_activation_find(hp->hidden_act);
    g->attn_scale = score_scale(hp);
    g->max_cols = hp->n_embd;
    struct binder b = {.g = g, .sink = sink, .err = err};
    const enum bitconv_status status = bind_all(&b);
    bc_map_release(&b.used);
    if (status == BITCONV_OK)
        *out = g;
    else
        bc_graph_free(g);
    return status;
}

void bc_graph_free(struct bc_graph *graph)
{
    if (graph == NULL) return;
    bc_arena_release(&graph->arena);
    bc_free(graph);
}

void bc_norm_apply(const struct bc_graph *g, const struct bc_norm *norm, const float *x,
                   size_t n_rows, float *y)
{
    const size_t n = (size_t)norm->n;
    for (size_t r = 0; r < n_rows; r++) {
        if (norm->weight == NULL) {
            if (y != x) memcpy(y + r * n, x + r * n, n * sizeof *y);
        } else if (g->hp.layer_norm) {
            bc_layer_norm(x + r * n, norm->weight, norm->bias, g->hp.norm_eps, n, y + r * n);
        } else {
            bc_rms_norm(x + r * n, norm->weight, g->hp.norm_eps, n, y + r * n);
        }
    }
}
