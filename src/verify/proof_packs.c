/* SPDX-License-Identifier: MIT
 * The packs proof: every ternary tensor decoded through the pack's independent reader and packed
 * again to the same bytes, with a scale that is finite and positive. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "verify/block_scan.h"
#include "verify/proofs.h"

/* Where trit `index` stands, for messages. */
struct place {
    uint64_t slice, row, col;
};

static struct place place_of(const struct bc_packed *p, uint64_t index)
{
    const struct bc_pack_shape *s = &p->shape;
    const struct place place = {index / s->cols / s->rows, index / s->cols % s->rows,
                                index % s->cols};
    return place;
}

static void report_illegal(struct bc_verifier *v, struct bitconv_proof *proof, size_t index)
{
    const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(v->container.gguf, index);
    const struct bc_tensor_proof *tp = &v->tensors[index];
    const struct bc_pack_scan *scan = &tp->scan;
    const struct place at = place_of(&tp->packed, scan->first_illegal);
    const uint64_t byte = bc_packed_byte_of(&tp->packed, scan->first_illegal);
    /* Two-bit packs have one spare code. */
    const char *type = tp->packed.format->type_name;
    const bool two_bits =
        strcmp(type, "I2_S") == 0 || strcmp(type, "TQ2_0") == 0 || strcmp(type, "Q2_0") == 0;
    const char *code = two_bits ? "code 3" : "an undefined code";
    struct bc_buf where = {0};
    if (byte != UINT64_MAX) bc_buf_printf(&where, "offset %" PRIu64 ", ", t->file_offset + byte);
    if (tp->packed.shape.slices > 1) bc_buf_printf(&where, "slice %" PRIu64 ", ", at.slice);
    bc_buf_printf(&where, "row %" PRIu64 ", column %" PRIu64, at.row, at.col);
    if (v->options->lenient)
        bc_say(v->sink, BITCONV_WARNING,
               "%s: %s is reserved, read as 0: %s (%" PRIu64 " such codes)", t->name, code,
               bc_buf_str(&where), scan->illegal);
    else
        bc_problem(v, proof, index, "%s: %s is reserved: %s (%" PRIu64 " such codes)", t->name,
                   code, bc_buf_str(&where), scan->illegal);
    bc_buf_release(&where);
}

static void report_scale(struct bc_verifier *v, struct bitconv_proof *proof, size_t index)
{
    const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(v->container.gguf, index);
    const struct bc_pack_scan *scan = &v->tensors[index].scan;
    const uint64_t nonzero = scan->minus + scan->plus;
    const float scale = scan->bad_scale_value;
    if (scale == 0.0f && nonzero == 0) {
        bc_say(v->sink, BITCONV_WARNING, "%s: the scale is 0, as are all trits", t->name);
        return;
    }
    bc_problem(v, proof, index,
               "%s: the scale of slice %" PRIu64 " is %g with %" PRIu64
               " non-zero trits, a finite positive number was expected",
               t->name, scan->bad_scale, (double)scale, nonzero);
}

/* Scales of single blocks that cannot be, or that make nothing of their trits. */
static void report_blocks(struct bc_verifier *v, struct bitconv_proof *proof, size_t index)
{
    const char *name = v->result->tensors[index].name;
    const struct bc_block_scan *blocks = &v->tensors[index].scan.blocks;
    if (blocks->bad != BC_NO_INDEX)
        bc_problem(v, proof, index,
                   "%s: the scale of block %" PRIu64 " is %g, a finite number that is not negative "
                   "was expected",
                   name, blocks->bad, (double)blocks->bad_value);
    if (blocks->form == BC_SCALES_IN_MANY_BLOCKS && blocks->vanishing != 0)
        bc_say(v->sink, BITCONV_WARNING,
               "%s: %" PRIu64 " blocks with non-zero trits have the scale 0, the first is block "
               "%" PRIu64 ": they are read as zeros",
               name, blocks->vanishing, blocks->first_vanishing);
}

/* Spare bytes: other writers leave rubbish there, bitconv writes zeros. */
static void report_junk(struct bc_verifier *v, struct bitconv_proof *proof, size_t index)
{
    const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(v->container.gguf, index);
    const uint64_t at = t->file_offset + v->tensors[index].scan.junk;
    const bool blocks = v->tensors[index].scan.blocks.form != BC_SCALES_OF_TENSOR;
    const char *first = blocks ? "scale of a block of zeros" : "spare byte behind the scale";
    if (v->ours)
        bc_problem(v, proof, index, "%s: the %s at offset %" PRIu64 " is not zero", t->name, first,
                   at);
    else
        bc_say(v->sink, BITCONV_NOTE, "%s: the %s are not zero", t->name,
               blocks ? "scales of blocks of zeros" : "spare bytes behind the scale");
}

static void warn_one_code(struct bc_verifier *v, size_t index)
{
    const struct bc_pack_scan *scan = &v->tensors[index].scan;
    const uint64_t n = v->tensors[index].packed.shape.n;
    const char *trit = scan->minus == n ? "-1" : scan->zero == n ? "0" : "+1";
    if (scan->minus == n || scan->zero == n || scan->plus == n)
        bc_say(v->sink, BITCONV_WARNING, "%s: every trit is %s", v->result->tensors[index].name,
               trit);
}

/* bitconv_verified_tensor.scale_form. */
static const char *form_name(enum bc_scale_form form)
{
    static const char *const names[] = {"tensor", "blocks", "differing blocks", "scale tensor"};
    return names[form];
}

static void judge(struct bc_verifier *v, struct bitconv_proof *proof, size_t index)
{
    const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(v->container.gguf, index);
    const struct bc_pack_scan *scan = &v->tensors[index].scan;
    struct bitconv_verified_tensor *out = &v->result->tensors[index];
    out->scale = scan->scale;
    out->scale_form = form_name(scan->blocks.form);
    out->zeros = (double)scan->zero / (double)v->tensors[index].packed.shape.n;
    if (scan->has_fingerprint) bc_hash128_hex(scan->fingerprint, out->fingerprint);
    if (scan->payload[0] != '\0')
        bc_problem(v, proof, index, "%s: %s", t->name, scan->payload);
    else if (scan->illegal != 0)
        report_illegal(v, proof, index);
    if (scan->mismatch != BC_NO_INDEX)
        bc_problem(v, proof, index,
                   "%s: the byte at offset %" PRIu64 " is not what its own trits pack to", t->name,
                   t->file_offset + scan->mismatch);
    report_blocks(v, proof, index);
    if (scan->bad_scale != BC_NO_INDEX && scan->blocks.bad == BC_NO_INDEX)
        report_scale(v, proof, index);
    /* The comparison around the scale means nothing when the scale itself does not read back. */
    else if (scan->junk != BC_NO_INDEX && scan->blocks.bad == BC_NO_INDEX)
        report_junk(v, proof, index);
    warn_one_code(v, index);
}

/* "; scales: in the blocks of 14, in tensors beside 2"; nothing where no pack has block scales. */
static void put_forms(const struct bc_verifier *v, struct bc_buf *out)
{
    static const struct {
        enum bc_scale_form form;
        const char *where;
    } rows[] = {{BC_SCALES_IN_BLOCKS, "in the blocks (float16, one value a tensor) of"},
                {BC_SCALES_IN_MANY_BLOCKS, "in the blocks (float16, differing) of"},
                {BC_SCALES_BESIDE, "in scale tensors (float32) beside"}};
    const char *separator = "; scales ";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t n = 0;
        for (size_t j = 0; j < v->result->n_tensors; j++)
            n += v->tensors[j].scanned && v->tensors[j].scan.blocks.form == rows[i].form;
        if (n == 0) continue;
        bc_buf_printf(out, "%s%s %zu", separator, rows[i].where, n);
        separator = ", ";
    }
}

static void conclude(struct bc_verifier *v, struct bitconv_proof *proof, uint64_t trits)
{
    struct bc_buf forms = {0};
    put_forms(v, &forms);
    bc_conclude(v, proof,
                "%" PRIu64 " tensors, %" PRIu64
                " trits read by the independent reader and packed again to the same bytes%s",
                proof->checked, trits, bc_buf_str(&forms));
    bc_buf_release(&forms);
}

enum bitconv_status bc_prove_packs(struct bc_verifier *v, struct bitconv_proof *proof,
                                   struct bitconv_error *err)
{
    const uint64_t total = bitconv_gguf_file_size(v->container.gguf);
    uint64_t done = 0;
    uint64_t trits = 0;
    for (size_t i = 0; i < v->result->n_tensors; i++) {
        struct bc_tensor_proof *tp = &v->tensors[i];
        if (tp->misfit != NULL)
            bc_problem(v, proof, i, "%s: %s", v->result->tensors[i].name, tp->misfit);
        if (tp->packed.format == NULL) continue;
        BC_TRY(bc_pack_scan(&tp->packed, v->options->lenient, v->kernels, v->pool, v->sink,
                            &tp->scan, err));
        tp->scanned = true;
        judge(v, proof, i);
        proof->checked++;
        trits += tp->packed.shape.n;
        done += bitconv_gguf_tensor_at(v->container.gguf, i)->size;
        bc_progress(v->sink, "unpacking", done, total);
    }
    bc_progress(v->sink, "unpacking", total, total);
    proof->skipped = v->result->n_tensors - proof->checked;
    if (proof->checked == 0 && proof->verdict == BITCONV_PASSED)
        bc_not_run(v, proof, "the file holds no ternary pack");
    else
        conclude(v, proof, trits);
    return BITCONV_OK;
}
