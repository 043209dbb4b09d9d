/* SPDX-License-Identifier: MIT
 * Runs verify for tests, and adds whole tensors to built GGUFs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "support/temp_dir.h"
#include "support/verify_run.h"

static void on_message(void *user, enum bitconv_severity severity, const char *text)
{
    struct verify_run *run = user;
    struct bc_buf *list = severity == BITCONV_FINDING   ? &run->problems
                          : severity == BITCONV_WARNING ? &run->warnings
                                                        : &run->notes;
    bc_buf_printf(list, "%s\n", text);
}

void verify_run(struct verify_run *run, const char *path,
                const struct bitconv_verify_options *options)
{
    const struct bitconv_sink sink = {.message = on_message, .user = run};
    struct bitconv_error err = {0};
    verify_run_release(run);
    run->status = bitconv_verify(path, options, &sink, &run->result, &err);
    if (run->status != BITCONV_OK) bc_buf_printf(&run->problems, "%s\n", err.text);
}

void verify_run_release(struct verify_run *run)
{
    bitconv_verification_free(run->result);
    bc_buf_release(&run->problems);
    bc_buf_release(&run->warnings);
    bc_buf_release(&run->notes);
    memset(run, 0, sizeof *run);
}

bool verify_run_ok(const struct verify_run *run)
{
    return run->status == BITCONV_OK && run->result->ok;
}

const struct bitconv_proof *verify_run_proof(const struct verify_run *run, const char *name)
{
    if (run->result == NULL) fail_msg("verify failed: %s", bc_buf_str(&run->problems));
    for (size_t i = 0; i < run->result->n_proofs; i++)
        if (strcmp(run->result->proofs[i].name, name) == 0) return &run->result->proofs[i];
    fail_msg("no proof is called %s", name);
    return NULL;
}

bool verify_run_says(const struct bc_buf *list, const char *text)
{
    return strstr(bc_buf_str(list), text) != NULL;
}

void gguf_builder_data(struct gguf_builder *b, const char *name, uint32_t type, uint32_t n_dims,
                       const uint64_t *ne, const void *data, size_t size)
{
    gguf_builder_info(b, name, type, n_dims, ne, b->data.size);
    bc_buf_append(&b->data, data, size);
    while (b->data.size % 32 != 0)
        bc_buf_u8(&b->data, 0);
}

void gguf_builder_strings(struct gguf_builder *b, const char *name, const char *const *strings,
                          size_t n)
{
    struct bc_buf value = {0};
    bc_buf_u32(&value, 8);
    bc_buf_u64(&value, n);
    for (size_t i = 0; i < n; i++) {
        bc_buf_u64(&value, strlen(strings[i]));
        bc_buf_puts(&value, strings[i]);
    }
    gguf_builder_key(b, name, 9, value.data, value.size);
    bc_buf_release(&value);
}

void gguf_builder_numbers(struct gguf_builder *b, const char *name, uint32_t elem,
                          const uint32_t *bits, size_t n)
{
    struct bc_buf value = {0};
    bc_buf_u32(&value, elem);
    bc_buf_u64(&value, n);
    for (size_t i = 0; i < n; i++)
        bc_buf_u32(&value, bits[i]);
    gguf_builder_key(b, name, 9, value.data, value.size);
    bc_buf_release(&value);
}

void i2_s_bytes(struct bc_buf *buf, uint64_t n, uint8_t byte, float scale)
{
    for (uint64_t i = 0; i < n / 4; i++)
        bc_buf_u8(buf, byte);
    bc_buf_f32(buf, scale);
    for (int i = 0; i < 28; i++)
        bc_buf_u8(buf, 0);
}

char *gguf_builder_write(struct gguf_builder *b, const char *dir, const char *name)
{
    struct bc_buf bytes = {0};
    gguf_builder_bytes(b, &bytes);
    temp_dir_write(dir, name, bytes.data, bytes.size);
    bc_buf_release(&bytes);
    return temp_dir_path(dir, name);
}
