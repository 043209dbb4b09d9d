/* SPDX-License-Identifier: MIT
 * The bound against which packs are measured. */
#ifndef BC_QUANT_ENTROPY_H
#define BC_QUANT_ENTROPY_H

/* Bits a trit, at a share z of zeros and signs that are equally frequent:
 * H(z) = -z log2 z - (1-z) log2((1-z)/2), formats.md section 7. No lossless pack of independent trits
 * is smaller on average. 0 log2 0 counts as 0. */
double bc_entropy_bound(double zeros);

#endif
