/* SPDX-License-Identifier: MIT
 * Streams a tensor's canonical form (fingerprint.md) into XXH3-128. */
#include "formats/fingerprint.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"

/* Scales of the canonical form: one per slice from three dimensions on, else one. */
static enum bitconv_status count_scales(uint32_t n_dims, const uint64_t *ne, uint32_t n_scales,
                                        uint64_t *out, struct bitconv_error *err)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < n_dims; d++) {
        if (ne[d] == 0)
            return bc_fail(err, BITCONV_E_ARG,
                           "dimension %u of the tensor is 0: no values, so no fingerprint", d);
        if (d >= 2 && !bc_mul_u64(n, ne[d], &n))
            return bc_fail(err, BITCONV_E_LIMIT, "the number of slices exceeds 64 bits");
    }
    if (n_scales == 0 || (n_scales != 1 && n_scales != n))
        return bc_fail(err, BITCONV_E_ARG,
                       "%u scales for a tensor of %llu slices: wanted one, or one per slice",
                       n_scales, (unsigned long long)n);
    if (n > UINT32_MAX)
        return bc_fail(err, BITCONV_E_LIMIT, "%llu slices: a fingerprint counts at most 2^32 - 1",
                       (unsigned long long)n);
    *out = n;
    return BITCONV_OK;
}

static void update_u32(struct bc_digest *digest, uint32_t v)
{
    uint8_t bytes[4];
    bc_put_u32(bytes, v);
    bc_digest_update(digest, bytes, sizeof bytes);
}

static void update_header(struct bc_digest *digest, uint32_t n_dims, const uint64_t *ne)
{
    static const char magic[] = "bitconv-trits-1"; /* with its NUL */
    bc_digest_update(digest, magic, sizeof magic);
    update_u32(digest, n_dims);
    for (uint32_t d = 0; d < n_dims; d++) {
        uint8_t bytes[8];
        bc_put_u64(bytes, ne[d]);
        bc_digest_update(digest, bytes, sizeof bytes);
    }
}

enum bitconv_status bc_fingerprint_begin(struct bc_fingerprint *fp, uint32_t n_dims,
                                         const uint64_t *ne, const float *scales, uint32_t n_scales,
                                         bool all_zero, struct bitconv_error *err)
{
    uint64_t n_canonical = 1;
    *fp = (struct bc_fingerprint){NULL, 0, 0};
    BC_TRY(count_scales(n_dims, ne, n_scales, &n_canonical, err));
    fp->digest = bc_digest_new();
    if (fp->digest == NULL) return bc_fail_nomem(err, "the state of a fingerprint");

    update_header(fp->digest, n_dims, ne);
    update_u32(fp->digest, (uint32_t)n_canonical);
    for (uint64_t i = 0; i < n_canonical; i++) {
        const float scale = all_zero ? BC_ZERO_SCALE : scales[n_scales == 1 ? 0 : i];
        update_u32(fp->digest, bc_f32_bits(scale));
    }
    return BITCONV_OK;
}

static unsigned code_of(int8_t trit)
{
    return (unsigned)(trit + 1) & 3u;
}

/* The codes of eight trits in 16 bits, first one lowest. On the bytes of a word at once: a trit is
 * odd or zero (bit 0) and negative or not (bit 7); code bit 0 is "zero", code bit 1 is "plus". */
static uint16_t codes_of_8(const int8_t *trits)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint8_t bytes[8];
    memcpy(bytes, trits, sizeof bytes);
    const uint64_t word = bc_get_u64(bytes);
    const uint64_t odd = word & ones;
    const uint64_t negative = word >> 7 & ones;
    uint64_t codes = (odd ^ ones) | (odd & ~negative) << 1;
    codes = (codes | codes >> 6) & UINT64_C(0x000f000f000f000f);
    codes = (codes | codes >> 12) & UINT64_C(0x000000ff000000ff);
    return (uint16_t)(codes | codes >> 24);
}

static void update_byte(struct bc_fingerprint *fp)
{
    bc_digest_update(fp->digest, &fp->pending, 1);
    fp->pending = 0;
    fp->n_pending = 0;
}

static void add_pending(struct bc_fingerprint *fp, int8_t trit)
{
    fp->pending = (uint8_t)(fp->pending | code_of(trit) << (2 * fp->n_pending));
    if (++fp->n_pending == 4) update_byte(fp);
}

void bc_fingerprint_trits(struct bc_fingerprint *fp, const int8_t *trits, uint64_t n)
{
    uint64_t i = 0;
    while (fp->n_pending != 0 && i < n)
        add_pending(fp, trits[i++]);
    while (n - i >= 8) {
        uint8_t bytes[4096];
        size_t size = 0;
        for (; n - i >= 8 && size < sizeof bytes; i += 8, size += 2)
            bc_put_u16(bytes + size, codes_of_8(trits + i));
        bc_digest_update(fp->digest, bytes, size);
    }
    while (i < n)
        add_pending(fp, trits[i++]);
}

struct bc_hash128 bc_fingerprint_end(struct bc_fingerprint *fp)
{
    while (fp->n_pending != 0)
        add_pending(fp, 0);
    const struct bc_hash128 hash = bc_digest_128(fp->digest);
    bc_fingerprint_cancel(fp);
    return hash;
}

void bc_fingerprint_cancel(struct bc_fingerprint *fp)
{
    bc_digest_free(fp->digest);
    *fp = (struct bc_fingerprint){NULL, 0, 0};
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum bitconv_status hash_lines(const char **lines, size_t n, struct bc_hash128 *out,
                                      struct bitconv_error *err)
{
    struct bc_digest *digest = bc_digest_new();
    if (digest == NULL) return bc_fail_nomem(err, "the state of a fingerprint");
    qsort(lines, n, sizeof *lines, compare_lines);
    for (size_t i = 0; i < n; i++)
        bc_digest_update(digest, lines[i], strlen(lines[i]));
    *out = bc_digest_128(digest);
    bc_digest_free(digest);
    return BITCONV_OK;
}

enum bitconv_status bc_fingerprint_model(const struct bc_named_hash *tensors, size_t n,
                                         struct bc_hash128 *out, struct bitconv_error *err)
{
    struct bc_arena arena = {NULL};
    const char **lines = bc_arena_alloc(&arena, n, sizeof *lines);
    enum bitconv_status status = BITCONV_OK;
    if (lines == NULL) status = bc_fail_nomem(err, "the fingerprint of a model");
    for (size_t i = 0; i < n && status == BITCONV_OK; i++) {
        char hex[33];
        bc_hash128_hex(tensors[i].hash, hex);
        lines[i] = bc_arena_printf(&arena, "%s %s\n", tensors[i].name, hex);
        if (lines[i] == NULL) status = bc_fail_nomem(err, "the fingerprint of a model");
    }
    if (status == BITCONV_OK) status = hash_lines(lines, n, out, err);
    bc_arena_release(&arena);
    return status;
}
