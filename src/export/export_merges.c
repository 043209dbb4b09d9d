/* SPDX-License-Identifier: MIT
 * Merges for vocabularies that come with scores only (SentencePiece-style BPE).
 *
 * Their reader joins the two neighbours whose text together has the best score. As a list of merges
 * that is: for every token, each way of cutting it into two tokens, in the order of the scores. A
 * tokenizer.json made from a tokenizer.model is just that; convert keeps of it the rank of the first
 * merge that makes each token. From ranks the list follows but for the order within a token's
 * merges, and for merges of tokens whose rank was overwritten (added tokens): these fill the gaps. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/utf8.h"
#include "export/export_vocab.h"

enum {
    MAX_TEXT = 256 /* of a token that is cut: real ones are shorter, and the cost is quadratic */
};

/* A token that merges make, and its place in the order. */
struct target {
    uint32_t id;
    float score;
};

struct splits {
    struct bc_export_merge cut[MAX_TEXT];
    size_t n;
};

/* Merges on the way into the list. */
struct deriving {
    struct bc_export_vocab *v;
    struct target *targets; /* in order */
    size_t n_targets;
    struct bc_map ranks;          /* merge (its 8 bytes in v->merges) -> rank */
    struct bc_export_merge *pool; /* merges of tokens that are made already */
    size_t n_pool, taken;
    uint64_t n_possible; /* all cuts of all tokens */
};

static bool can_be_part(const struct bc_export_token *t)
{
    return !t->padding && t->type != BC_TOKEN_BYTE;
}

/* Tokens that merges make: more than one character, and known by their score. */
static bool is_target(const struct bc_export_token *t)
{
    uint32_t cp = 0;
    return !t->padding && t->type == BC_TOKEN_NORMAL && t->len <= MAX_TEXT &&
           bc_utf8_decode(t->text, t->len, &cp) < t->len;
}

static int by_parts(const void *a, const void *b)
{
    const struct bc_export_merge *x = a, *y = b;
    if (x->left != y->left) return x->left < y->left ? -1 : 1;
    return x->right < y->right ? -1 : x->right > y->right;
}

/* Every way to cut a token into two, in the order of the ids (as transformers lists them). */
static void find_splits(const struct bc_export_vocab *v, uint32_t id, struct splits *out)
{
    const struct bc_export_token *t = &v->tokens[id];
    out->n = 0;
    if (t->len > MAX_TEXT) return;
    for (uint32_t at = 0;;) {
        uint32_t cp = 0;
        uint64_t left = 0, right = 0;
        at += (uint32_t)bc_utf8_decode(t->text + at, t->len - at, &cp);
        if (at >= t->len) break;
        if (!bc_map_get(&v->by_text, t->text, at, &left) ||
            !bc_map_get(&v->by_text, t->text + at, t->len - at, &right) ||
            !can_be_part(&v->tokens[left]) || !can_be_part(&v->tokens[right]))
            continue;
        out->cut[out->n++] = (struct bc_export_merge){(uint32_t)left, (uint32_t)right};
    }
    qsort(out->cut, out->n, sizeof *out->cut, by_parts);
}

static int by_score(const void *a, const void *b)
{
    const struct target *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static enum bitconv_status find_targets(struct deriving *d, struct bitconv_error *err)
{
    struct bc_export_vocab *v = d->v;
    struct splits splits;
    d->targets = bc_alloc_array(v->n, sizeof *d->targets);
    if (d->targets == NULL) return bc_fail_nomem(err, "merges");
    for (uint32_t id = 0; id < v->n; id++) {
        if (v->tokens[id].padding) continue;
        find_splits(v, id, &splits);
        d->n_possible += splits.n;
        if (is_target(&v->tokens[id]) && splits.n != 0)
            d->targets[d->n_targets++] = (struct target){id, v->tokens[id].score};
    }
    if (d->n_targets > 1) qsort(d->targets, d->n_targets, sizeof *d->targets, by_score);
    v->merges = bc_alloc_array((size_t)d->n_possible + 1, sizeof *v->merges);
    d->pool = bc_alloc_array((size_t)d->n_possible + 1, sizeof *d->pool);
    if (v->merges == NULL || d->pool == NULL) return bc_fail_nomem(err, "merges");
    return BITCONV_OK;
}

/* ---- by scores ---- */

static void list_all(struct deriving *d)
{
    struct splits splits;
    for (size_t i = 0; i < d->n_targets; i++) {
        find_splits(d->v, d->targets[i].id, &splits);
        for (size_t j = 0; j < splits.n; j++)
            d->v->merges[d->v->n_merges++] = splits.cut[j];
    }
}

/* ---- by ranks ---- */

static enum bitconv_status emit(struct deriving *d, const struct bc_export_merge *merge,
                                struct bitconv_error *err)
{
    struct bc_export_merge *at = &d->v->merges[d->v->n_merges];
    *at = *merge;
    if (bc_map_put(&d->ranks, (const char *)at, sizeof *at, d->v->n_merges, NULL) == BC_MAP_NOMEM)
        return bc_fail_nomem(err, "merges");
    d->v->n_merges++;
    return BITCONV_OK;
}

/* Of the tokens with score 0 at most one has rank 0, the others are made by no merge; the first of
 * two characters is taken for it. (There is none where the first merges make added tokens, whose
 * ranks are not known.) Takes the others out of the list. False when a rank is there twice or too
 * high for the merges there can be. */
static bool settle_ranks(struct deriving *d)
{
    const struct bc_export_vocab *v = d->v;
    size_t zeros = 0, first = 0;
    while (zeros < d->n_targets && d->targets[zeros].score == 0)
        zeros++;
    for (size_t i = zeros; i > 0; i--) {
        const struct bc_export_token *t = &v->tokens[d->targets[i - 1].id];
        if (bc_utf8_count(t->text, t->len) == 2) first = i - 1;
    }
    if (zeros > 1) {
        d->targets[zeros - 1] = d->targets[first];
        d->n_targets -= zeros - 1;
        memmove(d->targets, d->targets + zeros - 1, d->n_targets * sizeof *d->targets);
    }
    for (size_t i = 1; i < d->n_targets; i++)
        if (d->targets[i].score == d->targets[i - 1].score) return false;
    return d->n_targets > 0 && -(double)d->targets[d->n_targets - 1].score < (double)d->n_possible;
}

/* Merges of added tokens, whose own ranks are not known: usable anywhere. */
static void fill_pool(struct deriving *d)
{
    struct splits splits;
    for (uint32_t id = 0; id < d->v->n; id++) {
        const struct bc_export_token *t = &d->v->tokens[id];
        if (t->padding || (t->type != BC_TOKEN_CONTROL && t->type != BC_TOKEN_USER_DEFINED))
            continue;
        find_splits(d->v, id, &splits);
        for (size_t j = 0; j < splits.n; j++)
            d->pool[d->n_pool++] = splits.cut[j];
    }
}

/* The ids of a text's characters; 0 when one is no token. */
static size_t characters(const struct bc_export_vocab *v, const struct bc_export_token *t,
                         uint32_t ids[MAX_TEXT])
{
    size_t n = 0;
    for (uint32_t at = 0; at < t->len;) {
        uint32_t cp = 0;
        uint64_t id = 0;
        const size_t len = bc_utf8_decode(t->text + at, t->len - at, &cp);
        if (len == 0 || !bc_map_get(&v->by_text, t->text + at, len, &id)) return 0;
        ids[n++] = (uint32_t)id;
        at += (uint32_t)len;
    }
    return n;
}

/* The token that joining two gives, by text; UINT32_MAX when there is none. */
static uint32_t joined(const struct bc_export_vocab *v, uint32_t left, uint32_t right)
{
    const struct bc_export_token *l = &v->tokens[left], *r = &v->tokens[right];
    char text[2 * MAX_TEXT];
    uint64_t id = 0;
    if (l->len > MAX_TEXT || r->len > MAX_TEXT) return UINT32_MAX;
    memcpy(text, l->text, l->len);
    memcpy(text + l->len, r->text, r->len);
    return bc_map_get(&v->by_text, text, (size_t)l->len + r->len, &id) ? (uint32_t)id : UINT32_MAX;
}

/* How the merges so far cut a token: in a trained list the last step is the pair that the next merge
 * joins. False when they leave more than two parts. */
static bool cut_by_merging(const struct deriving *d, uint32_t id, struct bc_export_merge *out)
{
    uint32_t ids[MAX_TEXT];
    size_t n = characters(d->v, &d->v->tokens[id], ids);
    while (n > 2) {
        uint64_t best = UINT64_MAX, rank = 0;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            const struct bc_export_merge pair = {ids[i], ids[i + 1]};
            if (!bc_map_get(&d->ranks, (const char *)&pair, sizeof pair, &rank) || rank >= best)
                continue;
            best = rank;
            at = i;
        }
        const uint32_t product =
            best != UINT64_MAX ? joined(d->v, ids[at], ids[at + 1]) : UINT32_MAX;
        if (product == UINT32_MAX) return false;
        ids[at] = product;
        memmove(ids + at + 1, ids + at + 2, (n - at - 2) * sizeof *ids);
        n--;
    }
    if (n == 2) *out = (struct bc_export_merge){ids[0], ids[1]};
    return n == 2;
}

/* The merges of a token at its rank, `room` of them; the rest goes to the pool. Where not all fit,
 * the one that the merges before lead to comes first. */
static enum bitconv_status list_token(struct deriving *d, uint32_t id, uint64_t room,
                                      struct bitconv_error *err)
{
    struct splits splits;
    struct bc_export_merge likely;
    find_splits(d->v, id, &splits);
    if (room < splits.n && cut_by_merging(d, id, &likely))
        for (size_t j = 0; j < splits.n; j++) {
            if (by_parts(&splits.cut[j], &likely) != 0) continue;
            splits.cut[j] = splits.cut[0];
            splits.cut[0] = likely;
            break;
        }
    for (size_t j = 0; j < splits.n; j++) {
        if (j < room)
            BC_TRY(emit(d, &splits.cut[j], err));
        else
            d->pool[d->n_pool++] = splits.cut[j];
    }
    return BITCONV_OK;
}

static enum bitconv_status list_ranked(struct deriving *d, bool *out_ok, struct bitconv_error *err)
{
    *out_ok = settle_ranks(d);
    if (*out_ok) fill_pool(d);
    for (size_t i = 0; i < d->n_targets && *out_ok; i++) {
        const uint64_t rank = (uint64_t)-d->targets[i].score;
        const uint64_t next = i + 1 < d->n_targets ? (uint64_t)-d->targets[i + 1].score : rank + 1;
        while (d->v->n_merges < rank && d->taken < d->n_pool)
            BC_TRY(emit(d, &d->pool[d->taken++], err));
        *out_ok = d->v->n_merges == rank;
        if (*out_ok) BC_TRY(list_token(d, d->targets[i].id, next - rank, err));
    }
    return BITCONV_OK;
}

enum bitconv_status bc_export_derive_merges(struct bc_export_vocab *v, bool ranks, bool *out_ok,
                                            struct bitconv_error *err)
{
    struct deriving d = {.v = v};
    bc_free(v->merges);
    v->merges = NULL;
    v->n_merges = 0;
    *out_ok = true;
    enum bitconv_status status = find_targets(&d, err);
    if (status == BITCONV_OK && ranks) status = list_ranked(&d, out_ok, err);
    if (status == BITCONV_OK && !ranks) list_all(&d);
    bc_map_release(&d.ranks);
    bc_free(d.targets);
    bc_free(d.pool);
    return status;
}
