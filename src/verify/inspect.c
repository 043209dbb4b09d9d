/* SPDX-License-Identifier: MIT
 * Describes a container: header, dialect, model, metadata, tensors, and everything odd about them.
 */
#include "bitconv/inspect.h"

#include <string.h>

#include "verify/inspector.h"
#include "verify/metadata_rules.h"

const char *bitconv_container_name(enum bitconv_container container)
{
    static const char *const names[] = {"gguf", "safetensors", "checkpoint"};
    return (unsigned)container < 3 ? names[container] : "?";
}

static void add_warning(struct bc_inspector *in, const char *text)
{
    char *copy = bc_arena_strdup(&in->data->arena, text);
    if (copy == NULL ||
        !bc_grow((void **)&in->warnings, &in->cap_warnings, in->n_warnings, sizeof *in->warnings)) {
        in->failed = true;
        return;
    }
    in->warnings[in->n_warnings++] = copy;
    in->out->warnings = (const char *const *)in->warnings;
    in->out->n_warnings = in->n_warnings;
}

void bc_inspect_warn(struct bc_inspector *in, const char *fmt, ...)
{
    struct bc_buf text = {0};
    va_list ap;
    va_start(ap, fmt);
    bc_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    add_warning(in, bc_buf_str(&text));
    bc_buf_release(&text);
}

/* What the readers say on the way is part of what is inspected. */
static void collect(void *user, enum bitconv_severity severity, const char *text)
{
    if (severity != BITCONV_NOTE) add_warning(user, text);
}

static void collect_rule(void *user, bool is_error, const char *text)
{
    (void)is_error; /* inspect fails on nothing that it can show */
    add_warning(user, text);
}

static void describe_gguf(struct bc_inspector *in)
{
    const struct bitconv_gguf *file = in->data->container.gguf;
    struct bitconv_inspection *out = in->out;
    const struct bc_rule_report report = {collect_rule, in};
    out->version = bitconv_gguf_version(file);
    out->alignment = bitconv_gguf_alignment(file);
    out->data_offset = bitconv_gguf_data_offset(file);
    out->dialect = bitconv_dialect_name(bitconv_gguf_dialect(file));
    out->dialect_evidence = bitconv_gguf_dialect_evidence(file);
    out->file_size = bitconv_gguf_file_size(file);
    out->n_files = bitconv_gguf_n_shards(file);
    for (size_t i = 0; i < bitconv_gguf_n_findings(file); i++)
        add_warning(in, bitconv_gguf_finding_at(file, i)->text);
    bc_check_model_metadata(file, &report);
}

static const char *copy_string(struct bc_inspector *in, const char *s)
{
    if (s == NULL) return NULL;
    const char *copy = bc_arena_strdup(&in->data->arena, s);
    if (copy == NULL) in->failed = true;
    return copy;
}

/* The strings may belong to a model that is about to be freed. */
static void copy_info(struct bc_inspector *in, const struct bc_model_info *info)
{
    struct bitconv_model_summary *out = &in->out->model;
    out->architecture = copy_string(in, info->architecture);
    out->name = copy_string(in, info->name);
    out->quantization = copy_string(in, info->quantization);
    out->rope_scaling = copy_string(in, info->rope_scaling);
    out->hidden_act = copy_string(in, info->hidden_act);
    out->pooling = copy_string(in, info->pooling);
    out->hidden_size = info->hidden_size;
    out->intermediate_size = info->intermediate_size;
    out->layers = info->layers;
    out->heads = info->heads;
    out->kv_heads = info->kv_heads;
    out->head_dim = info->head_dim;
    out->vocab_size = info->vocab_size;
    out->context_length = info->context_length;
    out->experts = info->experts;
    out->experts_used = info->experts_used;
    out->sliding_window = info->sliding_window;
    out->rope_theta = info->rope_theta;
}

/* A checkpoint that cannot be converted can still be looked at. */
static enum bitconv_status describe_checkpoint(struct bc_inspector *in,
                                               const struct bitconv_sink *collector,
                                               struct bitconv_error *err)
{
    const struct bc_checkpoint *ckpt = in->data->container.checkpoint;
    struct bc_model_options options = {0};
    struct bc_model_info info = {0};
    struct bc_model *model = NULL;
    struct bitconv_error refusal = {0};
    in->out->n_files = (uint32_t)ckpt->n_shards;
    in->out->file_size = bc_container_size(&in->data->container);
    const enum bitconv_status status = bc_model_load(ckpt, &options, collector, &model, &refusal);
    if (status == BITCONV_E_NOMEM) return bc_fail_nomem(err, "the model");
    if (status != BITCONV_OK) {
        bc_inspect_warn(in, "cannot be converted: %s", refusal.text);
        return BITCONV_OK;
    }
    bc_model_info(model, &in->data->arena, &info);
    copy_info(in, &info);
    if (in->out->model.name == NULL) in->out->model.name = ckpt->base_name;
    bc_model_free(model);
    return BITCONV_OK;
}

static enum bitconv_status describe(struct bc_inspector *in, const struct bitconv_sink *collector,
                                    struct bitconv_error *err)
{
    const struct bc_container *c = &in->data->container;
    struct bc_model_info info = {0};
    switch (c->kind) {
    case BITCONV_CONTAINER_GGUF:
        describe_gguf(in);
        bc_model_info_gguf(c->gguf, &in->data->arena, collector, &info);
        copy_info(in, &info);
        BC_TRY(bc_stated_read(c->gguf, &in->data->arena, &in->stated, err));
        return bc_stated_config(&in->stated, in->options->kernel_config, in->options->i2s_layout,
                                err);
    case BITCONV_CONTAINER_SAFETENSORS:
        in->out->n_files = 1;
        in->out->file_size = bc_container_size(c);
        return BITCONV_OK;
    case BITCONV_CONTAINER_CHECKPOINT:
        return describe_checkpoint(in, collector, err);
    }
    return BITCONV_OK;
}

static enum bitconv_status inspect(struct bc_inspector *in, struct bitconv_error *err)
{
    struct bitconv_sink collector = {.message = collect, .user = in};
    const char *cpu = in->options->cpu;
    bool known = false;
    if (in->sink != NULL) collector.cancel = in->sink->cancel;
    in->kernels = cpu != NULL ? bc_kernels_named(cpu, &known) : bc_kernels_best();
    if (in->kernels == NULL)
        return bc_fail(err, BITCONV_E_ARG,
                       known ? "this processor does not have the instruction set '%s'"
                             : "unknown instruction set '%s': wanted scalar, avx2, avx512 or neon",
                       cpu);
    const enum bitconv_status opened =
        bc_container_open(in->path, in->options->dialect, &collector, &in->data->container, err);
    /* All faults of a checkpoint's files are the reasons for this failure. */
    for (size_t i = 0; opened != BITCONV_OK && i < in->n_warnings; i++)
        bc_say(in->sink, BITCONV_FINDING, "%s", in->warnings[i]);
    BC_TRY(opened);
    in->out->file = bc_arena_strdup(&in->data->arena, in->path);
    if (in->out->file == NULL) return bc_fail_nomem(err, "the inspection");
    in->out->container = in->data->container.kind;
    BC_TRY(bc_pool_new(in->options->n_threads, &in->pool, err));
    BC_TRY(describe(in, &collector, err));
    BC_TRY(bc_inspect_keys(in, err));
    BC_TRY(bc_inspect_tensors(in, err));
    if (in->options->tensor != NULL) BC_TRY(bc_inspect_values(in, err));
    return in->failed ? bc_fail_nomem(err, "warnings") : BITCONV_OK;
}

enum bitconv_status bitconv_inspect(const char *path, const struct bitconv_inspect_options *options,
                                    const struct bitconv_sink *sink,
                                    struct bitconv_inspection **out, struct bitconv_error *err)
{
    static const struct bitconv_inspect_options defaults = {0};
    struct bc_inspector in = {.path = path, .sink = sink};
    in.options = options != NULL ? options : &defaults;
    *out = NULL;
    in.out = bc_alloc_array(1, sizeof *in.out);
    in.data = bc_alloc_array(1, sizeof *in.data);
    if (in.out == NULL || in.data == NULL) {
        bc_free(in.out);
        bc_free(in.data);
        return bc_fail_nomem(err, "the inspection");
    }
    in.out->internal = in.data;
    const enum bitconv_status status = inspect(&in, err);
    bc_stated_release(&in.stated);
    bc_pool_free(in.pool);
    if (status != BITCONV_OK) {
        bitconv_inspection_free(in.out);
        return status;
    }
    *out = in.out;
    return BITCONV_OK;
}

void bitconv_inspection_free(struct bitconv_inspection *inspection)
{
    if (inspection == NULL) return;
    struct bc_inspection_data *data = inspection->internal;
    bc_container_close(&data->container);
    bc_arena_release(&data->arena);
    bc_free(data);
    bc_free(inspection->keys);
    bc_free(inspection->types);
    bc_free((void *)inspection->warnings);
    bc_free(inspection);
}
