/* SPDX-License-Identifier: MIT
 * CPUID and XGETBV: Intel SDM volume 2 (CPUID leaves 1 and 7), volume 1 section 14.3 (detection of
 * AVX: the processor's bits alone do not tell whether the operating system saves the registers). */
#include "quant/cpu.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>
#include <stdint.h>

enum {
    LEAF1_ECX_POPCNT = 1 << 23,
    LEAF1_ECX_OSXSAVE = 1 << 27,
    LEAF1_ECX_AVX = 1 << 28,
    LEAF1_ECX_F16C = 1 << 29,
    LEAF7_EBX_AVX2 = 1 << 5,
    LEAF7_EBX_BMI2 = 1 << 8,
    LEAF7_EBX_AVX512F = 1 << 16,
    LEAF7_EBX_AVX512BW = 1 << 30
};
#define LEAF7_EBX_AVX512VL (1u << 31)

#define XCR0_YMM 0x06u /* SSE and AVX state */
#define XCR0_ZMM 0xe6u /* these, the mask registers, and both parts of the ZMM state */

/* XCR0: which register states the operating system has enabled. */
__attribute__((target("xsave"))) static uint32_t enabled_state(void)
{
    return (uint32_t)_xgetbv(0);
}

static bool all_of(uint32_t value, uint32_t bits)
{
    return (value & bits) == bits;
}

struct bc_cpu bc_cpu_detect(void)
{
    struct bc_cpu cpu = {false, false, false};
    unsigned eax, ebx, ecx, edx;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return cpu;
    if (!all_of(ecx, LEAF1_ECX_POPCNT | LEAF1_ECX_OSXSAVE | LEAF1_ECX_AVX | LEAF1_ECX_F16C))
        return cpu;
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return cpu;

    const uint32_t state = enabled_state();
    cpu.avx2 = all_of(ebx, LEAF7_EBX_AVX2 | LEAF7_EBX_BMI2) && all_of(state, XCR0_YMM);
    cpu.avx512 = cpu.avx2 && all_of(state, XCR0_ZMM) &&
                 all_of(ebx, LEAF7_EBX_AVX512F | LEAF7_EBX_AVX512BW | LEAF7_EBX_AVX512VL);
    return cpu;
}

#elif defined(__AARCH64EL__)

struct bc_cpu bc_cpu_detect(void)
{
    return (struct bc_cpu){false, false, true};
}

#else

struct bc_cpu bc_cpu_detect(void)
{
    return (struct bc_cpu){false, false, false};
}

#endif
