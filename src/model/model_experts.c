/* SPDX-License-Identifier: MIT
 * Stacks of experts: the matrices of one projection of one layer, all experts, become one tensor
 * [ne0, ne1, n_expert]. A stack with a gap is never written. */
#include <stdlib.h>
#include <string.h>

#include "model/model_internal.h"

struct expert {
    uint32_t layer, expert;
    const struct bc_arch_tensor *row;
    size_t index; /* of the source tensor */
};

static int by_stack(const void *a, const void *b)
{
    const struct expert *x = a, *y = b;
    if (x->layer != y->layer) return x->layer < y->layer ? -1 : 1;
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    if (x->expert != y->expert) return x->expert < y->expert ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Collects the expert matrices, sorted by layer, projection, expert. Free with bc_free. */
static enum bitconv_status collect(struct bc_loading *load, struct expert **out, size_t *out_n,
                                   struct bitconv_error *err)
{
    size_t n = 0;
    struct expert *list = bc_alloc_array(load->ckpt->n_tensors, sizeof *list);
    if (list == NULL) return bc_fail_nomem(err, "list of experts");
    for (size_t i = 0; i < load->ckpt->n_tensors; i++) {
        const struct bc_match *match = &load->matches[i];
        if (match->row == NULL || match->row->role != BC_ROLE_EXPERT ||
            match->part != BC_MATCH_WEIGHT || match->layer >= load->model->hp.n_layers)
            continue;
        if (match->expert >= load->model->hp.n_expert)
            bc_finding(&load->findings, BITCONV_E_CORRUPT,
                       "%s: %s: expert %u, but the config says %u experts",
                       load->ckpt->tensors[i]->file, load->ckpt->tensors[i]->name,
                       (unsigned)match->expert, (unsigned)load->model->hp.n_expert);
        else
            list[n++] = (struct expert){match->layer, match->expert, match->row, i};
    }
    qsort(list, n, sizeof *list, by_stack);
    *out = list;
    *out_n = n;
    return BITCONV_OK;
}

/* Reports experts [from, to) of a stack as missing; long gaps are counted, not walked. */
static void report_gap(struct bc_loading *load, const struct expert *stack, uint32_t from,
                       uint32_t to, struct bc_finding_kind *missing)
{
    struct bc_arena arena = {NULL};
    for (uint32_t e = from; e < to; e++) {
        if (!bc_finding_wanted(missing)) {
            missing->n += to - e - 1;
            break;
        }
        const char *name = bc_pattern_fill(&arena, stack->row->hf[0], stack->layer, e, ".weight");
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: %s: missing: layer %u has no such matrix of expert %u", load->ckpt->dir,
                   name != NULL ? name : stack->row->hf[0], (unsigned)stack->layer, (unsigned)e);
    }
    bc_arena_release(&arena);
}

/* Reports which experts a stack of `n` matrices (sorted) lacks or has twice; true when complete. */
static bool check_stack(struct bc_loading *load, const struct expert *stack, size_t n,
                        struct bc_finding_kind *missing)
{
    bool complete = n == load->model->hp.n_expert;
    uint32_t next = 0; /* the expert that should come now */
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && stack[i].expert == stack[i - 1].expert) {
            complete = false;
            bc_finding(&load->findings, BITCONV_E_CORRUPT,
                       "%s: %s: a second tensor for layer %u, expert %u", load->ckpt->dir,
                       load->ckpt->tensors[stack[i].index]->name, (unsigned)stack->layer,
                       (unsigned)stack[i].expert);
            continue;
        }
        if (stack[i].expert > next) report_gap(load, stack, next, stack[i].expert, missing);
        next = stack[i].expert + 1;
    }
    report_gap(load, stack, next, load->model->hp.n_expert, missing);
    return complete;
}

/* The experts of a layer that cannot be stacked because others are missing. */
static void report_unprocessed(struct bc_loading *load, const struct expert *list, size_t n)
{
    enum { MAX_TEXT = 600 }; /* a finding is at most 1023 bytes */
    struct bc_buf names = {0};
    size_t shown = 0;
    while (shown < n && names.size < MAX_TEXT) {
        const char *last = strrchr(list[shown].row->hf[0], '.');
        bc_buf_printf(&names, "%sexpert %u %s", shown == 0 ? "" : ", ",
                      (unsigned)list[shown].expert, last != NULL ? last + 1 : "");
        shown++;
    }
    if (shown < n) bc_buf_printf(&names, " and %zu more", n - shown);
    bc_finding(&load->findings, BITCONV_E_CORRUPT,
               "%s: layer %u: unprocessed experts (their stacks are incomplete): %s",
               load->ckpt->dir, (unsigned)list->layer, bc_buf_str(&names));
    bc_buf_release(&names);
}

/* One complete stack as a weight. */
static enum bitconv_status add_stack(struct bc_loading *load, const struct expert *list, size_t pos,
                                     struct bitconv_error *err)
{
    struct bc_model *model = load->model;
    const struct bc_match *match = &load->matches[list->index];
    const uint64_t rows = bc_dim_size(&model->hp, list->row->shape[0]);
    const uint64_t cols = bc_dim_size(&model->hp, list->row->shape[1]);
    struct bc_weight w = {.role = BC_ROLE_LINEAR,
                          .n_dims = 3,
                          .ne = {cols, rows, model->hp.n_expert, 1},
                          .n_sources = model->hp.n_expert,
                          .permute_heads = 0};
    w.name = bc_match_gguf_name(match, &model->arena);
    w.sources = bc_arena_alloc(&model->arena, w.n_sources, sizeof *w.sources);
    if (w.name == NULL || w.sources == NULL) return bc_fail_nomem(err, "list of weights");
    for (uint32_t e = 0; e < w.n_sources; e++) {
        bool packed = false;
        const struct bitconv_tensor *t = load->ckpt->tensors[list[e].index];
        w.sources[e] = bc_model_source(load, list[e].index, rows, cols, &packed);
        w.keep = w.keep || bc_model_is_kept(load, t->name);
        if (e != 0 && packed != w.packed)
            bc_finding(&load->findings, BITCONV_E_CORRUPT,
                       "%s: %s: experts of one stack are packed and unpacked", t->file, t->name);
        w.packed = packed;
    }
    /* stacks of a layer keep the order of the table */
    return bc_model_pend(load, &w, pos, (unsigned)(list->row - model->arch->tensors), err);
}

/* All stacks of one layer: they take the place of its last expert. */
static enum bitconv_status map_layer(struct bc_loading *load, const struct expert *list, size_t n,
                                     struct bc_finding_kind *missing, struct bitconv_error *err)
{
    bool complete = true;
    size_t pos = 0;
    for (size_t i = 0; i < n; i++)
        if (list[i].index > pos) pos = list[i].index;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && list[end].row == list[i].row;)
            end++;
        complete = check_stack(load, list + i, end - i, missing) && complete;
    }
    if (!complete) {
        report_unprocessed(load, list, n);
        return BITCONV_OK;
    }
    for (size_t i = 0; i < n; i += load->model->hp.n_expert)
        BC_TRY(add_stack(load, list + i, pos, err));
    return BITCONV_OK;
}

enum bitconv_status bc_model_map_experts(struct bc_loading *load, struct bitconv_error *err)
{
    struct bc_finding_kind missing = {.what = "matrices of experts missing"};
    struct expert *list = NULL;
    size_t n = 0;
    enum bitconv_status status = BITCONV_OK;
    if (load->model->hp.n_expert == 0) return BITCONV_OK;
    BC_TRY(collect(load, &list, &n, err));
    for (size_t i = 0, end; i < n && status == BITCONV_OK; i = end) {
        for (end = i; end < n && list[end].layer == list[i].layer;)
            end++;
        status = map_layer(load, list + i, end - i, &missing, err);
    }
    bc_finding_rest(&load->findings, &missing);
    bc_free(list);
    return status;
}
