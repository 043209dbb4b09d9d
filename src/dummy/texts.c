/* SPDX-License-Identifier: MIT
 * config.json by the family's tables, and the other small files of a checkpoint. */
#include "dummy/texts.h"

#include <string.h>

#include "base/json.h"

enum { MAX_KEYS = 64 };

struct bc_buf *bc_dummy_text_add(struct bc_dummy_texts *texts, const char *name)
{
    struct bc_dummy_text *file =
        &texts->files[texts->n++]; /* no kind has more than there is room */
    file->name = name;
    return &file->text;
}

const char *bc_dummy_text_find(const struct bc_dummy_texts *texts, const char *name)
{
    for (size_t i = 0; i < texts->n; i++)
        if (strcmp(texts->files[i].name, name) == 0) return bc_buf_str(&texts->files[i].text);
    return "";
}

void bc_dummy_texts_release(struct bc_dummy_texts *texts)
{
    for (size_t i = 0; i < texts->n; i++)
        bc_buf_release(&texts->files[i].text);
    texts->n = 0;
}

/* ---- config.json ---- */

/* The object being written, and the keys that it has: a table may read one key into two members. */
struct config {
    struct bc_jw w;
    const char *keys[MAX_KEYS];
    size_t n_keys;
};

static bool is_new(struct config *c, const char *key)
{
    for (size_t i = 0; i < c->n_keys; i++)
        if (strcmp(c->keys[i], key) == 0) return false;
    if (c->n_keys < MAX_KEYS) c->keys[c->n_keys++] = key;
    return true;
}

/* A member of the hyper-parameters. What the made-up model leaves at 0 is written as the class's own
 * default, or not at all where 0 means "none". */
static void put_hparam(struct config *c, const struct bc_hparams *hp,
                       const struct bc_arch_hparam *row)
{
    const double value = bc_arch_hparam_value(hp, row);
    const double shown = value != 0 ? value : row->fallback;
    if (shown == 0 || !is_new(c, row->json[0])) return;
    bc_jw_key_f64(&c->w, row->json[0], shown);
}

static void put_hparams(struct config *c, const struct bc_dummy_model *model)
{
    const struct bc_arch_hparam *row;
    for (size_t i = 0; (row = bc_arch_hparam_at(model->arch, i)) != NULL; i++)
        put_hparam(c, &model->hp, row);
}

static void put_layer_types(struct config *c, const struct bc_hparams *hp)
{
    if (hp->layer_is_conv == NULL) return;
    bc_jw_key(&c->w, "layer_types");
    bc_jw_begin_array(&c->w);
    for (uint32_t i = 0; i < hp->n_layers; i++)
        bc_jw_string(&c->w, hp->layer_is_conv[i] ? "conv" : "full_attention");
    bc_jw_end_array(&c->w);
}

/* How the runtime gets its weights. Masters of classes that are not ternary by themselves have to
 * say it; published masters of the others say nothing. Baked weights are told by a file. */
static void put_quantization(struct config *c, const struct bc_dummy_model *model,
                             enum bitconv_dummy_form form)
{
    const bool packed = form == BITCONV_DUMMY_PACKED;
    if (form == BITCONV_DUMMY_BAKED) return;
    if (!packed && model->arch->traits.ternary_class) return;
    bc_jw_key(&c->w, "quantization_config");
    bc_jw_begin_object(&c->w);
    bc_jw_key_string(&c->w, "quant_method", "bitnet");
    bc_jw_key_string(&c->w, "linear_class", "autobitlinear");
    bc_jw_key_string(&c->w, "quantization_mode", packed ? "offline" : "online");
    bc_jw_end_object(&c->w);
}

static void put_id(struct bc_jw *w, const char *key, int64_t id)
{
    if (id < 0) return;
    bc_jw_key(w, key);
    bc_jw_i64(w, id);
}

static void put_ids(struct bc_jw *w, const struct bc_dummy_ids *ids)
{
    put_id(w, "bos_token_id", ids->bos);
    put_id(w, "eos_token_id", ids->eos);
    put_id(w, "pad_token_id", ids->pad);
}

/* model_type: of the class, else of the family's first one. */
static const char *model_type(const struct bc_dummy_model *model)
{
    return model->class_row->model_type != NULL ? model->class_row->model_type
                                                : model->arch->classes[0].model_type;
}

static void make_config(const struct bc_dummy_model *model, enum bitconv_dummy_form form,
                        enum bitconv_dtype dtype, const struct bc_dummy_ids *ids,
                        struct bc_buf *out)
{
    struct config c = {.w = {.buf = out, .first = true}};
    bc_jw_begin_object(&c.w);
    bc_jw_key(&c.w, "architectures");
    bc_jw_begin_array(&c.w);
    bc_jw_string(&c.w, model->kind->class_name);
    bc_jw_end_array(&c.w);
    bc_jw_key_string(&c.w, "model_type", model_type(model));
    put_hparams(&c, model);
    put_layer_types(&c, &model->hp);
    bc_jw_key_bool(&c.w, "tie_word_embeddings", model->hp.tied);
    put_ids(&c.w, ids);
    put_quantization(&c, model, form);
    bc_jw_key_string(&c.w, "torch_dtype",
                     dtype == BITCONV_BF16  ? "bfloat16"
                     : dtype == BITCONV_F16 ? "float16"
                                            : "float32");
    bc_buf_puts(out, model->kind->config);
    bc_jw_end_object(&c.w);
    bc_buf_putc(out, '\n');
}

/* ---- the others ---- */

static void make_generation_config(const struct bc_dummy_ids *ids, struct bc_buf *out)
{
    struct bc_jw w = {.buf = out, .first = true};
    bc_jw_begin_object(&w);
    put_ids(&w, ids);
    bc_jw_key_bool(&w, "do_sample", false);
    bc_jw_end_object(&w);
    bc_buf_putc(out, '\n');
}

/* A module of sentence-transformers. */
static void put_module(struct bc_jw *w, uint64_t index, const char *path, const char *type)
{
    char name[2] = {(char)('0' + index), '\0'};
    bc_jw_begin_object(w);
    bc_jw_key_u64(w, "idx", index);
    bc_jw_key_string(w, "name", name);
    bc_jw_key_string(w, "path", path);
    bc_jw_key_string(w, "type", type);
    bc_jw_end_object(w);
}

static void make_modules(struct bc_buf *out)
{
    struct bc_jw w = {.buf = out, .first = true};
    bc_jw_begin_array(&w);
    put_module(&w, 0, "", "sentence_transformers.models.Transformer");
    put_module(&w, 1, "1_Pooling", "sentence_transformers.models.Pooling");
    put_module(&w, 2, "2_Normalize", "sentence_transformers.models.Normalize");
    bc_jw_end_array(&w);
    bc_buf_putc(out, '\n');
}

static void make_pooling(const struct bc_dummy_model *model, struct bc_buf *out)
{
    static const char *const modes[] = {"pooling_mode_cls_token", "pooling_mode_mean_tokens",
                                        "pooling_mode_lasttoken"};
    struct bc_jw w = {.buf = out, .first = true};
    bc_jw_begin_object(&w);
    bc_jw_key_u64(&w, "word_embedding_dimension", model->hp.n_embd);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        bc_jw_key_bool(&w, modes[i], strcmp(modes[i], model->kind->pooling) == 0);
    bc_jw_end_object(&w);
    bc_buf_putc(out, '\n');
}

enum bitconv_status bc_dummy_texts_make(const struct bc_dummy_model *model,
                                        enum bitconv_dummy_form form, enum bitconv_dtype dtype,
                                        struct bc_dummy_texts *out, struct bitconv_error *err)
{
    const enum bc_dummy_tokenizer tokenizer = model->kind->tokenizer;
    const struct bc_dummy_ids ids = bc_dummy_tokenizer_ids(tokenizer, model->hp.n_vocab);
    make_config(model, form, dtype, &ids, bc_dummy_text_add(out, "config.json"));
    if (!model->class_row->backbone)
        make_generation_config(&ids, bc_dummy_text_add(out, "generation_config.json"));
    if (model->kind->pooling != NULL) {
        make_modules(bc_dummy_text_add(out, "modules.json"));
        make_pooling(model, bc_dummy_text_add(out, "1_Pooling/config.json"));
    }
    if (form == BITCONV_DUMMY_BAKED)
        bc_buf_puts(bc_dummy_text_add(out, "deployment_info.json"),
                    "{\"baked_ternary_weights\": true}\n");
    bc_dummy_tokenizer(tokenizer, model->hp.n_vocab, out);
    for (size_t i = 0; i < out->n; i++)
        if (out->files[i].text.failed) return bc_fail_nomem(err, "files of the checkpoint");
    return BITCONV_OK;
}
