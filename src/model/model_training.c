/* SPDX-License-Identifier: MIT
 * How the model's own runtime gets its linear weights: quantization_config, deployment_info.json,
 * the model class, and which tensors are there. */
#include <math.h>
#include <string.h>

#include "model/model_internal.h"

/* What quantization_config says. */
struct quant_config {
    bool present;
    bool online;  /* quantization_mode "online" */
    bool divides; /* linear_class "bitlinear", also when absent */
};

static bool is_string(const struct bc_json *node, const char *wanted)
{
    const char *s = bc_json_string(node);
    return s != NULL && strcmp(s, wanted) == 0;
}

static const struct bc_json *present(const struct bc_json *object, const char *key)
{
    const struct bc_json *node = bc_json_get(object, key);
    return bc_json_is(node, BC_JSON_NULL) ? NULL : node;
}

static void refuse_value(struct bc_loading *load, const char *key, const struct bc_json *node,
                         const char *wanted)
{
    const char *s = bc_json_string(node);
    bc_finding(&load->findings, BITCONV_E_UNSUPPORTED,
               "%s: quantization_config.%s: \"%s\" is not "
               "known, wanted %s",
               load->config_path, key, s != NULL ? s : "(not a string)", wanted);
}

/* use_rms_norm and the epsilon of those norms, which has a default of its own. */
static void read_rms_norm(struct bc_loading *load, const struct bc_json *config)
{
    struct bc_hparams *hp = &load->model->hp;
    const struct bc_json *use = present(config, "use_rms_norm");
    const struct bc_json *eps = present(config, "rms_norm_eps");
    double value = 1e-6; /* transformers' BitNetQuantConfig */
    if (use != NULL && !bc_json_bool(use, &load->use_rms_norm))
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: quantization_config.use_rms_norm: wanted true or false", load->config_path);
    if (use != NULL && !load->use_rms_norm && load->model->has_norm_in)
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: quantization_config.use_rms_norm is false, but the checkpoint has norms in "
                   "front of its projections, which the runtime would leave out",
                   load->config_path);
    if (!load->use_rms_norm) return;
    if (eps != NULL &&
        (!bc_json_f64(eps, &value) || !isfinite((float)value) || (float)value <= 0)) {
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: quantization_config.rms_norm_eps: wanted a positive number",
                   load->config_path);
        return;
    }
    if ((float)value == hp->norm_eps) return;
    hp->norm_in_eps = (float)value;
    bc_say(load->sink, BITCONV_WARNING,
           "%s: the norms in front of the projections have epsilon %g, the others %g: readers that "
           "know one value only will differ",
           load->config_path, value, (double)hp->norm_eps);
}

/* modules_to_not_convert: a list of strings; whatever else it holds would keep nothing, unnoticed. */
static void read_keep_modules(struct bc_loading *load, const struct bc_json *list)
{
    bool ok = list == NULL || bc_json_is(list, BC_JSON_ARRAY);
    for (const struct bc_json *node = bc_json_first(list); node != NULL; node = bc_json_next(node))
        ok = ok && bc_json_string(node) != NULL;
    if (!ok)
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: quantization_config.modules_to_not_convert: wanted a list of module names",
                   load->config_path);
    load->keep_modules = list;
}

static struct quant_config read_quant_config(struct bc_loading *load)
{
    struct quant_config out = {0};
    const struct bc_json *config = bc_config_get(load->ckpt, "quantization_config");
    if (config == NULL) return out;
    const struct bc_json *method = present(config, "quant_method");
    const struct bc_json *class_name = present(config, "linear_class");
    const struct bc_json *mode = present(config, "quantization_mode");
    out.present = true;
    if (!is_string(method, "bitnet")) {
        const char *s = bc_json_string(method);
        bc_finding(&load->findings, BITCONV_E_UNSUPPORTED,
                   "%s: quantization_config.quant_method: the weights are quantized by \"%s\"; "
                   "bitconv needs a dequantized checkpoint (only \"bitnet\" is read as it is)",
                   load->config_path, s != NULL ? s : "(nothing named)");
        return out;
    }
    out.divides = class_name == NULL || is_string(class_name, "bitlinear");
    if (!out.divides && !is_string(class_name, "autobitlinear"))
        refuse_value(load, "linear_class", class_name, "\"bitlinear\" or \"autobitlinear\"");
    out.online = is_string(mode, "online");
    if (mode != NULL && !out.online && !is_string(mode, "offline"))
        refuse_value(load, "quantization_mode", mode, "\"offline\" or \"online\"");
    read_keep_modules(load, present(config, "modules_to_not_convert"));
    read_rms_norm(load, config);
    return out;
}

/* Does deployment_info.json mark the checkpoint as baked (master weights replaced by trit*scale)?
 */
static enum bitconv_status read_baked(struct bc_loading *load, bool *out, struct bitconv_error *err)
{
    struct bc_json *info = NULL;
    BC_TRY(bc_checkpoint_json(load->ckpt->dir, "deployment_info.json", &info, err));
    if (!bc_json_bool(bc_json_get(info, "baked_ternary_weights"), out)) *out = false;
    bc_json_free(info);
    return BITCONV_OK;
}

/* Offline weights: which way the scale goes. */
static void decide_scale(struct bc_loading *load, const struct quant_config *config)
{
    const enum bc_scale_convention asked = load->options->scale_convention;
    struct bc_model *model = load->model;
    model->training = BC_TRAINING_OFFLINE;
    model->scale_divides = asked == BC_SCALE_AUTO ? config->divides : asked == BC_SCALE_DIVIDE;
    if (asked == BC_SCALE_AUTO && !config->present)
        bc_finding(&load->findings, BITCONV_E_UNSUPPORTED,
                   "%s: quantization_config: missing, but there are packed or scaled weights: "
                   "whether the scale multiplies or divides is unknown (say it with "
                   "--scale-convention)",
                   load->config_path);
    if (asked == BC_SCALE_AUTO && config->online)
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: quantization_config.quantization_mode is \"online\", which has no "
                   "weight_scale, but there are packed or scaled weights (say how they are meant "
                   "with --scale-convention)",
                   load->config_path);
}

enum bitconv_status bc_model_read_training(struct bc_loading *load, struct bitconv_error *err)
{
    struct bc_model *model = load->model;
    const struct bc_arch_traits *traits = &model->arch->traits;
    const size_t before = load->findings.n;
    const struct quant_config config = read_quant_config(load);
    bool baked = false;
    BC_TRY(read_baked(load, &baked, err));
    if (load->findings.n > before) return BITCONV_OK;
    model->training = BC_TRAINING_NONE;
    if (load->has_scales) {
        decide_scale(load, &config);
    } else if (baked) {
        model->training = BC_TRAINING_BAKED;
    } else if (traits->ternary_class || model->has_norm_in || config.present) {
        /* float masters: absmean at every load, also where the config speaks of offline weights
         * (published bf16 masters keep the config of the packed checkpoint) */
        model->training = BC_TRAINING_ONLINE;
        if (config.present && !config.online)
            bc_say(load->sink, BITCONV_NOTE,
                   "%s: quantization_config says offline, but the weights are unpacked masters: "
                   "they are ternarised by absmean",
                   load->config_path);
    }
    return BITCONV_OK;
}
