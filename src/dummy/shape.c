/* SPDX-License-Identifier: MIT
 * Shapes of synthetic models.
 *
 * Width and depth follow from the number of parameters: for every width in steps of a fixed unit the
 * depth is what comes nearest to the number; among widths that come within a few per cent the one
 * wins whose ratio to the depth is nearest to that of published models of the size (32 at 1M, 64 at
 * 100M, 80 at 1B, 112 at 100B). */
#include "dummy/shape.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/nearest.h"

enum {
    MIN_WIDTH = 64,
    MAX_WIDTH = 32768,
    MAX_STATED_WIDTH = 1 << 20,
    MAX_EXPERTS = 512,
    MIN_HEADS = 4, /* narrower heads before fewer ones */
    MIN_HEAD_DIM = 32,
    CONV_PERIOD = 3, /* of models with short convolutions every third layer has attention */
    CONV_LENGTH = 3,
    TOKEN_TYPES = 2,
    EMBEDDING_SHARE = 5 /* a vocabulary below the family's takes about a fifth of a small model */
};
static const double close_enough = 0.02, tolerable = 0.05; /* off the number asked for */
#define MIN_PARAMETERS 1e5
#define MAX_PARAMETERS 1e12

void bc_dummy_model_release(struct bc_dummy_model *model)
{
    bc_arena_release(&model->arena);
}

/* ---- tensors ---- */

/* Is the row one that this model has? */
static bool has_row(const struct bc_dummy_model *model, const struct bc_arch_tensor *row)
{
    if (row->role == BC_ROLE_SKIP || row->role == BC_ROLE_UNUSED) return false;
    return row->role != BC_ROLE_OUTPUT || (!model->hp.tied && !model->class_row->backbone);
}

struct visitor {
    enum bitconv_status (*visit)(void *ctx, const struct bc_dummy_item *item,
                                 struct bitconv_error *err);
    void *ctx;
};

/* The tensors of a row in one layer. */
static enum bitconv_status visit_layer(const struct bc_dummy_model *model,
                                       const struct bc_arch_tensor *row, uint32_t layer,
                                       const struct visitor *v, struct bitconv_error *err)
{
    const struct bc_hparams *hp = &model->hp;
    const bool vector = row->shape[1] == BC_N_NONE;
    const uint32_t n = row->role == BC_ROLE_EXPERT ? hp->n_expert : 1;
    struct bc_dummy_item item = {.row = row, .layer = layer};
    for (uint32_t e = 0; e < n; e++) {
        item.part = BC_MATCH_WEIGHT;
        item.expert = e;
        item.rows = bc_dim_size(hp, row->shape[0]);
        item.cols = vector ? 0 : bc_dim_size(hp, row->shape[1]);
        BC_TRY(v->visit(v->ctx, &item, err));
    }
    item.cols = 0;
    item.expert = 0;
    if (bc_arch_has_bias(model->arch, row)) {
        item.part = BC_MATCH_BIAS;
        BC_TRY(v->visit(v->ctx, &item, err));
    }
    if (model->kind->norm_in && row->role == BC_ROLE_LINEAR) {
        item.part = BC_MATCH_NORM_IN;
        item.rows = bc_dim_size(hp, row->shape[1]);
        BC_TRY(v->visit(v->ctx, &item, err));
    }
    return BITCONV_OK;
}

enum bitconv_status bc_dummy_each(const struct bc_dummy_model *model,
                                  enum bitconv_status (*visit)(void *ctx,
                                                               const struct bc_dummy_item *item,
                                                               struct bitconv_error *err),
                                  void *ctx, struct bitconv_error *err)
{
    const struct visitor v = {visit, ctx};
    for (const struct bc_arch_tensor *row = model->arch->tensors; row->role != BC_ROLE_NONE;
         row++) {
        const enum bc_layers layers = bc_pattern_layers(row->hf[0]);
        const uint32_t n_layers = layers == BC_LAYERS_NONE ? 1 : model->hp.n_layers;
        if (!has_row(model, row)) continue;
        for (uint32_t layer = 0; layer < n_layers; layer++)
            if (bc_layer_is_one_of(&model->hp, layers, layer))
                BC_TRY(visit_layer(model, row, layer, &v, err));
    }
    return BITCONV_OK;
}

static enum bitconv_status add_values(void *ctx, const struct bc_dummy_item *item,
                                      struct bitconv_error *err)
{
    uint64_t *sum = ctx, n = 0;
    if (bc_mul_u64(item->rows, item->cols == 0 ? 1 : item->cols, &n) && bc_add_u64(*sum, n, sum))
        return BITCONV_OK;
    return bc_fail(err, BITCONV_E_LIMIT, "the number of parameters exceeds 64 bits");
}

static enum bitconv_status count(const struct bc_dummy_model *model, uint64_t *out,
                                 struct bitconv_error *err)
{
    *out = 0;
    return bc_dummy_each(model, add_values, out, err);
}

/* ---- proportions ---- */

/* What the caller fixed, and what the search looks for. */
struct search {
    const struct bitconv_dummy_options *options;
    struct bc_dummy_model *model;
    double wanted; /* parameters; 0: none asked for */
};

static uint32_t either(uint32_t stated, uint32_t other)
{
    return stated != 0 ? stated : other;
}

/* Widths are multiples of this: whole blocks of the packs where the size allows it. */
static uint32_t unit_of(uint32_t width)
{
    if (width < 128) return 64;
    return width < 512 ? 128 : 256;
}

static uint32_t ff_width(const struct bc_dummy_kind *kind, uint32_t width)
{
    const double unit = unit_of(width);
    const double blocks = floor((double)kind->ff_ratio * width / unit + 0.5);
    return (uint32_t)(unit * (blocks < 1 ? 1 : blocks));
}

static uint32_t head_width(const struct bc_dummy_kind *kind, uint32_t width)
{
    uint32_t dim = kind->head_dim;
    if (width % dim == 0 && width / dim >= MIN_HEADS) return dim;
    for (dim = 128; dim > MIN_HEAD_DIM && (width % dim != 0 || width / dim < MIN_HEADS);)
        dim /= 2;
    return dim;
}

/* As many query heads share a key head as the family does, where that divides. */
static uint32_t kv_heads(const struct bc_dummy_kind *kind, uint32_t n_head)
{
    uint32_t group = kind->group < n_head ? kind->group : n_head;
    while (group > 1 && n_head % group != 0)
        group--;
    return group > 0 ? n_head / group : 1;
}

/* The family's vocabulary, or of a small model the power of two that takes about a fifth of it. */
static uint32_t vocab_size(const struct search *s, uint32_t width)
{
    const uint32_t full = s->model->kind->vocab;
    uint32_t vocab = BC_DUMMY_MIN_VOCAB;
    const double room = s->wanted / EMBEDDING_SHARE / width;
    if (s->wanted == 0) return full;
    while (vocab < full && 2.0 * vocab <= room)
        vocab *= 2;
    return room >= full || vocab > full ? full : vocab;
}

/* Everything that follows from the width. */
static void set_width(const struct search *s, uint32_t width)
{
    const struct bitconv_dummy_options *o = s->options;
    const struct bc_dummy_kind *kind = s->model->kind;
    struct bc_hparams *hp = &s->model->hp;
    hp->n_embd = width;
    hp->n_ff = either(o->ffn, ff_width(kind, width));
    hp->head_dim_k =
        either(o->head_dim,
               o->heads != 0 && width % o->heads == 0 ? width / o->heads : head_width(kind, width));
    hp->n_head = either(o->heads, width / hp->head_dim_k > 0 ? width / hp->head_dim_k : 1);
    hp->n_head_kv = either(o->kv_heads, kv_heads(kind, hp->n_head));
    hp->n_vocab = either(o->vocab, vocab_size(s, width));
    hp->head_dim_v = hp->head_dim_k;
}

/* The depth that comes nearest to the wanted number. */
static enum bitconv_status set_depth(const struct search *s, struct bitconv_error *err)
{
    enum { SAMPLE = 4 * CONV_PERIOD };
    struct bc_hparams *hp = &s->model->hp;
    uint64_t bare = 0, sample = 0;
    hp->n_layers = 0;
    BC_TRY(count(s->model, &bare, err));
    hp->n_layers = SAMPLE;
    BC_TRY(count(s->model, &sample, err));
    const double layers = (s->wanted - (double)bare) / ((double)(sample - bare) / SAMPLE);
    if (layers < 1.5)
        hp->n_layers = 1;
    else
        hp->n_layers =
            layers < BC_DUMMY_MAX_LAYERS ? (uint32_t)floor(layers + 0.5) : BC_DUMMY_MAX_LAYERS;
    return BITCONV_OK;
}

/* How good the shape at hand is: the smaller the better. A factor of two in the proportions weighs as
 * much as four per cent of the parameters beyond the first two. */
static double badness(const struct search *s, uint64_t parameters)
{
    const struct bc_hparams *hp = &s->model->hp;
    const double off = fabs((double)parameters / s->wanted - 1.0);
    const double ratio = fmax(16.0 * log10(s->wanted) - 64.0, 16.0);
    const double shape = fabs(log2((double)hp->n_embd / hp->n_layers / ratio));
    if (off > tolerable) return 1000.0 + off;
    return shape + fmax(off - close_enough, 0.0) / (2.0 * close_enough);
}

static enum bitconv_status try_width(const struct search *s, uint32_t width, double *best,
                                     struct bc_hparams *out, struct bitconv_error *err)
{
    set_width(s, width);
    s->model->hp.n_layers = s->options->layers;
    if (s->options->layers == 0) BC_TRY(set_depth(s, err));
    BC_TRY(count(s->model, &s->model->parameters, err));
    const double score = badness(s, s->model->parameters);
    if (*best >= 0 && score >= *best) return BITCONV_OK;
    *best = score;
    *out = s->model->hp;
    return BITCONV_OK;
}

static enum bitconv_status find_shape(const struct search *s, struct bitconv_error *err)
{
    struct bc_hparams found = s->model->hp;
    const uint32_t stated = s->options->hidden;
    double best = -1;
    if (stated != 0) {
        BC_TRY(try_width(s, stated, &best, &found, err));
    } else {
        for (uint32_t width = MIN_WIDTH; width <= MAX_WIDTH; width += unit_of(width))
            BC_TRY(try_width(s, width, &best, &found, err));
    }
    s->model->hp = found;
    return BITCONV_OK;
}

static void take_published(const struct search *s, const struct bc_dummy_published *p)
{
    const struct bitconv_dummy_options *o = s->options;
    struct bc_hparams *hp = &s->model->hp;
    hp->n_layers = either(o->layers, p->n_layers);
    hp->n_embd = either(o->hidden, p->n_embd);
    hp->n_ff = either(o->ffn, p->n_ff);
    hp->n_head = either(o->heads, p->n_head);
    hp->n_head_kv = either(o->kv_heads, p->n_head_kv);
    hp->head_dim_k = hp->head_dim_v = either(o->head_dim, p->head_dim);
    hp->n_vocab = either(o->vocab, p->n_vocab);
}

/* ---- the model ---- */

/* "125M", "1.5B": a number of parameters; 0 when it is none. */
static double parse_size(const char *text)
{
    static const struct {
        const char *suffix;
        double factor;
    } units[] = {{"", 1}, {"K", 1e3}, {"M", 1e6}, {"B", 1e9}};
    char *end;
    if (text[0] < '0' || text[0] > '9' || strspn(text, "0123456789.") == 0) return 0;
    const double number = strtod(text, &end);
    if ((size_t)(end - text) != strspn(text, "0123456789.")) return 0;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcasecmp(end, units[i].suffix) == 0) return number * units[i].factor;
    return 0;
}

static enum bitconv_status find_kind(const char *name, struct bc_dummy_model *model,
                                     struct bitconv_error *err)
{
    struct bc_buf list = {0};
    struct bc_nearest nearest = {.word = name != NULL ? name : ""};
    char hint[BC_NEAREST_HINT_SIZE];
    if (name != NULL) model->kind = bc_dummy_kind_find(name);
    if (model->kind != NULL) {
        model->arch = bc_arch_by_class(model->kind->class_name, &model->class_row);
        if (model->arch != NULL) return BITCONV_OK;
        return bc_fail(err, BITCONV_E_BUG, "%s: no family has its class %s", name,
                       model->kind->class_name);
    }
    for (size_t i = 0; bc_dummy_kind_at(i) != NULL; i++) {
        bc_buf_printf(&list, "%s%s", i > 0 ? ", " : "", bc_dummy_kind_at(i)->name);
        bc_nearest_offer(&nearest, bc_dummy_kind_at(i)->name);
    }
    const enum bitconv_status status =
        bc_fail(err, BITCONV_E_ARG, "--arch: '%s' is not one of: %s%s", nearest.word,
                bc_buf_str(&list), bc_nearest_hint(&nearest, "", hint, sizeof hint));
    bc_buf_release(&list);
    return status;
}

/* Members that do not depend on the size. */
static enum bitconv_status set_constants(const struct bitconv_dummy_options *o,
                                         struct bc_dummy_model *model, struct bitconv_error *err)
{
    const struct bc_arch_traits *traits = &model->arch->traits;
    struct bc_hparams *hp = &model->hp;
    hp->n_ctx = model->kind->context;
    hp->tied = model->kind->tied;
    hp->n_token_types = TOKEN_TYPES;
    hp->conv_l_cache = CONV_LENGTH;
    hp->n_expert = model->kind->n_expert;
    hp->n_expert_used = model->kind->n_expert_used;
    if (hp->n_expert > 0) hp->n_expert = either(o->experts, hp->n_expert);
    if (hp->n_expert_used > hp->n_expert) hp->n_expert_used = hp->n_expert;
    if (o->experts != 0 && model->kind->n_expert == 0)
        return bc_fail(err, BITCONV_E_ARG, "--experts: models of kind %s have none",
                       model->kind->name);
    if (!traits->conv_layers) return BITCONV_OK;
    hp->layer_is_conv = bc_arena_alloc(&model->arena, BC_DUMMY_MAX_LAYERS, 1);
    if (hp->layer_is_conv == NULL) return bc_fail_nomem(err, "layers of the model");
    for (uint32_t i = 0; i < BC_DUMMY_MAX_LAYERS; i++)
        hp->layer_is_conv[i] = i % CONV_PERIOD != CONV_PERIOD - 1;
    return BITCONV_OK;
}

static enum bitconv_status check_limits(const struct bitconv_dummy_options *o,
                                        struct bitconv_error *err)
{
    const struct {
        const char *name;
        uint32_t value, min, max;
    } limits[] = {{"layers", o->layers, 1, BC_DUMMY_MAX_LAYERS},
                  {"hidden", o->hidden, 1, MAX_STATED_WIDTH},
                  {"ffn", o->ffn, 1, MAX_STATED_WIDTH},
                  {"heads", o->heads, 1, 1024},
                  {"kv-heads", o->kv_heads, 1, 1024},
                  {"head-dim", o->head_dim, 2, 4096},
                  {"vocab", o->vocab, BC_DUMMY_MIN_VOCAB, BC_DUMMY_MAX_VOCAB},
                  {"experts", o->experts, 1, MAX_EXPERTS}};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (limits[i].value != 0 &&
            (limits[i].value < limits[i].min || limits[i].value > limits[i].max))
            return bc_fail(err, BITCONV_E_ARG,
                           "--%s: %" PRIu32 " is not between %" PRIu32 " and %" PRIu32,
                           limits[i].name, limits[i].value, limits[i].min, limits[i].max);
    return BITCONV_OK;
}

/* What a model of the family must be; proportions of our own always are. */
static enum bitconv_status check_shape(const struct bc_dummy_model *model,
                                       struct bitconv_error *err)
{
    const struct bc_hparams *hp = &model->hp;
    const bool own_dim = bc_dim_size(hp, BC_N_Q) == hp->n_embd;
    if (hp->n_head % hp->n_head_kv != 0)
        return bc_fail(err, BITCONV_E_ARG,
                       "--kv-heads: %" PRIu32 " do not divide %" PRIu32 " heads", hp->n_head_kv,
                       hp->n_head);
    if (hp->head_dim_k % 2 != 0)
        return bc_fail(err, BITCONV_E_ARG,
                       "--head-dim: %" PRIu32 " is odd, rotary positions need pairs",
                       hp->head_dim_k);
    if (!own_dim && model->arch->traits.positions == BC_POSITIONS_LEARNED)
        return bc_fail(err, BITCONV_E_ARG,
                       "--head-dim: %" PRIu32 " heads of %" PRIu32
                       " are not the hidden size %" PRIu32 ", which the %s family needs",
                       hp->n_head, hp->head_dim_k, hp->n_embd, model->arch->name);
    return BITCONV_OK;
}

enum bitconv_status bc_dummy_model_make(const struct bitconv_dummy_options *options,
                                        struct bc_dummy_model *out, struct bitconv_error *err)
{
    struct search s = {.options = options, .model = out};
    const struct bc_dummy_published *published = NULL;
    BC_TRY(find_kind(options->arch, out, err));
    BC_TRY(check_limits(options, err));
    BC_TRY(set_constants(options, out, err));
    if (options->size != NULL) {
        published = bc_dummy_published_find(out->kind->name, options->size);
        s.wanted = parse_size(options->size);
        if (published == NULL && (s.wanted < MIN_PARAMETERS || s.wanted > MAX_PARAMETERS))
            return bc_fail(err, BITCONV_E_ARG,
                           "--size: '%s' is not a number of parameters between 100K and 1000B "
                           "(125M, 1.5B), nor a published shape of kind %s",
                           options->size, out->kind->name);
    } else if (options->layers == 0 || options->hidden == 0) {
        return bc_fail(err, BITCONV_E_ARG,
                       "--size is missing (125M, 1.5B, 2B-4T), or --layers and --hidden");
    }
    if (published != NULL) {
        take_published(&s, published);
    } else if (options->size != NULL) {
        BC_TRY(find_shape(&s, err));
    } else {
        set_width(&s, options->hidden);
        out->hp.n_layers = options->layers;
    }
    BC_TRY(check_shape(out, err));
    return count(out, &out->parameters, err);
}
