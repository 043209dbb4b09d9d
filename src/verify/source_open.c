/* SPDX-License-Identifier: MIT
 * Opens the checkpoint of a source proof and finds out under which conventions the file was
 * written.
 *
 * The file does not record convert's --target. Each target is tried; the one under which most
 * tensor names, types and keys agree is taken. A damaged file still agrees best with the right one.
 */
#include <string.h>

#include "formats/block_pack.h"
#include "verify/source_blocks.h"
#include "verify/source_state.h"

void bc_source_close(struct bc_verifier *v)
{
    if (v->source == NULL) return;
    bc_model_free(v->source->model);
    bc_checkpoint_close(v->source->checkpoint);
    bc_free(v->source);
    v->source = NULL;
}

static bool has_pack(const struct bc_verifier *v)
{
    for (size_t i = 0; i < v->result->n_tensors; i++)
        if (v->tensors[i].packed.format != NULL || v->tensors[i].misfit != NULL) return true;
    return false;
}

static bool has_block_pack(const struct bc_verifier *v)
{
    for (size_t i = 0; i < v->result->n_tensors; i++) {
        const struct bc_format *f = v->tensors[i].packed.format;
        if (f != NULL && bc_block_pack_of(f) != NULL) return true;
    }
    return false;
}

/* The kind of a file without packs: the float type that most matrices of the layers have. */
static enum bc_file_kind kind_of_floats(const struct bc_verifier *v)
{
    enum { N_KINDS = 4 };
    static const char *const names[N_KINDS] = {"F32", "F16", "BF16", "Q8_0"};
    static const enum bc_file_kind kinds[N_KINDS] = {BC_FILE_F32, BC_FILE_F16, BC_FILE_BF16,
                                                     BC_FILE_Q8_0};
    size_t counts[N_KINDS + 1] = {0};
    for (size_t i = 0; i < v->result->n_tensors; i++) {
        const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(v->container.gguf, i);
        if (t->n_dims < 2 || strncmp(t->name, "blk.", 4) != 0 ||
            strstr(t->name, "ffn_gate_inp") != NULL)
            continue;
        size_t at = 0;
        while (at < N_KINDS && strcmp(names[at], t->type_name) != 0)
            at++;
        counts[at]++;
    }
    size_t best = N_KINDS;
    for (size_t i = 0; i < N_KINDS; i++)
        if (counts[i] > counts[best]) best = i;
    return best < N_KINDS ? kinds[best] : BC_FILE_OTHER;
}

static enum bitconv_status bad_word(const char *option, const char *word, const char *words,
                                    struct bitconv_error *err)
{
    return bc_fail(err, BITCONV_E_ARG, "--%s: '%s' is not one of: %s", option, word, words);
}

static enum bitconv_status read_options(struct bc_source_state *s, struct bc_model_options *model,
                                        struct bitconv_error *err)
{
    const struct bitconv_convert_options *c = &s->conversion;
    const char *quant = c->quant != NULL ? c->quant : "auto";
    const char *convention = c->scale_convention != NULL ? c->scale_convention : "auto";
    const char *target = c->target != NULL ? c->target : "auto";
    if (strcmp(quant, "absmean") == 0)
        s->weight_options.mode = BC_QUANT_ABSMEAN;
    else if (strcmp(quant, "baked") == 0)
        s->weight_options.mode = BC_QUANT_BAKED;
    else if (strcmp(quant, "block") == 0)
        s->weight_options.mode = BC_QUANT_BLOCK;
    else if (strcmp(quant, "auto") != 0)
        return bad_word("quant", quant, "auto, absmean, baked, block", err);
    if (strcmp(convention, "multiply") == 0)
        model->scale_convention = BC_SCALE_MULTIPLY;
    else if (strcmp(convention, "divide") == 0)
        model->scale_convention = BC_SCALE_DIVIDE;
    else if (strcmp(convention, "auto") != 0)
        return bad_word("scale-convention", convention, "auto, multiply, divide", err);
    if (strcmp(target, "bitnet") == 0)
        model->target = BC_TARGET_BITNET;
    else if (strcmp(target, "llama.cpp") == 0)
        model->target = BC_TARGET_LLAMA_CPP;
    else if (strcmp(target, "auto") != 0)
        return bad_word("target", target, "auto, bitnet, llama.cpp", err);
    s->weight_options.zero_nonfinite = c->allow_nonfinite_zero;
    model->quantize_regex = c->quantize_regex;
    model->keep_regex = c->keep_regex;
    return BITCONV_OK;
}

/* Names, shapes and types that do not agree, in both directions. */
static size_t count_tensor_differences(const struct bc_verifier *v, const struct bc_source_state *s,
                                       const struct bc_model *model)
{
    size_t n_found = 0;
    size_t differences = 0;
    for (size_t i = 0; i < model->n_weights; i++) {
        const struct bc_weight *w = &model->weights[i];
        const size_t index = bc_tensor_index(v, w->name);
        if (index == BC_NO_TENSOR) {
            differences++;
            continue;
        }
        n_found +=
            v->tensors[index].packed.scales != NULL ? 2 : 1; /* a tensor of scales beside it */
        const char *type = bc_expected_type(s, model, w);
        const bool packed = v->tensors[index].packed.format != NULL;
        if (type == NULL) continue;
        if (strcmp(type, BC_EXPECT_PACK) == 0)
            differences += !packed;
        else
            differences += strcmp(type, v->result->tensors[index].type) != 0;
    }
    return differences + (v->result->n_tensors - n_found);
}

/* general.architecture as a string that ends where it should; NULL otherwise. */
static const char *file_architecture(struct bc_verifier *v)
{
    const char *text = NULL;
    size_t len = 0;
    if (!bitconv_gguf_value_string(bitconv_gguf_find_key(v->container.gguf, "general.architecture"),
                                   &text, &len))
        return NULL;
    return bc_arena_strndup(&v->data->arena, text, len);
}

/* Loads the model with these options and keeps it when it agrees better than the one so far. */
static enum bitconv_status try_model(struct bc_verifier *v, const struct bc_model_options *options,
                                     size_t *best, struct bitconv_error *err)
{
    struct bc_source_state *s = v->source;
    struct bc_model *model = NULL;
    struct bitconv_error quiet = {0};
    size_t keys = 0;
    const enum bitconv_status status = bc_model_load(s->checkpoint, options, NULL, &model, &quiet);
    if (status == BITCONV_E_NOMEM) return bc_fail_nomem(err, "the model");
    if (status != BITCONV_OK) return BITCONV_OK; /* not under these conventions */
    const enum bitconv_status counted = bc_source_count_key_differences(v, s, model, &keys, err);
    const size_t differences = keys + count_tensor_differences(v, s, model);
    if (counted != BITCONV_OK || (s->model != NULL && differences >= *best)) {
        bc_model_free(model);
        return counted;
    }
    bc_model_free(s->model);
    s->model = model;
    *best = differences;
    return BITCONV_OK;
}

static enum bitconv_status choose_model(struct bc_verifier *v, struct bc_model_options *options,
                                        struct bitconv_error *err)
{
    static const enum bc_target targets[] = {BC_TARGET_AUTO, BC_TARGET_BITNET, BC_TARGET_LLAMA_CPP};
    const char *arch = file_architecture(v);
    const bool given = options->target != BC_TARGET_AUTO;
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < (given ? 1u : 3u) && best != 0; i++) {
        if (!given) options->target = targets[i];
        /* The name that the file has first: a family may be written under several. */
        options->arch_name = arch;
        BC_TRY(try_model(v, options, &best, err));
        options->arch_name = NULL;
        if (best != 0) BC_TRY(try_model(v, options, &best, err));
    }
    if (v->source->model != NULL) return BITCONV_OK;
    if (!given) options->target = BC_TARGET_AUTO;
    return bc_model_load(v->source->checkpoint, options, v->sink, &v->source->model, err);
}

enum bitconv_status bc_source_open(struct bc_verifier *v, struct bitconv_error *err)
{
    struct bc_model_options options = {0};
    struct bc_source_state *s = bc_alloc_array(1, sizeof *s);
    if (s == NULL) return bc_fail_nomem(err, "the source proof");
    v->source = s;
    if (v->options->conversion != NULL) s->conversion = *v->options->conversion;
    BC_TRY(read_options(s, &options, err));
    if (s->conversion.quant == NULL && bc_source_looks_by_block(v)) {
        s->weight_options.mode = BC_QUANT_BLOCK;
        bc_say(v->sink, BITCONV_NOTE,
               "blocks have scales of their own: compared with what --quant block makes of the "
               "checkpoint");
    }
    s->kind = has_pack(v) ? BC_FILE_PACK : kind_of_floats(v);
    options.ternary_outtype = s->kind == BC_FILE_PACK;
    options.llama_cpp_only_type = s->kind == BC_FILE_Q8_0 || has_block_pack(v);
    const bool has_tensors = v->result->n_tensors != 0;
    BC_TRY(bc_checkpoint_open(v->options->source, has_tensors, v->sink, &s->checkpoint, err));
    return choose_model(v, &options, err);
}
