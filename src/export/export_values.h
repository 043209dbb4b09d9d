/* SPDX-License-Identifier: MIT
 * The bytes of a checkpoint's tensor, made from the values of the file's, a few rows at a time.
 * Internal to src/export. */
#ifndef BC_EXPORT_EXPORT_VALUES_H
#define BC_EXPORT_EXPORT_VALUES_H

#include "export/exporter.h"

/* Takes the bytes of a tensor in order. */
typedef enum bitconv_status bc_export_take(void *user, const uint8_t *bytes, size_t n,
                                           struct bitconv_error *err);

/* Memory that grows to what the largest piece needs. */
struct bc_export_room {
    uint8_t *data;
    uint64_t size;
};
/* Scratch memory of the pieces. Zero-initialise. */
struct bc_export_scratch {
    struct bc_export_room trits, values, out;
    const struct bitconv_gguf_tensor *whole; /* whose trits are all in `trits`, or NULL */
};
void bc_export_scratch_release(struct bc_export_scratch *s);

/* Hands all bytes of `t` to `take`. CORRUPT for codes that the pack does not define, LIMIT for
 * values beyond the range of the dtype; CANCELED as the sink says. Counts t->n_inexact. */
enum bitconv_status bc_export_produce(const struct bc_exporter *e, struct bc_export_tensor *t,
                                      struct bc_export_scratch *s, bc_export_take *take, void *user,
                                      struct bitconv_error *err);

/* The magnitude that all values of `t` have which are not 0: they are trits times it. 0: they have
 * several, or one that is not finite; BC_ABSMEAN_MIN where all values are 0. Uses t->source, values,
 * slice, rows, cols and scale; reads until the answer is known. */
enum bitconv_status bc_export_one_magnitude(const struct bc_exporter *e,
                                            const struct bc_export_tensor *t, float *out,
                                            struct bitconv_error *err);

/* The float32 w for which the file's sum w + 1, computed in float32, is y: exact wherever such a w
 * exists at all (export_values.c has the proof), else the nearest; *exact tells. */
float bc_export_minus_one(float y, bool *exact);

#endif
