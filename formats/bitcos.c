/* SPDX-License-Identifier: MIT
 * BITCOS, bitmap and compacted signs: a presence bit per weight, a sign bit per non-zero weight, a
 * rank table between them for random access. The spec is bitcos.md. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "formats/bitcos_ref.h"
#include "formats/dot.h"
#include "formats/rows.h"
#include "formats/trit_header.h"
#include "quant/kernels.h"

enum {
    SUPERBLOCK = 4096,
    WORD_BITS = 64,
    WORD_BYTES = 8,
    RANK_BYTES = 4,
    MANY_VECTORS = 3, /* with so many, decoding once is cheaper than finding signs so often */
};

static const struct bc_trit_kind kind = {
    .title = "BITCOS", .magic = {'B', 'T', 'C', 'S'}, .superblock = SUPERBLOCK};

/* Offsets of the parts, all multiples of 8. */
struct layout {
    uint64_t bitmap, n_bitmap_words;
    uint64_t ranks, n_ranks;
    uint64_t signs, n_sign_words;
    uint64_t end;
};

static uint64_t divide_up(uint64_t n, uint64_t by)
{
    return n / by + (n % by != 0);
}

static struct layout layout_of(const struct bc_pack_shape *shape)
{
    struct layout at;
    at.bitmap = bc_trit_body(shape);
    at.n_bitmap_words = divide_up(shape->n, WORD_BITS);
    at.ranks = at.bitmap + WORD_BYTES * at.n_bitmap_words;
    at.n_ranks = divide_up(shape->n, SUPERBLOCK);
    at.signs = at.ranks + bc_round_up(RANK_BYTES * at.n_ranks, WORD_BYTES);
    at.n_sign_words = divide_up(shape->n_nonzero, WORD_BITS);
    at.end = at.signs + WORD_BYTES * at.n_sign_words;
    return at;
}

/* Ranks are 32 bits wide. */
static bool check_count(const struct bc_pack_shape *shape, char *why, size_t why_size)
{
    if (shape->n_nonzero <= UINT32_MAX) return true;
    return bc_trit_refuse(&kind, why, why_size,
                          "%" PRIu64 " non-zero weights, the rank table counts up to %" PRIu32,
                          shape->n_nonzero, UINT32_MAX);
}

static bool check(const struct bc_pack_shape *shape, char *why, size_t why_size)
{
    return bc_trit_shape_fits(&kind, shape, why, why_size) && check_count(shape, why, why_size);
}

static uint64_t size(const struct bc_pack_shape *shape)
{
    return layout_of(shape).end;
}

static void put_scales(const struct bc_pack_shape *shape, const float *scales, uint32_t n_scales,
                       uint8_t *packed)
{
    bc_trit_header_put(&kind, shape, scales, n_scales, packed);
}

/* ---- packing and unpacking ---- */

/* Behind the last trit: the padding of the rank table, and the sign words that fewer non-zero
 * weights than announced leave over, so that no byte is left to chance. */
static void finish(const struct layout *at, uint64_t rank, uint8_t *packed)
{
    const uint64_t ranks_end = at->ranks + RANK_BYTES * at->n_ranks;
    const uint64_t n_written = divide_up(rank, WORD_BITS);
    memset(packed + ranks_end, 0, (size_t)(at->signs - ranks_end));
    if (n_written < at->n_sign_words)
        memset(packed + at->signs + WORD_BYTES * n_written, 0,
               (size_t)(WORD_BYTES * (at->n_sign_words - n_written)));
}

/* A run hands the rank on to the next one through the table itself. */
static void pack(const struct bc_kernels *k, const struct bc_pack_shape *shape, const int8_t *trits,
                 uint64_t first, uint64_t n, uint8_t *packed)
{
    const struct layout at = layout_of(shape);
    uint8_t *ranks = packed + at.ranks;
    uint64_t rank = first == 0 ? 0 : bc_get_u32(ranks + first / SUPERBLOCK * RANK_BYTES);
    for (uint64_t done = 0; done < n; done += SUPERBLOCK) {
        const uint64_t i = first + done;
        const size_t left = (size_t)(n - done < SUPERBLOCK ? n - done : SUPERBLOCK);
        bc_put_u32(ranks + i / SUPERBLOCK * RANK_BYTES, (uint32_t)rank);
        rank = k->bitcos_pack(trits + done, left, packed + at.bitmap + i / 8, packed + at.signs,
                              (size_t)at.n_sign_words, rank);
    }
    if (first + n < shape->n)
        bc_put_u32(ranks + (first + n) / SUPERBLOCK * RANK_BYTES, (uint32_t)rank);
    else
        finish(&at, rank, packed);
}

static bool unpack(const struct bc_kernels *k, const struct bc_pack_shape *shape,
                   const uint8_t *packed, uint64_t first, uint64_t n, int8_t *trits)
{
    const struct layout at = layout_of(shape);
    bool legal = true;
    for (uint64_t done = 0; done < n; done += SUPERBLOCK) {
        const uint64_t i = first + done;
        const size_t left = (size_t)(n - done < SUPERBLOCK ? n - done : SUPERBLOCK);
        const uint64_t rank = bc_get_u32(packed + at.ranks + i / SUPERBLOCK * RANK_BYTES);
        const uint64_t end = k->bitcos_unpack(packed + at.bitmap + i / 8, left, packed + at.signs,
                                              shape->n_nonzero, rank, trits + done);
        if (end > rank && end > shape->n_nonzero) legal = false; /* a weight without a sign */
    }
    return legal;
}

/* ---- what a file may hold instead ---- */

static bool open_payload(const struct bc_pack_shape *expected, const uint8_t *bytes,
                         uint64_t n_bytes, struct bc_pack_shape *shape, char *why, size_t why_size)
{
    if (!bc_trit_header_read(&kind, expected, bytes, n_bytes, shape, why, why_size) ||
        !check_count(shape, why, why_size))
        return false;
    if (size(shape) == n_bytes) return true;
    return bc_trit_refuse(&kind, why, why_size,
                          "%" PRIu64 " bytes, but %" PRIu64 " weights, %" PRIu64
                          " of them not zero, make %" PRIu64,
                          n_bytes, shape->n, shape->n_nonzero, size(shape));
}

/* Bits at and above n_bits of the last of n_words words. */
static bool check_spare_bits(const uint8_t *words, uint64_t n_words, uint64_t n_bits,
                             const char *part, char *why, size_t why_size)
{
    if (n_bits % WORD_BITS == 0) return true;
    const uint64_t spare = bc_get_u64(words + WORD_BYTES * (n_words - 1)) >> n_bits % WORD_BITS;
    if (spare == 0) return true;
    return bc_trit_refuse(&kind, why, why_size,
                          "spare bits behind the %" PRIu64 " %s are 0x%" PRIx64 ", wanted 0",
                          n_bits, part, spare);
}

static bool check_ranks(const struct layout *at, const struct bc_pack_shape *shape,
                        const uint8_t *packed, char *why, size_t why_size)
{
    const uint64_t words_per_rank = SUPERBLOCK / WORD_BITS;
    uint64_t rank = 0;
    for (uint64_t word = 0; word < at->n_bitmap_words; word++) {
        const uint64_t entry = word / words_per_rank;
        const uint32_t found = bc_get_u32(packed + at->ranks + RANK_BYTES * entry);
        if (word % words_per_rank == 0 && found != rank)
            return bc_trit_refuse(&kind, why, why_size,
                                  "rank %" PRIu64 " is %" PRIu32 ", but the bitmap has %" PRIu64
                                  " non-zero weights before weight %" PRIu64,
                                  entry, found, rank, SUPERBLOCK * entry);
        rank += bc_count_ones(bc_get_u64(packed + at->bitmap + WORD_BYTES * word));
    }
    if (rank == shape->n_nonzero) return true;
    return bc_trit_refuse(&kind, why, why_size,
                          "the header counts %" PRIu64 " non-zero weights, the bitmap %" PRIu64,
                          shape->n_nonzero, rank);
}

static bool check_rank_padding(const struct layout *at, const uint8_t *packed, char *why,
                               size_t why_size)
{
    for (uint64_t i = at->ranks + RANK_BYTES * at->n_ranks; i < at->signs; i++)
        if (packed[i] != 0)
            return bc_trit_refuse(&kind, why, why_size,
                                  "byte %" PRIu64 ", padding behind the ranks, is 0x%02x, wanted 0",
                                  i, packed[i]);
    return true;
}

static bool check_payload(const struct bc_pack_shape *expected, const uint8_t *bytes,
                          uint64_t n_bytes, char *why, size_t why_size)
{
    struct bc_pack_shape shape;
    if (!open_payload(expected, bytes, n_bytes, &shape, why, why_size)) return false;
    const struct layout at = layout_of(&shape);
    return check_spare_bits(bytes + at.bitmap, at.n_bitmap_words, shape.n, "presence bits", why,
                            why_size) &&
           check_ranks(&at, &shape, bytes, why, why_size) &&
           check_rank_padding(&at, bytes, why, why_size) &&
           check_spare_bits(bytes + at.signs, at.n_sign_words, shape.n_nonzero, "signs", why,
                            why_size);
}

/* The rank at a weight whose index is a multiple of 64. */
static uint64_t rank_at(const struct layout *at, const uint8_t *packed, uint64_t i)
{
    uint64_t rank = bc_get_u32(packed + at->ranks + i / SUPERBLOCK * RANK_BYTES);
    for (uint64_t word = i / SUPERBLOCK * (SUPERBLOCK / WORD_BITS); word < i / WORD_BITS; word++)
        rank += bc_count_ones(bc_get_u64(packed + at->bitmap + WORD_BYTES * word));
    return rank;
}

static void dot_rows(const struct bc_kernels *k, const struct bc_pack_shape *shape,
                     const uint8_t *packed, uint64_t row, uint64_t n_rows, const int8_t *x,
                     uint64_t x_stride, uint32_t n_x, int32_t *out)
{
    const struct layout at = layout_of(shape);
    if (shape->cols % WORD_BITS != 0 || n_x >= MANY_VECTORS) {
        bc_dot_decoded(&bc_format_bitcos, k, shape, packed, row, n_rows, x, x_stride, n_x, out);
        return;
    }
    memset(out, 0, (size_t)(n_rows * n_x) * sizeof *out);
    const uint64_t first = row * shape->cols;
    const uint64_t first_rank = n_rows > 0 ? rank_at(&at, packed, first) : 0;
    for (uint32_t v = 0; v < n_x; v++) {
        uint64_t rank = first_rank;
        for (uint64_t r = 0; r < n_rows; r++) {
            const uint8_t *bitmap = packed + at.bitmap + (first + r * shape->cols) / 8;
            rank = k->bitcos_dot(bitmap, (size_t)shape->cols, packed + at.signs, shape->n_nonzero,
                                 rank, x + v * x_stride, &out[v * n_rows + r]);
        }
    }
}

const struct bc_format bc_format_bitcos = {
    .name = "bitcos",
    .title = "a bit a weight and a sign bit for those not zero: small above 40 % zeros",
    .type_name = "I8",
    .type_id = 24,
    .file_type = 1, /* "mostly F16": no number is defined for it */
    .row_major = true,
    .max_scales = UINT32_MAX,
    .check = check,
    .size = size,
    .pack = pack,
    .unpack = unpack,
    .put_scales = put_scales,
    .get_scale = bc_trit_header_scale,
    .trit_bytes = size, /* the scales stand before the trits: nothing is behind them */
    .trit_at = bc_bitcos_trit_at,
    .dot_rows = dot_rows,
    .run = SUPERBLOCK,
    .magic = "BTCS",
    .open_payload = open_payload,
    .check_payload = check_payload,
    .trits_at = bc_bitcos_trits_at,
};
