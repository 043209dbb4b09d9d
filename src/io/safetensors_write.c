/* SPDX-License-Identifier: MIT
 * Writes headers of safetensors files. */
#include "io/safetensors_write.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/bytes.h"

enum { HEADER_ALIGN = 8 };

static void put_tensor(struct bc_jw *w, const struct bitconv_tensor *t, uint64_t at)
{
    bc_jw_key(w, t->name);
    bc_buf_printf(w->buf, "{\"dtype\":\"%s\",\"shape\":[", bitconv_dtype_name(t->dtype));
    for (uint32_t d = 0; d < t->n_dims; d++)
        bc_buf_printf(w->buf, "%s%" PRIu64, d > 0 ? "," : "", t->shape[d]);
    bc_buf_printf(w->buf, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", at, at + t->size);
    w->after_key = false;
    w->first = false;
}

void bc_safetensors_header(const struct bitconv_tensor *const *tensors, size_t n,
                           struct bc_buf *out)
{
    const size_t start = out->size;
    uint64_t at = 0;
    bc_buf_u64(out, 0);
    struct bc_jw w = {.buf = out, .first = true};
    bc_jw_begin_object(&w);
    bc_jw_key(&w, "__metadata__");
    bc_buf_puts(out, "{\"format\":\"pt\"}");
    w.after_key = false;
    w.first = false;
    for (size_t i = 0; i < n; i++) {
        put_tensor(&w, tensors[i], at);
        at += tensors[i]->size;
    }
    bc_jw_end_object(&w);
    while ((out->size - start) % HEADER_ALIGN != 0 && !out->failed)
        bc_buf_putc(out, ' ');
    if (!out->failed) bc_put_u64(out->data + start, out->size - start - sizeof(uint64_t));
}

void bc_safetensors_shard_name(uint32_t index, uint32_t n, char out[BC_SAFETENSORS_NAME])
{
    if (n == 1)
        (void)snprintf(out, BC_SAFETENSORS_NAME, "model.safetensors");
    else
        (void)snprintf(out, BC_SAFETENSORS_NAME, "model-%05" PRIu32 "-of-%05" PRIu32 ".safetensors",
                       index + 1, n);
}
