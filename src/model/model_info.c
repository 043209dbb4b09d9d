/* SPDX-License-Identifier: MIT
 * A model in a few facts for people: from a checkpoint, and from the metadata of any GGUF. */
#include <string.h>

#include "model/model_gguf.h"
#include "model/model_internal.h"

/* The dtype that most values of the linear weights have. */
static const char *linear_dtype(const struct bc_model *model)
{
    uint64_t counts[BITCONV_N_DTYPES] = {0};
    size_t best = BITCONV_N_DTYPES;
    for (size_t i = 0; i < model->n_weights; i++) {
        const struct bc_weight *w = &model->weights[i];
        if (w->role != BC_ROLE_LINEAR || w->n_sources == 0) continue;
        const size_t dtype = (size_t)w->sources[0].tensor->dtype;
        counts[dtype] += w->sources[0].tensor->n_elements;
        if (best == BITCONV_N_DTYPES || counts[dtype] > counts[best]) best = dtype;
    }
    return best == BITCONV_N_DTYPES ? NULL : bitconv_dtype_name((enum bitconv_dtype)best);
}

static const char *training_text(const struct bc_model *model, struct bc_arena *arena)
{
    const char *dtype = linear_dtype(model);
    if (dtype == NULL) dtype = "no linear weights";
    switch (model->training) {
    case BC_TRAINING_NONE:
        return dtype;
    case BC_TRAINING_ONLINE:
        return bc_arena_printf(arena, "%s, ternarised at load", dtype);
    case BC_TRAINING_OFFLINE:
        return bc_arena_printf(arena, "%s, ternary, weight_scale %s", dtype,
                               model->scale_divides ? "divides" : "multiplies");
    case BC_TRAINING_BAKED:
        return bc_arena_printf(arena, "%s, baked ternary", dtype);
    }
    return dtype;
}

void bc_model_info(const struct bc_model *model, struct bc_arena *arena, struct bc_model_info *out)
{
    const struct bc_hparams *hp = &model->hp;
    *out = (struct bc_model_info){.architecture = model->class_name,
                                  .quantization = training_text(model, arena),
                                  .rope_scaling = bc_rope_scaling_name(hp->rope_scaling),
                                  .hidden_act = hp->hidden_act,
                                  .pooling = bc_pooling_name(hp->pooling),
                                  .hidden_size = hp->n_embd,
                                  .intermediate_size = hp->n_ff,
                                  .layers = hp->n_layers,
                                  .heads = hp->n_head,
                                  .kv_heads = hp->n_head_kv,
                                  .head_dim = hp->head_dim_k,
                                  .vocab_size = hp->n_vocab,
                                  .context_length = hp->n_ctx,
                                  .experts = hp->n_expert,
                                  .experts_used = hp->n_expert_used,
                                  .sliding_window = hp->sliding_window,
                                  .rope_theta = (double)hp->rope_theta};
}

/* A GGUF being read for its facts. */
struct reading {
    const struct bitconv_gguf *file;
    const char *arch_name;
    struct bc_arena *arena;
    struct bc_buf defaults; /* "fact (value), ..." taken from the family */
};

static const struct bitconv_gguf_value *find(const struct reading *r, const char *suffix)
{
    return bc_gguf_find_arch_key(r->file, r->arch_name, suffix);
}

/* A count; of an array (one entry a layer) the largest. 0 when absent. */
static uint64_t count(const struct reading *r, enum bc_key key)
{
    const struct bitconv_gguf_value *value = find(r, bc_key_row(key)->suffix);
    uint64_t max = 0;
    if (value == NULL) return 0;
    if (value->type != BITCONV_GGUF_ARRAY) return bitconv_gguf_value_u64(value, &max) ? max : 0;
    for (uint64_t i = 0; i < value->count; i++) {
        struct bitconv_gguf_value element;
        uint64_t n = 0;
        if (!bitconv_gguf_array_at(value, i, &element)) break;
        if (bitconv_gguf_value_u64(&element, &n) && n > max) max = n;
    }
    return max;
}

static const char *copy_string(const struct reading *r, const struct bitconv_gguf_value *value)
{
    const char *s = NULL;
    size_t len = 0;
    return bitconv_gguf_value_string(value, &s, &len) ? bc_arena_strndup(r->arena, s, len) : NULL;
}

static void note_default(struct reading *r, const char *fact, const char *value)
{
    bc_buf_printf(&r->defaults, "%s%s (%s)", r->defaults.size == 0 ? "" : ", ", fact, value);
}

/* The name of the type that most values of the layers' matrices have. */
static const char *majority_type(const struct reading *r)
{
    enum { MAX_TYPES = 64 };
    struct {
        const char *name;
        uint64_t n;
    } types[MAX_TYPES] = {{0}};
    size_t best = 0;
    for (size_t i = 0; i < bitconv_gguf_n_tensors(r->file); i++) {
        const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(r->file, i);
        size_t at = 0;
        if (t->n_dims < 2 || t->type_name == NULL || strncmp(t->name, "blk.", 4) != 0) continue;
        while (at < MAX_TYPES && types[at].name != NULL &&
               strcmp(types[at].name, t->type_name) != 0)
            at++;
        if (at == MAX_TYPES) continue;
        types[at].name = t->type_name;
        types[at].n += t->n_elements;
        if (types[at].n > types[best].n) best = at;
    }
    return types[best].name != NULL ? bc_arena_strdup(r->arena, types[best].name) : NULL;
}

/* RoPE facts: base and scaling. Llama 3's scaling is known by its frequencies. */
static void read_rope(struct reading *r, const struct bc_arch *arch, struct bc_model_info *out)
{
    double theta = 0, factor = 0;
    if (bitconv_gguf_value_f64(find(r, bc_key_row(BC_KEY_ROPE_BASE)->suffix), &theta)) {
        out->rope_theta = theta;
    } else if (arch != NULL && arch->traits.positions == BC_POSITIONS_ROPE) {
        struct bc_buf text = {0};
        out->rope_theta = arch->traits.default_rope_theta;
        bc_buf_printf(&text, "%g", out->rope_theta);
        note_default(r, "rope.freq_base", bc_buf_str(&text));
        bc_buf_release(&text);
    }
    out->rope_scaling = copy_string(r, find(r, "rope.scaling.type"));
    if (bitconv_gguf_value_f64(find(r, "rope.scaling.factor"), &factor) && factor == 1)
        out->rope_scaling = NULL; /* how llama.cpp's converter spells "none" for BitNet */
    if (bitconv_gguf_find_tensor(r->file, "rope_factors_long.weight") != NULL)
        out->rope_scaling = bc_rope_scaling_name(BC_ROPE_LONGROPE);
    if (find(r, BC_LLAMA3_FACTOR_KEY) != NULL ||
        bitconv_gguf_find_tensor(r->file, "rope_freqs.weight") != NULL)
        out->rope_scaling = bc_rope_scaling_name(BC_ROPE_LLAMA3);
}

static void read_counts(const struct reading *r, struct bc_model_info *out)
{
    const struct bitconv_gguf_tensor *embedding =
        bitconv_gguf_find_tensor(r->file, "token_embd.weight");
    const struct bitconv_gguf_value *tokens =
        bitconv_gguf_find_key(r->file, "tokenizer.ggml.tokens");
    out->hidden_size = count(r, BC_KEY_EMBEDDING_LENGTH);
    out->intermediate_size = count(r, BC_KEY_FEED_FORWARD_LENGTH);
    out->layers = count(r, BC_KEY_BLOCK_COUNT);
    out->heads = count(r, BC_KEY_HEAD_COUNT);
    out->kv_heads = count(r, BC_KEY_HEAD_COUNT_KV);
    out->head_dim = count(r, BC_KEY_KEY_LENGTH);
    out->context_length = count(r, BC_KEY_CONTEXT_LENGTH);
    out->experts = count(r, BC_KEY_EXPERT_COUNT);
    out->experts_used = count(r, BC_KEY_EXPERT_USED_COUNT);
    out->sliding_window = count(r, BC_KEY_SLIDING_WINDOW);
    out->vocab_size = count(r, BC_KEY_VOCAB_SIZE);
    if (out->kv_heads == 0) out->kv_heads = out->heads;
    if (out->head_dim == 0 && out->heads != 0) out->head_dim = out->hidden_size / out->heads;
    if (embedding != NULL && embedding->n_dims >= 2) out->vocab_size = embedding->ne[1];
    if (out->vocab_size == 0 && tokens != NULL && tokens->type == BITCONV_GGUF_ARRAY)
        out->vocab_size = tokens->count;
}

void bc_model_info_gguf(const struct bitconv_gguf *file, struct bc_arena *arena,
                        const struct bitconv_sink *sink, struct bc_model_info *out)
{
    struct reading r = {.file = file, .arena = arena};
    uint64_t pooling = 0;
    *out = (struct bc_model_info){.name = NULL};
    out->architecture = copy_string(&r, bitconv_gguf_find_key(file, "general.architecture"));
    out->name = copy_string(&r, bitconv_gguf_find_key(file, "general.name"));
    out->quantization = majority_type(&r);
    if (out->architecture == NULL) return;
    r.arch_name = out->architecture;
    const struct bc_arch *arch = bc_arch_by_gguf_name(r.arch_name);
    read_counts(&r, out);
    read_rope(&r, arch, out);
    out->hidden_act = copy_string(&r, find(&r, bc_key_row(BC_KEY_HIDDEN_ACT)->suffix));
    if (out->hidden_act == NULL && arch != NULL) {
        out->hidden_act = arch->traits.default_act;
        note_default(&r, "hidden_activation", out->hidden_act);
    }
    if (bitconv_gguf_value_u64(find(&r, bc_key_row(BC_KEY_POOLING)->suffix), &pooling) &&
        pooling <= INT32_MAX)
        out->pooling = bc_pooling_name((int)pooling);
    if (r.defaults.size != 0)
        bc_say(sink, BITCONV_NOTE,
               "%s: not in the metadata, taken from the %s family's defaults: %s",
               bitconv_gguf_shard_path(file, 0), arch->name, bc_buf_str(&r.defaults));
    bc_buf_release(&r.defaults);
}
