/* SPDX-License-Identifier: MIT
 * Makes well-formed safetensors files for tests. */
#include "support/st_builder.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/json.h"

static void begin_entry(struct st_builder *b, const char *key)
{
    struct bc_jw w = {.buf = &b->entries, .first = true};
    if (b->entries.size > 0) bc_buf_putc(&b->entries, ',');
    bc_jw_string(&w, key);
    bc_buf_putc(&b->entries, ':');
}

void st_builder_add(struct st_builder *b, const char *name, enum bitconv_dtype dtype,
                    uint32_t n_dims, const uint64_t *shape, const void *data, size_t size)
{
    const size_t begin = b->data.size;
    if (data != NULL) {
        bc_buf_append(&b->data, data, size);
    } else {
        for (size_t i = 0; i < size; i++)
            bc_buf_u8(&b->data, 0);
    }
    begin_entry(b, name);
    bc_buf_printf(&b->entries, "{\"dtype\":\"%s\",\"shape\":[", bitconv_dtype_name(dtype));
    for (uint32_t i = 0; i < n_dims; i++)
        bc_buf_printf(&b->entries, "%s%llu", i > 0 ? "," : "", (unsigned long long)shape[i]);
    bc_buf_printf(&b->entries, "],\"data_offsets\":[%zu,%zu]}", begin, begin + size);
}

void st_builder_add_floats(struct st_builder *b, const char *name, enum bitconv_dtype dtype,
                           uint32_t n_dims, const uint64_t *shape, const float *values)
{
    struct bc_buf data = {NULL, 0, 0, false};
    size_t n = 1;
    for (uint32_t i = 0; i < n_dims; i++)
        n *= (size_t)shape[i];
    for (size_t i = 0; i < n; i++) {
        uint8_t half[2];
        if (dtype == BITCONV_F32) {
            bc_buf_f32(&data, values[i]);
            continue;
        }
        bc_put_u16(half,
                   dtype == BITCONV_F16 ? bc_f32_to_f16(values[i]) : bc_f32_to_bf16(values[i]));
        bc_buf_append(&data, half, sizeof half);
    }
    st_builder_add(b, name, dtype, n_dims, shape, bc_buf_str(&data), data.size);
    if (data.failed) b->data.failed = true;
    bc_buf_release(&data);
}

void st_builder_metadata(struct st_builder *b, const char *key, const char *value)
{
    struct bc_jw w = {.buf = &b->entries, .first = true};
    begin_entry(b, "__metadata__");
    bc_jw_begin_object(&w);
    bc_jw_key(&w, key);
    bc_jw_string(&w, value);
    bc_jw_end_object(&w);
}

void st_builder_bytes(const struct st_builder *b, struct bc_buf *out)
{
    bc_buf_u64(out, b->entries.size + 2);
    bc_buf_putc(out, '{');
    bc_buf_append(out, bc_buf_str(&b->entries), b->entries.size);
    bc_buf_putc(out, '}');
    bc_buf_append(out, bc_buf_str(&b->data), b->data.size);
    if (b->entries.failed || b->data.failed) out->failed = true;
}

bool st_builder_write(const struct st_builder *b, const char *path)
{
    struct bc_buf bytes = {NULL, 0, 0, false};
    st_builder_bytes(b, &bytes);
    bool ok = !bytes.failed;
    FILE *const f = ok ? fopen(path, "wb") : NULL;
    if (f != NULL) {
        ok = fwrite(bytes.data, 1, bytes.size, f) == bytes.size;
        ok = fclose(f) == 0 && ok;
    }
    bc_buf_release(&bytes);
    return ok && f != NULL;
}

void st_builder_release(struct st_builder *b)
{
    bc_buf_release(&b->entries);
    bc_buf_release(&b->data);
}
