/* SPDX-License-Identifier: MIT
 * --quantize and --keep: regular expressions over HF and GGUF names that overrule the roles. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "model/model_internal.h"

static bool matches(const pcre2_code *code, pcre2_match_data *data, const char *name)
{
    return pcre2_match(code, (PCRE2_SPTR)name, strlen(name), 0, 0, data, NULL) >= 0;
}

/* Does the expression find something in the name of the weight or of one of its sources? */
static bool weight_matches(const pcre2_code *code, pcre2_match_data *data,
                           const struct bc_weight *w)
{
    if (matches(code, data, w->name)) return true;
    for (uint32_t i = 0; i < w->n_sources; i++)
        if (matches(code, data, w->sources[i].tensor->name)) return true;
    return false;
}

/* Turns one weight; false when the option does not concern it. */
static bool turn(struct bc_weight *w, bool quantize)
{
    const bool matrix = w->n_dims >= 2 && w->role != BC_ROLE_NORM;
    if (!matrix || (!quantize && w->role != BC_ROLE_LINEAR)) return false;
    if (quantize) w->role = BC_ROLE_LINEAR;
    w->keep = !quantize;
    return true;
}

static enum bitconv_status apply(struct bc_model *model, const char *regex, bool quantize,
                                 struct bitconv_error *err)
{
    const char *option = quantize ? "--quantize" : "--keep";
    int code_number = 0;
    PCRE2_SIZE at = 0;
    size_t n_turned = 0;
    if (regex == NULL) return BITCONV_OK;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED, 0, &code_number, &at, NULL);
    if (code == NULL) {
        PCRE2_UCHAR text[128] = "";
        (void)pcre2_get_error_message(code_number, text, sizeof text);
        return bc_fail(err, BITCONV_E_ARG, "%s: not a regular expression at character %zu: %s",
                       option, (size_t)at, (const char *)text);
    }
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(code, NULL);
    for (size_t i = 0; data != NULL && i < model->n_weights; i++)
        if (weight_matches(code, data, &model->weights[i]) && turn(&model->weights[i], quantize))
            n_turned++;
    const bool no_memory = data == NULL;
    pcre2_match_data_free(data);
    pcre2_code_free(code);
    if (no_memory) return bc_fail_nomem(err, "regular expression");
    if (n_turned == 0)
        return bc_fail(err, BITCONV_E_ARG, "%s: \"%s\" matches no %s", option, regex,
                       quantize ? "matrix" : "linear weight");
    return BITCONV_OK;
}

enum bitconv_status bc_model_select(struct bc_loading *load, struct bitconv_error *err)
{
    BC_TRY(apply(load->model, load->options->quantize_regex, true, err));
    return apply(load->model, load->options->keep_regex, false, err);
}
