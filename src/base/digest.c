/* SPDX-License-Identifier: MIT
 * XXH3 digests, streaming, through libxxhash. */
#include "base/digest.h"

#include <stdio.h>
#include <xxhash.h>

#include "base/mem.h"

struct bc_digest {
    XXH3_state_t *state; /* the library's own allocation: it needs 64-byte alignment */
};

static struct bc_hash128 from_xxh(XXH128_hash_t h)
{
    const struct bc_hash128 out = {h.high64, h.low64};
    return out;
}

struct bc_digest *bc_digest_new(void)
{
    struct bc_digest *const d = bc_alloc_array(1, sizeof *d);
    if (d == NULL) return NULL;
    d->state = XXH3_createState();
    if (d->state == NULL || XXH3_128bits_reset(d->state) != XXH_OK) {
        bc_digest_free(d);
        return NULL;
    }
    return d;
}

void bc_digest_update(struct bc_digest *d, const void *data, size_t size)
{
    /* Fails only for a NULL pointer, which an empty piece may be. */
    if (size > 0) (void)XXH3_128bits_update(d->state, data, size);
}

struct bc_hash128 bc_digest_128(const struct bc_digest *d)
{
    return from_xxh(XXH3_128bits_digest(d->state));
}

void bc_digest_free(struct bc_digest *d)
{
    if (d == NULL) return;
    (void)XXH3_freeState(d->state);
    bc_free(d);
}

struct bc_hash128 bc_hash128(const void *data, size_t size)
{
    return from_xxh(XXH3_128bits(size > 0 ? data : "", size));
}

uint64_t bc_hash64(const void *data, size_t size)
{
    return XXH3_64bits(size > 0 ? data : "", size);
}

void bc_hash128_hex(struct bc_hash128 h, char out[33])
{
    (void)snprintf(out, 33, "%016llx%016llx", (unsigned long long)h.high,
                   (unsigned long long)h.low);
}
