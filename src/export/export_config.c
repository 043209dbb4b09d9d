/* SPDX-License-Identifier: MIT
 * config.json and its companions: the family's table of hyper-parameters written instead of read. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "export/export_folder.h"
#include "export/export_values.h"
#include "model/model_internal.h"

/* ---- hyper-parameters by the table ---- */

static bool family_has(const struct bc_exporter *e, size_t offset)
{
    return bc_arch_hparam_of(e->arch, offset) != NULL;
}

static void put_row(struct bc_jw *w, const struct bc_hparams *hp, const struct bc_arch_hparam *row)
{
    const double value = bc_arch_hparam_value(hp, row);
    bc_jw_key(w, row->json[0]);
    if (value == 0)
        bc_jw_null(w); /* none: of those that may be absent */
    else if (row->type == BC_U32)
        bc_jw_u64(w, (uint64_t)value);
    else
        bc_jw_f32(w, (float)value);
}

/* Does one of the first `n` rows have that key? Several members may come from one. */
static bool has_json_key(const struct bc_arch *arch, size_t n, const char *key)
{
    const struct bc_arch_hparam *row;
    for (size_t i = 0; i < n && (row = bc_arch_hparam_at(arch, i)) != NULL; i++)
        if (strcmp(row->json[0], key) == 0) return true;
    return false;
}

static void put_rows(struct bc_jw *w, const struct bc_exporter *e)
{
    const struct bc_arch_hparam *row;
    for (size_t i = 0; (row = bc_arch_hparam_at(e->arch, i)) != NULL; i++)
        if (!has_json_key(e->arch, i, row->json[0])) put_row(w, &e->hp, row);
}

/* ---- what has rules of its own ---- */

static void put_f32_if(struct bc_jw *w, const char *key, float value)
{
    if (value == 0) return;
    bc_jw_key(w, key);
    bc_jw_f32(w, value);
}

static void put_f32_list(struct bc_jw *w, const char *key, const float *values, size_t n)
{
    bc_jw_key(w, key);
    bc_jw_begin_array(w);
    for (size_t i = 0; i < n; i++)
        bc_jw_f32(w, values[i]);
    bc_jw_end_array(w);
}

/* Which part of a head is rotated: readers take the product with the head's size, rounded down. */
static void put_rotated(struct bc_jw *w, const struct bc_hparams *hp)
{
    if (hp->rope_dims == hp->head_dim_k) return;
    double part = (double)hp->rope_dims / (double)hp->head_dim_k;
    if ((uint32_t)(part * (double)hp->head_dim_k) < hp->rope_dims) part = nextafter(part, 1);
    bc_jw_key_f64(w, "partial_rotary_factor", part);
}

/* As the configs of Phi-3 have it, of which transformers 4 allowed no other form: three members, the
 * original context beside them. The attention factor follows from the contexts where it can. */
static void put_longrope(struct bc_jw *w, const struct bc_hparams *hp)
{
    const size_t n = hp->rope_dims / 2;
    const float usual = bc_rope_attention_factor(hp->n_ctx, hp->rope_orig_ctx);
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "type", bc_rope_scaling_name(hp->rope_scaling));
    put_f32_list(w, "long_factor", hp->rope_long_factors, n);
    put_f32_list(w, "short_factor", hp->rope_short_factors, n);
    if (hp->rope_attn_factor != usual) put_f32_if(w, "attention_factor", hp->rope_attn_factor);
    bc_jw_end_object(w);
}

static void put_scaling(struct bc_jw *w, const struct bc_hparams *hp)
{
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "rope_type", bc_rope_scaling_name(hp->rope_scaling));
    put_f32_if(w, "factor", hp->rope_factor);
    put_f32_if(w, "low_freq_factor", hp->rope_low_freq_factor);
    put_f32_if(w, "high_freq_factor", hp->rope_high_freq_factor);
    if (hp->rope_orig_ctx != 0)
        bc_jw_key_u64(w, "original_max_position_embeddings", hp->rope_orig_ctx);
    if (hp->rope_scaling == BC_ROPE_YARN) {
        put_f32_if(w, "attention_factor", hp->rope_attn_factor);
        put_f32_if(w, "beta_fast", hp->rope_beta_fast);
        put_f32_if(w, "beta_slow", hp->rope_beta_slow);
    }
    bc_jw_end_object(w);
}

static void put_rope(struct bc_jw *w, const struct bc_exporter *e)
{
    const struct bc_hparams *hp = &e->hp;
    if (hp->rope_dims == 0) return;
    put_f32_if(w, "rope_theta", hp->rope_theta);
    put_f32_if(w, "rope_local_base_freq", hp->rope_theta_local);
    put_rotated(w, hp);
    if (e->arch->traits.longrope && hp->rope_orig_ctx != 0)
        bc_jw_key_u64(w, "original_max_position_embeddings", hp->rope_orig_ctx);
    bc_jw_key(w, "rope_scaling");
    if (hp->rope_scaling == BC_ROPE_NONE)
        bc_jw_null(w);
    else if (hp->rope_scaling == BC_ROPE_LONGROPE)
        put_longrope(w, hp);
    else
        put_scaling(w, hp);
}

/* The window; true when every layer has it. */
static bool put_window(struct bc_jw *w, const struct bc_exporter *e)
{
    const enum bc_sliding rule = e->arch->traits.sliding;
    const struct bc_hparams *hp = &e->hp;
    const bool has = hp->sliding_window != 0 && hp->layer_is_local != NULL;
    bool all = has;
    if (rule == BC_SLIDING_NONE) return false;
    for (uint32_t i = 0; has && i < hp->n_layers; i++)
        all = all && hp->layer_is_local[i];
    bc_jw_key_known_u64(w, "sliding_window", has, hp->sliding_window);
    if (rule == BC_SLIDING_QWEN) {
        bc_jw_key_bool(w, "use_sliding_window", has);
        if (all) bc_jw_key_u64(w, "max_window_layers", 0);
    }
    return all;
}

/* What the layers are, where they differ or the class would take them for something else. */
static void put_layers(struct bc_jw *w, const struct bc_exporter *e)
{
    const struct bc_hparams *hp = &e->hp;
    const bool all_local = put_window(w, e);
    const bool *local = hp->sliding_window != 0 ? hp->layer_is_local : NULL;
    if (hp->layer_is_conv == NULL && local == NULL) return;
    if (all_local && e->arch->traits.sliding == BC_SLIDING_ALL) return;
    bc_jw_key(w, "layer_types");
    bc_jw_begin_array(w);
    for (uint32_t i = 0; i < hp->n_layers; i++)
        bc_jw_string(w, hp->layer_is_conv != NULL && hp->layer_is_conv[i] ? "conv"
                        : local != NULL && local[i]                       ? "sliding_attention"
                                                                          : "full_attention");
    bc_jw_end_array(w);
}

/* The width stands in the file as it is, where a class would work it out from what is stated. */
static void put_ff_rule(struct bc_jw *w, const struct bc_exporter *e)
{
    if (e->arch->traits.ff_rule == BC_FF_TWO_THIRDS)
        bc_jw_key_bool(w, "block_auto_adjust_ff_dim", false);
}

/* How many of the linear weights whose name holds `part` there are, and have a bias. */
static void count_biases(const struct bc_exporter *e, const char *part, size_t *weights,
                         size_t *biases)
{
    static const char weight[] = ".weight", bias[] = ".bias";
    *weights = *biases = 0;
    for (size_t i = 0; i < e->n_tensors; i++) {
        const char *name = e->tensors[i].name;
        const size_t len = strlen(name);
        if (strstr(name, part) == NULL || strstr(name, "proj.") == NULL) continue;
        if (len > strlen(bias) && strcmp(name + len - strlen(bias), bias) == 0) (*biases)++;
        if (len > strlen(weight) && e->tensors[i].n_dims == 2 &&
            strcmp(name + len - strlen(weight), weight) == 0)
            (*weights)++;
    }
}

/* A config states biases for all projections of a block or for none. */
static void put_biases(struct bc_jw *w, const struct bc_exporter *e)
{
    static const char *const kinds[][2] = {{"self_attn.", "attention_bias"}, {"mlp.", "mlp_bias"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t weights = 0, biases = 0;
        count_biases(e, kinds[i][0], &weights, &biases);
        if (biases != 0 && biases == weights) bc_jw_key_bool(w, kinds[i][1], true);
    }
}

/* ---- special ids ---- */

static void put_id(struct bc_jw *w, const struct bc_exporter *e, enum bc_special kind,
                   enum bc_export_says file)
{
    const struct bc_export_specials *s = &e->specials;
    const struct bitconv_gguf_value *eog = kind == BC_SPECIAL_EOS ? s->eog : NULL;
    /* a file that convert reads before the one that is to name the token must not name it */
    if (s->id[kind] < 0 || s->from[kind] > file) return;
    bc_jw_key(w, bc_special_name(kind)->id_key);
    if (eog == NULL) {
        bc_jw_i64(w, s->id[kind]);
        return;
    }
    bc_jw_begin_array(w);
    for (uint64_t i = 0; i < eog->count; i++) {
        struct bitconv_gguf_value element;
        uint64_t id = 0;
        if (bitconv_gguf_array_at(eog, i, &element) && bitconv_gguf_value_u64(&element, &id))
            bc_jw_u64(w, id);
    }
    bc_jw_end_array(w);
}

/* All the ids that a config may name; those that it alone names must be among them. */
static void put_ids(struct bc_jw *w, const struct bc_exporter *e, enum bc_export_says file)
{
    static const enum bc_special usual[] = {BC_SPECIAL_BOS, BC_SPECIAL_EOS, BC_SPECIAL_PAD};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        put_id(w, e, usual[i], file);
        if (file != BC_SAYS_MODEL || e->specials.id[usual[i]] >= 0) continue;
        bc_jw_key(w, bc_special_name(usual[i])->id_key); /* else the class has a default */
        bc_jw_null(w);
    }
    for (int kind = 0; kind < BC_N_SPECIALS; kind++)
        if (kind != BC_SPECIAL_BOS && kind != BC_SPECIAL_EOS && kind != BC_SPECIAL_PAD &&
            e->specials.from[kind] == file)
            put_id(w, e, (enum bc_special)kind, file);
}

/* ---- quantization ---- */

/* transformers' BitNetQuantConfig for weights that are packed offline and multiplied by their
 * scale; use_rms_norm gives every projection the norm of its input. */
static void put_quantization(struct bc_jw *w, const struct bc_exporter *e)
{
    const struct bc_hparams *hp = &e->hp;
    if (!e->packed) return;
    bc_jw_key(w, "quantization_config");
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "quant_method", "bitnet");
    bc_jw_key_string(w, "linear_class", "autobitlinear");
    bc_jw_key_string(w, "quantization_mode", "offline");
    if (e->has_norm_in) {
        bc_jw_key_bool(w, "use_rms_norm", true);
        bc_jw_key(w, "rms_norm_eps");
        bc_jw_f32(w, hp->norm_in_eps != 0 ? hp->norm_in_eps : hp->norm_eps);
    }
    bc_jw_key(w, "modules_to_not_convert");
    if (e->n_kept == 0 && hp->tied) {
        bc_jw_null(w);
    } else {
        bc_jw_begin_array(w);
        if (!e->class_row->backbone) bc_jw_string(w, "lm_head");
        for (size_t i = 0; i < e->n_kept; i++)
            bc_jw_string(w, e->kept[i]);
        bc_jw_end_array(w);
    }
    bc_jw_end_object(w);
}

/* ---- the files ---- */

static const char *model_type(const struct bc_exporter *e)
{
    if (e->class_row->model_type != NULL) return e->class_row->model_type;
    return e->arch->classes[0].model_type;
}

static const char *dtype_name(enum bitconv_dtype dtype)
{
    return dtype == BITCONV_F32 ? "float32" : dtype == BITCONV_BF16 ? "bfloat16" : "float16";
}

/* convert takes the model's name from here where it is one, else from the folder's. */
static bool is_hub_name(const char *name)
{
    return name != NULL && name[0] != '\0' && strpbrk(name, "/\\") == NULL && name[0] != '.' &&
           name[0] != '~';
}

static void put_type_count(struct bc_jw *w, const struct bc_exporter *e)
{
    uint64_t n = 0;
    if (has_json_key(e->arch, SIZE_MAX, "type_vocab_size")) return;
    if (bitconv_gguf_value_u64(bitconv_gguf_find_key(e->file, "tokenizer.ggml.token_type_count"),
                               &n))
        bc_jw_key_u64(w, "type_vocab_size", n);
}

static void config_text(const struct bc_exporter *e, struct bc_buf *text)
{
    const char *act_key = e->arch->traits.act_key;
    struct bc_jw w = {.buf = text};
    bc_jw_begin_object(&w);
    if (is_hub_name(e->name)) bc_jw_key_string(&w, "_name_or_path", e->name);
    bc_jw_key(&w, "architectures");
    bc_jw_begin_array(&w);
    bc_jw_string(&w, e->class_row->name);
    bc_jw_end_array(&w);
    bc_jw_key_string(&w, "model_type", model_type(e));
    put_rows(&w, e);
    put_ff_rule(&w, e);
    if (!e->arch->traits.act_is_fixed)
        bc_jw_key_string(&w, act_key != NULL ? act_key : "hidden_act", e->hp.hidden_act);
    put_rope(&w, e);
    put_layers(&w, e);
    put_biases(&w, e);
    put_type_count(&w, e);
    if (!e->hp.causal) {
        bc_jw_key_bool(&w, "is_causal", false);
        bc_jw_key_bool(&w, "use_bidirectional_attention", true);
    }
    bc_jw_key_bool(&w, "tie_word_embeddings", e->hp.tied);
    put_ids(&w, e, BC_SAYS_MODEL);
    bc_jw_key_string(&w, "torch_dtype", dtype_name(e->main_dtype));
    put_quantization(&w, e);
    bc_jw_end_object(&w);
    bc_buf_putc(text, '\n');
}

/* The sampling settings of the file; false when it has none. */
static bool generation_text(const struct bc_exporter *e, struct bc_buf *text)
{
    struct bc_jw w = {.buf = text};
    bool any = false;
    bc_jw_begin_object(&w);
    for (const struct bc_sampling_row *row = bc_sampling_rows; row->json != NULL; row++) {
        const struct bitconv_gguf_value *v = bitconv_gguf_find_key(e->file, row->key);
        int64_t integer = 0;
        double real = 0;
        if (row->integer && bitconv_gguf_value_i64(v, &integer)) {
            bc_jw_key(&w, row->json);
            bc_jw_i64(&w, integer);
            any = true;
        } else if (!row->integer && bitconv_gguf_value_f64(v, &real) && isfinite(real)) {
            bc_jw_key(&w, row->json);
            bc_jw_f32(&w, (float)real);
            any = true;
        }
    }
    put_ids(&w, e, BC_SAYS_GENERATION);
    bc_jw_end_object(&w);
    bc_buf_putc(text, '\n');
    for (int kind = 0; kind < BC_N_SPECIALS; kind++)
        any = any || (e->specials.id[kind] >= 0 && e->specials.from[kind] == BC_SAYS_GENERATION);
    return any;
}

static enum bitconv_status put_text(struct bc_export_folder *folder, const char *name,
                                    struct bc_buf *text, struct bitconv_error *err)
{
    const enum bitconv_status status = bc_export_put(folder, name, text, err);
    bc_buf_release(text);
    return status;
}

/* sentence-transformers' modules.json and the Pooling module. */
static enum bitconv_status put_modules(const struct bc_exporter *e, struct bc_export_folder *folder,
                                       struct bitconv_error *err)
{
    static const struct {
        const char *name, *path, *type;
    } modules[] = {{"0", "", "sentence_transformers.models.Transformer"},
                   {"1", "1_Pooling", "sentence_transformers.models.Pooling"}};
    static const char *const modes[] = {NULL, "pooling_mode_mean_tokens", "pooling_mode_cls_token",
                                        "pooling_mode_lasttoken"};
    struct bc_buf text = {0};
    struct bc_jw w = {.buf = &text};
    bc_jw_begin_array(&w);
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        bc_jw_begin_object(&w);
        bc_jw_key_u64(&w, "idx", i);
        bc_jw_key_string(&w, "name", modules[i].name);
        bc_jw_key_string(&w, "path", modules[i].path);
        bc_jw_key_string(&w, "type", modules[i].type);
        bc_jw_end_object(&w);
    }
    bc_jw_end_array(&w);
    bc_buf_putc(&text, '\n');
    BC_TRY(put_text(folder, "modules.json", &text, err));
    struct bc_buf pooling = {0};
    struct bc_jw p = {.buf = &pooling};
    bc_jw_begin_object(&p);
    bc_jw_key_u64(&p, "word_embedding_dimension", e->hp.n_embd);
    for (int i = 1; i < (int)(sizeof modes / sizeof *modes); i++)
        bc_jw_key_bool(&p, modes[i], i == e->hp.pooling);
    bc_jw_end_object(&p);
    bc_buf_putc(&pooling, '\n');
    return put_text(folder, "1_Pooling/config.json", &pooling, err);
}

/* The mark of checkpoints whose float weights are trit * scale: the magnitude is the scale. */
static enum bitconv_status put_baked(struct bc_export_folder *folder, struct bitconv_error *err)
{
    struct bc_buf text = {0};
    struct bc_jw w = {.buf = &text};
    bc_jw_begin_object(&w);
    bc_jw_key_bool(&w, "baked_ternary_weights", true);
    bc_jw_end_object(&w);
    bc_buf_putc(&text, '\n');
    return put_text(folder, "deployment_info.json", &text, err);
}

enum bitconv_status bc_export_config(struct bc_exporter *e, struct bc_export_folder *folder,
                                     struct bitconv_error *err)
{
    struct bc_buf text = {0};
    config_text(e, &text);
    BC_TRY(put_text(folder, "config.json", &text, err));
    struct bc_buf generation = {0};
    if (generation_text(e, &generation))
        BC_TRY(put_text(folder, "generation_config.json", &generation, err));
    bc_buf_release(&generation);
    if (e->baked) BC_TRY(put_baked(folder, err));
    return e->hp.pooling > 0 ? put_modules(e, folder, err) : BITCONV_OK;
}

/* ---- before anything is written ---- */

static enum bitconv_status refuse(const struct bc_exporter *e, const char *what,
                                  struct bitconv_error *err)
{
    return bc_fail(err, BITCONV_E_UNSUPPORTED, "%s: %s: the %s family's config cannot say it",
                   e->path, what, e->arch->name);
}

/* The divisor under the root of the attention scale, where the family has one of its own. Readers of
 * files without it take the size of a head. */
static enum bitconv_status check_attention_scale(struct bc_exporter *e, struct bitconv_error *err)
{
    struct bc_hparams *hp = &e->hp;
    const float plain = (float)(1.0 / sqrt((double)hp->head_dim_k));
    if (!family_has(e, offsetof(struct bc_hparams, query_pre_attn_scalar))) {
        if (hp->attn_scale != 0 && fabsf(hp->attn_scale - plain) > 1e-6f * plain)
            return refuse(e, "attention.scale is not that of the head size", err);
        return BITCONV_OK;
    }
    if (hp->query_pre_attn_scalar != 0) return BITCONV_OK;
    hp->query_pre_attn_scalar = (float)hp->head_dim_k;
    if (hp->attn_scale != 0)
        hp->query_pre_attn_scalar =
            (float)(1.0 / ((double)hp->attn_scale * (double)hp->attn_scale));
    bc_say(e->sink, BITCONV_WARNING,
           "%s: attention.query_pre_attn_scalar is not stated; taking %g, which the file's %s give",
           e->path, (double)hp->query_pre_attn_scalar,
           hp->attn_scale != 0 ? "attention.scale" : "heads");
    return BITCONV_OK;
}

/* Float weights of a class that makes its weights ternary at every load: they must come back as they
 * are, which the mark of baked weights says. Where they are not trit * scale, the mark would be a
 * lie. */
static enum bitconv_status check_baked(struct bc_exporter *e, struct bitconv_error *err)
{
    const bool ternary_class = e->arch->traits.ternary_class;
    bool any = false;
    for (size_t i = 0; i < e->n_tensors && !e->packed; i++) {
        const struct bc_export_tensor *t = &e->tensors[i];
        float magnitude = t->scale;
        if (!t->is_linear) continue;
        if (ternary_class && t->values->packed.format == NULL)
            BC_TRY(bc_export_one_magnitude(e, t, &magnitude, err));
        if (ternary_class && magnitude == 0) return BITCONV_OK;
        any = any || ternary_class || t->values->packed.format != NULL;
    }
    e->baked = any && (ternary_class || e->has_norm_in);
    if (e->baked)
        bc_say(e->sink, BITCONV_WARNING,
               "%s: the weights are written as floats that are trit * scale, marked as baked for "
               "bitconv; other programs that make weights ternary would find another scale",
               e->path);
    return BITCONV_OK;
}

enum bitconv_status bc_export_check_config(struct bc_exporter *e, struct bitconv_error *err)
{
    const struct bc_hparams *hp = &e->hp;
    if (hp->head_dim_v != hp->head_dim_k)
        return refuse(e, "attention.value_length is not attention.key_length", err);
    if (hp->attn_softcap != 0 && !family_has(e, offsetof(struct bc_hparams, attn_softcap)))
        return refuse(e, "attn_logit_softcapping", err);
    if (hp->final_softcap != 0 && !family_has(e, offsetof(struct bc_hparams, final_softcap)))
        return refuse(e, "final_logit_softcapping", err);
    if (hp->rope_scaling != BC_ROPE_NONE &&
        (hp->rope_scaling == BC_ROPE_LONGROPE) != e->arch->traits.longrope)
        return refuse(e, "its RoPE scaling", err);
    if (hp->rope_dims != 0 && hp->rope_dims != hp->head_dim_k && !e->arch->traits.partial_rotary)
        return refuse(e, "rope.dimension_count is not attention.key_length", err);
    if (e->arch->traits.sliding == BC_SLIDING_NONE && hp->sliding_window != 0)
        return refuse(e, "attention.sliding_window", err);
    if (hp->norm_in_eps != 0 && e->has_norm_in && !e->packed)
        return refuse(e, "attention.norm_in_rms_epsilon beside float weights", err);
    if (hp->pooling == 0)
        bc_say(e->sink, BITCONV_WARNING,
               "%s: pooling_type is none, which sentence-transformers has no module for: none is "
               "written",
               e->path);
    BC_TRY(check_attention_scale(e, err));
    return check_baked(e, err);
}
