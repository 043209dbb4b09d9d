/* SPDX-License-Identifier: MIT
 * Reads hyper-parameters back from metadata by the table that writes them (model_keys.c), and fills
 * in what other writers leave out. */
#include "model/model_gguf.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "model/model_internal.h"

struct reading {
    const struct bitconv_gguf *file;
    const char *path; /* for messages */
    const char *arch_name;
    const struct bc_arch *arch;
    struct bc_arena *arena;
    struct bc_hparams *hp;
    struct bc_buf defaults; /* "key (value), ..." taken from the family */
    struct bitconv_error *err;
};

const struct bitconv_gguf_value *bc_gguf_find_arch_key(const struct bitconv_gguf *file,
                                                       const char *arch_name, const char *suffix)
{
    struct bc_buf key = {0};
    bc_buf_printf(&key, "%s.%s", arch_name, suffix);
    const struct bitconv_gguf_value *value =
        key.failed ? NULL : bitconv_gguf_find_key(file, bc_buf_str(&key));
    bc_buf_release(&key);
    return value;
}

static const struct bitconv_gguf_value *find(const struct reading *r, const char *suffix)
{
    return bc_gguf_find_arch_key(r->file, r->arch_name, suffix);
}

static enum bitconv_status bad_key(const struct reading *r, const char *suffix, const char *wanted)
{
    return bc_fail(r->err, BITCONV_E_CORRUPT, "%s: %s.%s: wanted %s", r->path, r->arch_name, suffix,
                   wanted);
}

static enum bitconv_status missing_key(const struct reading *r, enum bc_key key)
{
    return bc_fail(r->err, BITCONV_E_CORRUPT, "%s: %s.%s: missing, and nothing can stand in for it",
                   r->path, r->arch_name, bc_key_row(key)->suffix);
}

static void note_default(struct reading *r, const char *suffix, double value)
{
    bc_buf_printf(&r->defaults, "%s%s (%g)", r->defaults.size == 0 ? "" : ", ", suffix, value);
}

/* ---- values by the table ---- */

/* A count; of an array (one entry a layer) the largest: entries of other layers are 0 (LFM2's
 * layers without attention) or the same, else the graph has no such layer. */
static enum bitconv_status read_u32(const struct reading *r, const char *suffix,
                                    const struct bitconv_gguf_value *value, uint32_t *out)
{
    uint64_t max = 0;
    const bool array = value->type == BITCONV_GGUF_ARRAY;
    for (uint64_t i = 0; i < (array ? value->count : 1); i++) {
        struct bitconv_gguf_value element = *value;
        uint64_t n = 0;
        if ((array && !bitconv_gguf_array_at(value, i, &element)) ||
            !bitconv_gguf_value_u64(&element, &n) || n > UINT32_MAX)
            return bad_key(r, suffix, "a count below 2^32");
        if (n != 0 && max != 0 && n != max)
            return bc_fail(r->err, BITCONV_E_UNSUPPORTED,
                           "%s: %s.%s: %" PRIu64 " in one layer and %" PRIu64
                           " in another is not supported",
                           r->path, r->arch_name, suffix, max, n);
        if (n > max) max = n;
    }
    *out = (uint32_t)max;
    return BITCONV_OK;
}

static enum bitconv_status read_f32(const struct reading *r, const char *suffix,
                                    const struct bitconv_gguf_value *value, float *out)
{
    double real = 0;
    if (!bitconv_gguf_value_f64(value, &real) || !isfinite((float)real) || real < 0)
        return bad_key(r, suffix, "a number that is finite and not negative");
    *out = (float)real;
    return BITCONV_OK;
}

static enum bitconv_status read_string(const struct reading *r, const char *suffix,
                                       const struct bitconv_gguf_value *value, const char **out)
{
    const char *s = NULL;
    size_t len = 0;
    if (!bitconv_gguf_value_string(value, &s, &len)) return bad_key(r, suffix, "a string");
    *out = bc_arena_strndup(r->arena, s, len);
    return *out != NULL ? BITCONV_OK : bc_fail_nomem(r->err, "metadata");
}

/* Stores the value of one key in its member; absent keys leave the member alone. */
static enum bitconv_status read_member(const struct reading *r, const struct bc_key_row *row)
{
    if (row->kind == BC_KIND_SPECIAL || row->suffix == NULL) return BITCONV_OK;
    const struct bitconv_gguf_value *value = find(r, row->suffix);
    unsigned char *at = (unsigned char *)r->hp + row->offset;
    uint32_t integer = 0;
    float real = 0;
    bool flag = false;
    const char *text = NULL;
    if (value == NULL) return BITCONV_OK;
    switch (row->kind) {
    case BC_KIND_U32:
        BC_TRY(read_u32(r, row->suffix, value, &integer));
        memcpy(at, &integer, sizeof integer);
        break;
    case BC_KIND_F32:
        BC_TRY(read_f32(r, row->suffix, value, &real));
        memcpy(at, &real, sizeof real);
        break;
    case BC_KIND_BOOL:
        if (!bitconv_gguf_value_bool(value, &flag)) return bad_key(r, row->suffix, "a bool");
        memcpy(at, &flag, sizeof flag);
        break;
    case BC_KIND_STRING:
        BC_TRY(read_string(r, row->suffix, value, &text));
        memcpy(at, &text, sizeof text);
        break;
    case BC_KIND_SPECIAL:
        break;
    }
    return BITCONV_OK;
}

/* Every key that either target's files of the family have. */
static enum bitconv_status read_members(const struct reading *r)
{
    for (size_t target = 0; target < BC_N_TARGETS; target++) {
        const enum bc_key *key = r->arch->key_order[target];
        for (; key != NULL && *key != BC_KEY_END; key++)
            BC_TRY(read_member(r, bc_key_row(*key)));
    }
    return BITCONV_OK;
}

/* ---- what has more than one key, or no key ---- */

static enum bitconv_status find_arch(struct reading *r)
{
    const char *name = NULL;
    size_t len = 0;
    uint64_t n_expert = 0;
    if (!bitconv_gguf_value_string(bitconv_gguf_find_key(r->file, "general.architecture"), &name,
                                   &len))
        return bc_fail(r->err, BITCONV_E_CORRUPT, "%s: general.architecture: missing", r->path);
    r->arch_name = bc_arena_strndup(r->arena, name, len);
    if (r->arch_name == NULL) return bc_fail_nomem(r->err, "metadata");
    r->arch = bc_arch_by_gguf_name(r->arch_name);
    if (r->arch == NULL)
        return bc_fail(r->err, BITCONV_E_UNSUPPORTED,
                       "%s: general.architecture: '%s' is no family that bitconv runs (`bitconv "
                       "archs` lists them)",
                       r->path, r->arch_name);
    (void)bitconv_gguf_value_u64(find(r, bc_key_row(BC_KEY_EXPERT_COUNT)->suffix), &n_expert);
    if (r->arch == &bc_arch_llama && n_expert > 0) r->arch = &bc_arch_mixtral;
    return BITCONV_OK;
}

/* The default that a family's configuration class has for a member; 0 when it has none. */
static double class_default(const struct bc_arch *arch, size_t offset)
{
    const struct bc_arch_hparam *row = bc_arch_hparam_of(arch, offset);
    return row != NULL ? row->fallback : 0;
}

static enum bitconv_status check_counts(struct reading *r)
{
    const struct bc_hparams *hp = r->hp;
    if (hp->n_layers == 0) return missing_key(r, BC_KEY_BLOCK_COUNT);
    if (hp->n_embd == 0) return missing_key(r, BC_KEY_EMBEDDING_LENGTH);
    if (hp->n_ff == 0) return missing_key(r, BC_KEY_FEED_FORWARD_LENGTH);
    if (hp->n_head == 0) return missing_key(r, BC_KEY_HEAD_COUNT);
    if (hp->n_layers > bitconv_gguf_n_tensors(r->file))
        return bc_fail(r->err, BITCONV_E_CORRUPT,
                       "%s: %s.%s: %" PRIu32 ", but there are %zu tensors", r->path, r->arch_name,
                       bc_key_row(BC_KEY_BLOCK_COUNT)->suffix, hp->n_layers,
                       bitconv_gguf_n_tensors(r->file));
    return BITCONV_OK;
}

/* Sizes that follow from others where no key states them. */
static enum bitconv_status derive_sizes(struct reading *r)
{
    struct bc_hparams *hp = r->hp;
    if (hp->n_head_kv == 0) hp->n_head_kv = hp->n_head;
    if (hp->head_dim_k == 0) {
        if (hp->n_embd % hp->n_head != 0) return missing_key(r, BC_KEY_KEY_LENGTH);
        hp->head_dim_k = hp->n_embd / hp->n_head;
    }
    if (hp->head_dim_v == 0) hp->head_dim_v = hp->head_dim_k;
    if (hp->n_head % hp->n_head_kv != 0)
        return bad_key(r, bc_key_row(BC_KEY_HEAD_COUNT_KV)->suffix, "a divisor of the head count");
    const bool rotates = r->arch->traits.positions == BC_POSITIONS_ROPE;
    if (hp->rope_dims == 0 && rotates) hp->rope_dims = hp->head_dim_k;
    if (hp->rope_dims > hp->head_dim_k || hp->rope_dims % 2 != 0)
        return bad_key(r, bc_key_row(BC_KEY_ROPE_DIMS)->suffix,
                       "an even number, at most the size of a head");
    const struct bitconv_gguf_tensor *embedding =
        bitconv_gguf_find_tensor(r->file, "token_embd.weight");
    if (embedding != NULL && embedding->n_dims == 2 && embedding->ne[1] <= UINT32_MAX)
        hp->n_vocab = (uint32_t)embedding->ne[1];
    const struct bitconv_gguf_tensor *types =
        bitconv_gguf_find_tensor(r->file, "token_types.weight");
    if (types != NULL && types->ne[1] <= UINT32_MAX) hp->n_token_types = (uint32_t)types->ne[1];
    hp->tied = bitconv_gguf_find_tensor(r->file, "output.weight") == NULL;
    hp->layer_norm = r->arch->traits.layer_norm;
    return BITCONV_OK;
}

/* Layers without a key/value head have short convolutions. */
static enum bitconv_status read_conv_layers(struct reading *r)
{
    struct bc_hparams *hp = r->hp;
    const char *suffix = bc_key_row(BC_KEY_HEAD_COUNT_KV_LAYERS)->suffix;
    const struct bitconv_gguf_value *heads = find(r, suffix);
    if (!r->arch->traits.conv_layers || heads == NULL || heads->type != BITCONV_GGUF_ARRAY)
        return BITCONV_OK;
    BC_TRY(read_u32(r, suffix, heads, &hp->n_head_kv));
    if (heads->count != hp->n_layers) return bad_key(r, suffix, "one number for each layer");
    hp->layer_is_conv = bc_arena_alloc(r->arena, hp->n_layers, sizeof *hp->layer_is_conv);
    if (hp->layer_is_conv == NULL) return bc_fail_nomem(r->err, "layer types");
    for (uint32_t i = 0; i < hp->n_layers; i++) {
        struct bitconv_gguf_value element;
        uint64_t n = 0;
        (void)(bitconv_gguf_array_at(heads, i, &element) && bitconv_gguf_value_u64(&element, &n));
        hp->layer_is_conv[i] = n == 0;
    }
    return BITCONV_OK;
}

static void take_default_u32(struct reading *r, enum bc_key key, uint32_t *member, double value)
{
    if (*member != 0) return;
    *member = (uint32_t)value;
    note_default(r, bc_key_row(key)->suffix, value);
}

static void take_default_f32(struct reading *r, enum bc_key key, float *member, double value)
{
    if (*member != 0 || value == 0) return;
    *member = (float)value;
    note_default(r, bc_key_row(key)->suffix, value);
}

static void take_defaults(struct reading *r)
{
    const struct bc_arch_traits *traits = &r->arch->traits;
    struct bc_hparams *hp = r->hp;
    take_default_u32(r, BC_KEY_CONTEXT_LENGTH, &hp->n_ctx,
                     class_default(r->arch, offsetof(struct bc_hparams, n_ctx)));
    take_default_f32(r, BC_KEY_RMS_EPS, &hp->norm_eps,
                     class_default(r->arch, offsetof(struct bc_hparams, norm_eps)));
    hp->has_rope_theta = hp->rope_theta != 0;
    take_default_f32(r, BC_KEY_ROPE_BASE, &hp->rope_theta, traits->default_rope_theta);
    take_default_f32(r, BC_KEY_ROPE_BASE_LOCAL, &hp->rope_theta_local,
                     traits->default_rope_theta_local);
    if (hp->hidden_act == NULL) {
        hp->hidden_act = traits->default_act;
        if (traits->act_is_fixed) return;
        bc_buf_printf(&r->defaults, "%s%s (%s)", r->defaults.size == 0 ? "" : ", ",
                      bc_key_row(BC_KEY_HIDDEN_ACT)->suffix, hp->hidden_act);
    }
}

/* Which layers are local: one bool a layer, a period, or the family's rule. */
static enum bitconv_status read_pattern(struct reading *r, bool *local)
{
    const struct bc_hparams *hp = r->hp;
    static const char suffix[] = "attention.sliding_window_pattern";
    const struct bitconv_gguf_value *pattern = find(r, suffix);
    uint64_t period = 6;
    if (pattern != NULL && pattern->type == BITCONV_GGUF_ARRAY) {
        if (pattern->elem != BITCONV_GGUF_BOOL || pattern->count != hp->n_layers)
            return bad_key(r, suffix, "one bool for each layer");
        for (uint32_t i = 0; i < hp->n_layers; i++)
            local[i] = pattern->data[i] != 0;
        return BITCONV_OK;
    }
    if (pattern != NULL && (!bitconv_gguf_value_u64(pattern, &period) || period == 0))
        return bad_key(r, suffix, "a positive period or one bool for each layer");
    if (pattern == NULL && r->arch->traits.sliding == BC_SLIDING_PATTERN)
        note_default(r, suffix, (double)period);
    const enum bc_sliding rule = r->arch->traits.sliding;
    for (uint32_t i = 0; i < hp->n_layers; i++) {
        const bool periodic = pattern != NULL || rule == BC_SLIDING_PATTERN;
        local[i] = periodic ? ((uint64_t)i + 1) % period != 0 : rule == BC_SLIDING_ALL;
    }
    return BITCONV_OK;
}

static enum bitconv_status read_sliding(struct reading *r)
{
    const char *suffix = bc_key_row(BC_KEY_SLIDING_WINDOW)->suffix;
    const struct bitconv_gguf_value *window = find(r, suffix);
    struct bc_hparams *hp = r->hp;
    if (window != NULL) BC_TRY(read_u32(r, suffix, window, &hp->sliding_window));
    if (window == NULL && r->arch->traits.sliding == BC_SLIDING_PATTERN)
        take_default_u32(r, BC_KEY_SLIDING_WINDOW, &hp->sliding_window,
                         r->arch->traits.default_sliding_window);
    if (hp->sliding_window == 0) return BITCONV_OK;
    hp->layer_is_local = bc_arena_alloc(r->arena, hp->n_layers, sizeof *hp->layer_is_local);
    if (hp->layer_is_local == NULL) return bc_fail_nomem(r->err, "layer types");
    return read_pattern(r, hp->layer_is_local);
}

/* An optional number of rope.scaling.*; 0 when absent. */
static enum bitconv_status scaling_f32(const struct reading *r, const char *suffix, float *out)
{
    const struct bitconv_gguf_value *value = find(r, suffix);
    return value != NULL ? read_f32(r, suffix, value, out) : BITCONV_OK;
}

static enum bitconv_status read_scaling_type(struct reading *r)
{
    static const enum bc_rope_scaling types[] = {BC_ROPE_LINEAR, BC_ROPE_YARN, BC_ROPE_LONGROPE};
    const char *suffix = bc_key_row(BC_KEY_ROPE_SCALING)->suffix;
    const struct bitconv_gguf_value *value = find(r, suffix);
    const char *name = NULL;
    if (value == NULL) {
        /* llama.cpp knows longrope by its factors */
        if (bitconv_gguf_find_tensor(r->file, "rope_factors_long.weight") != NULL)
            r->hp->rope_scaling = BC_ROPE_LONGROPE;
        else if (r->hp->rope_factor > 1)
            r->hp->rope_scaling = BC_ROPE_LINEAR; /* as llama.cpp reads it */
        return BITCONV_OK;
    }
    BC_TRY(read_string(r, suffix, value, &name));
    if (strcmp(name, "none") == 0) return BITCONV_OK;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(name, bc_rope_scaling_name(types[i])) != 0) continue;
        r->hp->rope_scaling = types[i];
        return BITCONV_OK;
    }
    return bc_fail(
        r->err, BITCONV_E_UNSUPPORTED,
        "%s: %s.%s: '%s' is not a RoPE scaling that bitconv computes (none, linear, yarn, "
        "longrope)",
        r->path, r->arch_name, suffix, name);
}

static enum bitconv_status read_rope_scaling(struct reading *r)
{
    struct bc_hparams *hp = r->hp;
    const struct bitconv_gguf_value *orig = find(r, "rope.scaling.original_context_length");
    BC_TRY(scaling_f32(r, "rope.scaling.factor", &hp->rope_factor));
    BC_TRY(scaling_f32(r, "rope.scaling.attn_factor", &hp->rope_attn_factor));
    BC_TRY(scaling_f32(r, "rope.scaling.yarn_attn_factor", &hp->rope_attn_factor));
    BC_TRY(scaling_f32(r, "rope.scaling.yarn_beta_fast", &hp->rope_beta_fast));
    BC_TRY(scaling_f32(r, "rope.scaling.yarn_beta_slow", &hp->rope_beta_slow));
    if (orig != NULL)
        BC_TRY(read_u32(r, "rope.scaling.original_context_length", orig, &hp->rope_orig_ctx));
    if (find(r, BC_LLAMA3_FACTOR_KEY) == NULL) return read_scaling_type(r);
    BC_TRY(scaling_f32(r, BC_LLAMA3_FACTOR_KEY, &hp->rope_factor));
    BC_TRY(scaling_f32(r, "rope.scaling.llama3.low_freq_factor", &hp->rope_low_freq_factor));
    BC_TRY(scaling_f32(r, "rope.scaling.llama3.high_freq_factor", &hp->rope_high_freq_factor));
    hp->rope_scaling = BC_ROPE_LLAMA3;
    return BITCONV_OK;
}

static enum bitconv_status read_pooling(struct reading *r)
{
    const char *suffix = bc_key_row(BC_KEY_POOLING)->suffix;
    const struct bitconv_gguf_value *value = find(r, suffix);
    uint32_t pooling = 0;
    r->hp->pooling = -1;
    if (value == NULL) return BITCONV_OK;
    BC_TRY(read_u32(r, suffix, value, &pooling));
    if (pooling > INT32_MAX || bc_pooling_name((int)pooling) == NULL)
        return bad_key(r, suffix, "0 (none), 1 (mean), 2 (cls) or 3 (last)");
    r->hp->pooling = (int)pooling;
    return BITCONV_OK;
}

static int64_t token_id(const struct reading *r, const char *key)
{
    int64_t id = -1;
    (void)bitconv_gguf_value_i64(bitconv_gguf_find_key(r->file, key), &id);
    return id;
}

static enum bitconv_status read_all(struct reading *r)
{
    struct bc_hparams *hp = r->hp;
    BC_TRY(find_arch(r));
    hp->causal = !r->arch->traits.bidirectional &&
                 (r->arch->gguf_name_bidirectional == NULL ||
                  strcmp(r->arch_name, r->arch->gguf_name_bidirectional) != 0);
    BC_TRY(read_members(r));
    BC_TRY(check_counts(r));
    BC_TRY(read_conv_layers(r));
    BC_TRY(derive_sizes(r));
    take_defaults(r);
    BC_TRY(read_sliding(r));
    BC_TRY(read_rope_scaling(r));
    BC_TRY(read_pooling(r));
    hp->bos_id = token_id(r, "tokenizer.ggml.bos_token_id");
    hp->eos_id = token_id(r, "tokenizer.ggml.eos_token_id");
    hp->pad_id = token_id(r, "tokenizer.ggml.padding_token_id");
    return BITCONV_OK;
}

enum bitconv_status bc_hparams_from_gguf(const struct bitconv_gguf *file, struct bc_arena *arena,
                                         const struct bitconv_sink *sink,
                                         const struct bc_arch **arch, struct bc_hparams *hp,
                                         struct bitconv_error *err)
{
    struct reading r = {.file = file,
                        .path = bitconv_gguf_shard_path(file, 0),
                        .arena = arena,
                        .hp = hp,
                        .err = err};
    memset(hp, 0, sizeof *hp);
    const enum bitconv_status status = read_all(&r);
    if (status == BITCONV_OK && r.defaults.size != 0)
        bc_say(sink, BITCONV_NOTE,
               "%s: not in the metadata, taken from the %s family's defaults: %s", r.path,
               r.arch->name, bc_buf_str(&r.defaults));
    bc_buf_release(&r.defaults);
    *arch = r.arch;
    return status;
}
