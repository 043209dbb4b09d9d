/* SPDX-License-Identifier: MIT
 * What the files of TL2 kernels share. Contracts: the members of struct bc_kernels with the same
 * names. */
#ifndef BC_QUANT_KERNELS_TL_H
#define BC_QUANT_KERNELS_TL_H

#include "quant/kernels.h"

void bc_scalar_tl2_pack_row(const int8_t *trits, size_t n_groups, unsigned half,
                            uint8_t *magnitudes, uint8_t *words);
bool bc_scalar_tl2_unpack_row(const uint8_t *magnitudes, const uint8_t *words, unsigned half,
                              size_t n_groups, int8_t *trits);
#if defined(__x86_64__)
void bc_avx2_tl2_pack_row(const int8_t *trits, size_t n_groups, unsigned half, uint8_t *magnitudes,
                          uint8_t *words);
bool bc_avx2_tl2_unpack_row(const uint8_t *magnitudes, const uint8_t *words, unsigned half,
                            size_t n_groups, int8_t *trits);
#endif

#endif
