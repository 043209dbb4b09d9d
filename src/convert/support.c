/* SPDX-License-Identifier: MIT
 * The tables of formats and families, gathered from the registries that the converter works with. */
#include "bitconv/support.h"

#include <stdio.h>
#include <string.h>

#include "convert/setup.h"
#include "formats/block_pack.h"
#include "formats/dequant.h"
#include "io/gguf_types.h"
#include "model/arch.h"

enum { SAMPLE_SIDE = 4096 }; /* bitconv_format_info.bits_per_weight */

const char *bitconv_format_kind_name(enum bitconv_format_kind kind)
{
    static const char *const names[] = {"pack", "blocks", "numbers"};
    return (unsigned)kind < BITCONV_N_FORMAT_KINDS ? names[kind] : "?";
}

/* ---- formats ---- */

static bool is_pack_type(const char *type_name)
{
    const struct bc_format *f;
    for (size_t i = 0; (f = bc_format_at(i)) != NULL; i++)
        if (f->open_payload == NULL && strcmp(f->type_name, type_name) == 0) return true;
    return false;
}

/* The index-th type that is no pack. A name stands in one row; the ids of TL2 are in its pack's. */
static const struct bc_type *type_at(size_t index)
{
    const struct bc_type *type;
    size_t n = 0;
    for (size_t i = 0; (type = bc_type_row(i)) != NULL; i++)
        if (!is_pack_type(type->name) && n++ == index) return type;
    return NULL;
}

static void name_dialects(unsigned dialects, char *out, size_t size)
{
    unsigned known = 0;
    size_t used = 0;
    out[0] = '\0';
    for (unsigned d = BITCONV_DIALECT_AMBIGUOUS + 1u; d < BITCONV_N_DIALECTS; d++)
        known |= 1u << d;
    if (dialects == known) {
        snprintf(out, size, "all");
        return;
    }
    for (unsigned d = 0; d < BITCONV_N_DIALECTS && used < size; d++)
        if (dialects & 1u << d)
            used += (size_t)snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "",
                                     bitconv_dialect_name((enum bitconv_dialect)d));
}

/* All dialects in which some id has that type name. */
static unsigned dialects_of(const char *type_name)
{
    const struct bc_type *type;
    unsigned dialects = 0;
    for (size_t i = 0; (type = bc_type_row(i)) != NULL; i++)
        if (strcmp(type->name, type_name) == 0) dialects |= type->dialects;
    return dialects;
}

static void lower(const char *from, char *to, size_t size)
{
    size_t i = 0;
    for (; from[i] != '\0' && i + 1 < size; i++)
        to[i] = (char)(from[i] >= 'A' && from[i] <= 'Z' ? from[i] - 'A' + 'a' : from[i]);
    to[i] = '\0';
}

static double sample_bits(const struct bc_format *f)
{
    struct bc_pack_shape shape = {.cols = SAMPLE_SIDE, .rows = SAMPLE_SIDE, .slices = 1};
    char why[256];
    shape.n = shape.cols * shape.rows;
    shape.n_nonzero = shape.n - shape.n / 3;
    if (f->choose_tile != NULL && !f->choose_tile(NULL, &shape, shape.tile, why, sizeof why))
        return 0;
    if (!f->check(&shape, why, sizeof why)) return 0;
    return 8.0 * (double)f->size(&shape) / (double)shape.n;
}

static void describe_pack(const struct bc_format *f, struct bitconv_format_info *out)
{
    const struct bc_block_pack *blocks = bc_block_pack_find(f->name);
    const struct bc_dequant *d = bc_dequant_find(f->type_name);
    struct bc_outtype outtype;
    snprintf(out->name, sizeof out->name, "%s", f->name);
    out->title = f->title;
    out->type_name = f->type_name;
    out->type_id = f->type_id;
    out->type_id_rebased = f->type_id_rebased;
    name_dialects(dialects_of(f->type_name), out->dialects, sizeof out->dialects);
    out->kind = blocks != NULL ? BITCONV_FORMAT_BLOCKS : BITCONV_FORMAT_PACK;
    out->ternary = true;
    out->bits_per_weight = sample_bits(f);
    if (blocks != NULL && d != NULL) {
        out->block = d->block;
        out->block_size = d->block_size;
    }
    out->writes = bc_outtype_find(f->name, &outtype);
    out->decodes = true;
}

static void describe_type(const struct bc_type *type, struct bitconv_format_info *out)
{
    const struct bc_dequant *d = bc_dequant_find(type->name);
    struct bc_outtype outtype;
    lower(type->name, out->name, sizeof out->name);
    out->type_name = type->name;
    out->type_id = type->id;
    name_dialects(type->dialects, out->dialects, sizeof out->dialects);
    out->kind = type->block == 1 ? BITCONV_FORMAT_NUMBERS : BITCONV_FORMAT_BLOCKS;
    out->block = type->block;
    out->block_size = type->block_size;
    if (type->block != 0) out->bits_per_weight = 8.0 * type->block_size / type->block;
    out->writes = bc_outtype_find(out->name, &outtype);
    out->decodes = d != NULL;
    out->refusal = bc_dequant_refusal(type->name);
}

bool bitconv_format_info_at(size_t index, struct bitconv_format_info *out)
{
    size_t n_packs = 0;
    memset(out, 0, sizeof *out);
    while (n_packs <= index && bc_format_at(n_packs) != NULL)
        n_packs++;
    if (index < n_packs) {
        describe_pack(bc_format_at(index), out);
        return true;
    }
    const struct bc_type *type = type_at(index - n_packs);
    if (type == NULL) return false;
    describe_type(type, out);
    return true;
}

/* ---- families ---- */

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void copy_names(const char *const *from, size_t n, const char **to)
{
    for (size_t i = 0; i < n && i < BITCONV_MAX_ARCH_NAMES; i++)
        to[i] = from[i];
}

bool bitconv_arch_info_at(size_t index, struct bitconv_arch_info *out)
{
    const struct bc_arch *arch = bc_arch_at(index);
    memset(out, 0, sizeof *out);
    if (arch == NULL) return false;
    _Static_assert(COUNT(arch->classes) <= BITCONV_MAX_ARCH_NAMES &&
                       COUNT(arch->gguf_aliases) <= BITCONV_MAX_ARCH_NAMES &&
                       COUNT(arch->activations) <= BITCONV_MAX_ARCH_NAMES,
                   "struct bitconv_arch_info has room for all names");
    out->name = arch->name;
    for (size_t i = 0; i < COUNT(arch->classes); i++) {
        out->classes[i] = arch->classes[i].name;
        out->model_types[i] = arch->classes[i].model_type;
        out->backbone[i] = arch->classes[i].backbone;
    }
    out->gguf_bitnet = arch->gguf_name[BC_TARGET_BITNET];
    out->gguf_llama_cpp = arch->gguf_name[BC_TARGET_LLAMA_CPP];
    out->gguf_bidirectional = arch->gguf_name_bidirectional;
    copy_names(arch->gguf_aliases, COUNT(arch->gguf_aliases), out->gguf_aliases);
    copy_names(arch->activations, COUNT(arch->activations), out->activations);
    out->ternary_class = arch->traits.ternary_class;
    out->embedding_family = arch->traits.embedding_family;
    out->permutes_qk = arch->traits.permute_qk;
    out->norm_plus_one = arch->traits.norm_plus_one;
    out->sliding_window = arch->traits.sliding != BC_SLIDING_NONE;
    out->encoder = arch->traits.bidirectional;
    out->conv_layers = arch->traits.conv_layers;
    out->longrope = arch->traits.longrope;
    return true;
}
