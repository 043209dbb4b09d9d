/* SPDX-License-Identifier: MIT
 * bc_model_load: the steps from an open checkpoint to a bc_model, and the model's name. */
#include "model/model.h"

#include <string.h>

#include "base/utf8.h"
#include "model/model_internal.h"

/* The family by class name, else by model_type. */
static enum bitconv_status recognise(struct bc_loading *load, struct bitconv_error *err)
{
    const struct bc_json *classes = bc_config_get(load->ckpt, "architectures");
    const char *class_name = bc_json_string(bc_json_first(classes));
    const char *type = bc_json_string(bc_config_get(load->ckpt, "model_type"));
    struct bc_model *model = load->model;
    if (class_name != NULL)
        model->arch = bc_arch_by_class(class_name, &load->class_row);
    else if (type != NULL)
        model->arch = bc_arch_by_model_type(type, &load->class_row);
    if (model->arch != NULL) {
        model->class_name = load->class_row->name;
        return BITCONV_OK;
    }
    struct bc_buf supported = {0};
    bc_arch_list_classes(&supported);
    if (class_name == NULL && type == NULL)
        (void)bc_fail(err, BITCONV_E_UNSUPPORTED,
                      "%s: neither architectures nor model_type says what the model is; supported "
                      "are %s",
                      load->config_path, bc_buf_str(&supported));
    else
        (void)bc_fail(err, BITCONV_E_UNSUPPORTED,
                      "%s: %s: \"%s\" is not supported; supported are %s", load->config_path,
                      class_name != NULL ? "architectures" : "model_type",
                      class_name != NULL ? class_name : type, bc_buf_str(&supported));
    bc_buf_release(&supported);
    return BITCONV_E_UNSUPPORTED;
}

/* Looks every tensor up in the family's table, and what that alone tells. */
static enum bitconv_status match_tensors(struct bc_loading *load, struct bitconv_error *err)
{
    struct bc_model *model = load->model;
    load->matches = bc_alloc_array(load->ckpt->n_tensors, sizeof *load->matches);
    if (load->matches == NULL) return bc_fail_nomem(err, "list of tensors");
    for (size_t i = 0; i < load->ckpt->n_tensors; i++) {
        struct bc_match *match = &load->matches[i];
        if (!bc_arch_match(model->arch, load->ckpt->tensors[i]->name, match)) continue;
        const enum bc_role role = match->row->role;
        const bool linear = role == BC_ROLE_LINEAR || role == BC_ROLE_EXPERT;
        if (match->part == BC_MATCH_NORM_IN) model->has_norm_in = true;
        if (match->part == BC_MATCH_SCALE || (linear && match->part == BC_MATCH_WEIGHT &&
                                              load->ckpt->tensors[i]->dtype == BITCONV_U8))
            load->has_scales = true;
    }
    model->embedding_model = load->class_row->backbone || load->ckpt->modules != NULL ||
                             (model->has_norm_in && model->arch->traits.embedding_family);
    return BITCONV_OK;
}

/* --target auto: whose conventions fit. */
static enum bc_target decide_target(const struct bc_loading *load)
{
    const struct bc_model *model = load->model;
    if (load->options->target != BC_TARGET_AUTO) return load->options->target;
    if (model->has_norm_in) return BC_TARGET_BITNET;
    if (load->options->llama_cpp_only_type) return BC_TARGET_LLAMA_CPP;
    if (load->options->ternary_outtype || model->arch->traits.ternary_class)
        return BC_TARGET_BITNET;
    return BC_TARGET_LLAMA_CPP;
}

/* general.architecture: --arch-name if the family's readers know it, else by target. */
static enum bitconv_status decide_arch_name(struct bc_loading *load, struct bitconv_error *err)
{
    struct bc_model *model = load->model;
    const struct bc_arch *arch = model->arch;
    const char *asked = load->options->arch_name;
    model->arch_name = arch->gguf_name[model->target];
    if (model->target == BC_TARGET_LLAMA_CPP && load->class_row->backbone && !model->hp.causal &&
        arch->gguf_name_bidirectional != NULL)
        model->arch_name = arch->gguf_name_bidirectional;
    if (asked == NULL) return BITCONV_OK;
    if (!bc_arch_has_gguf_name(arch, asked))
        return bc_fail(err, BITCONV_E_ARG,
                       "--arch-name: \"%s\" is not an architecture name that readers of the %s "
                       "family know",
                       asked, arch->name);
    model->arch_name = bc_arena_strdup(&model->arena, asked);
    return model->arch_name != NULL ? BITCONV_OK : bc_fail_nomem(err, "architecture name");
}

static void warn_for_target(const struct bc_loading *load)
{
    const struct bc_model *model = load->model;
    if (model->target == BC_TARGET_LLAMA_CPP && model->has_norm_in)
        bc_say(load->sink, BITCONV_WARNING,
               "%s: llama.cpp knows no norms in front of projections (*_norm_in) and will not load "
               "the file",
               load->ckpt->dir);
    if (model->target == BC_TARGET_LLAMA_CPP && model->arch->traits.ternary_class &&
        strcmp(model->hp.hidden_act, "silu") != 0)
        bc_say(load->sink, BITCONV_WARNING,
               "%s: llama.cpp's bitnet graph applies silu, the model was trained with %s: results "
               "will differ",
               load->config_path, model->hp.hidden_act);
}

/* The steps of a load; findings of the config end it before tensors are judged by it. */
static enum bitconv_status load_steps(struct bc_loading *load, struct bitconv_error *err)
{
    struct bc_model *model = load->model;
    BC_TRY(recognise(load, err));
    BC_TRY(match_tensors(load, err));
    BC_TRY(bc_model_read_config(load, err));
    model->target = decide_target(load);
    BC_TRY(decide_arch_name(load, err));
    bc_model_read_pooling(load);
    BC_TRY(bc_model_read_training(load, err));
    bc_model_read_vocab(load);
    BC_TRY(bc_findings_result(&load->findings, "faults in the configuration", err));
    if (load->ckpt->has_weights) {
        BC_TRY(bc_model_map(load, err));
        BC_TRY(bc_findings_result(&load->findings, "faults in the tensors", err));
        BC_TRY(bc_model_select(load, err));
    }
    warn_for_target(load);
    return BITCONV_OK;
}

enum bitconv_status bc_model_load(const struct bc_checkpoint *ckpt,
                                  const struct bc_model_options *options,
                                  const struct bitconv_sink *sink, struct bc_model **out,
                                  struct bitconv_error *err)
{
    struct bc_loading load = {.ckpt = ckpt,
                              .options = options,
                              .sink = sink,
                              .findings = {.sink = sink, .subject = ckpt->dir}};
    enum bitconv_status status = BITCONV_OK;
    *out = NULL;
    load.model = bc_alloc_array(1, sizeof *load.model);
    if (load.model == NULL) return bc_fail_nomem(err, "model");
    load.model->ckpt = ckpt;
    load.config_path = bc_arena_printf(&load.model->arena, "%s/config.json", ckpt->dir);
    status = load.config_path != NULL ? load_steps(&load, err) : bc_fail_nomem(err, "path");
    bc_free(load.matches);
    bc_free(load.pending);
    if (status != BITCONV_OK) {
        bc_model_free(load.model);
        return status;
    }
    *out = load.model;
    return BITCONV_OK;
}

void bc_model_free(struct bc_model *model)
{
    if (model == NULL) return;
    bc_arena_release(&model->arena);
    bc_free(model);
}

/* A revision of a model hub: 40 or 64 hexadecimal digits. */
static bool is_hash(const char *name)
{
    const size_t n = strspn(name, "0123456789abcdef");
    return name[n] == '\0' && (n == 40 || n == 64);
}

static bool is_name(const char *name)
{
    return name != NULL && name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           !is_hash(name) && bc_utf8_valid(name, strlen(name));
}

/* The last part of "OWNER/NAME" or "NAME"; NULL for what is a path of some machine. */
static const char *hub_name(const char *name_or_path)
{
    if (name_or_path == NULL || name_or_path[0] == '/' || name_or_path[0] == '.' ||
        name_or_path[0] == '~' || strchr(name_or_path, '\\') != NULL)
        return NULL;
    const char *slash = strchr(name_or_path, '/');
    if (slash == NULL) return is_name(name_or_path) ? name_or_path : NULL;
    return strchr(slash + 1, '/') == NULL && is_name(slash + 1) ? slash + 1 : NULL;
}

/* A cache of the hub keeps revisions in models--OWNER--NAME/snapshots/HASH: the NAME of it. */
static const char *cache_name(struct bc_model *model, const char *dir)
{
    char *up = bc_path_join(dir, "../..");
    char *base = up != NULL ? bc_path_real_base(up) : NULL;
    const char *name = NULL;
    if (base != NULL && strncmp(base, "models--", strlen("models--")) == 0) {
        const char *last = strstr(base + strlen("models--"), "--");
        last = last != NULL ? last + strlen("--") : base + strlen("models--");
        if (is_name(last)) name = bc_arena_strdup(&model->arena, last);
    }
    bc_free(up);
    bc_free(base);
    return name;
}

const char *bc_model_name(struct bc_model *model, const struct bc_checkpoint *ckpt)
{
    const char *name = hub_name(bc_json_string(bc_json_get(ckpt->config, "_name_or_path")));
    if (name == NULL && is_name(ckpt->base_name)) name = ckpt->base_name;
    name = name != NULL ? bc_arena_strdup(&model->arena, name) : cache_name(model, ckpt->dir);
    return name != NULL ? name : "model";
}
