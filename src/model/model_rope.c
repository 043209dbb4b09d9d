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

/* What one place of the config says. */
struct rope {
    bool has_theta, has_type;
    bool bad_theta; /* a finding already: no default is taken instead */
    double theta;
    enum bc_rope_scaling type;
    bool has[N_NUMBERS];
    double number[N_NUMBERS];
};

static const struct {
    const char *name;
    enum bc_rope_scaling type;
} types[] = {{"default", BC_ROPE_NONE},
             {"linear", BC_ROPE_LINEAR},
             {"llama3", BC_ROPE_LLAMA3},
             {"yarn", BC_ROPE_YARN}};

const char *bc_rope_scaling_name(enum bc_rope_scaling type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type && type != BC_ROPE_NONE) return types[i].name;
    return type == BC_ROPE_LONGROPE ? "longrope" : NULL;
}

static void bad_field(struct bc_loading *load, const char *where, const char *key, const char *why)
{
    bc_finding(&load->findings, BITCONV_E_UNSUPPORTED, "%s: %s.%s: %s", load->config_path, where,
               key, why);
}

static void read_type(struct bc_loading *load, const char *where, const struct bc_json *node,
                      struct rope *out)
{
    const char *name = bc_json_string(node);
    for (size_t i = 0; name != NULL && i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].name, name) != 0) continue;
        if (out->has_type && out->type != types[i].type)
            bad_field(load, where, bc_json_key(node), "contradicts the other spelling beside it");
        out->has_type = true;
        out->type = types[i].type;
        return;
    }
    bc_finding(&load->findings, BITCONV_E_UNSUPPORTED,
               "%s: %s.%s: RoPE type \"%s\" is not supported (default, linear, llama3, yarn are)",
               load->config_path, where, bc_json_key(node), name != NULL ? name : "(not a string)");
    out->has_type = true;
}

static bool positive(const struct bc_json *node, double *out)
{
    return bc_json_f64(node, out) && isfinite((float)*out) && (float)*out > 0;
}

/* One member of a rope object; nested objects are the caller's business. */
static void read_member(struct bc_loading *load, const char *where, const struct bc_json *node,
                        struct rope *out)
{
    const char *key = bc_json_key(node);
    double value = 0;
    if (bc_json_is(node, BC_JSON_NULL)) return;
    if (strcmp(key, "rope_type") == 0 || strcmp(key, "type") == 0) {
        read_type(load, where, node, out);
        return;
    }
    if (strcmp(key, "finetuned") == 0) return; /* a note of the training, no computation reads it */
    if (strcmp(key, "partial_rotary_factor") == 0) {
        if (!positive(node, &value) || value != 1)
            bad_field(load, where, key, "only rotating the whole head (1) is supported");
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

static void contradiction(struct bc_loading *load, const char *what, double a, double b)
{
    bc_finding(&load->findings, BITCONV_E_CORRUPT,
               "%s: contradicting RoPE settings: %s is %g in one place and %g in another",
               load->config_path, what, a, b);
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
    for (size_t i = 0; i < N_NUMBERS; i++) {
        if (into->has[i] && from->has[i] && into->number[i] != from->number[i])
            contradiction(load, number_keys[i], into->number[i], from->number[i]);
        if (!into->has[i] && from->has[i]) into->number[i] = from->number[i];
        into->has[i] = into->has[i] || from->has[i];
    }
}

/* `rope_theta`-like number at the top level. */
static struct rope read_theta(struct bc_loading *load, const char *key)
{
    struct rope rope = {0};
    const struct bc_json *node = bc_config_get(load->ckpt, key);
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

/* Checks the scaling and stores it. */
static void store_scaling(struct bc_loading *load, struct rope *rope)
{
    struct bc_hparams *hp = &load->model->hp;
    hp->rope_scaling = rope->type;
    if (rope->type == BC_ROPE_NONE) {
        check_unused_factor(load, rope);
        return;
    }
    need(load, rope, FACTOR);
    hp->rope_factor = (float)rope->number[FACTOR];
    if (rope->type == BC_ROPE_LINEAR) return;
    if (!rope->has[ORIG_CTX] && rope->type == BC_ROPE_YARN) {
        /* transformers takes the model's own context then */
        rope->has[ORIG_CTX] = true;
        rope->number[ORIG_CTX] = hp->n_ctx;
    }
    need(load, rope, ORIG_CTX);
    if (rope->number[ORIG_CTX] > UINT32_MAX ||
        floor(rope->number[ORIG_CTX]) != rope->number[ORIG_CTX])
        bad_field(load, "rope_scaling", number_keys[ORIG_CTX], "wanted an integer below 2^32");
    else
        hp->rope_orig_ctx = (uint32_t)rope->number[ORIG_CTX];
    if (rope->type == BC_ROPE_YARN) {
        hp->rope_attn_factor = (float)rope->number[ATTN_FACTOR];
        hp->rope_beta_fast = (float)rope->number[BETA_FAST];
        hp->rope_beta_slow = (float)rope->number[BETA_SLOW];
        return;
    }
    need(load, rope, LOW);
    need(load, rope, HIGH);
    hp->rope_low_freq_factor = (float)rope->number[LOW];
    hp->rope_high_freq_factor = (float)rope->number[HIGH];
    if (rope->has[LOW] && rope->has[HIGH] && hp->rope_low_freq_factor >= hp->rope_high_freq_factor)
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: rope_scaling: low_freq_factor %g must be below high_freq_factor %g",
                   load->config_path, rope->number[LOW], rope->number[HIGH]);
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

void bc_model_read_rope(struct bc_loading *load)
{
    const struct bc_arch_traits *traits = &load->model->arch->traits;
    struct bc_hparams *hp = &load->model->hp;
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
    /* transformers 4 also took the original context from the top level */
    const struct bc_json *orig = bc_config_get(load->ckpt, number_keys[ORIG_CTX]);
    if (orig != NULL && !rope.has[ORIG_CTX])
        rope.has[ORIG_CTX] = positive(orig, &rope.number[ORIG_CTX]);

    hp->has_rope_theta = rope.has_theta;
    hp->rope_theta = theta_or_default(load, &rope, "rope_theta", traits->default_rope_theta);
    if (traits->default_rope_theta_local > 0) read_local(load, nested ? sliding : NULL);
    store_scaling(load, &rope);
}
