/* SPDX-License-Identifier: MIT
 * Runs the tokenizer step of a conversion on a scratch folder and reads its keys back. */
#include "support/tokenizer_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "support/temp_dir.h"

static void collect(void *user, enum bitconv_severity severity, const char *text)
{
    static const char *const names[] = {"note", "warning", "finding"};
    struct bc_buf *const buf = user;
    bc_buf_printf(buf, "%s: %s\n", names[severity], text);
}

/* The header that the writer plans is a complete GGUF file without tensors. */
static void read_back(struct tokenizer_run *run, struct bitconv_gguf_writer *w)
{
    const uint8_t *header;
    uint64_t header_size;
    uint64_t file_size;
    assert_int_equal(bitconv_gguf_writer_plan(w, &header, &header_size, &file_size, NULL),
                     BITCONV_OK);
    temp_dir_write(run->dir, "out.gguf", header, (size_t)header_size);
    char *const path = temp_dir_path(run->dir, "out.gguf");
    struct bitconv_error err = {0};
    const enum bitconv_status status = bitconv_gguf_open(path, &run->gguf, &err);
    free(path);
    if (status != BITCONV_OK) fail_msg("%s", err.text);
}

static void forget(struct tokenizer_run *run)
{
    bitconv_gguf_close(run->gguf);
    run->gguf = NULL;
    bc_buf_clear(&run->messages);
    run->err = (struct bitconv_error){0};
}

void tokenizer_run(struct tokenizer_run *run)
{
    forget(run);
    char *const config = temp_dir_path(run->dir, "config.json");
    if (bc_path_kind(config) == BC_PATH_NONE) temp_dir_puts(run->dir, "config.json", "{}");
    free(config);
    const struct bitconv_sink sink = {.message = collect, .user = &run->messages};
    struct bc_checkpoint *ckpt = NULL;
    struct bitconv_error err = {0};
    if (bc_checkpoint_open(run->dir, false, NULL, &ckpt, &err) != BITCONV_OK)
        fail_msg("%s", err.text);
    const struct bc_arch arch = {.name = "test", .traits = {.tokenizer = run->policy}};
    const struct bc_model model = {
        .arch = &arch,
        .target = run->target == BC_TARGET_AUTO ? BC_TARGET_BITNET : run->target,
        .embedding_model = run->embedding_model,
        .hp = {.n_vocab = run->n_rows, .n_token_types = run->policy == BC_TOKENIZER_BERT ? 2 : 0},
    };
    struct bitconv_gguf_writer *const w = bitconv_gguf_writer_new();
    assert_non_null(w);
    run->status = bc_tokenizer_metadata(ckpt, &model, &run->options, &sink, w, &run->err);
    assert_int_equal(run->status, run->err.status); /* every failure has its message */
    if (run->status == BITCONV_OK) read_back(run, w);
    bitconv_gguf_writer_free(w);
    bc_checkpoint_close(ckpt);
}

void tokenizer_run_end(struct tokenizer_run *run)
{
    forget(run);
    bc_buf_release(&run->messages);
    temp_dir_remove(run->dir);
    run->dir = NULL;
}

static const struct bitconv_gguf_value *find(const struct tokenizer_run *run, const char *key)
{
    if (run->gguf == NULL) fail_msg("the run failed: %s", run->err.text);
    const struct bitconv_gguf_value *const value = bitconv_gguf_find_key(run->gguf, key);
    if (value == NULL) fail_msg("no key %s", key);
    return value;
}

const char *tokenizer_run_string(const struct tokenizer_run *run, const char *key, size_t *len)
{
    const char *text = NULL;
    assert_true(bitconv_gguf_value_string(find(run, key), &text, len));
    return text;
}

uint64_t tokenizer_run_u64(const struct tokenizer_run *run, const char *key)
{
    uint64_t value = 0;
    assert_true(bitconv_gguf_value_u64(find(run, key), &value));
    return value;
}

bool tokenizer_run_bool(const struct tokenizer_run *run, const char *key)
{
    bool value = false;
    assert_true(bitconv_gguf_value_bool(find(run, key), &value));
    return value;
}

bool tokenizer_run_has(const struct tokenizer_run *run, const char *key)
{
    if (run->gguf == NULL) fail_msg("the run failed: %s", run->err.text);
    return bitconv_gguf_find_key(run->gguf, key) != NULL;
}

static void expect_bytes(const char *what, const char *found, size_t len, const char *wanted)
{
    if (len != strlen(wanted) || memcmp(found, wanted, len) != 0)
        fail_msg("%s: \"%.*s\" instead of \"%s\"", what, (int)len, found, wanted);
}

void tokenizer_run_expect_string(const struct tokenizer_run *run, const char *key, const char *text)
{
    size_t len = 0;
    const char *const found = tokenizer_run_string(run, key, &len);
    expect_bytes(key, found, len, text);
}

void tokenizer_run_expect_element(const struct tokenizer_run *run, const char *key, uint64_t index,
                                  const char *text)
{
    const struct bitconv_gguf_value *const array = find(run, key);
    uint64_t pos = 0;
    const char *found = NULL;
    size_t len = 0;
    for (uint64_t i = 0; i <= index; i++)
        assert_true(bitconv_gguf_array_next_string(array, &pos, &found, &len));
    expect_bytes(key, found, len, text);
}

void tokenizer_run_expect_token(const struct tokenizer_run *run, uint32_t id, const char *text,
                                int type)
{
    tokenizer_run_expect_element(run, "tokenizer.ggml.tokens", id, text);
    struct bitconv_gguf_value element;
    int64_t found = 0;
    assert_true(bitconv_gguf_array_at(find(run, "tokenizer.ggml.token_type"), id, &element));
    assert_true(bitconv_gguf_value_i64(&element, &found));
    if (found != type) fail_msg("%s: type %d instead of %d", text, (int)found, type);
}

float tokenizer_run_score(const struct tokenizer_run *run, uint32_t id)
{
    struct bitconv_gguf_value element;
    double value = 0;
    assert_true(bitconv_gguf_array_at(find(run, "tokenizer.ggml.scores"), id, &element));
    assert_true(bitconv_gguf_value_f64(&element, &value));
    return (float)value;
}

void tokenizer_run_expect_failure(const struct tokenizer_run *run, enum bitconv_status status,
                                  const char *part)
{
    if (run->status != status || strstr(run->err.text, part) == NULL)
        fail_msg("%s: \"%s\" instead of %s with \"%s\"", bitconv_status_name(run->status),
                 run->err.text, bitconv_status_name(status), part);
}

bool tokenizer_run_said(const struct tokenizer_run *run, const char *part)
{
    return strstr(bc_buf_str(&run->messages), part) != NULL;
}
