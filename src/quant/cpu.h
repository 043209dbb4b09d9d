/* SPDX-License-Identifier: MIT
 * Which instruction sets this processor has and its operating system keeps the registers of. */
#ifndef BC_QUANT_CPU_H
#define BC_QUANT_CPU_H

#include <stdbool.h>

/* True only when the whole row of kernels can run: every instruction set it uses, and the register
 * state that the operating system saves on a task switch. */
struct bc_cpu {
    bool avx2;   /* x86-64: AVX2, F16C, BMI2 and POPCNT, YMM state enabled */
    bool avx512; /* x86-64: AVX-512 F, BW and VL (with the former), ZMM and mask state enabled */
    bool neon;   /* AArch64, where Advanced SIMD is part of the base architecture */
};

/* Asks the processor. Keeps no state; virtual machines trap the question, so a call may cost tens
 * of microseconds: ask once, not per tensor. */
struct bc_cpu bc_cpu_detect(void);

#endif
