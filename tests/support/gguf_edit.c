/* SPDX-License-Identifier: MIT
 * Copies a GGUF through the reader and the builder of tests. */
#include "support/gguf_edit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/gguf_builder.h"

static const struct gguf_edit *edit_of(const struct gguf_edit *edits, size_t n, const char *name,
                                       size_t *used)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(edits[i].name, name) != 0) continue;
        ++*used;
        return &edits[i];
    }
    return NULL;
}

static void copy_key(struct gguf_builder *b, const struct bitconv_gguf_key *key,
                     const struct gguf_edit *e)
{
    const struct bitconv_gguf_value *v = &key->value;
    struct bc_buf value = {0};
    if (e != NULL && e->drop) return;
    if (v->type == BITCONV_GGUF_ARRAY) {
        bc_buf_u32(&value, (uint32_t)v->elem);
        bc_buf_u64(&value, v->count);
    }
    if (e != NULL && e->text != NULL) {
        bc_buf_u64(&value, strlen(e->text));
        bc_buf_puts(&value, e->text);
    } else {
        if (v->type == BITCONV_GGUF_STRING) bc_buf_u64(&value, v->size);
        if (e != NULL) assert_true(e->data != NULL && e->size == v->size);
        bc_buf_append(&value, e != NULL ? e->data : v->data, (size_t)v->size);
    }
    gguf_builder_key_n(b, key->name, key->name_len, (uint32_t)v->type, value.data, value.size);
    bc_buf_release(&value);
}

static void copy_tensor(struct gguf_builder *b, const struct bitconv_gguf_tensor *t,
                        const struct gguf_edit *e)
{
    const bool other = e != NULL && e->data != NULL;
    if (e != NULL && e->drop) return;
    if (other && e->type == NULL) assert_int_equal(e->size, t->size);
    gguf_builder_info(b, e != NULL && e->renamed != NULL ? e->renamed : t->name,
                      e != NULL && e->type != NULL ? *e->type : t->type, t->n_dims, t->ne,
                      b->data.size);
    bc_buf_append(&b->data, other ? e->data : t->data, (size_t)(other ? e->size : t->size));
    while (b->data.size % 32 != 0)
        bc_buf_u8(&b->data, 0);
}

void gguf_edit_write(const struct bitconv_gguf *file, const char *path,
                     const struct gguf_edit *edits, size_t n)
{
    struct gguf_builder b = {0};
    struct bc_buf bytes = {0};
    size_t used = 0;
    for (size_t i = 0; i < bitconv_gguf_n_keys(file); i++) {
        const struct bitconv_gguf_key *key = bitconv_gguf_key_at(file, i);
        copy_key(&b, key, edit_of(edits, n, key->name, &used));
    }
    for (size_t i = 0; i < n; i++) {
        if (!edits[i].add) continue;
        gguf_builder_key(&b, edits[i].name, *edits[i].type, edits[i].data, (size_t)edits[i].size);
        used++;
    }
    for (size_t i = 0; i < bitconv_gguf_n_tensors(file); i++) {
        const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(file, i);
        copy_tensor(&b, t, edit_of(edits, n, t->name, &used));
    }
    assert_int_equal(used, n);
    gguf_builder_bytes(&b, &bytes);
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes.data, 1, bytes.size, out), bytes.size);
    assert_int_equal(fclose(out), 0);
    bc_buf_release(&bytes);
}
