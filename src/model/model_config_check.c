/* SPDX-License-Identifier: MIT
 * Config keys that no table reads: harmless, dangerous, or unknown. */
#include <string.h>

#include "model/model_internal.h"

static bool listed(const char *const *list, const char *key)
{
    for (; *list != NULL; list++)
        if (strcmp(*list, key) == 0) return true;
    return false;
}

static bool in_hparams(const struct bc_arch_hparam *row, const char *key)
{
    for (; row->json[0] != NULL; row++)
        for (size_t i = 0; i < sizeof row->json / sizeof *row->json && row->json[i] != NULL; i++)
            if (strcmp(row->json[i], key) == 0) return true;
    return false;
}

/* Does the value say what `neutral` says? Null does always. */
static bool is_neutral(const struct bc_json *node, double neutral)
{
    double number = 0;
    bool flag = false;
    switch (bc_json_type(node)) {
    case BC_JSON_NULL:
        return true;
    case BC_JSON_BOOL:
        return bc_json_bool(node, &flag) && (flag ? 1.0 : 0.0) == neutral;
    case BC_JSON_NUMBER:
        return bc_json_f64(node, &number) && number == neutral;
    case BC_JSON_STRING:
        return neutral == 0 && bc_json_string(node)[0] == '\0';
    case BC_JSON_ARRAY:
    case BC_JSON_OBJECT:
        return neutral == 0 && bc_json_first(node) == NULL;
    }
    return false;
}

static const struct bc_config_neutral *dangerous(const char *key)
{
    for (const struct bc_config_neutral *row = bc_config_neutral; row->key != NULL; row++)
        if (strcmp(row->key, key) == 0) return row;
    return NULL;
}

static const struct bc_config_fixed *fixed_by_family(const struct bc_arch *arch, const char *key)
{
    const struct bc_config_fixed *row = arch->fixed;
    for (; row != NULL && row->key != NULL; row++)
        if (strcmp(row->key, key) == 0) return row;
    return NULL;
}

/* A setting of which the family's graph computes one value. */
static void check_fixed(struct bc_loading *load, const struct bc_json *node,
                        const struct bc_config_fixed *row)
{
    const char *family = load->model->arch->name;
    const char *text = bc_json_string(node);
    if (bc_json_is(node, BC_JSON_NULL)) return;
    if (row->text == NULL ? is_neutral(node, row->value)
                          : text != NULL && strcmp(text, row->text) == 0)
        return;
    if (row->text != NULL)
        bc_finding(&load->findings, BITCONV_E_UNSUPPORTED,
                   "%s: %s: \"%s\", but bitconv supports only \"%s\" for the %s family",
                   load->config_path, row->key, text != NULL ? text : "(not a string)", row->text,
                   family);
    else
        bc_finding(&load->findings, BITCONV_E_UNSUPPORTED,
                   "%s: %s: changes what the model computes; for the %s family bitconv supports "
                   "only %s",
                   load->config_path, row->key, family,
                   row->value == 0 ? "false or 0" : "true or 1");
}

void bc_model_check_unknown_keys(struct bc_loading *load)
{
    const struct bc_arch *arch = load->model->arch;
    for (const struct bc_json *node = bc_json_first(load->ckpt->text); node != NULL;
         node = bc_json_next(node)) {
        const char *key = bc_json_key(node);
        const struct bc_config_fixed *only = key != NULL ? fixed_by_family(arch, key) : NULL;
        if (only != NULL) {
            check_fixed(load, node, only);
            continue;
        }
        if (key == NULL || in_hparams(bc_hparams_common, key) || in_hparams(arch->hparams, key) ||
            listed(arch->ignored, key) || listed(bc_config_ignored, key))
            continue;
        const struct bc_config_neutral *row = dangerous(key);
        if (row != NULL && !is_neutral(node, row->value))
            bc_finding(&load->findings, BITCONV_E_UNSUPPORTED,
                       "%s: %s: changes what the model computes, and bitconv does not support it "
                       "for the %s family (only %s)",
                       load->config_path, key, arch->name,
                       row->value == 0 ? "null, false or 0" : "null or 1");
        else if (row == NULL && !is_neutral(node, 0))
            bc_say(load->sink, BITCONV_NOTE, "%s: %s: not known to bitconv, not carried",
                   load->config_path, key);
    }
}
