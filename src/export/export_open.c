/* SPDX-License-Identifier: MIT
 * Opens the file and finds out which model it is: family, class, target, hyper-parameters. */
#include <string.h>

#include "export/exporter.h"
#include "model/model_gguf.h"
#include "model/model_internal.h"

enum { N_CLASSES = sizeof bc_arch_llama.classes / sizeof bc_arch_llama.classes[0] };

static bool has_key(const struct bc_exporter *e, const char *suffix)
{
    return bc_gguf_find_arch_key(e->file, e->arch_name, suffix) != NULL;
}

static const char *copy_string(struct bc_exporter *e, const char *key)
{
    const char *s = NULL;
    size_t len = 0;
    if (!bitconv_gguf_value_string(bitconv_gguf_find_key(e->file, key), &s, &len)) return NULL;
    if (memchr(s, '\0', len) != NULL) return NULL;
    return bc_arena_strndup(&e->arena, s, len);
}

/* A transform of the weights that the values in the file have gone through and that bitconv does
 * not undo. */
static enum bitconv_status refuse_transforms(const struct bc_exporter *e, struct bitconv_error *err)
{
    static const char prefix[] = "prism.hadamard.";
    for (size_t i = 0; i < bitconv_gguf_n_keys(e->file); i++) {
        const struct bitconv_gguf_key *key = bitconv_gguf_key_at(e->file, i);
        if (strncmp(key->name, prefix, sizeof prefix - 1) == 0)
            return bc_fail(
                err, BITCONV_E_UNSUPPORTED,
                "%s: %s: the weights are transformed in a way that bitconv does not undo", e->path,
                key->name);
    }
    return BITCONV_OK;
}

/* Does the family have stacks of experts? */
static bool has_experts(const struct bc_arch *arch)
{
    for (const struct bc_arch_tensor *row = arch->tensors; row->role != BC_ROLE_NONE; row++)
        if (row->role == BC_ROLE_EXPERT) return true;
    return false;
}

/* Several families may share a name in files (llama): the first that has what the file has. */
static void choose_family(struct bc_exporter *e)
{
    const struct bc_arch *arch;
    for (size_t i = 0; (arch = bc_arch_at(i)) != NULL; i++) {
        if (!bc_arch_has_gguf_name(arch, e->arch_name)) continue;
        if (has_experts(arch) != (e->hp.n_expert > 0)) continue;
        if (arch->traits.sliding == BC_SLIDING_NONE && e->hp.sliding_window != 0) continue;
        e->arch = arch;
        return;
    }
}

/* A model class for an embedding model has no head; one that the name of the architecture marks, or
 * pooling, says that it is one. */
static void choose_class(struct bc_exporter *e)
{
    const char *both_ways = e->arch->gguf_name_bidirectional;
    const bool headless =
        bitconv_gguf_find_tensor(e->file, "output.weight") == NULL &&
        (e->hp.pooling >= 0 || (both_ways != NULL && strcmp(e->arch_name, both_ways) == 0));
    e->class_row = &e->arch->classes[0];
    for (size_t i = 0; i < N_CLASSES && e->arch->classes[i].name != NULL; i++) {
        if (e->arch->classes[i].backbone != headless) continue;
        e->class_row = &e->arch->classes[i];
        return;
    }
}

/* Only one of the targets has the name, or its converter's mark general.type. */
static void choose_target(struct bc_exporter *e)
{
    const char *const *names = e->arch->gguf_name;
    const bool bitnet =
        names[BC_TARGET_BITNET] != NULL && strcmp(names[BC_TARGET_BITNET], e->arch_name) == 0;
    e->target = !bitnet || bitconv_gguf_find_key(e->file, "general.type") != NULL
                    ? BC_TARGET_LLAMA_CPP
                    : BC_TARGET_BITNET;
}

/* bitconv's own files always name the activation, and then also the window where there is one:
 * nothing is left to defaults. */
static void correct_window(struct bc_exporter *e)
{
    e->complete = has_key(e, bc_key_row(BC_KEY_HIDDEN_ACT)->suffix);
    if (!e->complete || has_key(e, bc_key_row(BC_KEY_SLIDING_WINDOW)->suffix)) return;
    e->hp.sliding_window = 0;
    e->hp.layer_is_local = NULL;
}

/* Defaults change results where they are wrong: in a checkpoint nothing shows any more that they
 * were not stated, so they are warnings here. */
static void promote(void *user, enum bitconv_severity severity, const char *text)
{
    const struct bitconv_sink *sink = user;
    if (sink != NULL && sink->message != NULL)
        sink->message(sink->user, severity == BITCONV_NOTE ? BITCONV_WARNING : severity, text);
}

static enum bitconv_status read_model(struct bc_exporter *e, struct bitconv_error *err)
{
    struct bitconv_sink sink = {.message = promote, .user = (void *)(uintptr_t)e->sink};
    e->arch_name = copy_string(e, "general.architecture");
    if (e->arch_name == NULL)
        return bc_fail(err, BITCONV_E_CORRUPT, "%s: general.architecture: missing, or no text",
                       e->path);
    BC_TRY(bc_hparams_from_gguf(e->file, &e->arena, &sink, &e->arch, &e->hp, err));
    if (bitconv_gguf_find_tensor(e->file, "token_embd.weight") == NULL)
        return bc_fail(err, BITCONV_E_UNSUPPORTED,
                       "%s: token_embd.weight: missing: a file without a model's tensors is no "
                       "checkpoint",
                       e->path);
    correct_window(e);
    choose_family(e);
    choose_class(e);
    choose_target(e);
    e->name = copy_string(e, "general.name");
    return bc_export_read_rope(e, err);
}

static enum bitconv_status read_options(struct bc_exporter *e, struct bitconv_error *err)
{
    static const struct {
        const char *name;
        enum bitconv_dtype dtype;
    } types[] = {{"f32", BITCONV_F32}, {"f16", BITCONV_F16}, {"bf16", BITCONV_BF16}};
    const struct bitconv_export_options *o = e->options;
    bool known = true;
    e->kernels = o->cpu != NULL ? bc_kernels_named(o->cpu, &known) : bc_kernels_best();
    if (e->kernels == NULL)
        return bc_fail(err, BITCONV_E_ARG, "--cpu: %s is not %s", o->cpu,
                       known ? "what this machine can run" : "known: scalar, avx2, avx512, neon");
    if (o->dir == NULL) return bc_fail(err, BITCONV_E_ARG, "no output folder given (-o DIR)");
    if (o->dtype == NULL || strcmp(o->dtype, "packed") == 0) return BITCONV_OK;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].name, o->dtype) != 0) continue;
        e->decode = true;
        e->dtype = types[i].dtype;
        return BITCONV_OK;
    }
    return bc_fail(err, BITCONV_E_ARG,
                   "--dtype: '%s' is not known, wanted packed, f32, f16 or bf16", o->dtype);
}

enum bitconv_status bc_export_open(struct bc_exporter *e, const char *path,
                                   struct bitconv_error *err)
{
    e->path = path;
    BC_TRY(read_options(e, err));
    BC_TRY(bc_container_open(path, e->options->dialect, e->sink, &e->container, err));
    e->file = e->container.gguf;
    if (e->file == NULL)
        return bc_fail(err, BITCONV_E_ARG, "%s: a GGUF was expected, this is a checkpoint already",
                       path);
    BC_TRY(bc_stated_read(e->file, &e->arena, &e->stated, err));
    if (e->stated.problem != NULL)
        return bc_fail(err, BITCONV_E_CORRUPT, "%s: %s", path, e->stated.problem);
    BC_TRY(bc_stated_config(&e->stated, e->options->kernel_config, e->options->i2s_layout, err));
    BC_TRY(refuse_transforms(e, err));
    return read_model(e, err);
}

void bc_export_close(struct bc_exporter *e)
{
    bc_stated_release(&e->stated);
    bc_container_close(&e->container);
    bc_free(e->tensors);
    bc_free((void *)e->kept);
    bc_arena_release(&e->arena);
}
