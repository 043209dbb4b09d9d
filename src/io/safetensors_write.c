/* SPDX-License-Identifier: MIT
 * Writes headers of safetensors files, and the index of a set. */
#include "io/safetensors_write.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/bytes.h"

enum { HEADER_ALIGN = 8 };

struct bc_safetensors_header bc_safetensors_header_begin(struct bc_buf *out)
{
    bc_buf_u64(out, 0);
    bc_buf_puts(out, "{\"__metadata__\":{\"format\":\"pt\"}");
    return (struct bc_safetensors_header){.out = out};
}

void bc_safetensors_header_add(struct bc_safetensors_header *header, const char *name,
                               enum bitconv_dtype dtype, const uint64_t *shape, uint32_t n_dims,
                               uint64_t size)
{
    struct bc_buf *out = header->out;
    struct bc_jw quoted = {.buf = out, .first = true};
    bc_buf_putc(out, ',');
    bc_jw_string(&quoted, name);
    bc_buf_printf(out, ":{\"dtype\":\"%s\",\"shape\":[", bitconv_dtype_name(dtype));
    for (uint32_t d = 0; d < n_dims; d++)
        bc_buf_printf(out, "%s%" PRIu64, d > 0 ? "," : "", shape[d]);
    bc_buf_printf(out, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", header->at,
                  header->at + size);
    header->at += size;
}

void bc_safetensors_header_end(struct bc_safetensors_header *header)
{
    struct bc_buf *out = header->out;
    bc_buf_putc(out, '}');
    while (out->size % HEADER_ALIGN != 0 && !out->failed)
        bc_buf_putc(out, ' ');
    if (!out->failed) bc_put_u64(out->data, out->size - sizeof(uint64_t));
}

void bc_safetensors_shard_name(uint32_t index, uint32_t n, char out[BC_SAFETENSORS_NAME])
{
    if (n == 1)
        (void)snprintf(out, BC_SAFETENSORS_NAME, "model.safetensors");
    else
        (void)snprintf(out, BC_SAFETENSORS_NAME, "model-%05" PRIu32 "-of-%05" PRIu32 ".safetensors",
                       index + 1, n);
}

struct bc_safetensors_index bc_safetensors_index_begin(struct bc_buf *out, uint64_t total_size,
                                                       uint32_t n_files)
{
    struct bc_safetensors_index index = {.json = {.buf = out, .first = true}, .n_files = n_files};
    bc_jw_begin_object(&index.json);
    bc_jw_key(&index.json, "metadata");
    bc_jw_begin_object(&index.json);
    bc_jw_key_u64(&index.json, "total_size", total_size);
    bc_jw_end_object(&index.json);
    bc_jw_key(&index.json, "weight_map");
    bc_jw_begin_object(&index.json);
    return index;
}

void bc_safetensors_index_add(struct bc_safetensors_index *index, const char *name, uint32_t file)
{
    char file_name[BC_SAFETENSORS_NAME];
    bc_safetensors_shard_name(file, index->n_files, file_name);
    bc_jw_key_string(&index->json, name, file_name);
}

void bc_safetensors_index_end(struct bc_safetensors_index *index)
{
    bc_jw_end_object(&index->json);
    bc_jw_end_object(&index->json);
    bc_buf_putc(index->json.buf, '\n');
}
