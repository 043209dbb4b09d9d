/* SPDX-License-Identifier: MIT
 * general.* and ARCH.* keys of a file, in the order of the target's own converters, with the facts
 * that those leave out behind them. */
#include <limits.h>
#include <string.h>

#include "base/bytes.h"
#include "model/model_internal.h"

/* A file being described. */
struct describing {
    const struct bc_model *model;
    struct bitconv_gguf_writer *w;
    uint32_t file_type;
    bool failed; /* out of memory */
};

/* "ARCH.suffix"; NULL (and failed) when out of memory. Free with bc_free's owner, the buffer. */
static const char *key_name(struct describing *d, struct bc_buf *buf, const char *suffix)
{
    bc_buf_clear(buf);
    bc_buf_printf(buf, "%s.%s", d->model->arch_name, suffix);
    d->failed = d->failed || buf->failed;
    return buf->failed ? NULL : bc_buf_str(buf);
}

static void put_u32(struct describing *d, const char *suffix, uint32_t value)
{
    struct bc_buf buf = {0};
    const char *key = key_name(d, &buf, suffix);
    if (key != NULL) bitconv_gguf_set_u32(d->w, key, value);
    bc_buf_release(&buf);
}

static void put_f32(struct describing *d, const char *suffix, float value)
{
    struct bc_buf buf = {0};
    const char *key = key_name(d, &buf, suffix);
    if (key != NULL) bitconv_gguf_set_f32(d->w, key, value);
    bc_buf_release(&buf);
}

static void put_f32_if(struct describing *d, const char *suffix, float value)
{
    if (value != 0) put_f32(d, suffix, value);
}

static void put_bool(struct describing *d, const char *suffix, bool value)
{
    struct bc_buf buf = {0};
    const char *key = key_name(d, &buf, suffix);
    if (key != NULL) bitconv_gguf_set_bool(d->w, key, value);
    bc_buf_release(&buf);
}

static void put_string(struct describing *d, const char *suffix, const char *value)
{
    struct bc_buf buf = {0};
    const char *key = key_name(d, &buf, suffix);
    if (key != NULL) bitconv_gguf_set_string(d->w, key, value);
    bc_buf_release(&buf);
}

/* A key that is one member of the hyper-parameters. */
static void put_member(struct describing *d, const struct bc_key_row *row)
{
    const unsigned char *at = (const unsigned char *)&d->model->hp + row->offset;
    uint32_t integer = 0;
    float real = 0;
    bool flag = false;
    const char *text = NULL;
    switch (row->kind) {
    case BC_KIND_U32:
        memcpy(&integer, at, sizeof integer);
        if (integer != 0 || row->always) put_u32(d, row->suffix, integer);
        break;
    case BC_KIND_F32:
        memcpy(&real, at, sizeof real);
        if (real != 0 || row->always) put_f32(d, row->suffix, real);
        break;
    case BC_KIND_BOOL:
        memcpy(&flag, at, sizeof flag);
        put_bool(d, row->suffix, flag);
        break;
    case BC_KIND_STRING:
        memcpy(&text, at, sizeof text);
        if (text != NULL) put_string(d, row->suffix, text);
        break;
    case BC_KIND_SPECIAL:
        break;
    }
}

/* The window, and which layers have it: an array of bool, true = local. */
static void put_sliding(struct describing *d)
{
    const struct bc_hparams *hp = &d->model->hp;
    struct bc_buf buf = {0}, pattern = {0};
    if (hp->sliding_window == 0 || hp->layer_is_local == NULL) {
        if (d->model->arch->traits.states_no_window) put_u32(d, "attention.sliding_window", 0);
        return;
    }
    put_u32(d, "attention.sliding_window", hp->sliding_window);
    for (uint32_t i = 0; i < hp->n_layers; i++)
        bc_buf_u8(&pattern, hp->layer_is_local[i] ? 1 : 0);
    const char *key = key_name(d, &buf, "attention.sliding_window_pattern");
    d->failed = d->failed || pattern.failed;
    if (key != NULL && !pattern.failed)
        bitconv_gguf_set_array(d->w, key, BITCONV_GGUF_BOOL, hp->n_layers, pattern.data,
                               pattern.size);
    bc_buf_release(&pattern);
    bc_buf_release(&buf);
}

/* Llama 3's scaling is in rope_freqs.weight. Readers stop at a scaling type they do not know, and
 * apply a factor that stands without type as linear scaling: so its numbers have keys of our own.
 */
static void put_rope_scaling(struct describing *d)
{
    const struct bc_hparams *hp = &d->model->hp;
    const bool states_linear =
        d->model->arch->traits.reader_linear_rope && d->model->target == BC_TARGET_LLAMA_CPP;
    switch (hp->rope_scaling) {
    case BC_ROPE_NONE:
        if (hp->rope_orig_ctx != 0)
            put_u32(d, "rope.scaling.original_context_length", hp->rope_orig_ctx);
        if (!states_linear) break;
        put_string(d, "rope.scaling.type", bc_rope_scaling_name(BC_ROPE_LINEAR));
        put_f32(d, "rope.scaling.factor", 1);
        break;
    case BC_ROPE_LONGROPE: /* the divisors are tensors; a factor would be applied to all of them */
        put_f32(d, "rope.scaling.attn_factor", hp->rope_attn_factor);
        put_u32(d, "rope.scaling.original_context_length", hp->rope_orig_ctx);
        put_string(d, "rope.scaling.type", bc_rope_scaling_name(hp->rope_scaling));
        break;
    case BC_ROPE_LINEAR:
    case BC_ROPE_YARN:
        put_string(d, "rope.scaling.type", bc_rope_scaling_name(hp->rope_scaling));
        put_f32_if(d, "rope.scaling.factor", hp->rope_factor);
        if (hp->rope_orig_ctx != 0)
            put_u32(d, "rope.scaling.original_context_length", hp->rope_orig_ctx);
        put_f32_if(d, "rope.scaling.yarn_attn_factor", hp->rope_attn_factor);
        put_f32_if(d, "rope.scaling.yarn_beta_fast", hp->rope_beta_fast);
        put_f32_if(d, "rope.scaling.yarn_beta_slow", hp->rope_beta_slow);
        break;
    case BC_ROPE_LLAMA3:
        put_u32(d, "rope.scaling.original_context_length", hp->rope_orig_ctx);
        put_f32(d, BC_LLAMA3_FACTOR_KEY, hp->rope_factor);
        put_f32(d, "rope.scaling.llama3.low_freq_factor", hp->rope_low_freq_factor);
        put_f32(d, "rope.scaling.llama3.high_freq_factor", hp->rope_high_freq_factor);
        break;
    }
}

/* Groups of every layer, 0 where a convolution stands in place of attention: llama.cpp's readers
 * tell the layers by it. */
static void put_kv_heads(struct describing *d)
{
    const struct bc_hparams *hp = &d->model->hp;
    struct bc_buf buf = {0}, heads = {0};
    for (uint32_t i = 0; i < hp->n_layers; i++)
        bc_buf_u32(&heads, bc_layer_is_one_of(hp, BC_LAYERS_CONV, i) ? 0 : hp->n_head_kv);
    const char *key = key_name(d, &buf, "attention.head_count_kv");
    d->failed = d->failed || heads.failed;
    if (key != NULL && !heads.failed)
        bitconv_gguf_set_array(d->w, key, BITCONV_GGUF_INT32, hp->n_layers, heads.data, heads.size);
    bc_buf_release(&heads);
    bc_buf_release(&buf);
}

static void put_special(struct describing *d, enum bc_key key)
{
    switch (key) {
    case BC_KEY_SLIDING_WINDOW:
        put_sliding(d);
        break;
    case BC_KEY_HEAD_COUNT_KV_LAYERS:
        put_kv_heads(d);
        break;
    case BC_KEY_ROPE_SCALING:
        put_rope_scaling(d);
        break;
    case BC_KEY_POOLING:
        if (d->model->hp.pooling >= 0) put_u32(d, "pooling_type", (uint32_t)d->model->hp.pooling);
        break;
    case BC_KEY_FILE_TYPE:
        bitconv_gguf_set_u32(d->w, "general.file_type", d->file_type);
        break;
    case BC_KEY_QUANTIZATION_VERSION:
        bitconv_gguf_set_u32(d->w, "general.quantization_version", 2);
        break;
    default:
        break; /* one member each: put_member */
    }
}

/* Sampling defaults of generation_config.json, as llama.cpp's converter carries them. */
static void put_sampling(struct describing *d)
{
    for (size_t i = 0; bc_sampling_rows[i].json != NULL; i++) {
        const struct bc_sampling_row *row = &bc_sampling_rows[i];
        const struct bc_json *node = bc_json_get(d->model->ckpt->generation_config, row->json);
        int64_t integer = 0;
        double real = 0;
        uint8_t bytes[4];
        if (row->integer) {
            if (!bc_json_i64(node, &integer) || integer < INT32_MIN || integer > INT32_MAX)
                continue;
            bc_put_u32(bytes, (uint32_t)integer);
            bitconv_gguf_set_scalar(d->w, row->key, BITCONV_GGUF_INT32, bytes);
        } else if (bc_json_f64(node, &real)) {
            bitconv_gguf_set_f32(d->w, row->key, (float)real);
        }
    }
}

enum bitconv_status bc_model_metadata(const struct bc_model *model, const char *name,
                                      uint32_t file_type, struct bitconv_gguf_writer *w,
                                      struct bitconv_error *err)
{
    struct describing d = {.model = model, .w = w, .file_type = file_type};
    bitconv_gguf_set_string(w, "general.architecture", model->arch_name);
    if (model->target == BC_TARGET_LLAMA_CPP) {
        bitconv_gguf_set_string(w, "general.type", "model");
        put_sampling(&d);
    }
    bitconv_gguf_set_string(w, "general.name", name);
    for (const enum bc_key *key = model->arch->key_order[model->target]; *key != BC_KEY_END;
         key++) {
        const struct bc_key_row *row = bc_key_row(*key);
        if (row->kind == BC_KIND_SPECIAL)
            put_special(&d, *key);
        else
            put_member(&d, row);
    }
    return d.failed ? bc_fail_nomem(err, "metadata") : BITCONV_OK;
}
