/* SPDX-License-Identifier: MIT
 * Reads packed ternary tensors through their pack's independent reader (trit_at): ranges of trits,
 * and one pass over a whole tensor that gives its histogram, its fingerprint and the re-pack proof.
 */
#ifndef BC_VERIFY_PACK_SCAN_H
#define BC_VERIFY_PACK_SCAN_H

#include "base/digest.h"
#include "base/pool.h"
#include "bitconv/gguf.h"
#include "formats/format.h"
#include "model/packed.h"
#include "quant/kernels.h"
#include "quant/quantize.h"

/* Trits [first, first + n) of the flat order; codes the pack does not define become
 * BC_TRIT_ILLEGAL. Returns how many of those there were. */
uint64_t bc_packed_read(const struct bc_packed *p, uint64_t first, uint64_t n, int8_t *dst);
/* Offset within the tensor of the byte that holds trit `index`, found by probing the reader: for
 * messages about illegal codes in flat packs. UINT64_MAX when it cannot be told. */
uint64_t bc_packed_byte_of(const struct bc_packed *p, uint64_t index);

/* Where a block pack keeps its scales. */
enum bc_scale_form {
    BC_SCALES_OF_TENSOR, /* no block pack: one scale of the tensor's own */
    BC_SCALES_IN_BLOCKS,
    BC_SCALES_IN_MANY_BLOCKS, /* and those of a slice differ */
    BC_SCALES_BESIDE          /* in a tensor of their own */
};

struct bc_block_scan {
    enum bc_scale_form form;
    uint64_t other;  /* IN_MANY_BLOCKS: first block that differs from those before in its slice */
    uint64_t bad;    /* first block with a negative, NaN or infinite scale; BC_NO_INDEX: none */
    float bad_value; /* its scale */
    uint64_t vanishing; /* blocks with a non-zero trit and the scale 0: they are read as zeros */
    uint64_t first_vanishing; /* BC_NO_INDEX: none */
    uint64_t junk;            /* first block of zeros whose scale is not 0; BC_NO_INDEX: none */
};

#define BC_PAYLOAD_WHY 200

struct bc_pack_scan {
    uint64_t minus, zero, plus;
    /* What is wrong with a payload beyond its size, "" when it is as it should be: its trits mean
     * nothing then, and no other fault of its bytes is looked for. */
    char payload[BC_PAYLOAD_WHY];
    uint64_t illegal;       /* codes the pack does not define */
    uint64_t first_illegal; /* flat index of the first, BC_NO_INDEX: none */
    uint64_t mismatch; /* offset of the first byte that its own trits do not pack to, BC_NO_INDEX:
                          none */
    uint64_t junk; /* offset of the first byte around the scale that should be zero, BC_NO_INDEX */
    uint64_t
        bad_scale; /* slice of the first scale that is not finite and positive, BC_NO_INDEX: none */
    float scale;   /* of slice 0; NaN where the blocks of a slice have several */
    float bad_scale_value;
    struct bc_block_scan blocks; /* block packs */
    bool
        has_fingerprint; /* false when codes are illegal (unless lenient), or blocks of a slice have
                             several scales */
    struct bc_hash128 fingerprint;
};

/* Scans a tensor. The trits are read with trit_at, packed again with the format's own packer and
 * compared with the bytes of the file. Memory: a fixed amount for flat packs, one tensor of bytes
 * more for payloads, one of bytes and of trits for tiled packs. lenient: illegal codes count as zeros. */
enum bitconv_status bc_pack_scan(const struct bc_packed *p, bool lenient,
                                 const struct bc_kernels *k, struct bc_pool *pool,
                                 const struct bitconv_sink *sink, struct bc_pack_scan *out,
                                 struct bitconv_error *err);

/* Share of zero trits as bitconv.tensor.zeros has it: the double quotient rounded to float32. */
float bc_zero_share(uint64_t zero, uint64_t n);

#endif
