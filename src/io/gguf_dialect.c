/* SPDX-License-Identifier: MIT
 * Whose tensor type ids a GGUF uses, decided from evidence (formats/gguf.md, "Dialects").
 *
 * Ids 36 to 42, 142 and 143 mean different things in different programs. A tensor's offset and its
 * successor's leave it a span of bytes; a meaning fits when the size that it needs fills that span
 * up to the alignment. A dialect is possible when all tensors of disputed ids fit. */
#include "io/gguf_impl.h"

#include <inttypes.h>
#include <string.h>

static const char *const names[BITCONV_N_DIALECTS] = {"ambiguous", "upstream", "bitnet",
                                                      "bitnet-rebased", "prism"};

const char *bitconv_dialect_name(enum bitconv_dialect dialect)
{
    return (unsigned)dialect < BITCONV_N_DIALECTS ? names[dialect] : "?";
}

bool bitconv_dialect_from_name(const char *name, enum bitconv_dialect *out)
{
    if (name == NULL) return false;
    for (unsigned d = BITCONV_DIALECT_UPSTREAM; d < BITCONV_N_DIALECTS; d++) {
        if (strcmp(name, names[d]) != 0) continue;
        *out = (enum bitconv_dialect)d;
        return true;
    }
    return false;
}

/* A set of dialects: bit 1 << enum bitconv_dialect. */
enum {
    SET_UPSTREAM = 1u << BITCONV_DIALECT_UPSTREAM,
    SET_BITNET = 1u << BITCONV_DIALECT_BITNET,
    SET_REBASED = 1u << BITCONV_DIALECT_BITNET_REBASED,
    SET_PRISM = 1u << BITCONV_DIALECT_PRISM,
    SET_ALL = SET_UPSTREAM | SET_BITNET | SET_REBASED | SET_PRISM
};

enum { N_SLOTS = 16 };

/* What the spans say. Indexed by dialect where nothing else is said. */
struct tally {
    size_t n; /* tensors of disputed ids */
    size_t fits[BITCONV_N_DIALECTS];
    size_t fits_loosely[BITCONV_N_DIALECTS]; /* small enough, but with bytes to spare */
    const struct bitconv_gguf_tensor *misfit[BITCONV_N_DIALECTS]; /* the first that does not fit */
    /* Sets of dialects that give another meaning to a tensor that fits (loosely) in one of the two;
     * about tensors that fit in neither, damaged ones, they need not agree. */
    unsigned differs[BITCONV_N_DIALECTS];
    unsigned differs_loosely[BITCONV_N_DIALECTS];
    size_t n_of[N_SLOTS]; /* by id % N_SLOTS: no two disputed ids share a slot */
};

/* Bits of the dialects in `fits` against all dialects of another meaning. */
static void note_differences(const struct bc_type *const *row, unsigned fits, unsigned *differs)
{
    for (unsigned d = BITCONV_DIALECT_UPSTREAM; d < BITCONV_N_DIALECTS; d++) {
        for (unsigned e = BITCONV_DIALECT_UPSTREAM; e < BITCONV_N_DIALECTS; e++) {
            if (row[d] != row[e] && (fits & (1u << d | 1u << e))) differs[d] |= 1u << e;
        }
    }
}

static void count_tensor(const struct bitconv_gguf *g, const struct bitconv_gguf_tensor *t,
                         struct tally *tally)
{
    const struct bc_type *row[BITCONV_N_DIALECTS] = {NULL};
    const uint64_t alignment = g->shards[t->shard].alignment;
    unsigned fits = 0, fits_loosely = 0;
    for (unsigned d = BITCONV_DIALECT_UPSTREAM; d < BITCONV_N_DIALECTS; d++) {
        uint64_t need;
        row[d] = bc_type_find(t->type, (enum bitconv_dialect)d);
        if (row[d] != NULL && bc_type_bytes(row[d], t->n_dims, t->ne, &need) && need <= t->span) {
            fits_loosely |= 1u << d;
            if (t->span - need < alignment) fits |= 1u << d;
        }
        tally->fits[d] += fits >> d & 1u;
        tally->fits_loosely[d] += fits_loosely >> d & 1u;
        if (!(fits & 1u << d) && tally->misfit[d] == NULL) tally->misfit[d] = t;
    }
    note_differences(row, fits, tally->differs);
    note_differences(row, fits_loosely, tally->differs_loosely);
    tally->n++;
    tally->n_of[t->type % N_SLOTS]++;
}

static struct tally count_tensors(const struct bitconv_gguf *g)
{
    struct tally tally = {0};
    for (size_t i = 0; i < g->n_tensors; i++) {
        if (bc_type_is_disputed(g->tensors[i].type)) count_tensor(g, &g->tensors[i], &tally);
    }
    return tally;
}

/* The first dialect of a set without differences; AMBIGUOUS for the empty set and where there are
 * some. */
static enum bitconv_dialect agreed(unsigned set, const unsigned *differs)
{
    enum bitconv_dialect first = BITCONV_DIALECT_AMBIGUOUS;
    for (unsigned d = BITCONV_DIALECT_UPSTREAM; d < BITCONV_N_DIALECTS; d++) {
        if (!(set & 1u << d)) continue;
        if (differs[d] & set) return BITCONV_DIALECT_AMBIGUOUS;
        if (first == BITCONV_DIALECT_AMBIGUOUS) first = (enum bitconv_dialect)d;
    }
    return first;
}

static bool contains(const char *text, size_t len, const char *part)
{
    const size_t n = strlen(part);
    for (size_t i = 0; i + n <= len; i++) {
        if (memcmp(text + i, part, n) == 0) return true;
    }
    return false;
}

static bool is_string(const struct bitconv_gguf_value *value, const char *wanted)
{
    const char *text;
    size_t len;
    return bitconv_gguf_value_string(value, &text, &len) && len == strlen(wanted) &&
           memcmp(text, wanted, len) == 0;
}

/* Does bitconv.tensor.pack list a pack of that name? */
static bool states_pack(const struct bitconv_gguf *g, const char *pack)
{
    const struct bitconv_gguf_value *packs = bitconv_gguf_find_key(g, "bitconv.tensor.pack");
    const char *name;
    size_t len;
    uint64_t pos = 0;
    if (packs == NULL || packs->type != BITCONV_GGUF_ARRAY) return false;
    while (bitconv_gguf_array_next_string(packs, &pos, &name, &len))
        if (len == strlen(pack) && memcmp(name, pack, len) == 0) return true;
    return false;
}

/* What names and metadata say: the dialects that they point to, and why. Only asked when spans
 * leave a choice. */
static unsigned hint(const struct bitconv_gguf *g, const struct tally *tally, const char **why)
{
    const struct bitconv_gguf_value *arch = bitconv_gguf_find_key(g, "general.architecture");
    uint64_t file_type = UINT64_MAX;
    (void)bitconv_gguf_value_u64(bitconv_gguf_find_key(g, "general.file_type"), &file_type);
    if (tally->n_of[42 % N_SLOTS] > 0 && states_pack(g, "q2_0")) {
        *why = "bitconv.tensor.pack";
        return SET_UPSTREAM;
    }
    for (size_t i = 0; i < g->shards[0].n_keys; i++) {
        if (strncmp(g->shards[0].keys[i].name, "prism.", 6) == 0) {
            *why = "the prism.* keys";
            return SET_PRISM;
        }
    }
    if ((file_type == 39 || file_type == 42) && tally->n_of[file_type % N_SLOTS] > 0) {
        *why = "general.file_type, which repeats the id of TL2,";
        return file_type == 39 ? SET_BITNET : SET_REBASED;
    }
    if (is_string(arch, "bitnet-b1.58") || is_string(arch, "bitnet-25") ||
        is_string(arch, "bitnet")) {
        *why = "general.architecture";
        return SET_BITNET | SET_REBASED;
    }
    for (size_t i = 0; i < g->n_tensors; i++) {
        if (contains(g->tensors[i].name, g->tensors[i].name_len, "_norm_in.")) {
            *why = "the *_norm_in tensors";
            return SET_BITNET | SET_REBASED;
        }
    }
    *why = NULL;
    return SET_ALL;
}

static unsigned set_where(const size_t *counts, size_t at_least)
{
    unsigned set = 0;
    for (unsigned d = BITCONV_DIALECT_UPSTREAM; d < BITCONV_N_DIALECTS; d++) {
        if (counts[d] >= at_least) set |= 1u << d;
    }
    return set;
}

static void put_set(struct bc_buf *buf, unsigned set)
{
    const char *separator = "";
    for (unsigned d = BITCONV_DIALECT_UPSTREAM; d < BITCONV_N_DIALECTS; d++) {
        if (!(set & 1u << d)) continue;
        bc_buf_printf(buf, "%s%s", separator, names[d]);
        separator = ", ";
    }
}

/* "tensor x (type 42, 4096 bytes): TL2 needs 32800, Q2_0 needs 36864". */
static void put_candidates(struct bc_buf *buf, const struct bitconv_gguf_tensor *t)
{
    const struct bc_type *row;
    const char *separator = ": ";
    bc_buf_printf(buf, "tensor %s (type %" PRIu32 ", %" PRIu64 " bytes)",
                  bc_gguf_tensor_label(t).text, t->type, t->span);
    for (size_t i = 0; (row = bc_type_row(i)) != NULL; i++) {
        uint64_t need;
        if (row->id != t->type) continue;
        if (bc_type_bytes(row, t->n_dims, t->ne, &need)) {
            bc_buf_printf(buf, "%s%s needs %" PRIu64, separator, row->name, need);
        } else {
            bc_buf_printf(buf, "%s%s cannot have this shape", separator, row->name);
        }
        separator = ", ";
    }
}

/* "210 x I2_S (36), 2 x TL1 (38)": what the dialect makes of the disputed ids of this file. */
static void put_meanings(struct bc_buf *buf, const struct tally *tally,
                         enum bitconv_dialect dialect)
{
    const struct bc_type *row;
    const char *separator = "";
    for (size_t i = 0; (row = bc_type_row(i)) != NULL; i++) {
        const size_t n = tally->n_of[row->id % N_SLOTS];
        if (!bc_type_is_disputed(row->id) || !(row->dialects & 1u << dialect) || n == 0) continue;
        bc_buf_printf(buf, "%s%zu x %s (%" PRIu32 ")", separator, n, row->name, row->id);
        separator = ", ";
    }
}

/* All tensors fit in every dialect of `set`. */
static enum bitconv_dialect decide_possible(const struct bitconv_gguf *g, const struct tally *tally,
                                            unsigned set, struct bc_buf *buf)
{
    const char *why = NULL;
    enum bitconv_dialect found = agreed(set, tally->differs);
    if (found == BITCONV_DIALECT_AMBIGUOUS)
        found = agreed(set & hint(g, tally, &why), tally->differs);
    if (found == BITCONV_DIALECT_AMBIGUOUS) {
        bc_buf_puts(buf, "the byte spans fit several dialects, which disagree: ");
        put_set(buf, set);
        bc_buf_puts(buf, "; nothing else in the file decides");
        return found;
    }
    bc_buf_puts(buf, "the byte spans fit ");
    put_meanings(buf, tally, found);
    bc_buf_puts(buf, why == NULL ? ", as in: " : "; others fit as well, out of: ");
    put_set(buf, set);
    if (why != NULL) bc_buf_printf(buf, "; %s decides", why);
    return found;
}

/* No dialect fits all tensors. When the dialects that fit some agree on those, the misfits are
 * damage. When tensors have bytes to spare but only one meaning is small enough for all of them,
 * names or metadata must confirm it. */
static enum bitconv_dialect decide_damaged(const struct bitconv_gguf *g, const struct tally *tally,
                                           struct bc_buf *buf)
{
    const unsigned some = set_where(tally->fits, 1);
    const unsigned loose = set_where(tally->fits_loosely, tally->n);
    const char *why = NULL;
    enum bitconv_dialect found = agreed(some, tally->differs);
    if (found != BITCONV_DIALECT_AMBIGUOUS) {
        bc_buf_printf(buf, "the byte spans of %zu out of %zu tensors fit ", tally->fits[found],
                      tally->n);
        put_meanings(buf, tally, found);
        bc_buf_printf(buf, ", as in %s, and no other meaning; not so ", names[found]);
        put_candidates(buf, tally->misfit[found]);
        return found;
    }
    if (some == 0 && agreed(loose, tally->differs_loosely) != BITCONV_DIALECT_AMBIGUOUS) {
        found = agreed(loose & hint(g, tally, &why), tally->differs_loosely);
    }
    if (found != BITCONV_DIALECT_AMBIGUOUS && why != NULL) {
        bc_buf_puts(buf, "all tensors have bytes to spare, too few for anything but ");
        put_meanings(buf, tally, found);
        bc_buf_printf(buf, "; %s confirms %s; ", why, names[found]);
        put_candidates(buf, tally->misfit[found]);
        return found;
    }
    bc_buf_puts(buf, some == 0 ? "no dialect fits the byte spans: "
                               : "the byte spans contradict each other: ");
    for (unsigned d = BITCONV_DIALECT_UPSTREAM; d < BITCONV_N_DIALECTS; d++) {
        if (tally->fits[d] == 0) continue;
        bc_buf_printf(buf, "%zu out of %zu tensors fit %s, ", tally->fits[d], tally->n, names[d]);
    }
    put_candidates(buf, tally->misfit[BITCONV_DIALECT_UPSTREAM]);
    return BITCONV_DIALECT_AMBIGUOUS;
}

enum bitconv_status bc_gguf_decide_dialect(struct bitconv_gguf *g, struct bitconv_error *err)
{
    const struct tally tally = count_tensors(g);
    struct bc_buf buf = {0};
    if (tally.n == 0) {
        g->dialect = BITCONV_DIALECT_UPSTREAM;
        bc_buf_puts(&buf, "no tensor has a type that the dialects dispute");
    } else {
        const unsigned possible = set_where(tally.fits, tally.n);
        g->dialect = possible != 0 ? decide_possible(g, &tally, possible, &buf)
                                   : decide_damaged(g, &tally, &buf);
    }
    g->evidence = buf.failed ? NULL : bc_arena_strdup(&g->arena, bc_buf_str(&buf));
    bc_buf_release(&buf);
    return g->evidence != NULL ? BITCONV_OK : bc_fail_nomem(err, "GGUF dialect");
}
