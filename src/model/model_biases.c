/* SPDX-License-Identifier: MIT
 * Which linear weights have biases: the class says so, or the config, or the tensors alone. */
#include <string.h>

#include "model/model_internal.h"

bool bc_arch_has_bias(const struct bc_arch *arch, const struct bc_arch_tensor *row)
{
    const enum bc_dim rows = row->shape[0];
    if (row->role == BC_ROLE_LAYER_NORM) return true;
    if (row->role != BC_ROLE_LINEAR) return false;
    if (arch->traits.biases == BC_BIASES_QKV)
        return rows == BC_N_Q || rows == BC_N_K || rows == BC_N_V;
    return arch->traits.biases == BC_BIASES_ALL;
}

/* Does the config say that a row has a bias (*stated), and which? */
static bool by_config(const struct bc_loading *load, const struct bc_arch_tensor *row, bool *stated)
{
    const char *key = strstr(row->hf[0], "self_attn") != NULL ? "attention_bias" : "mlp_bias";
    bool value = false;
    *stated = bc_json_bool(bc_config_get(load->ckpt, key), &value);
    return value;
}

bool bc_model_check_bias(struct bc_loading *load, const struct bc_arch_tensor *row, bool any)
{
    const struct bc_arch *arch = load->model->arch;
    bool stated = arch->traits.biases != BC_BIASES_STATED;
    if (row->role == BC_ROLE_LAYER_NORM) return true;
    if (row->role != BC_ROLE_LINEAR) return false;
    const char *who = "the model class has";
    bool says = bc_arch_has_bias(arch, row);
    if (!stated) {
        who = "the config says that there are";
        says = by_config(load, row, &stated);
    }
    /* the runtime computes what class and config say, whatever tensors there are */
    if (any && stated && !says)
        bc_finding(&load->findings, BITCONV_E_CORRUPT, "%s: %s no biases, but %s.bias is there",
                   load->config_path, who, row->hf[0]);
    return any || (stated && says);
}
