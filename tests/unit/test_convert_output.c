/* SPDX-License-Identifier: MIT
 * Where a conversion goes: names, split sets, pipes, dry runs, interruption; the same bytes whatever
 * the machine; and the options that shape metadata. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"
#include "support/convert_run.h"
#include "support/temp_dir.h"

/* Names in the scratch folder beside "model". */
static size_t count_files(const struct convert_run *r)
{
    char **names;
    size_t n;
    assert_int_equal(bc_dir_list(r->root, &names, &n, NULL), BITCONV_OK);
    for (size_t i = 0; i < n; i++)
        bc_free(names[i]);
    bc_free(names);
    return n - 1;
}

static void expect_same_file(const char *path, const struct bc_buf *wanted)
{
    struct bc_buf got = {0};
    convert_run_file(path, &got);
    assert_int_equal(got.size, wanted->size);
    assert_memory_equal(got.data, wanted->data, got.size);
    bc_buf_release(&got);
}

/* ---- the same bytes ---- */

static void threads_and_instruction_sets_give_the_same_bytes(void **state)
{
    static const char *const fixtures[] = {"bitnet", "bitnet-master", "llama-158", "gemma3-embed"};
    static const char *const outtypes[] = {"f16", "i2_s"};
    static const unsigned threads[] = {2, 3, 8};
    struct convert_run *r = *state;
    for (size_t i = 0; i < 8; i++) {
        struct bc_buf first = {0};
        const char *outtype = outtypes[i % 2];
        convert_run_model(r, fixtures[i / 2], NULL, 0);
        r->options.n_threads = 1;
        r->options.cpu = "scalar";
        convert_run_accept(r, outtype);
        convert_run_file(r->out, &first);
        r->options.cpu = NULL;
        for (size_t t = 0; t < 3; t++) {
            r->options.n_threads = threads[t];
            convert_run_accept(r, outtype);
            expect_same_file(r->out, &first);
        }
        bc_buf_release(&first);
    }
}

static void result_and_file_agree(void **state)
{
    struct convert_run *r = *state;
    struct stat st;
    convert_run_model(r, "bitnet", NULL, 0);
    convert_run_accept(r, "i2_s");
    assert_int_equal(stat(r->out, &st), 0);
    assert_int_equal(r->result->file_size, st.st_size);
    assert_int_equal(r->result->n_files, 1);
    assert_string_equal(r->result->output, r->out);
    assert_string_equal(r->result->outtype, "i2_s");
    assert_int_equal(r->result->n_tensors, bitconv_gguf_n_tensors(r->gguf));
    for (size_t i = 0; i < r->result->n_tensors; i++) {
        const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(r->gguf, i);
        const struct bitconv_converted_tensor *c = &r->result->tensors[i];
        assert_string_equal(t->name, c->name);
        assert_int_equal(t->size, c->size);
        assert_int_equal(t->n_elements, c->parameters);
        assert_memory_equal(t->ne, c->ne, sizeof c->ne);
    }
    assert_true(r->result->peak_memory < 32u << 20);
}

/* ---- names ---- */

static void default_name_is_the_models(void **state)
{
    struct convert_run *r = *state;
    char *const wanted = temp_dir_path(r->model, "model-i2_s.gguf");
    convert_run_model(r, "bitnet", NULL, 0);
    r->options.outfile = NULL;
    convert_run_accept(r, "i2_s");
    assert_string_equal(r->result->output, wanted);
    /* The second time it is there, and is no input. */
    assert_int_equal(convert_run(r, "i2_s"), BITCONV_E_ARG);
    assert_true(convert_run_said(r, "--force"));
    r->options.force = true;
    convert_run_accept(r, "i2_s");
    /* A name is made fit for a file. */
    r->options.name = "my/org: 2B";
    convert_run_accept(r, "f16");
    assert_non_null(strstr(r->result->output, "model/my_org_ 2B-f16.gguf"));
    const char *name;
    size_t len;
    assert_true(
        bitconv_gguf_value_string(bitconv_gguf_find_key(r->gguf, "general.name"), &name, &len));
    assert_int_equal(len, strlen("my/org: 2B"));
    free(wanted);
}

static void inputs_are_not_overwritten(void **state)
{
    static const char *const inputs[] = {"model.safetensors", "config.json", "tokenizer.json"};
    struct convert_run *r = *state;
    convert_run_model(r, "bitnet", NULL, 0);
    r->options.force = true;
    for (size_t i = 0; i < 3; i++) {
        struct bc_buf before = {0};
        char *const path = temp_dir_path(r->model, inputs[i]);
        convert_run_file(path, &before);
        r->options.outfile = path;
        assert_int_equal(convert_run(r, "i2_s"), BITCONV_E_ARG);
        assert_true(convert_run_said(r, "is the same file as the input"));
        expect_same_file(path, &before);
        bc_buf_release(&before);
        free(path);
    }
    /* The chat template may lie elsewhere. */
    char *const template = temp_dir_path(r->root, "template.jinja");
    temp_dir_puts(r->root, "template.jinja", "{{ messages }}");
    r->options.chat_template = template;
    r->options.outfile = template;
    assert_int_equal(convert_run(r, "i2_s"), BITCONV_E_ARG);
    free(template);
}

static void unknown_types_and_words_are_refused(void **state)
{
    struct convert_run *r = *state;
    convert_run_model(r, "bitnet", NULL, 0);
    convert_run_refuse(r, "q4_k", BITCONV_E_ARG, "f32, f16, bf16, q8_0, i2_s");
    convert_run_refuse(r, NULL, BITCONV_E_ARG, "--outtype is missing");
    r->options.target = "onnx";
    convert_run_refuse(r, "i2_s", BITCONV_E_ARG, "--target: 'onnx' is not one of: auto, bitnet");
    r->options.target = NULL;
    r->options.quant = "best";
    convert_run_refuse(r, "i2_s", BITCONV_E_ARG, "--quant: 'best'");
    r->options.quant = NULL;
    r->options.on_misfit = "i2_s";
    convert_run_refuse(r, "i2_s", BITCONV_E_ARG, "a float type was expected");
    r->options.on_misfit = NULL;
    r->options.cpu = "mmx";
    convert_run_refuse(r, "i2_s", BITCONV_E_ARG, "--cpu: 'mmx'");
    r->options.cpu = NULL;
    r->options.dialect = "prism";
    convert_run_refuse(r, "i2_s", BITCONV_E_ARG, "--dialect");
    r->options.dialect = "bitnet-rebased";
    convert_run_accept(r, "i2_s");
}

/* ---- dry runs ---- */

static void a_dry_run_writes_nothing_and_says_the_same(void **state)
{
    struct convert_run *r = *state;
    struct stat st;
    convert_run_model(r, "bitnet-master", NULL, 0);
    r->options.dry_run = true;
    convert_run_accept(r, "i2_s");
    assert_int_not_equal(stat(r->out, &st), 0);
    assert_int_equal(count_files(r), 0);
    const uint64_t size = r->result->file_size;
    char fingerprint[33];
    memcpy(fingerprint, r->result->fingerprint, sizeof fingerprint);
    assert_true(convert_run_tensor(r, "blk.0.ffn_up.weight")->zeros > 0.0);
    r->options.dry_run = false;
    convert_run_accept(r, "i2_s");
    assert_int_equal(r->result->file_size, size);
    assert_string_equal(r->result->fingerprint, fingerprint);
    /* What stands in the way of a real run stands in the way of a dry one. */
    r->options.dry_run = true;
    assert_int_equal(convert_run(r, "i2_s"), BITCONV_E_ARG);
    assert_true(convert_run_said(r, "exists already"));
}

static void vocabulary_alone_needs_no_weights(void **state)
{
    struct convert_run *r = *state;
    convert_run_model(r, "bitnet", NULL, 0);
    char *const weights = temp_dir_path(r->model, "model.safetensors");
    assert_int_equal(remove(weights), 0);
    free(weights);
    r->options.vocab_only = true;
    convert_run_accept(r, NULL);
    assert_int_equal(bitconv_gguf_n_tensors(r->gguf), 0);
    assert_non_null(bitconv_gguf_find_key(r->gguf, "tokenizer.ggml.tokens"));
    assert_int_equal(r->result->n_tensors, 0);
}

/* ---- split sets ---- */

static uint64_t u64_key(const struct bitconv_gguf *file, const char *key)
{
    uint64_t v = UINT64_MAX;
    assert_true(bitconv_gguf_value_u64(bitconv_gguf_find_key(file, key), &v));
    return v;
}

static void split_sets_hold_the_same_model(void **state)
{
    static const uint64_t sizes[] = {40000, 60000, 100000, 10};
    struct convert_run *r = *state;
    struct bitconv_gguf *whole;
    char *const single = temp_dir_path(r->root, "single.gguf");
    convert_run_model(r, "bitnet", NULL, 0);
    r->options.outfile = single;
    convert_run_accept(r, "i2_s");
    assert_int_equal(bitconv_gguf_open(single, &whole, NULL), BITCONV_OK);
    r->options.outfile = r->out;
    for (size_t i = 0; i < 4; i++) {
        uint64_t total = 0;
        r->options.split_max_size = sizes[i];
        r->options.force = true;
        convert_run_accept(r, "i2_s");
        const uint32_t n = r->result->n_files;
        assert_true(n > 1);
        assert_int_equal(bitconv_gguf_n_shards(r->gguf), n);
        assert_int_equal(u64_key(r->gguf, "split.count"), n);
        assert_int_equal(u64_key(r->gguf, "split.no"), 0);
        assert_int_equal(u64_key(r->gguf, "split.tensors.count"), bitconv_gguf_n_tensors(whole));
        assert_non_null(strstr(r->result->output, "out-00001-of-"));
        assert_int_equal(bitconv_gguf_n_tensors(r->gguf), bitconv_gguf_n_tensors(whole));
        for (size_t t = 0; t < bitconv_gguf_n_tensors(whole); t++) {
            const struct bitconv_gguf_tensor *a = bitconv_gguf_tensor_at(whole, t);
            const struct bitconv_gguf_tensor *b = bitconv_gguf_tensor_at(r->gguf, t);
            assert_string_equal(a->name, b->name);
            assert_int_equal(a->size, b->size);
            assert_memory_equal(a->data, b->data, (size_t)a->size);
        }
        /* No file is larger than asked, unless one tensor (the embedding: 81920 bytes) or the header is. */
        for (uint32_t s = 0; s < n; s++) {
            struct stat st;
            assert_int_equal(stat(bitconv_gguf_shard_path(r->gguf, s), &st), 0);
            total += (uint64_t)st.st_size;
            if (sizes[i] == 100000) assert_true((uint64_t)st.st_size <= sizes[i]);
        }
        assert_int_equal(total, r->result->file_size);
        assert_int_equal(convert_run_said(r, "more than the"), sizes[i] != 100000);
    }
    bitconv_gguf_close(whole);
    free(single);
}

static void a_set_of_one_is_a_plain_file(void **state)
{
    struct convert_run *r = *state;
    convert_run_model(r, "bitnet", NULL, 0);
    r->options.split_max_size = 1u << 30;
    convert_run_accept(r, "i2_s");
    assert_string_equal(r->result->output, r->out);
    assert_null(bitconv_gguf_find_key(r->gguf, "split.count"));
}

static void a_set_appears_as_a_whole_or_not_at_all(void **state)
{
    struct convert_run *r = *state;
    convert_run_model(r, "bitnet", NULL, 0);
    r->options.split_max_size = 100000;
    convert_run_accept(r, "i2_s");
    const uint32_t n = r->result->n_files;
    assert_int_equal(count_files(r), n);
    /* All but the last go; the last one is in the way. */
    for (uint32_t s = 0; s + 1 < n; s++)
        assert_int_equal(remove(bitconv_gguf_shard_path(r->gguf, s)), 0);
    assert_int_equal(convert_run(r, "i2_s"), BITCONV_E_ARG);
    assert_int_equal(count_files(r), 1);
    r->options.dry_run = true;
    assert_int_equal(convert_run(r, "i2_s"), BITCONV_E_ARG);
}

/* ---- pipes ---- */

struct reader {
    const char *path;
    struct bc_buf data;
};

static void *read_pipe(void *arg)
{
    struct reader *reader = arg;
    const int fd = open(reader->path, O_RDONLY);
    uint8_t chunk[4096];
    ssize_t n;
    while ((n = read(fd, chunk, sizeof chunk)) > 0)
        bc_buf_append(&reader->data, chunk, (size_t)n);
    (void)close(fd);
    return NULL;
}

/* A header that holds fingerprints is written once and rightly. */
static void a_pipe_gets_the_bytes_of_a_file(void **state)
{
    struct convert_run *r = *state;
    struct bc_buf file = {0};
    struct reader reader = {.path = NULL};
    pthread_t thread;
    convert_run_model(r, "bitnet-master", NULL, 0);
    convert_run_accept(r, "i2_s");
    convert_run_file(r->out, &file);
    char *const fifo = temp_dir_path(r->root, "fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    reader.path = fifo;
    assert_int_equal(pthread_create(&thread, NULL, read_pipe, &reader), 0);
    r->options.outfile = fifo;
    if (convert_run(r, "i2_s") != BITCONV_OK) fail_msg("%s", r->err.text);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(reader.data.size, file.size);
    assert_memory_equal(reader.data.data, file.data, file.size);
    bc_buf_release(&reader.data);
    bc_buf_release(&file);
    free(fifo);
}

/* ---- interruption and progress ---- */

struct watch {
    volatile sig_atomic_t cancel;
    const char *stop_at;  /* raises the flag when this kind of progress begins */
    uint64_t last, total; /* of the current kind */
    const char *what;
    bool went_back, finished;
};

static void watch_progress(void *user, const char *what, uint64_t done, uint64_t total)
{
    struct watch *w = user;
    if (w->what == NULL || strcmp(w->what, what) != 0) w->last = 0;
    w->what = what;
    if (done < w->last || done > total) w->went_back = true;
    w->last = done;
    w->finished = done == total;
    if (w->stop_at != NULL && strcmp(w->stop_at, what) == 0) w->cancel = 1;
}

static void progress_counts_up_to_its_total(void **state)
{
    struct convert_run *r = *state;
    struct watch w = {.cancel = 0};
    const struct bitconv_sink sink = {.progress = watch_progress, .user = &w};
    convert_run_model(r, "bitnet-master", NULL, 0);
    r->options.outtype = "i2_s";
    assert_int_equal(bitconv_convert(r->model, &r->options, &sink, &r->result, &r->err),
                     BITCONV_OK);
    assert_string_equal(w.what, "writing");
    assert_false(w.went_back);
    assert_true(w.finished);
}

static void a_raised_flag_leaves_nothing_behind(void **state)
{
    static const char *const stages[] = {"reading", "writing"};
    struct convert_run *r = *state;
    convert_run_model(r, "bitnet-master", NULL, 0);
    r->options.outtype = "i2_s";
    for (size_t i = 0; i < 2; i++) {
        struct watch w = {.stop_at = stages[i]};
        const struct bitconv_sink sink = {
            .progress = watch_progress, .user = &w, .cancel = &w.cancel};
        struct bitconv_conversion *result;
        struct bitconv_error err = {.status = BITCONV_OK};
        assert_int_equal(bitconv_convert(r->model, &r->options, &sink, &result, &err),
                         BITCONV_E_CANCELED);
        assert_null(result);
        assert_int_equal(count_files(r), 0);
    }
}

/* ---- --meta ---- */

static void accept_meta(struct convert_run *r, const char *const *items, size_t n)
{
    r->options.meta = items;
    r->options.n_meta = n;
    convert_run_accept(r, "f16");
}

static void metadata_can_be_set(void **state)
{
    static const char *const items[] = {"my.u8=u8:255",
                                        "my.i8=i8:-128",
                                        "my.u16=u16:65535",
                                        "my.i16=i16:-1",
                                        "my.u32=u32:0xffffffff",
                                        "my.i32=i32:-2147483648",
                                        "my.u64=u64:18446744073709551615",
                                        "my.i64=i64:-9223372036854775808",
                                        "my.f32=f32:0.1",
                                        "my.f64=f64:-1e300",
                                        "my.yes=bool:true",
                                        "my.no=bool:false",
                                        "my.str=str:a=b:c",
                                        "my.empty=str:",
                                        "general.name=str:Other",
                                        "bitnet-b1.58.context_length=u32:77"};
    struct convert_run *r = *state;
    const char *s;
    size_t len;
    int64_t i64;
    double f64;
    bool yes;
    convert_run_model(r, "bitnet", NULL, 0);
    accept_meta(r, items, sizeof items / sizeof items[0]);
    assert_int_equal(u64_key(r->gguf, "my.u8"), 255);
    assert_int_equal(u64_key(r->gguf, "my.u32"), 0xffffffff);
    assert_true(u64_key(r->gguf, "my.u64") == UINT64_MAX);
    assert_int_equal(bitconv_gguf_find_key(r->gguf, "my.u16")->type, BITCONV_GGUF_UINT16);
    assert_true(bitconv_gguf_value_i64(bitconv_gguf_find_key(r->gguf, "my.i8"), &i64));
    assert_int_equal(i64, -128);
    assert_true(bitconv_gguf_value_i64(bitconv_gguf_find_key(r->gguf, "my.i64"), &i64));
    assert_true(i64 == INT64_MIN);
    assert_true(bitconv_gguf_value_f64(bitconv_gguf_find_key(r->gguf, "my.f32"), &f64));
    assert_true(f64 == (double)0.1f);
    assert_true(bitconv_gguf_value_f64(bitconv_gguf_find_key(r->gguf, "my.f64"), &f64));
    assert_true(f64 == -1e300);
    assert_true(bitconv_gguf_value_bool(bitconv_gguf_find_key(r->gguf, "my.yes"), &yes) && yes);
    assert_true(bitconv_gguf_value_bool(bitconv_gguf_find_key(r->gguf, "my.no"), &yes) && !yes);
    assert_true(bitconv_gguf_value_string(bitconv_gguf_find_key(r->gguf, "my.str"), &s, &len));
    assert_int_equal(len, 5);
    assert_memory_equal(s, "a=b:c", 5);
    assert_true(bitconv_gguf_value_string(bitconv_gguf_find_key(r->gguf, "my.empty"), &s, &len));
    assert_int_equal(len, 0);
    assert_int_equal(u64_key(r->gguf, "bitnet-b1.58.context_length"), 77);
    assert_true(convert_run_said(r, "note: metadata set by the user: general.name=str:Other"));
}

static void bad_metadata_is_refused(void **state)
{
    static const char *const bad[][2] = {
        {"key", "KEY=TYPE:VALUE"},
        {"key=str", "KEY=TYPE:VALUE"},
        {"=str:x", "a key of letters"},
        {"a b=str:x", "a key of letters"},
        {".a=str:x", "a key of letters"},
        {"a=text:x", "the type is not one of"},
        {"a=u8:256", "not a value of type u8"},
        {"a=u8:-1", "not a value of type u8"},
        {"a=i8:128", "not a value of type i8"},
        {"a=i8:-129", "not a value of type i8"},
        {"a=u16:65536", "not a value of type u16"},
        {"a=i32:2147483648", "not a value of type i32"},
        {"a=u64:18446744073709551616", "not a value of type u64"},
        {"a=i64:9223372036854775808", "not a value of type i64"},
        {"a=u32:", "not a value of type u32"},
        {"a=u32:1x", "not a value of type u32"},
        {"a=u32: 1", "not a value of type u32"},
        {"a=f32:1e39", "not a value of type f32"},
        {"a=f32:nan", "not a value of type f32"},
        {"a=f64:", "not a value of type f64"},
        {"a=f64:1.0.0", "not a value of type f64"},
        {"a=bool:1", "not a value of type bool"},
        {"a=str:\xff", "not UTF-8"},
        {"general.alignment=u32:64", "describes the file itself"},
        {"general.architecture=str:llama", "describes the file itself"},
        {"general.file_type=u32:1", "describes the file itself"},
        {"split.count=u16:2", "describes the file itself"},
        {"bitconv.fingerprint=str:0", "describes the file itself"},
        {"general.name=u32:1", "is STRING in this file"},
        {"tokenizer.ggml.tokens=str:x", "is ARRAY in this file"},
    };
    struct convert_run *r = *state;
    convert_run_model(r, "bitnet", NULL, 0);
    r->options.n_meta = 1;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        r->options.meta = &bad[i][0];
        convert_run_refuse(r, "f16", BITCONV_E_ARG, bad[i][1]);
    }
    static const char *const twice[] = {"a.b=u8:1", "a=u8:1", "a.b=u8:1"};
    r->options.meta = twice;
    r->options.n_meta = 3;
    convert_run_refuse(r, "f16", BITCONV_E_ARG, "given twice");
    /* A key that begins like another is another. */
    accept_meta(r, twice, 2);
}

static void a_chat_template_can_be_given(void **state)
{
    struct convert_run *r = *state;
    const char *s;
    size_t len;
    char *const template = temp_dir_path(r->root, "template.jinja");
    temp_dir_puts(r->root, "template.jinja", "{{ messages }}");
    convert_run_model(r, "bitnet", NULL, 0);
    r->options.chat_template = template;
    convert_run_accept(r, "f16");
    assert_true(bitconv_gguf_value_string(bitconv_gguf_find_key(r->gguf, "tokenizer.chat_template"),
                                          &s, &len));
    assert_int_equal(len, 14);
    assert_memory_equal(s, "{{ messages }}", 14);
    assert_int_equal(remove(template), 0);
    convert_run_refuse(r, "f16", BITCONV_E_IO, "template.jinja");
    free(template);
}

/* A tokenizer that cannot be read and weights that cannot be converted: the tokenizer, which is read
 * beside them, has the word, and no thread is left behind. */
static void a_broken_tokenizer_ends_the_run(void **state)
{
    struct convert_run *r = *state;
    static const unsigned threads[] = {1, 4};
    convert_run_model(r, "bitnet", NULL, 0);
    char *const tokenizer = temp_dir_path(r->model, "tokenizer.json");
    assert_int_equal(remove(tokenizer), 0);
    temp_dir_puts(r->model, "tokenizer.json", "{\"model\":");
    for (size_t i = 0; i < 2; i++) {
        r->options.n_threads = threads[i];
        convert_run_refuse(r, "f16", BITCONV_E_CORRUPT, "tokenizer.json");
    }
    free(tokenizer);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, convert_run_set_up, convert_run_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(threads_and_instruction_sets_give_the_same_bytes),
        TEST(result_and_file_agree),
        TEST(default_name_is_the_models),
        TEST(inputs_are_not_overwritten),
        TEST(unknown_types_and_words_are_refused),
        TEST(a_dry_run_writes_nothing_and_says_the_same),
        TEST(vocabulary_alone_needs_no_weights),
        TEST(split_sets_hold_the_same_model),
        TEST(a_set_of_one_is_a_plain_file),
        TEST(a_set_appears_as_a_whole_or_not_at_all),
        TEST(a_pipe_gets_the_bytes_of_a_file),
        TEST(progress_counts_up_to_its_total),
        TEST(a_raised_flag_leaves_nothing_behind),
        TEST(metadata_can_be_set),
        TEST(bad_metadata_is_refused),
        TEST(a_chat_template_can_be_given),
        TEST(a_broken_tokenizer_ends_the_run),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
