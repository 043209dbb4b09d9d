/* SPDX-License-Identifier: MIT
 * The tensors of a file that belong to rotary positions: a config states the parameters that they
 * come from, or holds them itself. */
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "export/exporter.h"
#include "model/model_internal.h"

#define ROPE_FREQS    "rope_freqs.weight"
#define LONG_FACTORS  "rope_factors_long.weight"
#define SHORT_FACTORS "rope_factors_short.weight"

/* A divisor for each rotated pair. */
static enum bitconv_status check_table(const struct bc_exporter *e,
                                       const struct bitconv_gguf_tensor *t,
                                       struct bitconv_error *err)
{
    const uint32_t n = e->hp.rope_dims / 2;
    if (strcmp(t->type_name, "F32") != 0 || t->n_elements != n || t->size != 4 * t->n_elements)
        return bc_fail(err, BITCONV_E_CORRUPT, "%s: %s: wanted F32 [%u]", e->path, t->name,
                       (unsigned)n);
    return BITCONV_OK;
}

/* The parameters that Llama 3.1's models were published with; files of other writers hold only the
 * divisors that follow from them. */
static enum bitconv_status recover_llama3(struct bc_exporter *e, const struct bc_values *table,
                                          struct bitconv_error *err)
{
    struct bc_hparams *hp = &e->hp;
    hp->rope_scaling = BC_ROPE_LLAMA3;
    hp->rope_low_freq_factor = 1;
    hp->rope_high_freq_factor = 4;
    hp->rope_orig_ctx = 8192;
    hp->rope_factor = 1;
    float *wanted = bc_arena_alloc(&e->arena, hp->rope_dims / 2, sizeof *wanted);
    if (wanted == NULL) return bc_fail_nomem(err, "rope_freqs");
    for (uint64_t i = 0; i < table->n; i++)
        hp->rope_factor = fmaxf(hp->rope_factor, bc_get_f32(table->data + 4 * i));
    if (!isfinite(hp->rope_factor)) hp->rope_factor = 1;
    bc_rope_llama3_factors(hp, wanted);
    for (uint64_t i = 0; i < table->n; i++)
        if (!(fabsf(bc_get_f32(table->data + 4 * i) - wanted[i]) <= 1e-4f * wanted[i]))
            return bc_fail(err, BITCONV_E_UNSUPPORTED,
                           "%s: rope_freqs.weight: not the divisors of Llama 3's RoPE scaling for "
                           "any factor: a config cannot say them",
                           e->path);
    bc_say(e->sink, BITCONV_WARNING,
           "%s: the parameters of the RoPE scaling are not stated; rope_freqs.weight is that of "
           "llama3 with factor %g, low_freq_factor 1, high_freq_factor 4, original context 8192",
           e->path, (double)hp->rope_factor);
    return BITCONV_OK;
}

/* rope_freqs.weight: a file states what it comes from, or it must be found out. */
static enum bitconv_status read_rope_freqs(struct bc_exporter *e, struct bitconv_error *err)
{
    const struct bitconv_gguf_tensor *t = bitconv_gguf_find_tensor(e->file, ROPE_FREQS);
    const bool stated = e->hp.rope_scaling == BC_ROPE_LLAMA3;
    if (t == NULL && stated)
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "%s: rope_freqs.weight: missing, but the RoPE scaling is llama3", e->path);
    if (t == NULL) return BITCONV_OK;
    BC_TRY(check_table(e, t, err));
    const struct bc_values table = {BITCONV_F32, t->data, t->n_elements};
    if (!stated) return recover_llama3(e, &table, err);
    float *wanted = bc_arena_alloc(&e->arena, (size_t)table.n, sizeof *wanted);
    if (wanted == NULL) return bc_fail_nomem(err, "rope_freqs");
    bc_rope_llama3_factors(&e->hp, wanted);
    for (uint64_t i = 0; i < table.n; i++) {
        if (bc_f32_bits(wanted[i]) == bc_get_u32(table.data + 4 * i)) continue;
        bc_say(e->sink, BITCONV_WARNING,
               "%s: rope_freqs.weight is not what the stated RoPE scaling gives (value %llu); the "
               "checkpoint gets the stated scaling",
               e->path, (unsigned long long)i);
        break;
    }
    return BITCONV_OK;
}

/* One of longrope's lists. */
static enum bitconv_status read_factors(struct bc_exporter *e, const char *name, const float **out,
                                        struct bitconv_error *err)
{
    const struct bitconv_gguf_tensor *t = bitconv_gguf_find_tensor(e->file, name);
    if (t == NULL)
        return bc_fail(err, BITCONV_E_CORRUPT, "%s: %s: missing, but the RoPE scaling is longrope",
                       e->path, name);
    BC_TRY(check_table(e, t, err));
    float *values = bc_arena_alloc(&e->arena, (size_t)t->n_elements, sizeof *values);
    if (values == NULL) return bc_fail_nomem(err, "rope factors");
    for (uint64_t i = 0; i < t->n_elements; i++) {
        values[i] = bc_get_f32(t->data + 4 * i);
        if (!isfinite(values[i]) || values[i] <= 0)
            return bc_fail(err, BITCONV_E_CORRUPT, "%s: %s: value %llu is %g, wanted above 0",
                           e->path, name, (unsigned long long)i, (double)values[i]);
    }
    *out = values;
    return BITCONV_OK;
}

static enum bitconv_status read_longrope(struct bc_exporter *e, struct bitconv_error *err)
{
    struct bc_hparams *hp = &e->hp;
    if (hp->rope_orig_ctx < 2) /* its logarithm divides */
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "%s: rope.scaling.original_context_length is %u: longrope needs 2 or more",
                       e->path, (unsigned)hp->rope_orig_ctx);
    BC_TRY(read_factors(e, LONG_FACTORS, &hp->rope_long_factors, err));
    return read_factors(e, SHORT_FACTORS, &hp->rope_short_factors, err);
}

enum bitconv_status bc_export_read_rope(struct bc_exporter *e, struct bitconv_error *err)
{
    if (e->hp.rope_scaling == BC_ROPE_LONGROPE) BC_TRY(read_longrope(e, err));
    return read_rope_freqs(e, err);
}

bool bc_export_is_rope(const struct bc_exporter *e, const char *name)
{
    if (strcmp(name, ROPE_FREQS) == 0) return true;
    return e->hp.rope_scaling == BC_ROPE_LONGROPE &&
           (strcmp(name, LONG_FACTORS) == 0 || strcmp(name, SHORT_FACTORS) == 0);
}
