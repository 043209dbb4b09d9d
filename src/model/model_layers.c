/* SPDX-License-Identifier: MIT
 * Which layers see only a sliding window: `layer_types`, else the rule of the model class. */
#include <string.h>

#include "model/model_internal.h"

/* Marks layers by the class's rule (transformers' configuration classes); `every` is Gemma's
 * period, `from` Qwen's first local layer. */
static bool local_by_rule(enum bc_sliding rule, uint32_t layer, uint64_t every, uint64_t from)
{
    switch (rule) {
    case BC_SLIDING_NONE:
        return false;
    case BC_SLIDING_ALL:
        return true;
    case BC_SLIDING_QWEN:
        return layer >= from;
    case BC_SLIDING_PATTERN:
        return ((uint64_t)layer + 1) % every != 0;
    }
    return false;
}

/* An optional positive count; `fallback` when absent, a finding when not a count. */
static uint64_t count_or(struct bc_loading *load, const char *key, uint64_t fallback)
{
    const struct bc_json *node = bc_config_get(load->ckpt, key);
    uint64_t value = fallback;
    if (node != NULL && (!bc_json_u64(node, &value) || value == 0 || value > UINT32_MAX)) {
        bc_finding(&load->findings, BITCONV_E_CORRUPT, "%s: %s: wanted a positive integer",
                   load->config_path, key);
        return fallback;
    }
    return value;
}

/* True when the key is there and null: Mistral and Mixtral say so that they have no window. */
static bool is_null(const struct bc_loading *load, const char *key)
{
    const struct bc_json *node = bc_json_get(load->ckpt->text, key);
    return node != NULL && bc_json_is(node, BC_JSON_NULL);
}

/* The window in tokens, 0 when the model has none. */
static uint32_t read_window(struct bc_loading *load)
{
    const struct bc_arch_traits *traits = &load->model->arch->traits;
    const struct bc_json *node = bc_config_get(load->ckpt, "sliding_window");
    bool use = false;
    if (traits->sliding == BC_SLIDING_NONE) {
        if (node != NULL)
            bc_say(load->sink, BITCONV_NOTE,
                   "%s: sliding_window: the %s classes do not use it, not carried",
                   load->config_path, load->model->arch->name);
        return 0;
    }
    if (traits->sliding == BC_SLIDING_QWEN &&
        (!bc_json_bool(bc_config_get(load->ckpt, "use_sliding_window"), &use) || !use))
        return 0;
    if (is_null(load, "sliding_window")) return 0;
    if (node == NULL && traits->default_sliding_window > 0)
        bc_say(load->sink, BITCONV_WARNING,
               "%s: sliding_window: missing; taking %g, the default of the %s configuration class",
               load->config_path, traits->default_sliding_window, load->model->arch->name);
    return (uint32_t)count_or(load, "sliding_window", (uint64_t)traits->default_sliding_window);
}

/* `layer_types`: one name a layer. `conv` is NULL for families without convolutions. */
static void read_types(struct bc_loading *load, const struct bc_json *types, bool *local,
                       bool *conv)
{
    const struct bc_hparams *hp = &load->model->hp;
    if (!bc_json_is(types, BC_JSON_ARRAY) || bc_json_size(types) != hp->n_layers) {
        bc_finding(&load->findings, BITCONV_E_CORRUPT, "%s: layer_types: %zu entries for %u layers",
                   load->config_path, bc_json_size(types), (unsigned)hp->n_layers);
        return;
    }
    uint32_t layer = 0;
    for (const struct bc_json *node = bc_json_first(types); node != NULL && layer < hp->n_layers;
         node = bc_json_next(node), layer++) {
        const char *name = bc_json_string(node);
        if (name != NULL && strcmp(name, "sliding_attention") == 0)
            local[layer] = true;
        else if (name != NULL && conv != NULL && strcmp(name, "conv") == 0)
            conv[layer] = true;
        else if (name == NULL || strcmp(name, "full_attention") != 0)
            bc_finding(&load->findings, BITCONV_E_UNSUPPORTED,
                       "%s: layer_types[%u]: \"%s\" is not a layer type that bitconv knows for "
                       "the %s family",
                       load->config_path, (unsigned)layer, name != NULL ? name : "(not a string)",
                       load->model->arch->name);
    }
}

/* Classes whose layers are all of one kind do not read layer_types: a list that says otherwise is
 * what a runtime that follows the class would not compute. */
static void check_unread_types(struct bc_loading *load, uint32_t window, bool *local)
{
    const struct bc_arch_traits *traits = &load->model->arch->traits;
    const bool all_local = traits->sliding == BC_SLIDING_ALL && window != 0;
    if (traits->sliding != BC_SLIDING_ALL && traits->sliding != BC_SLIDING_NONE) return;
    for (uint32_t i = 0; i < load->model->hp.n_layers; i++) {
        if (local[i] == all_local) continue;
        bc_finding(&load->findings, BITCONV_E_UNSUPPORTED,
                   "%s: layer_types[%u] is \"%s\", but the %s classes do not read layer_types: "
                   "they compute \"%s\" in every layer",
                   load->config_path, (unsigned)i,
                   local[i] ? "sliding_attention" : "full_attention", load->model->arch->name,
                   all_local ? "sliding_attention" : "full_attention");
        local[i] = all_local;
    }
}

/* `full_attn_idxs`, the older form: the layers that are no convolutions. Beside layer_types it must
 * say the same. */
static void read_attention_list(struct bc_loading *load, const struct bc_json *list, bool stated,
                                bool *conv)
{
    const struct bc_hparams *hp = &load->model->hp;
    size_t n_attention = 0, n_listed = 0;
    bool agree = true;
    for (uint32_t i = 0; i < hp->n_layers; i++) {
        n_attention += !conv[i];
        if (!stated) conv[i] = true;
    }
    for (const struct bc_json *node = bc_json_first(list); node != NULL;
         node = bc_json_next(node)) {
        uint64_t layer = 0;
        if (!bc_json_u64(node, &layer) || layer >= hp->n_layers) {
            bc_finding(&load->findings, BITCONV_E_CORRUPT,
                       "%s: full_attn_idxs: wanted numbers of the %u layers", load->config_path,
                       (unsigned)hp->n_layers);
            return;
        }
        n_listed++;
        agree = agree && !(stated && conv[layer]);
        conv[layer] = false;
    }
    if (stated && (!agree || n_listed != n_attention))
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: full_attn_idxs and layer_types name different layers", load->config_path);
}

/* Which layers are convolutions; hp->layer_is_conv stays NULL when none is. */
static void settle_conv(struct bc_loading *load, bool has_types, bool *conv)
{
    struct bc_hparams *hp = &load->model->hp;
    const struct bc_json *list = bc_config_get(load->ckpt, "full_attn_idxs");
    if (conv == NULL) return;
    if (list != NULL) read_attention_list(load, list, has_types, conv);
    for (uint32_t i = 0; i < hp->n_layers; i++)
        if (conv[i]) hp->layer_is_conv = conv;
}

enum bitconv_status bc_model_read_layers(struct bc_loading *load, struct bitconv_error *err)
{
    const struct bc_arch_traits *traits = &load->model->arch->traits;
    struct bc_hparams *hp = &load->model->hp;
    const struct bc_json *types = bc_config_get(load->ckpt, "layer_types");
    const uint32_t window = read_window(load);
    /* the number of layers is bounded by the tensors, or by what the list itself holds */
    const bool bounded = load->ckpt->has_weights ? hp->n_layers <= load->ckpt->n_tensors
                                                 : hp->n_layers <= BC_MAX_LAYERS;
    if (!bounded) {
        if (!load->ckpt->has_weights)
            bc_finding(&load->findings, BITCONV_E_LIMIT,
                       "%s: num_hidden_layers is %u, more than the %u that bitconv handles",
                       load->config_path, (unsigned)hp->n_layers, (unsigned)BC_MAX_LAYERS);
        return BITCONV_OK;
    }
    bool *local = bc_arena_alloc(&load->model->arena, hp->n_layers, sizeof *local);
    bool *conv = traits->conv_layers
                     ? bc_arena_alloc(&load->model->arena, hp->n_layers, sizeof *conv)
                     : NULL;
    if (local == NULL || (traits->conv_layers && conv == NULL))
        return bc_fail_nomem(err, "layer types");
    if (types != NULL) {
        const size_t before = load->findings.n;
        read_types(load, types, local, conv);
        if (load->findings.n == before) check_unread_types(load, window, local);
    } else {
        const uint64_t every =
            count_or(load, "sliding_window_pattern", count_or(load, "_sliding_window_pattern", 6));
        uint64_t from = hp->n_layers; /* max_window_layers may be 0: every layer */
        if (!bc_json_u64(bc_config_get(load->ckpt, "max_window_layers"), &from)) from = 28;
        for (uint32_t i = 0; i < hp->n_layers; i++)
            local[i] = window != 0 && local_by_rule(traits->sliding, i, every, from);
    }
    settle_conv(load, types != NULL, conv);
    bool any = false;
    for (uint32_t i = 0; i < hp->n_layers; i++)
        any = any || local[i];
    if (any && window == 0)
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: layer_types names sliding_attention, but there is no sliding window",
                   load->config_path);
    if (any) {
        hp->sliding_window = window;
        hp->layer_is_local = local;
    }
    return BITCONV_OK;
}
