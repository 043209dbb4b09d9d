/* SPDX-License-Identifier: MIT
 * The fingerprints proof: those that the file states about itself (bitconv.fingerprint and
 * bitconv.tensor.*) against those of the trits that are in it. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "verify/proofs.h"

static bool equals(const char *s, size_t len, const char *wanted)
{
    return strlen(wanted) == len && memcmp(s, wanted, len) == 0;
}

/* Blocks with scales of their own leave a tensor without a fingerprint, which the file then states
 * as an empty string. */
static void check_fingerprint(struct bc_verifier *v, struct bitconv_proof *proof, size_t index,
                              const struct bc_stated_tensor *stated)
{
    const struct bitconv_verified_tensor *t = &v->result->tensors[index];
    const struct bc_pack_scan *scan = &v->tensors[index].scan;
    const bool many = scan->blocks.form == BC_SCALES_IN_MANY_BLOCKS && scan->illegal == 0;
    const int len = (int)(stated->fingerprint_len < 64 ? stated->fingerprint_len : 64);
    if (many && stated->fingerprint_len != 0)
        bc_problem(v, proof, index,
                   "%s: no fingerprint, because its blocks have several scales (block %" PRIu64
                   " is the first that differs), the file states '%.*s'",
                   t->name, scan->blocks.other, len, stated->fingerprint);
    else if (!many && t->fingerprint[0] == '\0')
        bc_problem(v, proof, index,
                   "%s: no fingerprint, because its bytes are not all such as %s defines", t->name,
                   t->pack);
    else if (!equals(stated->fingerprint, stated->fingerprint_len, t->fingerprint))
        bc_problem(v, proof, index,
                   "%s: the trits and the scale have fingerprint %s, the file states '%.*s'",
                   t->name, t->fingerprint, len, stated->fingerprint);
}

static void check_entry(struct bc_verifier *v, struct bitconv_proof *proof, size_t index,
                        const struct bc_stated_tensor *stated)
{
    const struct bitconv_verified_tensor *t = &v->result->tensors[index];
    const struct bc_tensor_proof *tp = &v->tensors[index];
    if (!equals(stated->pack, stated->pack_len, t->pack))
        bc_problem(v, proof, index,
                   "%s: bitconv.tensor.pack says '%.*s', a tensor of type %s is %s", t->name,
                   (int)(stated->pack_len < 64 ? stated->pack_len : 64), stated->pack, t->type,
                   t->pack);
    check_fingerprint(v, proof, index, stated);
    const float zeros = bc_zero_share(tp->scan.zero, tp->packed.shape.n);
    if (bc_f32_bits(zeros) != bc_f32_bits(stated->zeros))
        bc_problem(v, proof, index, "%s: bitconv.tensor.zeros says %.9g, %.9g was counted", t->name,
                   (double)stated->zeros, (double)zeros);
    if (memcmp(stated->tile, tp->packed.shape.tile, sizeof stated->tile) != 0)
        bc_problem(v, proof, index,
                   "%s: bitconv.tensor.tile says %" PRIu32 ", %" PRIu32 ", %" PRIu32 "%s", t->name,
                   stated->tile[0], stated->tile[1], stated->tile[2],
                   tp->packed.format->choose_tile == NULL ? " for a pack without tiles"
                                                          : ", a tile was expected");
}

/* Entries about tensors that are not there, or are not packed. */
static enum bitconv_status check_strays(struct bc_verifier *v, struct bitconv_proof *proof,
                                        struct bitconv_error *err)
{
    for (size_t i = 0; i < v->stated.n; i++) {
        const struct bc_stated_tensor *stated = &v->stated.tensors[i];
        const char *name = bc_arena_strndup(&v->data->arena, stated->name, stated->name_len);
        if (name == NULL) return bc_fail_nomem(err, "names of packed tensors");
        const size_t index = bc_tensor_index(v, name);
        if (index == BC_NO_TENSOR || strlen(name) != stated->name_len ||
            v->result->tensors[index].pack == NULL)
            bc_problem(v, proof, BC_NO_TENSOR,
                       "bitconv.tensor.name: '%.*s' is no packed tensor of this file",
                       (int)(stated->name_len < 80 ? stated->name_len : 80), stated->name);
    }
    return BITCONV_OK;
}

static void check_model(struct bc_verifier *v, struct bitconv_proof *proof)
{
    const struct bitconv_gguf_value *value =
        bitconv_gguf_find_key(v->container.gguf, "bitconv.fingerprint");
    const char *text = NULL;
    size_t len = 0;
    if (value == NULL) return;
    if (!bitconv_gguf_value_string(value, &text, &len))
        bc_problem(v, proof, BC_NO_TENSOR, "bitconv.fingerprint is no string");
    else if (!equals(text, len, v->result->fingerprint))
        bc_problem(v, proof, BC_NO_TENSOR,
                   "bitconv.fingerprint states '%.*s', the packed tensors give '%s'",
                   (int)(len < 64 ? len : 64), text, v->result->fingerprint);
}

/* Packed tensors without a fingerprint because their blocks have several scales. */
static uint64_t count_without(const struct bc_verifier *v)
{
    uint64_t n = 0;
    for (size_t i = 0; i < v->result->n_tensors; i++)
        n += v->tensors[i].scanned && v->tensors[i].scan.blocks.form == BC_SCALES_IN_MANY_BLOCKS;
    return n;
}

/* bitconv writes its keys all or none; those about packs where there are packs, and the model's
 * fingerprint where each of them has one. */
static void check_complete(struct bc_verifier *v, struct bitconv_proof *proof, bool packed)
{
    static const char *const keys[] = {"bitconv.version", "bitconv.source", "bitconv.tensor.name",
                                       "bitconv.fingerprint"};
    const size_t n = !packed ? 2 : count_without(v) != 0 ? 3 : 4;
    for (size_t i = 0; i < n; i++)
        if (bitconv_gguf_find_key(v->container.gguf, keys[i]) == NULL)
            bc_problem(v, proof, BC_NO_TENSOR, "key %s is missing, other keys of bitconv are there",
                       keys[i]);
}

static enum bitconv_status check_stated(struct bc_verifier *v, struct bitconv_proof *proof,
                                        struct bitconv_error *err)
{
    if (v->stated.problem != NULL) bc_problem(v, proof, BC_NO_TENSOR, "%s", v->stated.problem);
    for (size_t i = 0; i < v->result->n_tensors && v->stated.problem == NULL; i++) {
        const struct bitconv_verified_tensor *t = &v->result->tensors[i];
        if (t->pack == NULL) continue;
        const struct bc_stated_tensor *stated =
            bc_stated_find(&v->stated, t->name, strlen(t->name));
        if (stated != NULL)
            check_entry(v, proof, i, stated);
        else
            bc_problem(v, proof, i, "%s: bitconv.tensor.name does not list it", t->name);
    }
    return check_strays(v, proof, err);
}

static void conclude(struct bc_verifier *v, struct bitconv_proof *proof, uint64_t n_packed)
{
    const uint64_t n_without = count_without(v);
    const char *why = n_without != 0 ? "blocks have several scales" : "codes are illegal";
    const bool known = v->result->fingerprint[0] != '\0';
    if (proof->checked == 0 && proof->verdict == BITCONV_PASSED && n_packed == 0)
        bc_not_run(v, proof, "the file holds no ternary pack");
    else if (proof->checked == 0 && proof->verdict == BITCONV_PASSED)
        bc_not_run(v, proof, "no tensor has a fingerprint: %s", why);
    else if (!v->ours)
        bc_conclude(v, proof, "the file states none; computed: %s%s",
                    known ? v->result->fingerprint : "none, ", known ? "" : why);
    else if (n_without == 0)
        bc_conclude(v, proof, "%" PRIu64 " tensors as the file states; of the model: %s",
                    proof->checked, v->result->fingerprint);
    else
        bc_conclude(v, proof,
                    "%" PRIu64 " tensors as the file states; %" PRIu64
                    " more and the model have none: blocks have several scales",
                    proof->checked, n_without);
}

enum bitconv_status bc_prove_fingerprints(struct bc_verifier *v, struct bitconv_proof *proof,
                                          struct bitconv_error *err)
{
    uint64_t n_packed = 0;
    for (size_t i = 0; i < v->result->n_tensors; i++) {
        proof->checked += v->result->tensors[i].fingerprint[0] != '\0';
        n_packed += v->result->tensors[i].pack != NULL;
    }
    proof->skipped = v->result->n_tensors - proof->checked;
    if (v->ours) {
        check_complete(v, proof, n_packed != 0);
        if (v->stated.present) BC_TRY(check_stated(v, proof, err));
        check_model(v, proof);
    }
    conclude(v, proof, n_packed);
    return BITCONV_OK;
}
