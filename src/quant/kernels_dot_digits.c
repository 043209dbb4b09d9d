/* SPDX-License-Identifier: MIT
 * The scalar dot products of packs that put several trits into a number: pairs and triples of TL1
 * and TL2 by look-up tables of what each number comes to, five digits of T5. */
#include "quant/kernels_dot.h"

#include "base/bytes.h"

/* ---- T5 ---- */

int32_t bc_scalar_t5_codes(const uint8_t *bytes, size_t n_bytes, const int8_t *const planes[5])
{
    int32_t sum = 0;
    for (size_t m = 0; m < n_bytes; m++) {
        unsigned rest = bytes[m];
        for (size_t t = 0; t < 5; t++, rest /= 3)
            sum += (int)(rest % 3) * planes[t][m];
    }
    return sum;
}

/* ---- tables: 16 entries of 16 bits, their low bytes and their high bytes ---- */

static void put_entry(uint8_t *low, uint8_t *high, size_t i, int value)
{
    low[i] = (uint8_t)(value & 0xff);
    high[i] = (uint8_t)(value >> 8 & 0xff);
}

static int entry(const uint8_t *low, const uint8_t *high, unsigned i)
{
    return (int16_t)(low[i] | high[i] << 8);
}

void bc_scalar_pair_tables(const int8_t *x, size_t n_quads, uint8_t *tables)
{
    for (size_t i = 0; i < 2 * n_quads; i++, x += 2) {
        uint8_t *low = tables + i / 2 * BC_PAIR_TABLE + i % 2 * 16;
        for (int code = 0; code < 16; code++) {
            const int value = (code / 3 - 1) * x[0] + (code % 3 - 1) * x[1];
            put_entry(low, low + 32, (size_t)code, code < 9 ? value : 0);
        }
    }
}

void bc_scalar_pair_sums(const uint8_t *bytes, size_t stride, size_t n_quads, const uint8_t *tables,
                         size_t table_stride, int32_t sums[16])
{
    for (size_t q = 0; q < n_quads; q++, bytes += stride, tables += table_stride) {
        for (size_t r = 0; r < 16; r++)
            sums[r] += entry(tables, tables + 32, bytes[r] >> 4) +
                       entry(tables + 16, tables + 48, bytes[r] & 15);
    }
}

void bc_scalar_triple_tables(const int8_t *x, size_t n_triples, uint8_t *tables)
{
    for (size_t i = 0; i < n_triples; i++, x += 3, tables += BC_TRIPLE_TABLE) {
        for (int code = 0; code < 16; code++) {
            const int v = code + 13; /* of three digits trit + 1 */
            const int value = (v / 9 - 1) * x[0] + (v / 3 % 3 - 1) * x[1] + (v % 3 - 1) * x[2];
            put_entry(tables, tables + 16, (size_t)code, code < 14 ? value : 0);
        }
    }
}

/* Row of a block whose magnitudes are at place i: the middle quarters have changed places. */
static size_t row_at(size_t i)
{
    static const int8_t moved[4] = {0, 8, -8, 0};
    return (size_t)((int)i + moved[i / 8]);
}

void bc_scalar_triple_sums(const uint8_t *magnitudes, const uint8_t *signs, size_t n_groups,
                           const uint8_t *tables, int32_t sums[32])
{
    for (size_t t = 0; t < 8 * n_groups; t++, tables += BC_TRIPLE_TABLE) {
        const uint8_t *bytes = magnitudes + t / 2 * 32, *words = signs + t / 8 * 32;
        for (size_t i = 0; i < 32; i++) {
            const size_t row = row_at(i);
            const unsigned code = t % 2 == 0 ? bytes[i] >> 4 : bytes[i] & 15;
            const unsigned word = bc_get_u16(words + row % 16 * 2);
            const int value = entry(tables, tables + 16, code);
            sums[row] += (word >> (15 - t % 8 * 2 - row / 16) & 1) != 0 ? -value : value;
        }
    }
}
