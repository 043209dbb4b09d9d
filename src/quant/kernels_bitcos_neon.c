/* SPDX-License-Identifier: MIT
 * BITCOS for AArch64: the table of masks, with its logic in vectors of eight bytes. */
#if defined(__AARCH64EL__)

#include <arm_neon.h>

#include "quant/kernels_bitcos.h"

static inline uint8x8_t masks_of(unsigned presence)
{
    return vcreate_u8(bc_bitcos_sign_masks[presence]);
}

static inline uint64_t pack_word(const int8_t *src, struct bc_sign_sink *sink)
{
    const uint8x8_t bit_of = vcreate_u8(UINT64_C(0x8040201008040201));
    uint64_t presence = 0, signs = 0;
    unsigned n_signs = 0;
    for (unsigned i = 0; i < 8; i++) {
        const int8x8_t trits = vld1_s8(src + 8 * i);
        const uint8x8_t present = vtst_s8(trits, trits);
        const unsigned p = vaddv_u8(vand_u8(present, bit_of));
        const uint8x8_t negative = vand_u8(masks_of(p), vcltz_s8(trits));
        presence |= (uint64_t)p << 8 * i;
        signs |= (uint64_t)vaddv_u8(negative) << n_signs;
        n_signs += bc_count_ones(p);
    }
    bc_sign_sink_append(sink, signs, n_signs);
    return presence;
}

uint64_t bc_neon_bitcos_pack(const int8_t *src, size_t n, uint8_t *bitmap, uint8_t *signs,
                             size_t n_words, uint64_t rank)
{
    struct bc_sign_sink sink = bc_sign_sink_open(signs, n_words, rank);
    for (; n >= 64; n -= 64, src += 64, bitmap += 8)
        bc_put_u64(bitmap, pack_word(src, &sink));
    bc_sign_sink_flush(&sink);
    return bc_table_bitcos_pack(src, n, bitmap, signs, n_words, sink.rank);
}

/* Counts of the eight bytes, each added to those of the bytes below it: byte i of the result is the
 * number of signs before byte i + 1 of the word. */
static inline uint64_t running_counts(uint64_t presence)
{
    const uint64_t counts = vget_lane_u64(vreinterpret_u64_u8(vcnt_u8(vcreate_u8(presence))), 0);
    return counts * UINT64_C(0x0101010101010101);
}

static inline void unpack_word(uint64_t presence, uint64_t signs, uint64_t counts, int8_t *dst)
{
    const uint8x8_t one = vdup_n_u8(1);
    for (unsigned i = 0; i < 8; i++) {
        const unsigned before = i == 0 ? 0 : (unsigned)(counts >> 8 * (i - 1) & 0xff);
        const uint8x8_t masks = masks_of((unsigned)(presence >> 8 * i & 0xff));
        /* Eight bytes from 64 bits: before is at most 56. */
        const uint8x8_t negative = vtst_u8(masks, vdup_n_u8((uint8_t)(signs >> before)));
        const uint8x8_t ones = vand_u8(vtst_u8(masks, masks), one);
        vst1_s8(dst + 8 * i, vreinterpret_s8_u8(vorr_u8(ones, negative)));
    }
}

uint64_t bc_neon_bitcos_unpack(const uint8_t *bitmap, size_t n, const uint8_t *signs,
                               uint64_t n_signs, uint64_t rank, int8_t *dst)
{
    for (; n >= 64; n -= 64, bitmap += 8, dst += 64) {
        const uint64_t presence = bc_get_u64(bitmap);
        const uint64_t counts = running_counts(presence);
        const uint64_t end = rank + (counts >> 56);
        if (end > n_signs) break;
        unpack_word(presence, bc_sign_window(signs, n_signs, rank), counts, dst);
        rank = end;
    }
    return bc_table_bitcos_unpack(bitmap, n, signs, n_signs, rank, dst);
}

#else
/* An ISO C file must declare something. */
typedef int bc_kernels_bitcos_neon_is_for_aarch64;
#endif
