/* SPDX-License-Identifier: MIT
 * Every pack from end to end: the same checkpoint in all packs that fit has the same fingerprints, and
 * each file passes all proofs beside its source; type ids, tiles, payloads, misfits, --plain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "bitconv/inspect.h"
#include "convert/piece.h"
#include "support/llama_model.h"
#include "support/temp_dir.h"
#include "support/verify_run.h"

/* Every pack that convert writes for target bitnet. */
static const char *const packs[] = {"i2_s", "i2_s_64", "tl1", "tl2", "bitcos", "t5"};
#define N_PACKS (sizeof packs / sizeof packs[0])

static bool is_payload(const char *pack)
{
    return strcmp(pack, "bitcos") == 0 || strcmp(pack, "t5") == 0;
}

static uint64_t number(const struct convert_run *r, const char *key)
{
    uint64_t value = 0;
    assert_true(bitconv_gguf_value_u64(bitconv_gguf_find_key(r->gguf, key), &value));
    return value;
}

/* All proofs, with the checkpoint beside the file; `config` may be NULL. */
static void check_source(const struct convert_run *r, const char *config, bool packed)
{
    const struct bitconv_verify_options options = {
        .source = r->model, .kernel_config = config, .n_threads = 2};
    struct verify_run run = {.status = BITCONV_OK};
    verify_run(&run, r->result->output, &options);
    if (!verify_run_ok(&run)) fail_msg("%s", bc_buf_str(&run.problems));
    assert_int_equal(verify_run_proof(&run, "packs")->verdict,
                     packed ? BITCONV_PASSED : BITCONV_NOT_RUN);
    assert_int_equal(verify_run_proof(&run, "source")->verdict, BITCONV_PASSED);
    assert_string_equal(run.result->fingerprint, r->result->fingerprint);
    verify_run_release(&run);
}

static void check_proofs(const struct convert_run *r, const char *config)
{
    check_source(r, config, true);
}

/* Fingerprints by tensor, from the first pack on. */
struct prints {
    char model[33];
    char tensors[64][33];
    size_t n;
};

static void compare_prints(struct prints *p, const struct bitconv_conversion *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_tensors; i++) {
        if (c->tensors[i].pack == NULL) continue;
        assert_true(n < 64);
        if (p->n == 0) memcpy(p->tensors[n], c->tensors[i].fingerprint, 33);
        assert_string_equal(p->tensors[n], c->tensors[i].fingerprint);
        n++;
    }
    if (p->n == 0) {
        p->n = n;
        memcpy(p->model, c->fingerprint, sizeof p->model);
    }
    assert_int_equal(p->n, n);
    assert_string_equal(p->model, c->fingerprint);
}

/* Converts r->model to every pack; returns how many it fits. */
static size_t check_all_packs(struct convert_run *r)
{
    struct prints prints = {.n = 0};
    size_t n = 0;
    for (size_t i = 0; i < N_PACKS; i++) {
        (void)remove(r->out);
        if (convert_run(r, packs[i]) != BITCONV_OK) {
            assert_int_equal(r->err.status, BITCONV_E_UNSUPPORTED);
            assert_true(convert_run_said(r, "misfit"));
            continue;
        }
        n++;
        compare_prints(&prints, r->result);
        check_proofs(r, NULL);
    }
    return n;
}

static void every_fixture_in_every_pack(void **state)
{
    /* Rows of 128 are too short for TL2; experts with scales of their own need a payload. */
    static const struct {
        const char *name;
        size_t n_packs;
    } fixtures[] = {{"bitnet", 5},        {"bitnet-master", 5}, {"bitnet-1bitllm", 5},
                    {"llama-ternary", 5}, {"mixtral", 2},       {"qwen3-embed", 5},
                    {"gemma3-embed", 5},  {"llama-158", 5}};
    struct convert_run *r = *state;
    for (size_t i = 0; i < sizeof fixtures / sizeof fixtures[0]; i++) {
        convert_run_model(r, fixtures[i].name, NULL, 0);
        assert_int_equal(check_all_packs(r), fixtures[i].n_packs);
    }
}

static void tl2_shapes_in_every_pack(void **state)
{
    static const uint64_t sizes[][2] = {{256, 352}, {768, 320}, {512, 608}};
    struct convert_run *r = *state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct llama_model m = {.values = {NULL}};
        llama_model_make(r, &m, sizes[i][0], sizes[i][1]);
        assert_int_equal(check_all_packs(r), N_PACKS);
        llama_model_free(&m);
    }
}

static void check_ids(struct convert_run *r, const char *pack, const char *dialect, uint32_t type,
                      uint32_t file_type)
{
    struct bitconv_inspection *it = NULL;
    struct bitconv_error err = {0};
    r->options.dialect = dialect;
    convert_run_accept(r, pack);
    assert_int_equal(convert_run_stored(r, "blk.0.ffn_up.weight")->type, type);
    assert_int_equal(number(r, "general.file_type"), file_type);
    check_proofs(r, NULL);
    assert_int_equal(bitconv_inspect(r->out, NULL, NULL, &it, &err), BITCONV_OK);
    assert_int_equal(it->n_warnings, 0);
    if (type == 39 || type == 42)
        assert_string_equal(it->dialect, dialect != NULL ? dialect : "bitnet");
    bitconv_inspection_free(it);
}

static void type_ids_and_file_types(void **state)
{
    struct convert_run *r = *state;
    struct llama_model m = {.values = {NULL}};
    llama_model_make(r, &m, 256, 512);
    check_ids(r, "tl1", NULL, 38, 38);
    check_ids(r, "tl1", "bitnet-rebased", 38, 38);
    check_ids(r, "tl2", NULL, 39, 39);
    check_ids(r, "tl2", "bitnet-rebased", 42, 42);
    check_ids(r, "bitcos", NULL, 24, 1);
    check_ids(r, "t5", NULL, 24, 1);
    llama_model_free(&m);
}

/* Tensors of several pieces: the same bytes on any number of threads. */
static void threads_give_the_same_bytes(void **state)
{
    static const unsigned threads[] = {1, 2, 5};
    struct convert_run *r = *state;
    struct llama_model m = {.values = {NULL}};
    assert_true(512 * 1024 > 3 * BC_PIECE_VALUES);
    llama_model_make(r, &m, 512, 1024);
    for (size_t i = 2; i < N_PACKS; i++) {
        struct bc_buf first = {0}, file = {0};
        for (size_t t = 0; t < 3; t++) {
            r->options.n_threads = threads[t];
            convert_run_accept(r, packs[i]);
            convert_run_file(r->out, t == 0 ? &first : &file);
            if (t == 0) continue;
            assert_int_equal(file.size, first.size);
            assert_memory_equal(file.data, first.data, first.size);
        }
        check_proofs(r, NULL);
        bc_buf_release(&first);
        bc_buf_release(&file);
    }
    llama_model_free(&m);
}

/* ---- payloads ---- */

static void payloads_describe_themselves(void **state)
{
    struct convert_run *r = *state;
    for (size_t i = 0; i < N_PACKS; i++) {
        if (!is_payload(packs[i])) continue;
        convert_run_model(r, "mixtral", NULL, 0);
        convert_run_accept(r, packs[i]);
        const struct bitconv_converted_tensor *c =
            convert_run_tensor(r, "blk.0.ffn_up_exps.weight");
        const struct bitconv_gguf_tensor *t = convert_run_stored(r, "blk.0.ffn_up_exps.weight");
        assert_string_equal(t->type_name, "I8");
        assert_int_equal(t->n_dims, 1);
        assert_int_equal(t->ne[0], c->size);
        struct bc_pack_shape shape;
        char why[256] = "";
        const struct bc_format *f = bc_format_find(packs[i]);
        assert_true(f->check_payload(NULL, t->data, t->size, why, sizeof why));
        assert_true(f->open_payload(NULL, t->data, t->size, &shape, why, sizeof why));
        assert_int_equal(shape.n_dims, 3);
        assert_int_equal(shape.cols, c->ne[0]);
        assert_int_equal(shape.rows, c->ne[1]);
        assert_int_equal(shape.slices, 3);
        /* One scale per expert, all different. */
        assert_true(f->get_scale(&shape, t->data, 0) == c->scale);
        assert_true(f->get_scale(&shape, t->data, 1) != c->scale);
        assert_true(f->get_scale(&shape, t->data, 2) != f->get_scale(&shape, t->data, 1));
        const uint64_t zeros = shape.n - shape.n_nonzero;
        assert_true((double)zeros / (double)shape.n == c->zeros);
    }
}

static void inspect_shows_the_weights_of_a_payload(void **state)
{
    struct convert_run *r = *state;
    const struct bitconv_inspect_options options = {
        .stats = true, .hash = true, .tensor = "blk.0.ffn_up_exps.weight"};
    for (size_t i = 0; i < N_PACKS; i++) {
        if (!is_payload(packs[i])) continue;
        struct bitconv_inspection *it = NULL;
        convert_run_model(r, "mixtral", NULL, 0);
        convert_run_accept(r, packs[i]);
        const struct bitconv_converted_tensor *c = convert_run_tensor(r, options.tensor);
        assert_int_equal(bitconv_inspect(r->out, &options, NULL, &it, &r->err), BITCONV_OK);
        const struct bitconv_inspected_tensor *t = &it->tensors[it->values->tensor];
        assert_string_equal(t->pack, packs[i]);
        assert_string_equal(t->type, "I8");
        assert_int_equal(t->n_dims, 3);
        assert_memory_equal(t->ne, c->ne, sizeof c->ne);
        assert_int_equal(t->n_elements, c->parameters);
        assert_true(t->bits_per_weight == 8.0 * (double)c->size / (double)c->parameters);
        assert_string_equal(t->fingerprint, c->fingerprint);
        assert_string_equal(it->fingerprint, r->result->fingerprint);
        assert_true(t->stats.zeros == c->zeros);
        assert_int_equal(it->values->n, c->parameters);
        uint64_t n_zero = 0;
        for (uint64_t v = 0; v < it->values->n; v++)
            n_zero += it->values->reals[v] == 0.0;
        assert_int_equal(n_zero, t->stats.zero);
        bitconv_inspection_free(it);
    }
}

/* An I8 tensor is a payload only when it says so; one that says so must be one. */
static void other_i8_tensors(void **state)
{
    struct convert_run *r = *state;
    uint8_t bytes[96] = {1, 2, 3};
    const uint64_t ne[1] = {sizeof bytes};
    for (int magic = 0; magic < 2; magic++) {
        struct gguf_builder b = {.version = 3};
        struct verify_run run = {.status = BITCONV_OK};
        if (magic) memcpy(bytes, "BTCS", 4);
        gguf_builder_string(&b, "general.architecture", "test");
        gguf_builder_data(&b, "x", 24, 1, ne, bytes, sizeof bytes);
        char *path = gguf_builder_write(&b, r->root, "i8.gguf");
        verify_run(&run, path, NULL);
        if (verify_run_ok(&run) != (magic == 0)) fail_msg("%s", bc_buf_str(&run.problems));
        if (magic) assert_true(verify_run_says(&run.problems, "x: BITCOS"));
        verify_run_release(&run);
        (void)remove(path);
        free(path);
    }
}

/* ---- tiles ---- */

static char *write_config(const struct convert_run *r, const char *text)
{
    char *path = temp_dir_path(r->root, "kernels.ini");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    return path;
}

/* The tile that the file states for its first packed tensor. */
static void first_tile(const struct convert_run *r, uint32_t tile[3])
{
    const struct bitconv_gguf_value *v = bitconv_gguf_find_key(r->gguf, "bitconv.tensor.tile");
    assert_non_null(v);
    for (size_t i = 0; i < 3; i++)
        tile[i] = bc_get_u32(v->data + 4 * i);
}

static const char tl1_config[] = "[a]\nm = 128\nk = 128\nbm = 64\nbk = 32\nbmm = 32\n"
                                 "[b]\nm = 64\nk = 128\nbm = 32\nbk = 64\nbmm = 32\n";

static void tiles_of_a_kernel_config(void **state)
{
    struct convert_run *r = *state;
    struct bc_buf own = {0}, other = {0};
    char own_print[33];
    uint32_t tile[3];
    convert_run_model(r, "bitnet", NULL, 0);
    convert_run_accept(r, "tl1");
    convert_run_file(r->out, &own);
    memcpy(own_print, r->result->fingerprint, sizeof own_print);
    char *config = write_config(r, tl1_config);
    r->options.kernel_config = config;
    convert_run_accept(r, "tl1");
    convert_run_file(r->out, &other);
    first_tile(r, tile);
    assert_int_equal(tile[0], 64);
    assert_int_equal(tile[1], 32);
    assert_int_equal(tile[2], 32);
    assert_int_equal(own.size, other.size);
    assert_memory_not_equal(own.data, other.data, own.size);
    assert_string_equal(r->result->fingerprint, own_print);
    check_proofs(r, NULL); /* the file states its tiles */

    /* Only the packs that have tiles have a configuration; it is an input like the others. */
    convert_run_refuse(r, "bitcos", BITCONV_E_ARG, "--kernel-config");
    r->options.outfile = config;
    r->options.force = true;
    assert_int_not_equal(convert_run(r, "tl1"), BITCONV_OK);
    r->options.outfile = r->out;
    r->options.kernel_config = "/nonexistent.ini";
    convert_run_refuse(r, "tl1", BITCONV_E_IO, "/nonexistent.ini");
    bc_buf_release(&own);
    bc_buf_release(&other);
    free(config);
}

static void plain_files_can_still_be_read(void **state)
{
    struct convert_run *r = *state;
    struct llama_model m = {.values = {NULL}};
    llama_model_make(r, &m, 256, 352);
    r->options.plain = true;
    for (size_t i = 0; i < N_PACKS; i++) {
        if (strcmp(packs[i], "i2_s_64") == 0) continue; /* has no marker but the metadata */
        convert_run_accept(r, packs[i]);
        assert_null(bitconv_gguf_find_key(r->gguf, "bitconv.tensor.tile"));
        assert_false(convert_run_said(r, "--plain"));
        check_proofs(r, NULL);
    }
    llama_model_free(&m);
}

/* Without the metadata, tiles that nobody would guess have to be given. */
static void plain_files_with_other_tiles_need_the_config(void **state)
{
    struct convert_run *r = *state;
    struct verify_run run = {.status = BITCONV_OK};
    convert_run_model(r, "bitnet", NULL, 0);
    char *config = write_config(r, tl1_config);
    r->options.kernel_config = config;
    r->options.plain = true;
    convert_run_accept(r, "tl1");
    assert_true(
        convert_run_said(r, "warning: blk.0.ffn_down.weight: --plain leaves out the tile") ||
        convert_run_said(r, "--plain leaves out the tile"));
    check_proofs(r, config);
    const struct bitconv_verify_options options = {.source = r->model};
    verify_run(&run, r->out, &options);
    assert_false(verify_run_ok(&run));
    verify_run_release(&run);
    free(config);
}

/* ---- blocks of floats ---- */

static void q8_0_of_every_fixture(void **state)
{
    static const char *const fixtures[] = {"bitnet",        "bitnet-master", "bitnet-1bitllm",
                                           "llama-ternary", "mixtral",       "qwen3-embed",
                                           "gemma3-embed",  "llama-158"};
    struct convert_run *r = *state;
    for (size_t i = 0; i < sizeof fixtures / sizeof fixtures[0]; i++) {
        convert_run_model(r, fixtures[i], NULL, 0);
        convert_run_accept(r, "q8_0");
        assert_int_equal(number(r, "general.file_type"), 7);
        const char *target = strstr(fixtures[i], "-embed") != NULL ? "bitnet" : "llama.cpp";
        assert_string_equal(r->result->target, target);
        assert_string_equal(convert_run_stored(r, "blk.0.attn_q.weight")->type_name, "Q8_0");
        check_source(r, NULL, false);
    }
}

/* trit * scale in Q8_0: the codes are 0 and +-127, the block's scale is scale / 127. */
static void q8_0_of_trits(void **state)
{
    struct convert_run *r = *state;
    convert_run_model(r, "bitnet", NULL, 0);
    convert_run_accept(r, "q8_0");
    const float scale = convert_run_tensor(r, "blk.0.ffn_up.weight")->scale;
    const struct bitconv_gguf_tensor *t = convert_run_stored(r, "blk.0.ffn_up.weight");
    assert_int_equal(t->size, t->n_elements / 32 * 34);
    for (uint64_t at = 0; at < t->size; at += 34) {
        assert_int_equal(bc_get_u16(t->data + at), bc_f32_to_f16(scale / 127.0f));
        for (uint64_t i = 2; i < 34; i++) {
            const int code = (int8_t)t->data[at + i];
            assert_true(code == 0 || code == 127 || code == -127);
        }
    }
}

static void q8_0_misfits(void **state)
{
    struct convert_run *r = *state;
    struct llama_model m = {.values = {NULL}};
    llama_model_make(r, &m, 80, 64);
    convert_run_refuse(r, "q8_0", BITCONV_E_UNSUPPORTED, "a row of 80 is no multiple of 32");
    assert_true(convert_run_said(r, "finding: blk.0.attn_q.weight: misfit: Q8_0"));
    assert_true(convert_run_said(r, "finding: blk.0.ffn_up.weight: misfit: Q8_0"));
    assert_false(convert_run_said(r, "ffn_down.weight: misfit"));
    r->options.on_misfit = "q8_0";
    convert_run_refuse(r, "q8_0", BITCONV_E_UNSUPPORTED, "and --on-misfit q8_0");
    r->options.on_misfit = "f16";
    r->options.embd_type = "f16";
    convert_run_accept(r, "q8_0");
    assert_string_equal(convert_run_stored(r, "blk.0.ffn_down.weight")->type_name, "Q8_0");
    assert_string_equal(convert_run_stored(r, "blk.0.ffn_up.weight")->type_name, "F16");
    llama_model_free(&m);
}

static void misfits_are_all_listed(void **state)
{
    struct convert_run *r = *state;
    struct llama_model m = {.values = {NULL}};
    convert_run_model(r, "bitnet", NULL, 0);
    convert_run_refuse(r, "tl2", BITCONV_E_UNSUPPORTED, "K = 128 columns are fewer than 256");
    assert_true(convert_run_said(r, "finding: blk.0.attn_q.weight: misfit: TL2"));
    assert_true(convert_run_said(r, "finding: blk.1.ffn_up.weight: misfit: TL2"));
    r->options.on_misfit = "f16";
    convert_run_refuse(r, "tl2", BITCONV_E_UNSUPPORTED, "would be tl2");
    r->options.on_misfit = NULL;
    convert_run_model(r, "mixtral", NULL, 0);
    convert_run_refuse(r, "tl1", BITCONV_E_UNSUPPORTED, "not stacks of them");
    /* 100 rows have no tile: the rest is packed. */
    llama_model_make(r, &m, 256, 100);
    convert_run_refuse(r, "tl1", BITCONV_E_UNSUPPORTED,
                       "finding: blk.0.ffn_gate.weight: misfit: TL1");
    assert_false(convert_run_said(r, "attn_q.weight: misfit"));
    r->options.on_misfit = "f16";
    convert_run_accept(r, "tl1");
    assert_string_equal(convert_run_stored(r, "blk.0.ffn_gate.weight")->type_name, "F16");
    assert_string_equal(convert_run_stored(r, "blk.0.attn_q.weight")->type_name, "TL1");
    check_proofs(r, NULL);
    llama_model_free(&m);
}

/* Packs that are put together in memory say how much that takes. */
static void memory_of_the_largest_tensor(void **state)
{
    struct convert_run *r = *state;
    struct llama_model m = {.values = {NULL}};
    llama_model_make(r, &m, 512, 1024);
    r->options.dry_run = true;
    convert_run_accept(r, "i2_s");
    const uint64_t fixed = r->result->peak_memory;
    assert_int_equal(r->result->tensor_memory, 0);
    for (size_t i = 2; i < N_PACKS; i++) {
        convert_run_accept(r, packs[i]);
        uint64_t wanted = 0;
        for (size_t t = 0; t < r->result->n_tensors; t++)
            if (r->result->tensors[t].pack != NULL && r->result->tensors[t].size > wanted)
                wanted = r->result->tensors[t].size;
        if (!is_payload(packs[i])) wanted += 512 * 1024;
        assert_int_equal(r->result->tensor_memory, wanted);
        /* Headers differ by a few names. */
        assert_true(r->result->peak_memory + 4096 > fixed + wanted);
        assert_true(r->result->peak_memory < fixed + wanted + 4096);
    }
    llama_model_free(&m);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, convert_run_set_up, convert_run_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(every_fixture_in_every_pack),
        TEST(tl2_shapes_in_every_pack),
        TEST(type_ids_and_file_types),
        TEST(threads_give_the_same_bytes),
        TEST(payloads_describe_themselves),
        TEST(inspect_shows_the_weights_of_a_payload),
        TEST(other_i8_tensors),
        TEST(tiles_of_a_kernel_config),
        TEST(plain_files_can_still_be_read),
        TEST(plain_files_with_other_tiles_need_the_config),
        TEST(q8_0_of_every_fixture),
        TEST(q8_0_of_trits),
        TEST(q8_0_misfits),
        TEST(misfits_are_all_listed),
        TEST(memory_of_the_largest_tensor),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
