/* SPDX-License-Identifier: MIT
 * Makes models up: shape, tensors, small files, and then a folder or a GGUF. */
#include "bitconv/dummy.h"

#include <string.h>

#include "dummy/dummy_gguf.h"
#include "dummy/folder.h"

static const double default_zeros = 1.0 / 3.0;

/* What the caller gets, with its memory. */
struct result {
    struct bitconv_dummy public;
    struct bc_arena arena;
};

/* All that lives during one run. Zero-initialise. */
struct run {
    const struct bitconv_dummy_options *options;
    const struct bitconv_sink *sink;
    const struct bc_kernels *kernels;
    struct bc_dummy_storage storage;
    struct bc_dummy_model model;
    struct bc_dummy_tensors tensors;
    struct bc_dummy_texts texts;
    struct bc_dummy_shards shards;
    struct bc_pool *pool;
    struct bitconv_conversion *conversion; /* of GGUFs */
    struct result *result;
};

static void release(struct run *r)
{
    bitconv_conversion_free(r->conversion);
    bc_pool_free(r->pool);
    bc_dummy_shards_release(&r->shards);
    bc_dummy_texts_release(&r->texts);
    bc_dummy_tensors_release(&r->tensors);
    bc_dummy_model_release(&r->model);
}

const char *bitconv_dummy_arch(size_t index)
{
    const struct bc_dummy_kind *kind = bc_dummy_kind_at(index);
    return kind != NULL ? kind->name : NULL;
}

/* ---- options ---- */

static enum bitconv_status read_dtype(const char *name, enum bitconv_dtype *out,
                                      struct bitconv_error *err)
{
    static const struct {
        const char *name;
        enum bitconv_dtype dtype;
    } types[] = {{"bf16", BITCONV_BF16}, {"f16", BITCONV_F16}, {"f32", BITCONV_F32}};
    *out = BITCONV_BF16;
    if (name == NULL) return BITCONV_OK;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        *out = types[i].dtype;
        if (strcmp(types[i].name, name) == 0) return BITCONV_OK;
    }
    return bc_fail(err, BITCONV_E_ARG, "--dtype: '%s' is not one of: bf16, f16, f32", name);
}

static enum bitconv_status read_storage(struct run *r, struct bitconv_error *err)
{
    const struct bitconv_dummy_options *o = r->options;
    const double zeros = o->has_zeros ? o->zeros : default_zeros;
    if (!(zeros >= 0.0 && zeros <= BC_DUMMY_MAX_ZEROS))
        return bc_fail(err, BITCONV_E_ARG, "--zeros: %g is not a share between 0 and %g", zeros,
                       BC_DUMMY_MAX_ZEROS);
    if (o->outfile == NULL) return bc_fail(err, BITCONV_E_ARG, "the output is missing (-o)");
    if (o->outtype != NULL && (o->shards != 0 || o->max_shard_size != 0))
        return bc_fail(err, BITCONV_E_ARG,
                       "--%s: applies to checkpoint folders (a GGUF has --split-max-size)",
                       o->shards != 0 ? "shards" : "max-shard-size");
    r->storage =
        (struct bc_dummy_storage){.form = o->outtype != NULL ? BITCONV_DUMMY_PACKED : o->form,
                                  .n_zero = bc_dummy_n_zero(zeros),
                                  .seed = o->seed,
                                  .file = o->outfile};
    return read_dtype(o->dtype, &r->storage.dtype, err);
}

static enum bitconv_status find_kernels(struct run *r, struct bitconv_error *err)
{
    bool known = false;
    r->kernels =
        r->options->cpu != NULL ? bc_kernels_named(r->options->cpu, &known) : bc_kernels_best();
    if (r->kernels != NULL) return BITCONV_OK;
    return bc_fail(err, known ? BITCONV_E_UNSUPPORTED : BITCONV_E_ARG,
                   known ? "--cpu: this processor does not have %s"
                         : "--cpu: '%s' is not an instruction set: scalar, avx2, avx512, neon",
                   r->options->cpu);
}

/* The model's name: --name, or the last part of the output's path without ".gguf". */
static char *model_name(const struct bitconv_dummy_options *o, struct bc_arena *arena)
{
    static const char ending[] = ".gguf";
    if (o->name != NULL) return bc_arena_strdup(arena, o->name);
    size_t len = strlen(o->outfile);
    while (len > 1 && o->outfile[len - 1] == '/')
        len--;
    size_t start = len;
    while (start > 0 && o->outfile[start - 1] != '/')
        start--;
    len -= start;
    const char *base = o->outfile + start;
    if (o->outtype != NULL && len > strlen(ending) &&
        strncmp(base + len - strlen(ending), ending, strlen(ending)) == 0)
        len -= strlen(ending);
    return bc_arena_strndup(arena, base, len);
}

/* ---- the result ---- */

static void describe_shape(const struct run *r, struct bitconv_dummy *d)
{
    const struct bc_hparams *hp = &r->model.hp;
    d->arch = r->model.kind->name;
    d->class_name = r->model.kind->class_name;
    d->outtype = r->options->outtype;
    d->form = r->storage.form;
    d->parameters = r->model.parameters;
    d->layers = hp->n_layers;
    d->hidden = hp->n_embd;
    d->ffn = hp->n_ff;
    d->heads = hp->n_head;
    d->kv_heads = hp->n_head_kv;
    d->head_dim = hp->head_dim_k;
    d->vocab = hp->n_vocab;
    d->experts = hp->n_expert;
    d->context = hp->n_ctx;
    d->tied = hp->tied || r->model.class_row->backbone;
    d->zeros = (double)r->storage.n_zero / 65536.0;
    d->seed = r->storage.seed;
}

static enum bitconv_status describe_folder(struct run *r, struct bitconv_error *err)
{
    struct bitconv_dummy *d = &r->result->public;
    struct bc_arena *arena = &r->result->arena;
    d->tensors = bc_arena_alloc(arena, r->shards.n, sizeof *d->tensors);
    if (d->tensors == NULL) return bc_fail_nomem(err, "result");
    for (; d->n_tensors < r->shards.n; d->n_tensors++) {
        const struct bitconv_tensor *t = &r->shards.tensors[d->n_tensors]->view;
        struct bitconv_dummy_tensor *out = &d->tensors[d->n_tensors];
        out->name = bc_arena_strdup(arena, t->name);
        out->type = bitconv_dtype_name(t->dtype);
        out->n_dims = t->n_dims;
        memcpy(out->shape, t->shape, t->n_dims * sizeof *out->shape);
        out->size = t->size;
        if (out->name == NULL) return bc_fail_nomem(err, "result");
    }
    d->n_files = r->shards.n_shards;
    d->size = r->tensors.size;
    d->peak_memory = bc_dummy_folder_memory();
    return BITCONV_OK;
}

static enum bitconv_status describe_gguf(struct run *r, struct bitconv_error *err)
{
    const struct bitconv_conversion *c = r->conversion;
    struct bitconv_dummy *d = &r->result->public;
    struct bc_arena *arena = &r->result->arena;
    d->tensors = bc_arena_alloc(arena, c->n_tensors, sizeof *d->tensors);
    if (d->tensors == NULL) return bc_fail_nomem(err, "result");
    for (; d->n_tensors < c->n_tensors; d->n_tensors++) {
        const struct bitconv_converted_tensor *t = &c->tensors[d->n_tensors];
        struct bitconv_dummy_tensor *out = &d->tensors[d->n_tensors];
        out->name = bc_arena_strdup(arena, t->name);
        out->type = bc_arena_strdup(arena, t->pack != NULL ? t->pack : t->type);
        out->n_dims = t->n_dims;
        memcpy(out->shape, t->ne, sizeof out->shape);
        out->size = t->size;
        if (out->name == NULL || out->type == NULL) return bc_fail_nomem(err, "result");
        if (t->pack != NULL && t->type[0] == 'I' && t->type[1] == '8')
            d->size_is_expected = r->options->dry_run;
    }
    d->n_files = c->n_files;
    d->size = c->file_size;
    d->peak_memory = c->peak_memory;
    return BITCONV_OK;
}

/* ---- the steps ---- */

static enum bitconv_status make_folder(struct run *r, struct bitconv_error *err)
{
    const struct bitconv_dummy_options *o = r->options;
    BC_TRY(bc_dummy_deal(o, &r->tensors, &r->shards, err));
    if (!o->dry_run) {
        BC_TRY(bc_pool_new(o->n_threads, &r->pool, err));
        BC_TRY(bc_dummy_folder(o->outfile, o->force, &r->texts, &r->shards, r->kernels, r->pool,
                               r->sink, err));
    }
    return describe_folder(r, err);
}

static enum bitconv_status run_all(struct run *r, struct bitconv_error *err)
{
    const struct bitconv_dummy_options *o = r->options;
    struct bitconv_dummy *d = &r->result->public;
    struct bc_arena *arena = &r->result->arena;
    BC_TRY(read_storage(r, err));
    BC_TRY(find_kernels(r, err));
    BC_TRY(bc_dummy_model_make(o, &r->model, err));
    BC_TRY(bc_dummy_tensors_make(&r->model, &r->storage, &r->tensors, err));
    BC_TRY(bc_dummy_texts_make(&r->model, r->storage.form, r->storage.dtype, &r->texts, err));
    describe_shape(r, d);
    d->output = bc_arena_strdup(arena, o->outfile);
    d->config = bc_arena_strdup(arena, bc_dummy_text_find(&r->texts, "config.json"));
    d->name = model_name(o, arena);
    if (d->output == NULL || d->config == NULL || d->name == NULL)
        return bc_fail_nomem(err, "result");
    if (o->outtype == NULL) return make_folder(r, err);
    BC_TRY(bc_dummy_gguf(o, d->name, &r->tensors, &r->texts, r->sink, &r->conversion, err));
    return describe_gguf(r, err);
}

enum bitconv_status bitconv_dummy(const struct bitconv_dummy_options *options,
                                  const struct bitconv_sink *sink, struct bitconv_dummy **out,
                                  struct bitconv_error *err)
{
    struct run r = {.options = options, .sink = sink};
    *out = NULL;
    r.result = bc_alloc_array(1, sizeof *r.result);
    if (r.result == NULL) return bc_fail_nomem(err, "result");
    r.result->public.internal = r.result;
    const enum bitconv_status status = run_all(&r, err);
    release(&r);
    if (status == BITCONV_OK)
        *out = &r.result->public;
    else
        bitconv_dummy_free(&r.result->public);
    return status;
}

void bitconv_dummy_free(struct bitconv_dummy *dummy)
{
    if (dummy == NULL) return;
    struct result *result = dummy->internal;
    bc_arena_release(&result->arena);
    bc_free(result);
}
