/* SPDX-License-Identifier: MIT
 * SHA-256 (FIPS 180-4), in which the golden data states what bytes are expected. For tests only. */
#ifndef BC_TESTS_SHA256_H
#define BC_TESTS_SHA256_H

#include <stddef.h>
#include <stdint.h>

/* 64 lower-case hex digits and a NUL. */
void sha256_hex(const uint8_t *data, size_t size, char out[65]);

#endif
