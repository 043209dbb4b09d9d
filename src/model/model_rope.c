/* SPDX-License-Identifier: MIT
 * RoPE settings of a config, in both schemas of transformers: `rope_theta` + `rope_scaling` (up to
 * 4) and `rope_parameters` (5; for Gemma 3 one object per layer type). Both may be there if they
 * agree. A missing base is the class's default, said; an unknown type or field is refused. */
#include <math.h>
#include <string.h>

#include "model/model_internal.h"

/* The numbers a scaling object may hold. */
enum { FACTOR, LOW, HIGH, ORIG_CTX, ATTN_FACTOR, BETA_FAST, BETA_SLOW, N_NUMBERS };
static const char *const number_keys[N_NUMBERS] = {
    "factor",           "low_freq_factor", "high_freq_factor", "original_max_position_embeddings",
    "attention_factor", "beta_fast",       "beta_slow"};

/* The lists of longrope. */
enum { LONG, SHORT, N_LISTS };
static const char *const list_keys[N_LISTS] = {"long_factor", "short_factor"};

/* What one place of the config says. */
struct rope {
    bool has_theta, has_type;
    bool bad_theta; /* a finding already: no default is taken instead */
    bool bad_type;  /* likewise: what belongs to the type is not looked at */
    double theta;
    enum bc_rope_scaling type;
    bool has[N_NUMBERS];
    double number[N_NUMBERS];
    double rotated;                      /* partial_rotary_factor; 0: not given */
    const struct bc_json *list[N_LISTS]; /* NULL: not given */
};

static const struct {
    const char *name;
    enum bc_rope_scaling type;
} types[] = {{"default", BC_ROPE_NONE},
             {"linear", BC_ROPE_LINEAR},
             {"llama3", BC_ROPE_LLAMA3},
             {"yarn", BC_ROPE_YARN},
             {"longrope", BC_ROPE_LONGROPE},
             {"su", BC_ROPE_LONGROPE}}; /* its name in Phi-3's first configs */

const char *bc_rope_scaling_name(enum bc_rope_scaling type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type && type != BC_ROPE_NONE) return types[i].name;
    return NULL;
}

static void bad_field(struct bc_loading *load, const char *where, const char *key, const char *why)
{
    bc_finding(&load->findings, BITCONV_E_UNSUPPORTED, "%s: %s.%s: %s", load->config_path, where,
               key, why);
}

/* Phi-3's class knows longrope and nothing else, all others everything else. */
static bool is_supported(const struct bc_loading *load, enum bc_rope_scaling type)
{
    if (type == BC_ROPE_NONE) return true;
    return (type == BC_ROPE_LONGROPE) == load->model->arch->traits.longrope;
}

static void read_type(struct bc_loading *load, const char *where, const struct bc_json *node,
                      struct rope *out)
{
    const char *name = bc_json_string(node);
    for (size_t i = 0; name != NULL && i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].name, name) != 0 || !is_supported(load, types[i].type)) continue;
        if (out->has_type && out->type != types[i].type)
            bad_field(load, where, bc_json_key(node), "contradicts the other spelling beside it");
        out->has_type = true;
        out->type = types[i].type;
        return;
    }
    bc_finding(&load->findings, BITCONV_E_UNSUPPORTED,
               "%s: %s.%s: RoPE type \"%s\" is not supported for the %s family (%s are)",
               load->config_path, where, bc_json_key(node), name != NULL ? name : "(not a string)",
               load->model->arch->name,
               load->model->arch->traits.longrope ? "default, longrope"
                                                  : "default, linear, llama3, yarn");
    out->bad_type = true;
}

static bool positive(const struct bc_json *node, double *out)
{
    return bc_json_f64(node, out) && isfinite((float)*out) && (float)*out > 0;
}

/* The part of each head that is rotated. */
static void read_rotated(struct bc_loading *load, const char *where, const struct bc_json *node,
                         struct rope *out)
{
    double value = 0;
    if (!positive(node, &value) || value > 1)
        bad_field(load, where, bc_json_key(node), "wanted a number above 0, at most 1");
    else if (value != 1 && !load->model->arch->traits.partial_rotary)
        bad_field(load, where, bc_json_key(node), "only rotating the whole head (1) is supported");
    else
        out->rotated = value;
}

/* One member of a rope object; nested objects are the caller's business. */
static void read_member(struct bc_loading *load, const char *where, const struct bc_json *node,
                        struct rope *out)
{
    const char *key = bc_json_key(node);
    if (bc_json_is(node, BC_JSON_NULL)) return;
    if (strcmp(key, "rope_type") == 0 || strcmp(key, "type") == 0) {
        read_type(load, where, node, out);
        return;
    }
    if (strcmp(key, "finetuned") == 0) return; /* a note of the training, no computation reads it */
    if (strcmp(key, "partial_rotary_factor") == 0) {
        read_rotated(load, where, node, out);
        return;
    }
    for (size_t i = 0; i < N_LISTS; i++) {
        if (strcmp(key, list_keys[i]) != 0) continue;
        out->list[i] = node;
        return;
    }
    for (size_t i = 0; i < N_NUMBERS; i++) {
        if (strcmp(key, number_keys[i]) != 0) continue;
        out->has[i] = positive(node, &out->number[i]);
        if (!out->has[i]) bad_field(load, where, key, "wanted a positive number");
        return;
    }
    if (strcmp(key, "rope_theta") != 0) {
        bad_field(load, where, key, "not a RoPE setting that bitconv knows");
        return;
    }
    out->has_theta = positive(node, &out->theta);
    out->bad_theta = !out->has_theta;
    if (out->bad_theta) bad_field(load, where, key, "wanted a positive number");
}

static struct rope read_object(struct bc_loading *load, const char *where,
                               const struct bc_json *object)
{
    struct rope rope = {0};
    if (object != NULL && !bc_json_is(object, BC_JSON_OBJECT))
        bc_finding(&load->findings, BITCONV_E_CORRUPT, "%s: %s: wanted an object",
                   load->config_path, where);
    for (const struct bc_json *node = bc_json_first(object);
         node != NULL && bc_json_is(object, BC_JSON_OBJECT); node = bc_json_next(node))
        read_member(load, where, node, &rope);
    return rope;
}

/* Both are lists of the same numbers. */
static bool same_list(const struct bc_json *a, const struct bc_json *b)
{
    const struct bc_json *x = bc_json_first(a), *y = bc_json_first(b);
    double p = 0, q = 0;
    for (; x != NULL && y != NULL; x = bc_json_next(x), y = bc_json_next(y))
        if (!bc_json_f64(x, &p) || !bc_json_f64(y, &q) || p != q) return false;
    return x == NULL && y == NULL;
}

static void contradiction(struct bc_loading *load, const char *what, double a, double b)
{
    bc_finding(&load->findings, BITCONV_E_CORRUPT,
               "%s: contradicting RoPE settings: %s is %g in one place and %g in another",
               load->config_path, what, a, b);
}

static void merge_lists(struct bc_loading *load, struct rope *into, const struct rope *from)
{
    for (size_t i = 0; i < N_LISTS; i++) {
        if (into->list[i] != NULL && from->list[i] != NULL &&
            !same_list(into->list[i], from->list[i]))
            bc_finding(&load->findings, BITCONV_E_CORRUPT,
                       "%s: contradicting RoPE settings: rope_scaling and rope_parameters have "
                       "different %s",
                       load->config_path, list_keys[i]);
        if (into->list[i] == NULL) into->list[i] = from->list[i];
    }
}

/* Adds what `from` says to `into`; both saying different things is a finding. */
static void merge(struct bc_loading *load, struct rope *into, const struct rope *from)
{
    if (into->has_theta && from->has_theta && into->theta != from->theta)
        contradiction(load, "rope_theta", into->theta, from->theta);
    if (into->has_type && from->has_type && into->type != from->type)
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: contradicting RoPE settings: rope_scaling and rope_parameters name "
                   "different types",
                   load->config_path);
    if (!into->has_theta && from->has_theta) into->theta = from->theta;
    if (!into->has_type && from->has_type) into->type = from->type;
    into->has_theta = into->has_theta || from->has_theta;
    into->bad_theta = into->bad_theta || from->bad_theta;
    into->has_type = into->has_type || from->has_type;
    into->bad_type = into->bad_type || from->bad_type;
    for (size_t i = 0; i < N_NUMBERS; i++) {
        if (into->has[i] && from->has[i] && into->number[i] != from->number[i])
            contradiction(load, number_keys[i], into->number[i], from->number[i]);
        if (!into->has[i] && from->has[i]) into->number[i] = from->number[i];
        into->has[i] = into->has[i] || from->has[i];
    }
    merge_lists(load, into, from);
    if (into->rotated > 0 && from->rotated > 0 && into->rotated != from->rotated)
        contradiction(load, "partial_rotary_factor", into->rotated, from->rotated);
    if (into->rotated <= 0) into->rotated = from->rotated;
}

/* `rope_theta`-like number at the top level. */
static struct rope read_theta(struct bc_loading *load, const char *key)
{
    struct rope rope = {0};
    const struct bc_json *node = bc_config_get_aliased(load, key);
    if (node == NULL) return rope;
    rope.has_theta = positive(node, &rope.theta);
    rope.bad_theta = !rope.has_theta;
    if (rope.bad_theta)
        bc_finding(&load->findings, BITCONV_E_CORRUPT, "%s: %s: wanted a positive number",
                   load->config_path, key);
    return rope;
}

static void need(struct bc_loading *load, const struct rope *rope, size_t number)
{
    if (!rope->has[number])
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: rope_scaling.%s: missing, and RoPE type "
                   "\"%s\" needs it",
                   load->config_path, number_keys[number], bc_rope_scaling_name(rope->type));
}

/* A factor that no scaling applies: without a type it is unknown how it is meant; type "default"
 * makes transformers ignore it. */
static void check_unused_factor(struct bc_loading *load, const struct rope *rope)
{
    if (!rope->has[FACTOR] || rope->number[FACTOR] == 1) return;
    if (!rope->has_type)
        bc_finding(&load->findings, BITCONV_E_UNSUPPORTED,
                   "%s: rope_scaling: factor %g, but no rope_type says what it does (default, "
                   "linear, llama3, yarn)",
                   load->config_path, rope->number[FACTOR]);
    else
        bc_say(load->sink, BITCONV_WARNING,
               "%s: rope_scaling.factor %g has no effect: the RoPE type is \"default\"",
               load->config_path, rope->number[FACTOR]);
}

/* The context that a scaling starts from: *out 0 and a finding when it is no 32-bit integer. */
static void store_orig_ctx(struct bc_loading *load, const struct rope *rope, uint32_t *out)
{
    const double value = rope->number[ORIG_CTX];
    if (value > UINT32_MAX || floor(value) != value)
        bad_field(load, "rope_scaling", number_keys[ORIG_CTX], "wanted an integer below 2^32");
    else
        *out = (uint32_t)value;
}

static void store_llama3(struct bc_loading *load, const struct rope *rope)
{
    struct bc_hparams *hp = &load->model->hp;
    need(load, rope, LOW);
    need(load, rope, HIGH);
    hp->rope_low_freq_factor = (float)rope->number[LOW];
    hp->rope_high_freq_factor = (float)rope->number[HIGH];
    if (rope->has[LOW] && rope->has[HIGH] && hp->rope_low_freq_factor >= hp->rope_high_freq_factor)
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: rope_scaling: low_freq_factor %g must be below high_freq_factor %g",
                   load->config_path, rope->number[LOW], rope->number[HIGH]);
}

/* longrope scales by n_ctx / original context; a `factor` beside it must be that ratio. */
static enum bitconv_status store_longrope(struct bc_loading *load, const struct rope *rope,
                                          struct bitconv_error *err)
{
    struct bc_hparams *hp = &load->model->hp;
    for (size_t i = 0; i < N_LISTS; i++)
        if (rope->list[i] == NULL)
            bad_field(load, "rope_scaling", list_keys[i],
                      "missing, and RoPE type \"longrope\" needs it");
    if (hp->rope_orig_ctx < 2) { /* its logarithm divides */
        bad_field(load, "rope_scaling", number_keys[ORIG_CTX], "wanted 2 or more");
        return BITCONV_OK;
    }
    const double ratio = (double)hp->n_ctx / (double)hp->rope_orig_ctx;
    if (rope->has[FACTOR] && (float)rope->number[FACTOR] != (float)ratio)
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: rope_scaling.factor is %g, but max_position_embeddings %u over %s %u is %g",
                   load->config_path, rope->number[FACTOR], (unsigned)hp->n_ctx,
                   number_keys[ORIG_CTX], (unsigned)hp->rope_orig_ctx, ratio);
    return bc_model_read_longrope(load, rope->list[LONG], rope->list[SHORT],
                                  rope->has[ATTN_FACTOR] ? rope->number[ATTN_FACTOR] : 0, err);
}

/* The original context where the config leaves it out. */
static void default_orig_ctx(struct bc_loading *load, struct rope *rope)
{
    const double of_class = load->model->arch->traits.default_rope_orig_ctx;
    if (rope->has[ORIG_CTX]) return;
    if (rope->type == BC_ROPE_YARN) {
        /* transformers takes the model's own context then */
        rope->has[ORIG_CTX] = true;
        rope->number[ORIG_CTX] = load->model->hp.n_ctx;
    } else if (rope->type == BC_ROPE_LONGROPE && of_class > 0) {
        bc_say(load->sink, BITCONV_WARNING,
               "%s: %s: missing; taking %g, the default of the %s configuration class",
               load->config_path, number_keys[ORIG_CTX], of_class, load->model->arch->name);
        rope->has[ORIG_CTX] = true;
        rope->number[ORIG_CTX] = of_class;
    }
}

/* Checks the scaling and stores it. */
static enum bitconv_status store_scaling(struct bc_loading *load, struct rope *rope,
                                         struct bitconv_error *err)
{
    struct bc_hparams *hp = &load->model->hp;
    if (rope->bad_type) return BITCONV_OK; /* a finding already */
    hp->rope_scaling = rope->type;
    for (size_t i = 0; i < N_LISTS && rope->type != BC_ROPE_LONGROPE; i++)
        if (rope->list[i] != NULL)
            bad_field(load, "rope_scaling", list_keys[i], "only RoPE type \"longrope\" has it");
    if (rope->type == BC_ROPE_NONE) {
        check_unused_factor(load, rope);
        /* files of Phi-3 state it even where nothing is scaled */
        if (load->model->arch->traits.longrope && rope->has[ORIG_CTX])
            store_orig_ctx(load, rope, &hp->rope_orig_ctx);
        return BITCONV_OK;
    }
    if (rope->type != BC_ROPE_LONGROPE) need(load, rope, FACTOR);
    hp->rope_factor = (float)rope->number[FACTOR];
    if (rope->type == BC_ROPE_LINEAR) return BITCONV_OK;
    default_orig_ctx(load, rope);
    need(load, rope, ORIG_CTX);
    store_orig_ctx(load, rope, &hp->rope_orig_ctx);
    if (rope->type == BC_ROPE_LLAMA3) store_llama3(load, rope);
    if (rope->type == BC_ROPE_LONGROPE) return store_longrope(load, rope, err);
    if (rope->type == BC_ROPE_YARN) {
        hp->rope_attn_factor = (float)rope->number[ATTN_FACTOR];
        hp->rope_beta_fast = (float)rope->number[BETA_FAST];
        hp->rope_beta_slow = (float)rope->number[BETA_SLOW];
    }
    return BITCONV_OK;
}

static float theta_or_default(struct bc_loading *load, const struct rope *rope, const char *key,
                              double fallback)
{
    if (rope->has_theta) return (float)rope->theta;
    if (rope->bad_theta) return (float)fallback;
    bc_say(load->sink, BITCONV_WARNING,
           "%s: %s: missing; taking %g, the default of the %s configuration class",
           load->config_path, key, fallback, load->model->arch->name);
    return (float)fallback;
}

/* The base of sliding-window layers: rope_local_base_freq, or the nested sliding_attention. */
static void read_local(struct bc_loading *load, const struct bc_json *nested)
{
    const struct bc_arch_traits *traits = &load->model->arch->traits;
    struct rope local = read_theta(load, "rope_local_base_freq");
    const struct rope parameters = read_object(load, "rope_parameters.sliding_attention", nested);
    merge(load, &local, &parameters);
    if (local.type != BC_ROPE_NONE)
        bc_finding(&load->findings, BITCONV_E_UNSUPPORTED,
                   "%s: rope_parameters.sliding_attention: RoPE scaling of sliding-window layers "
                   "is not supported",
                   load->config_path);
    load->model->hp.rope_theta_local =
        theta_or_default(load, &local, "rope_local_base_freq", traits->default_rope_theta_local);
}

/* Settings that stand beside the scaling object: the original context (transformers 4), and the
 * rotated part, which is refused elsewhere for families that rotate whole heads. */
static void read_top_level(struct bc_loading *load, struct rope *rope)
{
    const struct bc_json *orig = bc_config_get(load->ckpt, number_keys[ORIG_CTX]);
    const struct bc_json *part = bc_config_get(load->ckpt, "partial_rotary_factor");
    struct rope top = {0};
    if (orig != NULL && !rope->has[ORIG_CTX])
        rope->has[ORIG_CTX] = positive(orig, &rope->number[ORIG_CTX]);
    if (part == NULL || !load->model->arch->traits.partial_rotary) return;
    read_rotated(load, "config", part, &top);
    merge(load, rope, &top);
}

/* How much of a head is rotated (transformers: the product, rounded down). */
static void store_rotated(struct bc_loading *load, const struct rope *rope)
{
    struct bc_hparams *hp = &load->model->hp;
    hp->rope_dims = hp->head_dim_k;
    if (rope->rotated > 0) hp->rope_dims = (uint32_t)((double)hp->head_dim_k * rope->rotated);
    if (hp->head_dim_k % 2 == 0 && hp->rope_dims != hp->head_dim_k &&
        (hp->rope_dims == 0 || hp->rope_dims % 2 != 0))
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: partial_rotary_factor %g rotates %u of %u: rotary positions need pairs",
                   load->config_path, rope->rotated, (unsigned)hp->rope_dims,
                   (unsigned)hp->head_dim_k);
}

enum bitconv_status bc_model_read_rope(struct bc_loading *load, struct bitconv_error *err)
{
    const struct bc_arch_traits *traits = &load->model->arch->traits;
    struct bc_hparams *hp = &load->model->hp;
    if (traits->positions != BC_POSITIONS_ROPE) return BITCONV_OK;
    const struct bc_json *parameters = bc_config_get(load->ckpt, "rope_parameters");
    const struct bc_json *full = bc_json_get(parameters, "full_attention");
    const struct bc_json *sliding = bc_json_get(parameters, "sliding_attention");
    const bool nested = (full != NULL || sliding != NULL) && traits->default_rope_theta_local > 0;

    struct rope rope = read_theta(load, "rope_theta");
    const struct rope scaling =
        read_object(load, "rope_scaling", bc_config_get(load->ckpt, "rope_scaling"));
    merge(load, &rope, &scaling);
    const struct rope newer = nested ? read_object(load, "rope_parameters.full_attention", full)
                                     : read_object(load, "rope_parameters", parameters);
    merge(load, &rope, &newer);
    read_top_level(load, &rope);

    hp->has_rope_theta = rope.has_theta;
    hp->rope_theta = theta_or_default(load, &rope, "rope_theta", traits->default_rope_theta);
    if (traits->default_rope_theta_local > 0) read_local(load, nested ? sliding : NULL);
    store_rotated(load, &rope);
    return store_scaling(load, &rope, err);
}
