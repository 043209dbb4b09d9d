/* SPDX-License-Identifier: MIT
 * T5: five trits a byte, base 3, behind the header of BITCOS. The spec is t5.md. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "formats/dot.h"
#include "formats/rows.h"
#include "formats/t5_ref.h"
#include "formats/trit_header.h"
#include "quant/kernels.h"

enum { TRITS_PER_BYTE = 5, HIGHEST_BYTE = 242 };

static const struct bc_trit_kind kind = {.title = "T5", .magic = {'B', 'T', 'T', '5'}};

static uint64_t body_bytes(uint64_t n)
{
    return n / TRITS_PER_BYTE + (n % TRITS_PER_BYTE != 0);
}

static bool check(const struct bc_pack_shape *shape, char *why, size_t why_size)
{
    return bc_trit_shape_fits(&kind, shape, why, why_size);
}

static uint64_t size(const struct bc_pack_shape *shape)
{
    return bc_trit_body(shape) + body_bytes(shape->n);
}

static void put_scales(const struct bc_pack_shape *shape, const float *scales, uint32_t n_scales,
                       uint8_t *packed)
{
    bc_trit_header_put(&kind, shape, scales, n_scales, packed);
}

static void pack(const struct bc_kernels *k, const struct bc_pack_shape *shape, const int8_t *trits,
                 uint64_t first, uint64_t n, uint8_t *packed)
{
    k->t5_pack(trits, (size_t)n, packed + bc_trit_body(shape) + first / TRITS_PER_BYTE);
}

static bool unpack(const struct bc_kernels *k, const struct bc_pack_shape *shape,
                   const uint8_t *packed, uint64_t first, uint64_t n, int8_t *trits)
{
    return k->t5_unpack(packed + bc_trit_body(shape) + first / TRITS_PER_BYTE, (size_t)n, trits);
}

static bool open_payload(const struct bc_pack_shape *expected, const uint8_t *bytes,
                         uint64_t n_bytes, struct bc_pack_shape *shape, char *why, size_t why_size)
{
    if (!bc_trit_header_read(&kind, expected, bytes, n_bytes, shape, why, why_size)) return false;
    if (size(shape) == n_bytes) return true;
    return bc_trit_refuse(&kind, why, why_size,
                          "%" PRIu64 " bytes, but %" PRIu64 " weights make %" PRIu64, n_bytes,
                          shape->n, size(shape));
}

/* Digits 1 (trit 0) stand where the last byte has no weight left. */
static bool check_missing_digits(const struct bc_pack_shape *shape, unsigned last, char *why,
                                 size_t why_size)
{
    static const unsigned place[TRITS_PER_BYTE] = {1, 3, 9, 27, 81};
    const unsigned used = (unsigned)(shape->n % TRITS_PER_BYTE);
    if (used == 0) return true;
    for (unsigned i = used; i < TRITS_PER_BYTE; i++) {
        const unsigned digit = last / place[i] % 3;
        if (digit != 1)
            return bc_trit_refuse(&kind, why, why_size,
                                  "digit %u of the last byte, behind the %" PRIu64
                                  " weights, is %u, wanted 1",
                                  i, shape->n, digit);
    }
    return true;
}

static unsigned nonzero_digits(unsigned byte)
{
    unsigned n = 0;
    for (unsigned i = 0; i < TRITS_PER_BYTE; i++, byte /= 3)
        n += byte % 3 != 1;
    return n;
}

static bool check_bytes(const struct bc_pack_shape *shape, const uint8_t *body, char *why,
                        size_t why_size)
{
    uint8_t n_of[HIGHEST_BYTE + 1];
    uint64_t n_nonzero = 0;
    for (unsigned byte = 0; byte <= HIGHEST_BYTE; byte++)
        n_of[byte] = (uint8_t)nonzero_digits(byte);
    for (uint64_t i = 0; i < body_bytes(shape->n); i++) {
        if (body[i] > HIGHEST_BYTE)
            return bc_trit_refuse(&kind, why, why_size,
                                  "byte %" PRIu64 " is %u, above %d: no five trits give it (weight "
                                  "%" PRIu64 ")",
                                  bc_trit_body(shape) + i, body[i], HIGHEST_BYTE,
                                  TRITS_PER_BYTE * i);
        n_nonzero += n_of[body[i]];
    }
    if (n_nonzero == shape->n_nonzero) return true;
    return bc_trit_refuse(&kind, why, why_size,
                          "the header counts %" PRIu64 " non-zero weights, there are %" PRIu64,
                          shape->n_nonzero, n_nonzero);
}

static bool check_payload(const struct bc_pack_shape *expected, const uint8_t *bytes,
                          uint64_t n_bytes, char *why, size_t why_size)
{
    struct bc_pack_shape shape;
    if (!open_payload(expected, bytes, n_bytes, &shape, why, why_size)) return false;
    const unsigned last = bytes[n_bytes - 1];
    if (last <= HIGHEST_BYTE && !check_missing_digits(&shape, last, why, why_size)) return false;
    return check_bytes(&shape, bytes + bc_trit_body(&shape), why, why_size);
}

/* ---- products ---- */

enum {
    PLANE = 1024,                /* bytes' worth of activations that are laid out at once */
    PLANE_ROOM = 1 + PLANE + 63, /* zeros around them: one before, a vector behind */
    MANY_VECTORS = 3 /* with so many, decoding once is cheaper than so many kernels' decoding */
};

/* The activations of n <= 5 * PLANE columns, every fifth one in a plane, zeros around them. */
struct planes {
    int8_t x[TRITS_PER_BYTE][PLANE_ROOM];
    int32_t sum; /* of all */
};

static void lay_out(struct planes *p, const int8_t *x, uint64_t n)
{
    memset(p, 0, sizeof *p);
    for (uint64_t i = 0; i < n; i++) {
        p->x[i % TRITS_PER_BYTE][1 + i / TRITS_PER_BYTE] = x[i];
        p->sum += x[i];
    }
}

/* n weights from index `first`, which need not begin a byte: then the digits before it meet the
 * zeros, and the planes are those of other columns, the first few of them a place further on. */
static int32_t dot_planes(const struct bc_kernels *k, const uint8_t *body, uint64_t first,
                          uint64_t n, const struct planes *p)
{
    const size_t phase = (size_t)(first % TRITS_PER_BYTE);
    const int8_t *planes[TRITS_PER_BYTE];
    for (size_t t = 0; t < TRITS_PER_BYTE; t++)
        planes[t] = t >= phase ? p->x[t - phase] + 1 : p->x[t + TRITS_PER_BYTE - phase];
    return k->t5_codes(body + first / TRITS_PER_BYTE, (size_t)body_bytes(phase + n), planes) -
           p->sum;
}

static void dot_rows(const struct bc_kernels *k, const struct bc_pack_shape *shape,
                     const uint8_t *packed, uint64_t row, uint64_t n_rows, const int8_t *x,
                     uint64_t x_stride, uint32_t n_x, int32_t *out)
{
    const uint64_t most = TRITS_PER_BYTE * PLANE;
    const uint8_t *const body = packed + bc_trit_body(shape);
    struct planes planes;
    if (n_x >= MANY_VECTORS) {
        bc_dot_decoded(&bc_format_t5, k, shape, packed, row, n_rows, x, x_stride, n_x, out);
        return;
    }
    memset(out, 0, (size_t)(n_rows * n_x) * sizeof *out);
    for (uint32_t v = 0; v < n_x; v++) {
        for (uint64_t col = 0; col < shape->cols; col += most) {
            const uint64_t n = shape->cols - col < most ? shape->cols - col : most;
            lay_out(&planes, x + v * x_stride + col, n);
            for (uint64_t r = 0; r < n_rows; r++)
                out[v * n_rows + r] +=
                    dot_planes(k, body, (row + r) * shape->cols + col, n, &planes);
        }
    }
}

const struct bc_format bc_format_t5 = {
    .name = "t5",
    .title = "five trits a byte: 1.6 bits a weight whatever the share of zeros",
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
    .trit_at = bc_t5_trit_at,
    .dot_rows = dot_rows,
    .run = TRITS_PER_BYTE,
    .magic = "BTT5",
    .open_payload = open_payload,
    .check_payload = check_payload,
};
