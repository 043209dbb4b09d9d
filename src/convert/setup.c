/* SPDX-License-Identifier: MIT
 * Checks the options of a conversion. */
#include "convert/setup.h"

#include <string.h>

#include "base/mem.h"
#include "base/nearest.h"
#include "base/utf8.h"
#include "formats/block_pack.h"
#include "io/gguf_types.h"

/* general.file_type of the float files, as llama.cpp numbers them (enum llama_ftype). */
static const struct bc_outtype floats[] = {
    {"f32", "F32", BC_TYPE_F32, 0, NULL},
    {"f16", "F16", BC_TYPE_F16, 1, NULL},
    {"bf16", "BF16", BC_TYPE_BF16, 32, NULL},
    {"q8_0", "Q8_0", BC_TYPE_Q8_0, 7, NULL},
};
#define N_FLOATS (sizeof floats / sizeof floats[0])
enum { FILE_TYPE_F16 = 1 };

/* A word of an option and what it stands for. */
struct choice {
    const char *word;
    int value;
};

static const struct choice targets[] = {{"auto", BC_TARGET_AUTO},
                                        {"bitnet", BC_TARGET_BITNET},
                                        {"llama.cpp", BC_TARGET_LLAMA_CPP},
                                        {NULL, 0}};
static const struct choice quant_modes[] = {{"auto", BC_QUANT_AUTO},
                                            {"absmean", BC_QUANT_ABSMEAN},
                                            {"baked", BC_QUANT_BAKED},
                                            {"block", BC_QUANT_BLOCK},
                                            {NULL, 0}};
static const struct choice conventions[] = {{"auto", BC_SCALE_AUTO},
                                            {"multiply", BC_SCALE_MULTIPLY},
                                            {"divide", BC_SCALE_DIVIDE},
                                            {NULL, 0}};
static const struct choice layouts[] = {{"128", 128}, {"64", 64}, {NULL, 0}};
static const struct choice dialects[] = {{"bitnet", BITCONV_DIALECT_BITNET},
                                         {"bitnet-rebased", BITCONV_DIALECT_BITNET_REBASED},
                                         {NULL, 0}};

bool bc_outtype_find(const char *name, struct bc_outtype *out)
{
    for (size_t i = 0; i < N_FLOATS; i++) {
        if (strcmp(floats[i].name, name) != 0) continue;
        *out = floats[i];
        return true;
    }
    const struct bc_format *f = bc_format_find(name);
    if (f == NULL) return false;
    *out = (struct bc_outtype){f->name, f->type_name, f->type_id, f->file_type, f};
    return true;
}

/* "f32, f16, bf16, i2_s, ...": all that bc_outtype_find knows, for messages. */
static void list_outtypes(struct bc_buf *buf)
{
    for (size_t i = 0; i < N_FLOATS; i++)
        bc_buf_printf(buf, "%s%s", i > 0 ? ", " : "", floats[i].name);
    for (size_t i = 0; bc_format_at(i) != NULL; i++)
        bc_buf_printf(buf, ", %s", bc_format_at(i)->name);
}

/* The value of an option that is one of some words; NULL is the first of them. */
static enum bitconv_status choose(const char *option, const char *word,
                                  const struct choice *choices, int *out, struct bitconv_error *err)
{
    *out = choices[0].value;
    if (word == NULL) return BITCONV_OK;
    for (size_t i = 0; choices[i].word != NULL; i++) {
        if (strcmp(choices[i].word, word) != 0) continue;
        *out = choices[i].value;
        return BITCONV_OK;
    }
    struct bc_buf list = {NULL, 0, 0, false};
    struct bc_nearest nearest = {.word = word};
    char hint[BC_NEAREST_HINT_SIZE];
    for (size_t i = 0; choices[i].word != NULL; i++) {
        bc_buf_printf(&list, "%s%s", i > 0 ? ", " : "", choices[i].word);
        bc_nearest_offer(&nearest, choices[i].word);
    }
    const enum bitconv_status status =
        bc_fail(err, BITCONV_E_ARG, "--%s: '%s' is not one of: %s%s", option, word,
                bc_buf_str(&list), bc_nearest_hint(&nearest, "", hint, sizeof hint));
    bc_buf_release(&list);
    return status;
}

static enum bitconv_status unknown_type(const char *option, const char *name,
                                        struct bitconv_error *err)
{
    struct bc_buf list = {NULL, 0, 0, false};
    struct bc_nearest nearest = {.word = name};
    char hint[BC_NEAREST_HINT_SIZE];
    list_outtypes(&list);
    for (size_t i = 0; i < N_FLOATS; i++)
        bc_nearest_offer(&nearest, floats[i].name);
    for (size_t i = 0; bc_format_at(i) != NULL; i++)
        bc_nearest_offer(&nearest, bc_format_at(i)->name);
    bc_nearest_offer(&nearest, BC_OUTTYPE_AUTO);
    const enum bitconv_status status =
        bc_fail(err, BITCONV_E_ARG, "--%s: type '%s' cannot be written, these can: %s%s", option,
                name, bc_buf_str(&list), bc_nearest_hint(&nearest, "", hint, sizeof hint));
    bc_buf_release(&list);
    return status;
}

static enum bitconv_status find_float(const char *option, const char *name, struct bc_outtype *out,
                                      struct bitconv_error *err)
{
    if (name == NULL) return BITCONV_OK;
    if (!bc_outtype_find(name, out)) return unknown_type(option, name, err);
    if (out->pack == NULL) return BITCONV_OK;
    return bc_fail(err, BITCONV_E_ARG, "--%s: %s is a ternary pack, a float type was expected",
                   option, name);
}

/* The packs of --auto-packs, names with commas between them. */
static enum bitconv_status find_autos(const char *list, struct bc_setup *setup,
                                      struct bitconv_error *err)
{
    char name[32];
    const char *at = list;
    do {
        const size_t len = strcspn(at, ",");
        if (len == 0 || len >= sizeof name || setup->n_autos == BC_MAX_AUTOS)
            return bc_fail(err, BITCONV_E_ARG,
                           "--auto-packs: '%s' is no list of up to %d packs like 'bitcos,t5'", list,
                           BC_MAX_AUTOS);
        memcpy(name, at, len);
        name[len] = '\0';
        struct bc_outtype *out = &setup->autos[setup->n_autos++];
        if (!bc_outtype_find(name, out)) return unknown_type("auto-packs", name, err);
        if (out->pack == NULL)
            return bc_fail(err, BITCONV_E_ARG, "--auto-packs: %s is no ternary pack", name);
        at += len;
    } while (*at++ == ',');
    return BITCONV_OK;
}

/* Outtype auto. No number of general.file_type stands for it: as payload files, "mostly F16". */
static enum bitconv_status find_auto(const struct bitconv_convert_options *o,
                                     struct bc_setup *setup, struct bitconv_error *err)
{
    if (o->i2s_layout != NULL)
        return bc_fail(err, BITCONV_E_ARG,
                       "--i2s-layout: applies to outtype i2_s, not to auto (--auto-packs "
                       "i2_s_64,... names the layout)");
    BC_TRY(find_autos(o->auto_packs != NULL ? o->auto_packs : "bitcos,t5", setup, err));
    setup->out = setup->autos[0];
    setup->out.name = setup->out.type_name = BC_OUTTYPE_AUTO;
    setup->out.file_type = FILE_TYPE_F16;
    return BITCONV_OK;
}

/* The asked type, with the layout of --i2s-layout. */
static enum bitconv_status find_outtype(const struct bitconv_convert_options *o,
                                        struct bc_outtype *out, struct bitconv_error *err)
{
    int layout;
    BC_TRY(choose("i2s-layout", o->i2s_layout, layouts, &layout, err));
    /* A file of the vocabulary alone has no tensors whose type could be asked for. */
    const char *name = o->outtype == NULL && o->vocab_only ? floats[0].name : o->outtype;
    if (name == NULL) {
        struct bc_buf list = {NULL, 0, 0, false};
        list_outtypes(&list);
        (void)bc_fail(err, BITCONV_E_ARG, "--outtype is missing, one of: %s, %s", bc_buf_str(&list),
                      BC_OUTTYPE_AUTO);
        bc_buf_release(&list);
        return BITCONV_E_ARG;
    }
    if (!bc_outtype_find(name, out)) return unknown_type("outtype", name, err);
    if (o->i2s_layout == NULL) return BITCONV_OK;
    if (strcmp(name, "i2_s") != 0 && (strcmp(name, "i2_s_64") != 0 || layout != 64))
        return bc_fail(err, BITCONV_E_ARG, "--i2s-layout %d: applies to outtype i2_s, not to %s",
                       layout, name);
    return bc_outtype_find(layout == 64 ? "i2_s_64" : "i2_s", out)
               ? BITCONV_OK
               : unknown_type("outtype", "i2_s_64", err);
}

/* TL2 has another id in the rebased dialect, as a type and as general.file_type. */
static void apply_dialect(struct bc_outtype *out, int dialect)
{
    if (dialect != BITCONV_DIALECT_BITNET_REBASED || out->pack == NULL ||
        out->pack->type_id_rebased == 0)
        return;
    out->type_id = out->pack->type_id_rebased;
    if (strcmp(out->name, BC_OUTTYPE_AUTO) != 0) out->file_type = out->pack->type_id_rebased;
}

static bool is_tiled(const struct bc_outtype *type)
{
    return type->pack != NULL && type->pack->choose_tile != NULL;
}

static enum bitconv_status load_tilings(struct bc_setup *setup, struct bitconv_error *err)
{
    const char *path = setup->options->kernel_config;
    bool applies = is_tiled(&setup->out);
    if (path == NULL) return BITCONV_OK;
    for (size_t i = 0; i < setup->n_autos; i++)
        applies = applies || is_tiled(&setup->autos[i]);
    if (!applies)
        return bc_fail(err, BITCONV_E_ARG,
                       "--kernel-config: applies to outtypes tl1 and tl2, not to %s",
                       setup->out.name);
    return bc_tilings_load(path, &setup->tilings, err);
}

/* Options of packs with a scale per block. */
static bool has_block_scales(const struct bc_outtype *type)
{
    return type->pack != NULL && bc_block_pack_of(type->pack) != NULL;
}

/* How many of the packs that the output may have are block packs. */
static size_t count_block_packs(const struct bc_setup *setup)
{
    size_t n = 0;
    for (size_t i = 0; i < setup->n_autos; i++)
        n += has_block_scales(&setup->autos[i]);
    return setup->n_autos > 0 ? n : has_block_scales(&setup->out);
}

static enum bitconv_status check_block_options(const struct bc_setup *setup, int mode,
                                               struct bitconv_error *err)
{
    const bool blocks = count_block_packs(setup) > 0;
    const bool by_block = mode == BC_QUANT_BLOCK;
    if (by_block && setup->n_autos > 0)
        return bc_fail(err, BITCONV_E_ARG,
                       "--quant block: applies to one pack, outtype auto chooses among several");
    if (!blocks && (by_block || setup->options->scale_tensor))
        return bc_fail(err, BITCONV_E_ARG,
                       "--%s: applies to packs with a scale per block (tq1_0, tq2_0, q2_0, q1_0), "
                       "not to %s",
                       by_block ? "quant block" : "scale-tensor", setup->out.name);
    if (by_block && setup->options->scale_tensor)
        return bc_fail(err, BITCONV_E_ARG,
                       "--scale-tensor: holds one scale per tensor, --quant block gives each block "
                       "its own: choose one of the two");
    return BITCONV_OK;
}

static enum bitconv_status find_kernels(const char *cpu, const struct bc_kernels **out,
                                        struct bitconv_error *err)
{
    bool known;
    *out = bc_kernels_best();
    if (cpu == NULL) return BITCONV_OK;
    *out = bc_kernels_named(cpu, &known);
    if (*out != NULL) return BITCONV_OK;
    if (known)
        return bc_fail(err, BITCONV_E_UNSUPPORTED, "--cpu: this processor does not have %s", cpu);
    return bc_fail(err, BITCONV_E_ARG,
                   "--cpu: '%s' is not an instruction set: scalar, avx2, avx512, neon", cpu);
}

/* An option that goes into the file as a string: some text, in UTF-8. */
static enum bitconv_status check_text(const char *option, const char *text,
                                      struct bitconv_error *err)
{
    if (text == NULL || (text[0] != '\0' && bc_utf8_valid(text, strlen(text)))) return BITCONV_OK;
    return bc_fail(err, BITCONV_E_ARG, "--%s: '%s': wanted a name in UTF-8", option, text);
}

enum bitconv_status bc_setup_make(const char *dir, const struct bitconv_convert_options *options,
                                  struct bc_setup *out, struct bitconv_error *err)
{
    const struct bitconv_convert_options *o = options;
    int target, mode, convention, dialect;
    *out = (struct bc_setup){.options = o, .dir = dir};
    if (o->outtype != NULL && strcmp(o->outtype, BC_OUTTYPE_AUTO) == 0)
        BC_TRY(find_auto(o, out, err));
    else if (o->auto_packs != NULL)
        return bc_fail(err, BITCONV_E_ARG, "--auto-packs: applies to outtype auto only");
    else
        BC_TRY(find_outtype(o, &out->out, err));
    BC_TRY(find_float("embd-type", o->embd_type, &out->embd, err));
    BC_TRY(find_float("output-type", o->output_type, &out->output, err));
    if (o->on_misfit != NULL && strcmp(o->on_misfit, "fail") != 0)
        BC_TRY(find_float("on-misfit", o->on_misfit, &out->misfit, err));
    BC_TRY(choose("target", o->target, targets, &target, err));
    BC_TRY(choose("quant", o->quant, quant_modes, &mode, err));
    BC_TRY(choose("scale-convention", o->scale_convention, conventions, &convention, err));
    BC_TRY(choose("dialect", o->dialect, dialects, &dialect, err));
    BC_TRY(check_text("name", o->name, err));
    BC_TRY(check_text("pre", o->pre, err));
    BC_TRY(check_text("arch-name", o->arch_name, err));
    BC_TRY(find_kernels(o->cpu, &out->kernels, err));
    apply_dialect(&out->out, dialect);
    for (size_t i = 0; i < out->n_autos; i++)
        apply_dialect(&out->autos[i], dialect);
    BC_TRY(load_tilings(out, err));
    BC_TRY(check_block_options(out, mode, err));
    out->weights.mode = (enum bc_quant_mode)mode;
    out->weights.zero_nonfinite = o->allow_nonfinite_zero;
    out->model.target = (enum bc_target)target;
    out->model.ternary_outtype = out->out.pack != NULL;
    out->model.llama_cpp_only_type =
        out->out.type_id == BC_TYPE_Q8_0 ||
        count_block_packs(out) == (out->n_autos > 0 ? out->n_autos : 1);
    out->model.arch_name = o->arch_name;
    out->model.scale_convention = (enum bc_scale_convention)convention;
    out->model.quantize_regex = o->quantize_regex;
    out->model.keep_regex = o->keep_regex;
    return BITCONV_OK;
}

void bc_setup_release(struct bc_setup *setup)
{
    bc_tilings_release(&setup->tilings);
}
