/* SPDX-License-Identifier: MIT
 * Fuzz entry point: the GGUF reader. Any bytes are refused with a message or give keys and tensors
 * that lie within them, in every dialect; what breaks that ends the process. */
#include <stdlib.h>
#include <string.h>

#include "io/gguf_impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) abort();
}

/* [p, p + n) is inside the input; empty ranges may point anywhere. */
static void require_inside(const uint8_t *data, size_t size, const uint8_t *p, uint64_t n)
{
    if (n == 0) return;
    require(p >= data && p <= data + size);
    require(n <= (uint64_t)(data + size - p));
}

static void check_key(const struct bitconv_gguf *g, const struct bitconv_gguf_key *key,
                      const uint8_t *data, size_t size)
{
    const struct bitconv_gguf_value *v = &key->value;
    struct bitconv_gguf_value element;
    const char *text;
    size_t len;
    uint64_t u, pos = 0, n = 0;
    int64_t i;
    double d;
    bool b;
    require_inside(data, size, v->data, v->size);
    if (memchr(key->name, 0, key->name_len) == NULL) {
        require(bitconv_gguf_find_key(g, key->name) == v);
    }
    (void)bitconv_gguf_value_u64(v, &u);
    (void)bitconv_gguf_value_i64(v, &i);
    (void)bitconv_gguf_value_f64(v, &d);
    (void)bitconv_gguf_value_bool(v, &b);
    if (bitconv_gguf_value_string(v, &text, &len)) {
        require_inside(data, size, (const uint8_t *)text, len);
    }
    if (v->type != BITCONV_GGUF_ARRAY) return;
    if (v->elem == BITCONV_GGUF_STRING) {
        for (; bitconv_gguf_array_next_string(v, &pos, &text, &len); n++)
            require_inside(data, size, (const uint8_t *)text, len);
        require(n == v->count && pos == v->size);
    } else {
        for (; n < v->count; n++)
            require(bitconv_gguf_array_at(v, n, &element));
    }
    require(!bitconv_gguf_array_at(v, v->count, &element));
}

static void check_tensor(const struct bitconv_gguf *g, const struct bitconv_gguf_tensor *t,
                         const uint8_t *data, size_t size)
{
    uint64_t n = 1;
    require(t->n_dims <= BITCONV_GGUF_MAX_DIMS && t->type_name != NULL);
    for (uint32_t d = 0; d < BITCONV_GGUF_MAX_DIMS; d++)
        n *= t->ne[d];
    require(n == t->n_elements);
    require(t->data == data + t->file_offset && t->file_offset <= size);
    require_inside(data, size, t->data, t->span);
    require_inside(data, size, t->data, t->size);
    if (memchr(t->name, 0, t->name_len) == NULL) {
        require(bitconv_gguf_find_tensor(g, t->name) == t);
    }
}

static void check_file(struct bitconv_gguf *g, const uint8_t *data, size_t size)
{
    require(bitconv_gguf_dialect_evidence(g)[0] != '\0');
    require(bitconv_gguf_data_offset(g) <= size);
    for (size_t i = 0; i < bitconv_gguf_n_tensors(g); i++)
        check_tensor(g, bitconv_gguf_tensor_at(g, i), data, size);
    for (size_t i = 0; i < bitconv_gguf_n_findings(g); i++)
        require(bitconv_gguf_finding_at(g, i)->text[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bitconv_gguf *g = NULL;
    struct bitconv_error err = {BITCONV_OK, 0, 0, ""};
    if (bc_gguf_parse(data, size, "fuzz.gguf", &g, &err) != BITCONV_OK) {
        require(g == NULL && err.status != BITCONV_OK && err.text[0] != '\0');
        return 0;
    }
    for (size_t i = 0; i < bitconv_gguf_n_keys(g); i++)
        check_key(g, bitconv_gguf_key_at(g, i), data, size);
    check_file(g, data, size);
    for (int d = BITCONV_DIALECT_UPSTREAM; d < BITCONV_N_DIALECTS; d++) {
        (void)bitconv_gguf_set_dialect(g, (enum bitconv_dialect)d, NULL);
        check_file(g, data, size);
    }
    bitconv_gguf_close(g);
    return 0;
}
