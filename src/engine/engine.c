/* SPDX-License-Identifier: MIT
 * Opens a model for running: a GGUF in place, or a checkpoint as its runtime sees it. */
#include "engine/session.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "model/model_gguf.h"

enum { DEFAULT_CONTEXT = 4096 };

/* ---- options ---- */

static enum bitconv_status read_mode(const char *name, enum bc_mode *out, struct bitconv_error *err)
{
    *out = BC_MODE_FLOAT;
    if (name == NULL || strcmp(name, "float") == 0) return BITCONV_OK;
    if (strcmp(name, "int8") != 0)
        return bc_fail(err, BITCONV_E_ARG, "--mode: '%s' is not known, wanted float or int8", name);
    *out = BC_MODE_INT8;
    return BITCONV_OK;
}

static enum bitconv_status read_cpu(const char *name, const struct bc_kernels **out,
                                    struct bitconv_error *err)
{
    bool known = false;
    *out = name == NULL ? bc_kernels_best() : bc_kernels_named(name, &known);
    if (*out != NULL) return BITCONV_OK;
    return bc_fail(err, BITCONV_E_ARG,
                   known ? "--cpu: '%s' is not supported on this machine"
                         : "--cpu: '%s' is not known (scalar, avx2, avx512, neon)",
                   name);
}

static enum bitconv_status choose_context(struct bitconv_engine *e, uint32_t asked,
                                          struct bitconv_error *err)
{
    const struct bc_graph *g = e->graph;
    uint64_t limit = g->hp.n_ctx;
    if (g->positions != NULL && g->n_positions < limit) limit = g->n_positions;
    if (asked > limit)
        return bc_fail(err, BITCONV_E_LIMIT,
                       "%s: a context of %" PRIu32 " tokens was asked for, the model has %" PRIu64,
                       e->provider->path, asked, limit);
    /* longrope rotates in another way beyond the original context: only where that is asked for */
    if (asked == 0 && g->long_rotation.dims > 0 && g->hp.rope_orig_ctx < limit)
        limit = g->hp.rope_orig_ctx;
    e->n_ctx = asked != 0 ? asked : limit < DEFAULT_CONTEXT ? (uint32_t)limit : DEFAULT_CONTEXT;
    return BITCONV_OK;
}

/* ---- bytes per token ---- */

/* Stored bytes of a matrix; 0 where it is not stored as such. */
static uint64_t stored_bytes(const struct bitconv_gguf *file, const struct bc_linear *l)
{
    const struct bitconv_gguf_tensor *t =
        bc_linear_is(l) ? bitconv_gguf_find_tensor(file, l->w.name) : NULL;
    return t != NULL ? t->size : 0;
}

static uint64_t bytes_per_token(const struct bc_graph *g, const struct bitconv_gguf *file)
{
    uint64_t dense = stored_bytes(file, &g->output), experts = 0;
    for (uint32_t i = 0; i < g->hp.n_layers; i++) {
        const struct bc_layer *l = &g->layers[i];
        const struct bc_linear *all[] = {&l->q,       &l->k,        &l->v,     &l->qkv,
                                         &l->o,       &l->gate,     &l->up,    &l->down,
                                         &l->conv_in, &l->conv_out, &l->router};
        for (size_t j = 0; j < sizeof all / sizeof *all; j++)
            dense += stored_bytes(file, all[j]);
        experts += stored_bytes(file, &l->gate_experts) + stored_bytes(file, &l->up_experts) +
                   stored_bytes(file, &l->down_experts);
    }
    if (g->hp.n_expert > 0) experts = experts / g->hp.n_expert * g->hp.n_expert_used;
    return dense + experts;
}

/* ---- opening ---- */

static enum bitconv_status start(struct bitconv_engine *e, const struct bc_arch *arch,
                                 const struct bc_hparams *hp,
                                 const struct bitconv_engine_options *options,
                                 const struct bitconv_sink *sink, struct bitconv_error *err)
{
    BC_TRY(read_mode(options->mode, &e->mode, err));
    if (e->pool == NULL) {
        BC_TRY(bc_pool_new(options->n_threads, &e->pool, err));
        e->owns_pool = true;
    }
    if (e->provider->pool == NULL) e->provider->pool = e->pool;
    BC_TRY(bc_graph_build(e->provider, arch, hp, sink, &e->graph, err));
    e->check = options->check;
    e->observe = options->observe;
    e->user = options->user;
    return choose_context(e, options->n_ctx, err);
}

/* Opens an engine over a provider, which it takes over (also on failure). `pool` may be NULL: then
 * options->n_threads are started. hp's strings and arrays are borrowed. */
static enum bitconv_status open_over(struct bc_provider *provider, const struct bc_arch *arch,
                                     const struct bc_hparams *hp, const struct bc_kernels *kernels,
                                     struct bc_pool *pool,
                                     const struct bitconv_engine_options *options,
                                     const struct bitconv_sink *sink, struct bitconv_engine **out,
                                     struct bitconv_error *err)
{
    struct bitconv_engine *e = bc_alloc_array(1, sizeof *e);
    *out = NULL;
    if (e == NULL) {
        bc_provider_free(provider);
        return bc_fail_nomem(err, "the engine");
    }
    e->provider = provider;
    e->kernels = kernels;
    e->pool = pool;
    const enum bitconv_status status = start(e, arch, hp, options, sink, err);
    if (status == BITCONV_OK)
        *out = e;
    else
        bitconv_engine_close(e);
    return status;
}

enum bitconv_status bc_engine_open_gguf(const struct bitconv_gguf *file,
                                        const struct bc_stated *stated, struct bc_pool *pool,
                                        const struct bitconv_engine_options *options,
                                        const struct bitconv_sink *sink,
                                        struct bitconv_engine **out, struct bitconv_error *err)
{
    const struct bc_kernels *kernels;
    const struct bc_arch *arch;
    struct bc_provider *provider;
    struct bc_hparams hp;
    struct bc_arena arena = {0};
    *out = NULL;
    BC_TRY(read_cpu(options->cpu, &kernels, err));
    enum bitconv_status status = bc_hparams_from_gguf(file, &arena, sink, &arch, &hp, err);
    if (status == BITCONV_OK) status = bc_provider_gguf(file, stated, kernels, &provider, err);
    if (status == BITCONV_OK)
        status = open_over(provider, arch, &hp, kernels, pool, options, sink, out, err);
    if (status != BITCONV_OK) {
        bc_arena_release(&arena);
        return status;
    }
    (*out)->arena = arena;
    (*out)->weight_bytes = bytes_per_token((*out)->graph, file);
    return BITCONV_OK;
}

enum bitconv_status
bc_engine_open_model(const struct bc_model *model, const struct bc_weight_options *weights,
                     bc_carry_fn *carry, const void *carry_user, struct bc_pool *pool,
                     const struct bitconv_engine_options *options, const struct bitconv_sink *sink,
                     struct bitconv_engine **out, struct bitconv_error *err)
{
    const struct bc_kernels *kernels;
    struct bc_provider *provider;
    *out = NULL;
    BC_TRY(read_cpu(options->cpu, &kernels, err));
    BC_TRY(
        bc_provider_source(model, weights, carry, carry_user, kernels, pool, sink, &provider, err));
    return open_over(provider, model->arch, &model->hp, kernels, pool, options, sink, out, err);
}

/* ---- the public calls ---- */

/* What is open behind an engine that opened it itself. */
struct bc_engine_opened {
    struct bitconv_gguf *file;
    struct bc_stated stated;
    struct bc_checkpoint *checkpoint;
    struct bc_model *model;
    struct bc_arena arena;
};

static void close_opened(struct bc_engine_opened *o)
{
    if (o == NULL) return;
    bitconv_gguf_close(o->file);
    bc_stated_release(&o->stated);
    bc_model_free(o->model);
    bc_checkpoint_close(o->checkpoint);
    bc_arena_release(&o->arena);
    bc_free(o);
}

static enum bitconv_status open_file(const char *path, const struct bitconv_engine_options *options,
                                     const struct bitconv_sink *sink, struct bc_engine_opened *o,
                                     struct bitconv_engine **out, struct bitconv_error *err)
{
    BC_TRY(bitconv_gguf_open(path, &o->file, err));
    BC_TRY(bc_stated_read(o->file, &o->arena, &o->stated, err));
    BC_TRY(bc_stated_config(&o->stated, options->kernel_config, options->i2s_layout, err));
    return bc_engine_open_gguf(o->file, &o->stated, NULL, options, sink, out, err);
}

/* Linear weights made ternary, whatever the runtime does. */
static struct bc_carry carry_ternary(const void *user, const struct bc_model *model,
                                     const struct bc_weight *weight)
{
    const bool ternary = weight->role == BC_ROLE_LINEAR && weight->n_sources > 0 && !weight->keep;
    (void)user;
    (void)model;
    return (struct bc_carry){.ternary = ternary, .packed = ternary};
}

struct bc_carry bc_carry_as_stored(const void *user, const struct bc_model *model,
                                   const struct bc_weight *weight)
{
    const bool offline = weight->n_sources > 0 && weight->sources[0].scale != NULL;
    (void)user;
    (void)model;
    return (struct bc_carry){.ternary = offline, .packed = offline};
}

static enum bitconv_status open_folder(const char *path,
                                       const struct bitconv_engine_options *options,
                                       const struct bitconv_sink *sink, struct bc_engine_opened *o,
                                       struct bitconv_engine **out, struct bitconv_error *err)
{
    const struct bc_model_options model_options = {.ternary_outtype = options->as_ternary};
    const struct bc_weight_options weights = {.mode = BC_QUANT_AUTO};
    bc_carry_fn *carry = options->as_ternary  ? carry_ternary
                         : options->as_stored ? bc_carry_as_stored
                                              : bc_carry_as_runtime;
    BC_TRY(bc_checkpoint_open(path, true, sink, &o->checkpoint, err));
    BC_TRY(bc_model_load(o->checkpoint, &model_options, sink, &o->model, err));
    return bc_engine_open_model(o->model, &weights, carry, NULL, NULL, options, sink, out, err);
}

enum bitconv_status bitconv_engine_open(const char *path,
                                        const struct bitconv_engine_options *options,
                                        const struct bitconv_sink *sink,
                                        struct bitconv_engine **out, struct bitconv_error *err)
{
    static const struct bitconv_engine_options defaults = {.n_threads = 0};
    struct bc_engine_opened *o = bc_alloc_array(1, sizeof *o);
    *out = NULL;
    if (o == NULL) return bc_fail_nomem(err, "the engine");
    if (options == NULL) options = &defaults;
    const enum bitconv_status status = bc_path_kind(path) == BC_PATH_DIR
                                           ? open_folder(path, options, sink, o, out, err)
                                           : open_file(path, options, sink, o, out, err);
    if (status == BITCONV_OK)
        (*out)->opened = o;
    else
        close_opened(o);
    return status;
}

void bitconv_engine_close(struct bitconv_engine *engine)
{
    if (engine == NULL) return;
    bc_graph_free(engine->graph);
    bc_provider_free(engine->provider);
    if (engine->owns_pool) bc_pool_free(engine->pool);
    close_opened(engine->opened);
    bc_arena_release(&engine->arena);
    bc_free(engine);
}

void bitconv_engine_info(const struct bitconv_engine *engine, struct bitconv_engine_info *out)
{
    const struct bc_hparams *hp = &engine->graph->hp;
    *out = (struct bitconv_engine_info){.path = engine->provider->path,
                                        .family = engine->graph->arch->name,
                                        .mode = engine->mode == BC_MODE_INT8 ? "int8" : "float",
                                        .cpu = engine->kernels->name,
                                        .n_embd = hp->n_embd,
                                        .n_layers = hp->n_layers,
                                        .n_vocab = hp->n_vocab,
                                        .n_ff = hp->n_ff,
                                        .n_ctx = engine->n_ctx,
                                        .n_ctx_model = hp->n_ctx,
                                        .n_threads = bc_pool_threads(engine->pool),
                                        .causal = hp->causal,
                                        .pooling = hp->pooling,
                                        .bos_id = hp->bos_id,
                                        .eos_id = hp->eos_id,
                                        .pad_id = hp->pad_id,
                                        .weight_bytes = engine->weight_bytes};
}
