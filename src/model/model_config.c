/* SPDX-License-Identifier: MIT
 * config.json -> hyper-parameters, by the family's table. Nothing is guessed silently: defaults of
 * the configuration class are said, contradictions and keys that change the computation refused. */
#include <math.h>
#include <string.h>

#include "model/model_internal.h"

const struct bc_json *bc_config_get(const struct bc_checkpoint *ckpt, const char *key)
{
    const struct bc_json *node = bc_json_get(ckpt->text, key);
    if (node == NULL || bc_json_is(node, BC_JSON_NULL)) node = bc_json_get(ckpt->config, key);
    return bc_json_is(node, BC_JSON_NULL) ? NULL : node;
}

/* Are two values the same number, truth or text? */
static bool same_scalar(const struct bc_json *a, const struct bc_json *b)
{
    double x = 0, y = 0;
    bool p = false, q = false;
    const char *s = bc_json_string(a), *t = bc_json_string(b);
    if (bc_json_f64(a, &x) && bc_json_f64(b, &y)) return x == y;
    if (bc_json_bool(a, &p) && bc_json_bool(b, &q)) return p == q;
    return s != NULL && t != NULL && strcmp(s, t) == 0;
}

const struct bc_json *bc_config_get_aliased(struct bc_loading *load, const char *key)
{
    const struct bc_json *node = bc_config_get(load->ckpt, key);
    const struct bc_config_alias *row = load->model->arch->aliases;
    for (; row != NULL && row->key != NULL; row++) {
        if (strcmp(row->key, key) != 0) continue;
        const struct bc_json *other = bc_config_get(load->ckpt, row->alias);
        if (node != NULL && other != NULL && !same_scalar(node, other))
            bc_finding(&load->findings, BITCONV_E_CORRUPT, "%s: %s and %s contradict each other",
                       load->config_path, key, row->alias);
        if (node == NULL) node = other;
    }
    return node;
}

/* The number of a table row; a finding and false when it is not one of the row's type. Zero is
 * accepted where it means "none" (rows whose absence is normal). */
static bool row_value(struct bc_loading *load, const struct bc_arch_hparam *row, const char *key,
                      const struct bc_json *node, double *out)
{
    const bool zero_ok = row->absent == BC_ABSENT_QUIET && row->fallback == 0;
    uint64_t integer = 0;
    double real = 0;
    bool ok = false;
    if (row->type == BC_U32) {
        ok = bc_json_u64(node, &integer) && integer <= UINT32_MAX;
        real = (double)integer;
    } else {
        ok = bc_json_f64(node, &real) && isfinite((float)real) && real >= 0;
    }
    if (ok && ((float)real > 0 || zero_ok)) {
        *out = real;
        return true;
    }
    bc_finding(&load->findings, BITCONV_E_CORRUPT, "%s: %s: wanted a positive %s",
               load->config_path, key,
               row->type == BC_U32 ? "integer below 2^32" : "number in float32's range");
    return false;
}

static void store(struct bc_hparams *hp, const struct bc_arch_hparam *row, double value)
{
    unsigned char *at = (unsigned char *)hp + row->offset;
    const uint32_t integer = row->type == BC_U32 ? (uint32_t)value : 0;
    const float real = (float)value;
    if (row->type == BC_U32)
        memcpy(at, &integer, sizeof integer);
    else
        memcpy(at, &real, sizeof real);
}

/* The value of a row that the config does not give. */
static void store_absent(struct bc_loading *load, const struct bc_arch_hparam *row)
{
    struct bc_hparams *hp = &load->model->hp;
    switch (row->absent) {
    case BC_ABSENT_REFUSE:
        bc_finding(&load->findings, BITCONV_E_CORRUPT, "%s: %s: missing, and it has no default",
                   load->config_path, row->json[0]);
        break;
    case BC_ABSENT_DEFAULT:
        bc_say(load->sink, BITCONV_WARNING,
               "%s: %s: missing; taking %g, the default of the %s configuration class",
               load->config_path, row->json[0], row->fallback, load->model->arch->name);
        store(hp, row, row->fallback);
        break;
    case BC_ABSENT_QUIET:
        store(hp, row, row->fallback);
        break;
    case BC_ABSENT_LIKE_HEADS:
        store(hp, row, hp->n_head);
        break;
    case BC_ABSENT_PER_HEAD:
        if (hp->n_head == 0) break; /* a finding already */
        if (hp->n_embd % hp->n_head != 0)
            bc_finding(&load->findings, BITCONV_E_CORRUPT,
                       "%s: hidden_size %u is not a multiple of num_attention_heads %u, and there "
                       "is no %s",
                       load->config_path, (unsigned)hp->n_embd, (unsigned)hp->n_head, row->json[0]);
        store(hp, row, hp->n_embd / hp->n_head);
        break;
    }
}

static void read_row(struct bc_loading *load, const struct bc_arch_hparam *row)
{
    const char *found_key = NULL;
    double found = 0;
    bool bad = false;
    for (size_t i = 0; i < sizeof row->json / sizeof *row->json && row->json[i] != NULL; i++) {
        const struct bc_json *node = bc_config_get(load->ckpt, row->json[i]);
        double value = 0;
        if (node == NULL) continue;
        if (!row_value(load, row, row->json[i], node, &value)) {
            bad = true;
        } else if (found_key == NULL) {
            found_key = row->json[i];
            found = value;
        } else if (found != value) {
            bc_finding(&load->findings, BITCONV_E_CORRUPT, "%s: %s is %g, but %s is %g",
                       load->config_path, found_key, found, row->json[i], value);
        }
    }
    if (found_key != NULL)
        store(&load->model->hp, row, found);
    else if (!bad)
        store_absent(load, row);
    if (found_key != NULL && row->offset == offsetof(struct bc_hparams, head_dim_k))
        load->model->hp.head_dim_in_config = true;
}

static void read_rows(struct bc_loading *load)
{
    const struct bc_arch_hparam *row;
    for (size_t i = 0; (row = bc_arch_hparam_at(load->model->arch, i)) != NULL; i++)
        read_row(load, row);
}

/* A token id: an integer, or the first of a list. */
static int64_t token_id(const struct bc_loading *load, const char *key)
{
    const struct bc_json *node = bc_config_get(load->ckpt, key);
    int64_t id = -1;
    if (bc_json_is(node, BC_JSON_ARRAY)) node = bc_json_first(node);
    return bc_json_i64(node, &id) && id >= 0 ? id : -1;
}

static enum bitconv_status read_activation(struct bc_loading *load, struct bitconv_error *err)
{
    const struct bc_arch *arch = load->model->arch;
    struct bc_hparams *hp = &load->model->hp;
    const char *key = "hidden_activation";
    const struct bc_json *node = bc_config_get(load->ckpt, key);
    if (node == NULL) node = bc_config_get(load->ckpt, key = "hidden_act");
    const char *name = bc_json_string(node);
    const char *const other = bc_json_string(bc_config_get(load->ckpt, "hidden_act"));
    if (name != NULL && other != NULL && strcmp(name, other) != 0)
        bc_finding(&load->findings, BITCONV_E_CORRUPT, "%s: %s is \"%s\", but hidden_act is \"%s\"",
                   load->config_path, key, name, other);
    if (node == NULL) name = arch->traits.default_act;
    if (node == NULL && !arch->traits.act_is_fixed) {
        bc_say(load->sink, BITCONV_WARNING,
               "%s: %s: missing; taking \"%s\", the default of the %s configuration class",
               load->config_path, key, name, arch->name);
    }
    bool known = false;
    for (size_t i = 0; i < sizeof arch->activations / sizeof *arch->activations; i++)
        if (name != NULL && arch->activations[i] != NULL && strcmp(name, arch->activations[i]) == 0)
            known = true;
    if (!known)
        bc_finding(&load->findings, BITCONV_E_UNSUPPORTED,
                   "%s: %s: \"%s\" is not an activation that bitconv knows for the %s family",
                   load->config_path, key, name != NULL ? name : "(not a string)", arch->name);
    hp->hidden_act = bc_arena_strdup(&load->model->arena, name != NULL ? name : "");
    return hp->hidden_act != NULL ? BITCONV_OK : bc_fail_nomem(err, "hyper-parameters");
}

/* use_bidirectional_attention and is_causal, which embedding models have. */
static void read_causal(struct bc_loading *load)
{
    static const struct {
        const char *key;
        bool causal_when;
    } keys[] = {{"use_bidirectional_attention", false}, {"is_causal", true}};
    const struct bc_arch_traits *traits = &load->model->arch->traits;
    struct bc_hparams *hp = &load->model->hp;
    hp->causal = !traits->bidirectional;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct bc_json *node = bc_config_get(load->ckpt, keys[i].key);
        bool value = false;
        if (node == NULL) continue;
        if (!bc_json_bool(node, &value)) {
            bc_finding(&load->findings, BITCONV_E_UNSUPPORTED, "%s: %s: wanted true or false",
                       load->config_path, keys[i].key);
            continue;
        }
        const bool causal = value == keys[i].causal_when;
        if (causal == hp->causal) continue;
        hp->causal = hp->causal && causal;
        if (!traits->embedding_family)
            bc_finding(&load->findings, BITCONV_E_UNSUPPORTED,
                       "%s: %s: attention in %s is not supported for the %s family",
                       load->config_path, keys[i].key, causal ? "one direction" : "both directions",
                       load->model->arch->name);
    }
}

static void read_tied(struct bc_loading *load)
{
    struct bc_hparams *hp = &load->model->hp;
    const struct bc_json *node = bc_config_get_aliased(load, "tie_word_embeddings");
    hp->tied = load->model->arch->traits.default_tied;
    if (node != NULL && !bc_json_bool(node, &hp->tied))
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: tie_word_embeddings: wanted true or false", load->config_path);
}

/* Relations between counts that the tensor shapes do not show. */
static void check_counts(struct bc_loading *load)
{
    const struct bc_hparams *hp = &load->model->hp;
    if (hp->n_head_kv != 0 && hp->n_head % hp->n_head_kv != 0)
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: num_attention_heads %u is not a multiple of num_key_value_heads %u",
                   load->config_path, (unsigned)hp->n_head, (unsigned)hp->n_head_kv);
    if (hp->head_dim_k % 2 != 0 && load->model->arch->traits.positions == BC_POSITIONS_ROPE)
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: head_dim %u is odd: rotary positions need pairs", load->config_path,
                   (unsigned)hp->head_dim_k);
    if (hp->n_expert_used > hp->n_expert)
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: num_experts_per_tok %u is more than the %u experts there are",
                   load->config_path, (unsigned)hp->n_expert_used, (unsigned)hp->n_expert);
    if (load->ckpt->has_weights && hp->n_layers > load->ckpt->n_tensors)
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: num_hidden_layers is %u, but the checkpoint has only %zu tensors",
                   load->config_path, (unsigned)hp->n_layers, load->ckpt->n_tensors);
    if (load->ckpt->has_weights && hp->n_expert > load->ckpt->n_tensors)
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: the config says %u experts, but the checkpoint has only %zu tensors",
                   load->config_path, (unsigned)hp->n_expert, load->ckpt->n_tensors);
}

enum bitconv_status bc_model_read_config(struct bc_loading *load, struct bitconv_error *err)
{
    struct bc_hparams *hp = &load->model->hp;
    read_rows(load);
    bc_model_adjust_ff(load);
    hp->head_dim_v = hp->head_dim_k;
    hp->layer_norm = load->model->arch->traits.layer_norm;
    if (hp->query_pre_attn_scalar > 0)
        hp->attn_scale = (float)(1.0 / sqrt((double)hp->query_pre_attn_scalar));
    hp->bos_id = token_id(load, "bos_token_id");
    hp->eos_id = token_id(load, "eos_token_id");
    hp->pad_id = token_id(load, "pad_token_id");
    hp->pooling = -1;
    read_causal(load);
    read_tied(load);
    check_counts(load);
    BC_TRY(read_activation(load, err));
    BC_TRY(bc_model_read_rope(load, err));
    BC_TRY(bc_model_read_layers(load, err));
    bc_model_check_unknown_keys(load);
    return BITCONV_OK;
}
