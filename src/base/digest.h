/* SPDX-License-Identifier: MIT
 * XXH3 digests, streaming. digest.c is the only file that includes xxhash.h. */
#ifndef BC_BASE_DIGEST_H
#define BC_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

struct bc_hash128 {
    uint64_t high, low;
};

struct bc_digest;                      /* opaque state */
struct bc_digest *bc_digest_new(void); /* NULL when out of memory */
/* Appends bytes; however they are cut, the digest is that of all of them. */
void bc_digest_update(struct bc_digest *d, const void *data, size_t size);
struct bc_hash128 bc_digest_128(const struct bc_digest *d); /* XXH3-128, seed 0 */
void bc_digest_free(struct bc_digest *d);

struct bc_hash128 bc_hash128(const void *data, size_t size); /* XXH3-128, seed 0 */
uint64_t bc_hash64(const void *data, size_t size);           /* XXH3-64, seed 0 */
/* 32 lower-case hex digits, high word first, and a NUL. */
void bc_hash128_hex(struct bc_hash128 h, char out[33]);

/* SHA-256 (sha256.c) as 64 lower-case hex digits and a NUL. */
void bc_sha256_hex(const void *data, size_t size, char out[65]);

#endif
