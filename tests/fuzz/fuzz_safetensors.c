/* SPDX-License-Identifier: MIT
 * Fuzz entry point: the safetensors reader. Any bytes are refused with a message or give tensors
 * that lie within them and fill their data section exactly; what breaks that ends the process. */
#include <stdlib.h>
#include <string.h>

#include "io/safetensors_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) abort();
}

static uint64_t check_tensor(const struct bitconv_safetensors *st, size_t index,
                             const uint8_t *data, size_t size)
{
    const struct bitconv_tensor *const t = bitconv_safetensors_at(st, index);
    require(bitconv_safetensors_find(st, t->name) == t);
    require(t->file_offset <= size && t->size <= size - t->file_offset);
    require(t->data == data + t->file_offset);
    require(t->size == t->n_elements * bitconv_dtype_size(t->dtype));
    uint64_t n = 1;
    for (uint32_t i = 0; i < t->n_dims; i++)
        n *= t->shape[i];
    require(n == t->n_elements);
    if (index > 0) require(strcmp(bitconv_safetensors_at(st, index - 1)->name, t->name) < 0);
    return t->size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bitconv_safetensors *st;
    struct bitconv_error err = {BITCONV_OK, 0, 0, ""};
    if (bc_safetensors_parse(data, size, "fuzz.safetensors", &st, &err) != BITCONV_OK) {
        require(st == NULL && err.status != BITCONV_OK && err.text[0] != '\0');
        return 0;
    }
    uint64_t total = 8 + bitconv_safetensors_header_size(st);
    for (size_t i = 0; i < bitconv_safetensors_count(st); i++)
        total += check_tensor(st, i, data, size);
    require(total == size);
    for (size_t i = 0; i < bitconv_safetensors_metadata_count(st); i++) {
        const char *key = NULL, *value = NULL;
        require(bitconv_safetensors_metadata_at(st, i, &key, &value));
        require(key != NULL && value != NULL);
    }
    bitconv_safetensors_close(st);
    return 0;
}
