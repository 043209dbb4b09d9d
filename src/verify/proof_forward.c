/* SPDX-License-Identifier: MIT
 * The forward proof: what the file computes is what the checkpoint computes, bit for bit, with float
 * and with int8 activations; without a checkpoint, that the file computes finite numbers. */
#include <inttypes.h>
#include <string.h>

#include "model/model_gguf.h"
#include "verify/forward.h"
#include "verify/proofs.h"

/* ---- failures ---- */

/* The tensor that an engine's message is about ("FILE: TENSOR: ..."). */
static size_t subject(const struct bc_verifier *v, const char *text)
{
    const size_t n_path = strlen(v->path);
    if (strncmp(text, v->path, n_path) != 0 || strncmp(text + n_path, ": ", 2) != 0)
        return BC_NO_TENSOR;
    text += n_path + 2;
    for (size_t i = 0; i < v->result->n_tensors; i++) {
        const size_t len = strlen(v->result->tensors[i].name);
        if (strncmp(text, v->result->tensors[i].name, len) == 0 && text[len] == ':') return i;
    }
    return BC_NO_TENSOR;
}

enum bitconv_status bc_forward_failed(struct bc_verifier *v, struct bitconv_proof *proof,
                                      const struct bitconv_error *why, struct bitconv_error *err)
{
    switch (why->status) {
    case BITCONV_E_CORRUPT:
    case BITCONV_E_UNSUPPORTED:
    case BITCONV_E_LIMIT:
    case BITCONV_E_MISMATCH:
        break;
    default:
        return bc_fail(err, why->status, "%s", why->text);
    }
    /* What bitconv cannot run says nothing about the file, unless its checkpoint can be run. */
    if (why->status == BITCONV_E_UNSUPPORTED && v->source == NULL)
        bc_not_run(v, proof, "%s", why->text);
    else
        bc_problem(v, proof, subject(v, why->text), "%s", why->text);
    return BITCONV_OK;
}

/* ---- the source path ---- */

/* The source proof's own rules say which floats hold trit * scale, so that a file which breaks them
 * cannot make the checkpoint follow. */
struct carrying {
    struct bc_carry_file file;
    const struct bc_source_state *source;
};

static struct bc_carry carry(const void *user, const struct bc_model *model,
                             const struct bc_weight *weight)
{
    const struct carrying *c = user;
    struct bc_carry how = bc_carry_as_file(&c->file, model, weight);
    if (!how.packed && how.blocks == NULL)
        how.ternary = bc_expects_ternary_values(c->source, weight);
    return how;
}

/* A tensor of a type whose rounding the source path does not repeat; NULL: there is none. */
static const struct bitconv_verified_tensor *foreign_type(const struct bc_verifier *v)
{
    static const char *const ours[] = {"F32", "F16", "BF16", "Q8_0"};
    for (size_t i = 0; i < v->result->n_tensors; i++) {
        bool known = v->tensors[i].packed.format != NULL;
        for (size_t k = 0; k < sizeof ours / sizeof *ours; k++)
            known = known || strcmp(v->result->tensors[i].type, ours[k]) == 0;
        if (!known) return &v->result->tensors[i];
    }
    return NULL;
}

/* What int8 activations are good for. */
enum int8_use {
    INT8_NONE,  /* no weights that they are multiplied with as integers */
    INT8_ALONE, /* blocks with scales of their own, of which the source path has only the floats */
    INT8_COMPARED
};

static enum int8_use int8_use(const struct bc_verifier *v)
{
    enum int8_use use = INT8_NONE;
    for (size_t i = 0; i < v->result->n_tensors; i++) {
        const struct bc_tensor_proof *tp = &v->tensors[i];
        if (tp->packed.format == NULL || !tp->scanned) continue;
        if (tp->scan.blocks.form == BC_SCALES_IN_MANY_BLOCKS) return INT8_ALONE;
        use = INT8_COMPARED;
    }
    return use;
}

/* ---- comparing ---- */

/* One way to run the tokens. */
struct pass {
    enum bc_mode mode;
    bool other_rotation; /* by the RoPE factors that this number of tokens does not use */
};

static const struct pass plain = {BC_MODE_FLOAT, false}, integers = {BC_MODE_INT8, false},
                         other = {BC_MODE_FLOAT, true};

static const char *pass_name(const struct bc_forward *f, const struct pass *pass)
{
    if (pass->other_rotation)
        return f->n_tokens > f->hp.rope_orig_ctx ? "float activations, short RoPE factors"
                                                 : "float activations, long RoPE factors";
    return pass->mode == BC_MODE_INT8 ? "int8 activations" : "float activations";
}

static void set_pass(struct bitconv_engine *engine, const struct pass *pass)
{
    engine->mode = pass->mode;
    engine->other_rotation = pass->other_rotation;
}

static bool has_longrope(const struct bitconv_engine *engine)
{
    return engine->graph->long_rotation.dims > 0;
}

/* What a result shows that is not named after a weight, for people who look for the fault. */
static const char *hint(const char *name)
{
    static const struct {
        const char *end, *text;
    } hints[] = {
        {"embedding", " (rows of token_embd, and what is added to them)"},
        {".attn", " (the heads' outputs: RoPE, windows, scaling of scores, norms of heads)"},
        {".ffn_gated", " (the activation function)"},
        {".ffn_experts", " (matrices of experts, their order, their shares)"},
        {".ffn_act", " (the norm behind the activation function)"},
        {"pooled", " (pooling)"}};
    const size_t len = strlen(name);
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        const size_t n = strlen(hints[i].end);
        if (len >= n && strcmp(name + len - n, hints[i].end) == 0) return hints[i].text;
    }
    return "";
}

/* The weight that a result is named after, so that it is marked in the table. */
static size_t weight_of(const struct bc_verifier *v, const char *name)
{
    struct bc_buf weight = {0};
    bc_buf_printf(&weight, "%s.weight", name);
    const size_t index = weight.failed ? BC_NO_TENSOR : bc_tensor_index(v, bc_buf_str(&weight));
    bc_buf_release(&weight);
    return index;
}

static void report(struct bc_verifier *v, const struct bc_forward *f, struct bitconv_proof *proof,
                   const struct pass *pass, const struct bc_forward_difference *d)
{
    const size_t tensor = weight_of(v, d->name);
    const char *how = pass_name(f, pass);
    if (d->other_name[0] != '\0')
        bc_problem(v, proof, tensor, "%s: the checkpoint computes %s where the file computes %s",
                   how, d->name[0] != '\0' ? d->name : "nothing", d->other_name);
    else if (d->other_shape)
        bc_problem(v, proof, tensor,
                   "%s: %s: %" PRIu64 " values, the checkpoint gives another number", d->name, how,
                   d->n_values);
    else
        bc_problem(v, proof, tensor,
                   "%s%s: %s: %" PRIu64 " of %" PRIu64
                   " values differ, everything before is equal; the first, value %" PRIu64
                   " of token %" PRIu64 ", is %.9g, the checkpoint gives %.9g",
                   d->name, hint(d->name), how, d->n_different, d->n_values, d->index, d->token,
                   (double)d->second, (double)d->first);
}

/* Both paths in one way. */
static enum bitconv_status compare_pass(struct bc_verifier *v, struct bc_forward *f,
                                        struct bitconv_proof *proof, struct bitconv_engine *source,
                                        struct pass pass, struct bitconv_error *err)
{
    struct bc_forward_difference difference;
    struct bitconv_error why = {.status = BITCONV_OK};
    uint64_t n = 0;
    set_pass(source, &pass);
    set_pass(f->file, &pass);
    if (bc_forward_compare(v, f, source, f->file, &difference, &n, &why) != BITCONV_OK)
        BC_TRY(bc_forward_failed(v, proof, &why, err));
    else if (difference.found)
        report(v, f, proof, &pass, &difference);
    f->file->other_rotation = false;
    proof->checked += n;
    return BITCONV_OK;
}

/* The file alone in one way. */
static enum bitconv_status check_pass(struct bc_verifier *v, struct bc_forward *f,
                                      struct bitconv_proof *proof, struct pass pass,
                                      struct bitconv_error *err)
{
    struct bitconv_error why = {.status = BITCONV_OK};
    uint64_t n = 0;
    set_pass(f->file, &pass);
    if (bc_forward_check(v, f, f->file, &n, &why) != BITCONV_OK)
        BC_TRY(bc_forward_failed(v, proof, &why, err));
    f->file->other_rotation = false;
    proof->checked += n;
    return BITCONV_OK;
}

/* So many experts were computed for no token, in all layers. */
static uint64_t idle_experts(const struct bc_forward *f)
{
    const struct bc_graph *g = f->file->graph;
    const uint32_t n_expert = g->hp.n_expert;
    uint64_t n = 0;
    for (uint32_t i = 0; i < g->hp.n_layers && f->file->expert_ran != NULL; i++)
        for (uint32_t e = 0; e < n_expert && bc_linear_is(&g->layers[i].router); e++)
            n += !f->file->expert_ran[(size_t)i * n_expert + e];
    return n;
}

/* What the text could not show stands behind the outcome. */
static void conclude(struct bc_verifier *v, const struct bc_forward *f, struct bitconv_proof *proof,
                     enum int8_use int8, const char *outcome)
{
    struct bc_buf unseen = {0};
    const uint64_t n_idle = idle_experts(f);
    if (n_idle > 0)
        bc_buf_printf(&unseen, "; experts that no token chose, and that were not run: %" PRIu64,
                      n_idle);
    if (f->unseen_window != 0)
        bc_buf_printf(&unseen,
                      "; the sliding window of %" PRIu32
                      " tokens is longer than the text and cannot show",
                      f->unseen_window);
    bc_conclude(v, proof, "%s, %s activations%s: %" PRIu64 " intermediate results %s%s", f->what,
                int8 != INT8_NONE ? "float and int8" : "float",
                has_longrope(f->file) ? ", short and long RoPE factors" : "", proof->checked,
                outcome, bc_buf_str(&unseen));
    bc_buf_release(&unseen);
}

static enum bitconv_status against_source(struct bc_verifier *v, struct bc_forward *f,
                                          struct bitconv_proof *proof,
                                          const struct bitconv_engine_options *options,
                                          struct bitconv_error *err)
{
    const struct bc_source_state *s = v->source;
    const struct carrying carrying = {bc_carry_file_of(v->container.gguf, &v->stated), s};
    const enum int8_use int8 = int8_use(v);
    struct bitconv_engine *source = NULL;
    struct bitconv_error why = {.status = BITCONV_OK};
    struct bc_buf outcome = {0};
    f->total = f->hp.n_layers * (2u + (unsigned)int8);
    if (bc_engine_open_model(s->model, &s->weight_options, carry, &carrying, v->pool, options, NULL,
                             &source, &why) != BITCONV_OK)
        return bc_forward_failed(v, proof, &why, err);
    const bool longrope = has_longrope(source) || has_longrope(f->file);
    f->total += longrope ? 2 * f->hp.n_layers : 0;
    enum bitconv_status status = compare_pass(v, f, proof, source, plain, err);
    if (status == BITCONV_OK && longrope) status = compare_pass(v, f, proof, source, other, err);
    if (status == BITCONV_OK && int8 == INT8_COMPARED)
        status = compare_pass(v, f, proof, source, integers, err);
    else if (status == BITCONV_OK && int8 == INT8_ALONE)
        status = check_pass(v, f, proof, integers, err);
    bitconv_engine_close(source);
    BC_TRY(status);
    bc_buf_printf(&outcome, "equal to the checkpoint's bit for bit, the %s included",
                  f->hp.pooling >= 0 ? "embedding" : "logits of the last token");
    if (int8 == INT8_ALONE)
        bc_buf_puts(&outcome, "; those of int8, where blocks have scales of their own, finite");
    conclude(v, f, proof, int8, bc_buf_str(&outcome));
    bc_buf_release(&outcome);
    return BITCONV_OK;
}

static enum bitconv_status alone(struct bc_verifier *v, struct bc_forward *f,
                                 struct bitconv_proof *proof,
                                 const struct bitconv_verified_tensor *foreign,
                                 struct bitconv_error *err)
{
    const enum int8_use int8 = int8_use(v);
    struct bc_buf outcome = {0};
    f->total = f->hp.n_layers * (1u + (int8 != INT8_NONE) + has_longrope(f->file));
    BC_TRY(check_pass(v, f, proof, plain, err));
    if (has_longrope(f->file)) BC_TRY(check_pass(v, f, proof, other, err));
    if (int8 != INT8_NONE) BC_TRY(check_pass(v, f, proof, integers, err));
    bc_buf_puts(&outcome, "of the right shapes, all finite; ");
    if (foreign != NULL)
        bc_buf_printf(&outcome,
                      "not compared with the checkpoint, because convert does not write %s (%s)",
                      foreign->type, foreign->name);
    else
        bc_buf_puts(&outcome, "with --source DIR they are compared");
    conclude(v, f, proof, int8, bc_buf_str(&outcome));
    bc_buf_release(&outcome);
    return BITCONV_OK;
}

/* ---- the proof ---- */

/* Hyper-parameters and tokens, then the engine over the file. */
static enum bitconv_status open_file(struct bc_verifier *v, struct bc_forward *f,
                                     struct bitconv_engine_options *options,
                                     struct bitconv_proof *proof, struct bitconv_error *err)
{
    const struct bc_arch *arch;
    struct bitconv_error why = {.status = BITCONV_OK};
    if (bc_hparams_from_gguf(v->container.gguf, &f->arena, NULL, &arch, &f->hp, &why) != BITCONV_OK)
        return bc_forward_failed(v, proof, &why, err);
    BC_TRY(bc_forward_prompt(v, f, err));
    options->n_ctx = (uint32_t)f->n_tokens;
    if (bc_engine_open_gguf(v->container.gguf, &v->stated, v->pool, options, v->sink, &f->file,
                            &why) != BITCONV_OK)
        return bc_forward_failed(v, proof, &why, err);
    if (!f->file->graph->has_experts) return BITCONV_OK;
    f->file->expert_ran =
        bc_arena_alloc(&f->arena, (size_t)f->hp.n_layers * f->hp.n_expert, sizeof(bool));
    return f->file->expert_ran != NULL ? BITCONV_OK : bc_fail_nomem(err, "experts");
}

enum bitconv_status bc_prove_forward(struct bc_verifier *v, struct bitconv_proof *proof,
                                     struct bitconv_error *err)
{
    struct bitconv_engine_options options = {.cpu = v->options->cpu, .check = true};
    if (!v->options->forward) {
        bc_not_run(v, proof, "no --forward given");
        return BITCONV_OK;
    }
    if (v->result->n_tensors == 0) {
        bc_not_run(v, proof, "the file holds the vocabulary alone, no tensors");
        return BITCONV_OK;
    }
    v->forward = bc_alloc_array(1, sizeof *v->forward);
    if (v->forward == NULL) return bc_fail_nomem(err, "the forward proof");
    BC_TRY(open_file(v, v->forward, &options, proof, err));
    if (v->forward->file == NULL) return BITCONV_OK;
    const struct bitconv_verified_tensor *foreign = foreign_type(v);
    if (v->source != NULL && foreign == NULL)
        BC_TRY(against_source(v, v->forward, proof, &options, err));
    else
        BC_TRY(alone(v, v->forward, proof, v->source != NULL ? foreign : NULL, err));
    bc_progress(v->sink, "computing", v->forward->total, v->forward->total);
    return BITCONV_OK;
}

void bc_forward_close(struct bc_verifier *v)
{
    if (v->forward == NULL) return;
    bitconv_engine_close(v->forward->file);
    bc_arena_release(&v->forward->arena);
    bc_free(v->forward);
    v->forward = NULL;
}
