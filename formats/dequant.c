/* SPDX-License-Identifier: MIT
 * The table of decoders, and reading at any place. */
#include "formats/dequant.h"

#include <string.h>

#include "formats/dequant_rows.h"

static const struct bc_dequant rows[] = {
    {"F32", 1, 4, bc_dequant_f32},
    {"F16", 1, 2, bc_dequant_f16},
    {"BF16", 1, 2, bc_dequant_bf16},
    {"F64", 1, 8, bc_dequant_f64},
    {"I8", 1, 1, bc_dequant_i8},
    {"I16", 1, 2, bc_dequant_i16},
    {"I32", 1, 4, bc_dequant_i32},
    {"I64", 1, 8, bc_dequant_i64},
    {"Q4_0", 32, 18, bc_dequant_q4_0},
    {"Q4_1", 32, 20, bc_dequant_q4_1},
    {"Q5_0", 32, 22, bc_dequant_q5_0},
    {"Q5_1", 32, 24, bc_dequant_q5_1},
    {"Q8_0", 32, 34, bc_dequant_q8_0},
    {"Q8_1", 32, 36, bc_dequant_q8_1},
    {"Q2_K", 256, 84, bc_dequant_q2_k},
    {"Q3_K", 256, 110, bc_dequant_q3_k},
    {"Q4_K", 256, 144, bc_dequant_q4_k},
    {"Q5_K", 256, 176, bc_dequant_q5_k},
    {"Q6_K", 256, 210, bc_dequant_q6_k},
    {"Q8_K", 256, 292, bc_dequant_q8_k},
    {"IQ1_S", 256, 50, bc_dequant_iq1_s},
    {"IQ1_M", 256, 56, bc_dequant_iq1_m},
    {"IQ2_XXS", 256, 66, bc_dequant_iq2_xxs},
    {"IQ2_XS", 256, 74, bc_dequant_iq2_xs},
    {"IQ2_S", 256, 82, bc_dequant_iq2_s},
    {"IQ3_XXS", 256, 98, bc_dequant_iq3_xxs},
    {"IQ3_S", 256, 110, bc_dequant_iq3_s},
    {"IQ4_NL", 32, 18, bc_dequant_iq4_nl},
    {"IQ4_XS", 256, 136, bc_dequant_iq4_xs},
    {"MXFP4", 32, 17, bc_dequant_mxfp4},
    {"NVFP4", 64, 36, bc_dequant_nvfp4},
    {"TQ1_0", 256, 54, bc_dequant_tq1_0},
    {"TQ2_0", 256, 66, bc_dequant_tq2_0},
    {"Q1_0", 128, 18, bc_dequant_q1_0},
    {"Q1_0_G32", 32, 6, bc_dequant_q1_0_g32},
    {"Q2_0", 64, 18, bc_dequant_q2_0},
    {"Q2_0_G128", 128, 34, bc_dequant_q2_0_g128},
};
#define N_ROWS (sizeof rows / sizeof rows[0])

static const struct {
    const char *type_name, *reason;
} refusals[] = {
    {"PQ2_0", "its values are weights in a Hadamard-rotated basis, which the prism.hadamard.* keys "
              "describe; as they stand they are not the model's weights"},
    {"PTQ1_0", "its values are weights in a Hadamard-rotated basis, which the prism.hadamard.* "
               "keys describe; as they stand they are not the model's weights"},
    {"Q4_2", "ggml removed the type in 2023, before GGUF existed"},
    {"Q4_3", "ggml removed the type in 2023, before GGUF existed"},
    {"Q4_0_4_4", "ggml removed the type; its rows are interleaved for one kind of processor"},
    {"Q4_0_4_8", "ggml removed the type; its rows are interleaved for one kind of processor"},
    {"Q4_0_8_8", "ggml removed the type; its rows are interleaved for one kind of processor"},
    {"IQ4_NL_4_4", "ggml removed the type; its rows are interleaved for one kind of processor"},
    {"IQ4_NL_4_8", "ggml removed the type; its rows are interleaved for one kind of processor"},
    {"IQ4_NL_8_8", "ggml removed the type; its rows are interleaved for one kind of processor"},
    {"I8_S", "bitnet.cpp uses it for activations at run time, not in files"},
};
#define N_REFUSALS (sizeof refusals / sizeof refusals[0])

const struct bc_dequant *bc_dequant_find(const char *type_name)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        if (strcmp(rows[i].type_name, type_name) == 0) return &rows[i];
    }
    return NULL;
}

const char *bc_dequant_refusal(const char *type_name)
{
    for (size_t i = 0; i < N_REFUSALS; i++) {
        if (strcmp(refusals[i].type_name, type_name) == 0) return refusals[i].reason;
    }
    return NULL;
}

/* Values [from, to) of one block. */
static void part_of_block(const struct bc_dequant *d, const uint8_t *block, uint64_t from,
                          uint64_t to, float *dst)
{
    float values[BC_DEQUANT_MAX_BLOCK];
    d->rows(block, 1, values);
    memcpy(dst, values + from, (size_t)(to - from) * sizeof *dst);
}

void bc_dequant_values(const struct bc_dequant *d, const uint8_t *data, uint64_t first, uint64_t n,
                       float *dst)
{
    const uint8_t *block = data + first / d->block * d->block_size;
    const uint64_t from = first % d->block;
    if (from != 0) {
        const uint64_t to = n < d->block - from ? from + n : d->block;
        part_of_block(d, block, from, to, dst);
        block += d->block_size;
        dst += to - from;
        n -= to - from;
    }
    const uint64_t n_blocks = n / d->block;
    d->rows(block, n_blocks, dst);
    const uint64_t rest = n % d->block;
    if (rest != 0)
        part_of_block(d, block + n_blocks * d->block_size, 0, rest, dst + n_blocks * d->block);
}
