/* SPDX-License-Identifier: MIT
 * Looking things up in the family descriptors: classes, file architectures, tensor names. */
#include "model/arch.h"

#include <string.h>

/* Order matters only where two families share a GGUF name: the first one answers. */
static const struct bc_arch *const families[] = {
    &bc_arch_bitnet, &bc_arch_llama, &bc_arch_mistral, &bc_arch_mixtral, &bc_arch_qwen3,
    &bc_arch_gemma3, &bc_arch_qwen2, &bc_arch_phi3,    &bc_arch_bert,    &bc_arch_lfm2,
};

/* What may stand in front of a backbone's tensor names: nothing (a checkpoint of the bare model),
 * "model." (below a language-model head), and the wrappings of multi-modal checkpoints. */
static const char *const backbone_prefixes[] = {
    "model.language_model.", "language_model.model.", "language_model.", "model.", "",
};

enum { N_CLASSES = sizeof bc_arch_llama.classes / sizeof bc_arch_llama.classes[0] };

const struct bc_arch *bc_arch_at(size_t index)
{
    return index < sizeof families / sizeof *families ? families[index] : NULL;
}

/* The class row of `arch` whose name (by_type false) or model_type is `text`. */
static const struct bc_arch_class *find_class(const struct bc_arch *arch, const char *text,
                                              bool by_type)
{
    for (size_t i = 0; i < N_CLASSES && arch->classes[i].name != NULL; i++) {
        const char *have = by_type ? arch->classes[i].model_type : arch->classes[i].name;
        if (have != NULL && strcmp(have, text) == 0) return &arch->classes[i];
    }
    return NULL;
}

static const struct bc_arch *find_arch(const char *text, bool by_type,
                                       const struct bc_arch_class **out_class)
{
    for (size_t i = 0; bc_arch_at(i) != NULL; i++) {
        const struct bc_arch_class *row = find_class(bc_arch_at(i), text, by_type);
        if (row == NULL) continue;
        if (out_class != NULL) *out_class = row;
        return bc_arch_at(i);
    }
    return NULL;
}

const struct bc_arch *bc_arch_by_class(const char *class_name,
                                       const struct bc_arch_class **out_class)
{
    return find_arch(class_name, false, out_class);
}

const struct bc_arch *bc_arch_by_model_type(const char *model_type,
                                            const struct bc_arch_class **out_class)
{
    return find_arch(model_type, true, out_class);
}

bool bc_arch_has_gguf_name(const struct bc_arch *arch, const char *name)
{
    for (int t = 0; t < BC_N_TARGETS; t++)
        if (arch->gguf_name[t] != NULL && strcmp(arch->gguf_name[t], name) == 0) return true;
    for (size_t i = 0; i < sizeof arch->gguf_aliases / sizeof *arch->gguf_aliases; i++)
        if (arch->gguf_aliases[i] != NULL && strcmp(arch->gguf_aliases[i], name) == 0) return true;
    return arch->gguf_name_bidirectional != NULL &&
           strcmp(arch->gguf_name_bidirectional, name) == 0;
}

const struct bc_arch *bc_arch_by_gguf_name(const char *name)
{
    for (size_t i = 0; bc_arch_at(i) != NULL; i++)
        if (bc_arch_has_gguf_name(bc_arch_at(i), name)) return bc_arch_at(i);
    return NULL;
}

static const struct bc_arch_hparam *row_of(const struct bc_arch_hparam *rows, size_t offset)
{
    for (; rows->json[0] != NULL; rows++)
        if (rows->offset == offset) return rows;
    return NULL;
}

const struct bc_arch_hparam *bc_arch_hparam_at(const struct bc_arch *arch, size_t index)
{
    for (const struct bc_arch_hparam *row = bc_hparams_common; row->json[0] != NULL; row++) {
        const struct bc_arch_hparam *instead = row_of(arch->hparams, row->offset);
        if (index-- == 0) return instead != NULL ? instead : row;
    }
    for (const struct bc_arch_hparam *row = arch->hparams; row->json[0] != NULL; row++)
        if (row_of(bc_hparams_common, row->offset) == NULL && index-- == 0) return row;
    return NULL;
}

const struct bc_arch_hparam *bc_arch_hparam_of(const struct bc_arch *arch, size_t offset)
{
    const struct bc_arch_hparam *own = row_of(arch->hparams, offset);
    return own != NULL ? own : row_of(bc_hparams_common, offset);
}

double bc_arch_hparam_value(const struct bc_hparams *hp, const struct bc_arch_hparam *row)
{
    const unsigned char *at = (const unsigned char *)hp + row->offset;
    uint32_t integer;
    float real;
    if (row->type == BC_U32) {
        memcpy(&integer, at, sizeof integer);
        return (double)integer;
    }
    memcpy(&real, at, sizeof real);
    return (double)real;
}

void bc_arch_list_classes(struct bc_buf *buf)
{
    const char *separator = "";
    for (size_t i = 0; bc_arch_at(i) != NULL; i++) {
        const struct bc_arch *arch = bc_arch_at(i);
        for (size_t c = 0; c < N_CLASSES && arch->classes[c].name != NULL; c++) {
            bc_buf_printf(buf, "%s%s", separator, arch->classes[c].name);
            separator = ", ";
        }
    }
}

/* A canonical decimal number at *text (no sign, no leading zero, below 2^32); advances *text. */
static bool take_number(const char **text, const char *end, uint32_t *out)
{
    const char *p = *text;
    uint64_t value = 0;
    while (p < end && *p >= '0' && *p <= '9') {
        value = value * 10 + (uint64_t)(*p - '0');
        if (value > UINT32_MAX) return false;
        p++;
    }
    if (p == *text || (**text == '0' && p - *text > 1)) return false;
    *text = p;
    *out = (uint32_t)value;
    return true;
}

/* The letter of a mark at the start of a pattern ("{l}" gives 'l'), 0 for plain text. */
static char mark_at(const char *pattern)
{
    const bool is_mark = pattern[0] == '{' && pattern[1] != '\0' && pattern[2] == '}';
    return is_mark && strchr("lace*", pattern[1]) != NULL ? pattern[1] : '\0';
}

enum bc_layers bc_pattern_layers(const char *pattern)
{
    for (; *pattern != '\0'; pattern++) {
        const char mark = mark_at(pattern);
        if (mark == 'l') return BC_LAYERS_ALL;
        if (mark == 'a') return BC_LAYERS_ATTENTION;
        if (mark == 'c') return BC_LAYERS_CONV;
    }
    return BC_LAYERS_NONE;
}

bool bc_layer_is_one_of(const struct bc_hparams *hp, enum bc_layers layers, uint32_t layer)
{
    const bool conv = hp->layer_is_conv != NULL && hp->layer_is_conv[layer];
    if (layers == BC_LAYERS_CONV) return conv;
    return layers != BC_LAYERS_ATTENTION || !conv;
}

bool bc_pattern_match(const char *pattern, const char *text, size_t text_len, uint32_t *layer,
                      uint32_t *expert)
{
    const char *end = text + text_len;
    while (*pattern != '\0') {
        const char mark = mark_at(pattern);
        if (mark == '*') return true;
        if (mark != '\0') {
            if (!take_number(&text, end, mark == 'e' ? expert : layer)) return false;
            pattern += 3;
        } else if (text < end && *pattern == *text) {
            pattern++;
            text++;
        } else {
            return false;
        }
    }
    return text == end;
}

char *bc_pattern_fill(struct bc_arena *arena, const char *pattern, uint32_t layer, uint32_t expert,
                      const char *suffix)
{
    struct bc_buf buf = {0};
    while (*pattern != '\0') {
        const char mark = mark_at(pattern);
        if (mark != '\0') {
            bc_buf_printf(&buf, "%u", (unsigned)(mark == 'e' ? expert : layer));
            pattern += 3;
        } else {
            bc_buf_putc(&buf, *pattern++);
        }
    }
    bc_buf_puts(&buf, suffix);
    char *filled = buf.failed ? NULL : bc_arena_strndup(arena, bc_buf_str(&buf), buf.size);
    bc_buf_release(&buf);
    return filled;
}

char *bc_match_gguf_name(const struct bc_match *match, struct bc_arena *arena)
{
    static const char *const suffixes[] = {[BC_MATCH_WEIGHT] = ".weight",
                                           [BC_MATCH_BIAS] = ".bias",
                                           [BC_MATCH_NORM_IN] = "_norm_in.weight",
                                           [BC_MATCH_SCALE] = ".weight_scale"};
    return bc_pattern_fill(arena, match->row->gguf, match->layer, match->expert,
                           suffixes[match->part]);
}

uint64_t bc_dim_size(const struct bc_hparams *hp, enum bc_dim dim)
{
    switch (dim) {
    case BC_N_EMBD:
        return hp->n_embd;
    case BC_N_FF:
        return hp->n_ff;
    case BC_N_VOCAB:
        return hp->n_vocab;
    case BC_N_Q:
        return (uint64_t)hp->n_head * hp->head_dim_k;
    case BC_N_K:
        return (uint64_t)hp->n_head_kv * hp->head_dim_k;
    case BC_N_V:
        return (uint64_t)hp->n_head_kv * hp->head_dim_v;
    case BC_N_O:
        return (uint64_t)hp->n_head * hp->head_dim_v;
    case BC_N_HEAD_K:
        return hp->head_dim_k;
    case BC_N_EXPERT:
        return hp->n_expert;
    case BC_N_QKV:
        return bc_dim_size(hp, BC_N_Q) + bc_dim_size(hp, BC_N_K) + bc_dim_size(hp, BC_N_V);
    case BC_N_FF2:
        return 2 * (uint64_t)hp->n_ff;
    case BC_N_EMBD3:
        return 3 * (uint64_t)hp->n_embd;
    case BC_N_CONV:
        return hp->conv_l_cache;
    case BC_N_POSITIONS:
        return hp->n_ctx;
    case BC_N_TOKEN_TYPES:
        return hp->n_token_types;
    case BC_N_NONE:
        break;
    }
    return 1;
}

/* Which part of a row of that role a suffix stands for. */
static bool suffix_part(enum bc_role role, const char *suffix, enum bc_match_part *out)
{
    const bool linear = role == BC_ROLE_LINEAR;
    const bool layer_norm = role == BC_ROLE_LAYER_NORM;
    *out = BC_MATCH_WEIGHT;
    if (strcmp(suffix, ".weight") == 0) return true;
    if (strcmp(suffix, ".gamma") == 0) return layer_norm;
    *out = BC_MATCH_SCALE;
    if (strcmp(suffix, ".weight_scale") == 0) return linear || role == BC_ROLE_EXPERT;
    *out = BC_MATCH_BIAS;
    if (strcmp(suffix, ".bias") == 0) return linear || layer_norm;
    if (strcmp(suffix, ".beta") == 0) return layer_norm;
    /* BitNet embeddings call it norm; transformers' BitLinear with use_rms_norm calls it rms_norm
     */
    *out = BC_MATCH_NORM_IN;
    return linear &&
           (strcmp(suffix, ".norm.weight") == 0 || strcmp(suffix, ".rms_norm.weight") == 0);
}

/* Splits a name into base and one of the known suffixes, longest first; false when it has none. */
static bool split_suffix(const char *name, size_t *base_len)
{
    static const char *const suffixes[] = {
        ".rms_norm.weight", ".norm.weight", ".weight_scale", ".weight", ".bias", ".gamma", ".beta"};
    const size_t len = strlen(name);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        const size_t n = strlen(suffixes[i]);
        if (len > n && strcmp(name + len - n, suffixes[i]) == 0) {
            *base_len = len - n;
            return true;
        }
    }
    return false;
}

/* One row against a name without prefix, whose suffix (if any) starts at base_len. */
static bool match_row(const struct bc_arch_tensor *row, const char *name, size_t base_len,
                      bool has_suffix, struct bc_match *out)
{
    for (size_t g = 0; g < sizeof row->hf / sizeof *row->hf && row->hf[g] != NULL; g++) {
        struct bc_match match = {.row = row,
                                 .has_layer = bc_pattern_layers(row->hf[g]) != BC_LAYERS_NONE};
        const bool whole = row->role == BC_ROLE_SKIP || row->role == BC_ROLE_UNUSED;
        if (!whole && (!has_suffix || !suffix_part(row->role, name + base_len, &match.part)))
            continue;
        if (!bc_pattern_match(row->hf[g], name, whole ? strlen(name) : base_len, &match.layer,
                              &match.expert))
            continue;
        *out = match;
        return true;
    }
    return false;
}

/* The table against a name without prefix. "norm.weight" is both a suffix and the output norm's
 * whole name, so a second split at the last ".weight" is tried. */
static bool match_bare(const struct bc_arch *arch, const char *name, struct bc_match *out)
{
    const size_t len = strlen(name);
    size_t base_len = len;
    const bool has_suffix = split_suffix(name, &base_len);
    const size_t weight_len = strlen(".weight");
    const bool ends_in_weight = len > weight_len && strcmp(name + len - weight_len, ".weight") == 0;
    for (const struct bc_arch_tensor *row = arch->tensors; row->role != BC_ROLE_NONE; row++) {
        if (match_row(row, name, base_len, has_suffix, out)) return true;
        if (ends_in_weight && base_len != len - weight_len &&
            match_row(row, name, len - weight_len, true, out))
            return true;
    }
    return false;
}

bool bc_arch_match(const struct bc_arch *arch, const char *hf_name, struct bc_match *out)
{
    *out = (struct bc_match){0};
    for (size_t i = 0; i < sizeof backbone_prefixes / sizeof *backbone_prefixes; i++) {
        const size_t n = strlen(backbone_prefixes[i]);
        if (strncmp(hf_name, backbone_prefixes[i], n) == 0 && match_bare(arch, hf_name + n, out))
            return true;
    }
    const size_t n = arch->prefix != NULL ? strlen(arch->prefix) : 0;
    return n != 0 && strncmp(hf_name, arch->prefix, n) == 0 && match_bare(arch, hf_name + n, out);
}
