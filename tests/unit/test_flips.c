/* SPDX-License-Identifier: MIT
 * One flipped bit anywhere in a packed tensor, a scale, a norm, a tensor info or a name: verify
 * with the checkpoint beside it never passes, and names the tensor. Runs in-process on converted
 * fixtures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"
#include "bitconv/convert.h"
#include "bitconv/gguf.h"
#include "bitconv/verify.h"
#include "formats/block_pack.h"
#include "model/scale_tensor.h"
#include "support/llama_model.h"
#include "support/rng.h"
#include "support/temp_dir.h"

enum { MAX_PATH = 512, MAX_REGIONS = 512, LABEL = 64 };

/* Bytes of the file that belong to one tensor. */
struct region {
    uint64_t begin, end;
    char tensor[LABEL];
    const char *what;
};

struct subject {
    char *dir;
    char *path;
    char source[MAX_PATH];
    struct region regions[MAX_REGIONS];
    size_t n_regions;
};

/* Everything that a verification says. */
struct report {
    char text[1 << 16];
    size_t used;
};

static void say(struct report *r, const char *text)
{
    if (text == NULL) return;
    const size_t len = strlen(text);
    if (len + 2 > sizeof r->text - r->used) return;
    memcpy(r->text + r->used, text, len);
    r->used += len;
    r->text[r->used++] = '\n';
    r->text[r->used] = '\0';
}

static void on_message(void *user, enum bitconv_severity severity, const char *text)
{
    if (severity == BITCONV_FINDING) say(user, text);
}

static void add_region(struct subject *s, uint64_t begin, uint64_t end, const char *tensor,
                       const char *what)
{
    assert_true(s->n_regions < MAX_REGIONS);
    struct region *r = &s->regions[s->n_regions++];
    r->begin = begin;
    r->end = end;
    r->what = what;
    snprintf(r->tensor, sizeof r->tensor, "%s", tensor);
}

/* The info of a tensor: found in the header as its length and name. */
static uint64_t find_info(const struct bc_file *file, uint64_t header_size, const char *name)
{
    uint8_t wanted[8 + LABEL];
    const size_t len = strlen(name);
    bc_put_u64(wanted, len);
    memcpy(wanted + 8, name, len);
    /* From the end: bitconv.tensor.name lists the names as well, in front of the infos. */
    for (uint64_t at = header_size - 8 - len; at > 0; at--)
        if (memcmp(file->data + at, wanted, 8 + len) == 0) return at;
    fail_msg("no tensor info of %s", name);
    return 0;
}

static void map_regions(struct subject *s)
{
    struct bitconv_gguf *gguf = NULL;
    struct bc_file file;
    struct bitconv_error err = {0};
    assert_int_equal(bitconv_gguf_open(s->path, &gguf, &err), BITCONV_OK);
    assert_int_equal(bc_file_open(s->path, &file, &err), BITCONV_OK);
    for (size_t i = 0; i < bitconv_gguf_n_tensors(gguf); i++) {
        const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(gguf, i);
        const uint64_t info = find_info(&file, bitconv_gguf_data_offset(gguf), t->name);
        const uint64_t name_end = info + 8 + t->name_len;
        add_region(s, info, info + 8, t->name, "length of the name");
        add_region(s, info + 8, name_end, t->name, "name");
        add_region(s, name_end, name_end + 4 + 8 * t->n_dims + 4 + 8, t->name, "tensor info");
        const bool payload = strcmp(t->type_name, "I8") == 0;
        const bool packed = strcmp(t->type_name, "I2_S") == 0 || strcmp(t->type_name, "TL1") == 0 ||
                            strcmp(t->type_name, "TL2") == 0;
        const uint64_t tail = packed ? 32 : 0;
        if (payload) /* the header is small beside the rest */
            add_region(s, t->file_offset, t->file_offset + 64, t->name, "header of the payload");
        add_region(s, t->file_offset, t->file_offset + t->size - tail, t->name,
                   packed || payload || bc_scale_tensor_of(gguf, t) != NULL ? "packed"
                   : t->n_dims < 2                                          ? "norm"
                                                                            : "values");
        if (!packed) continue;
        add_region(s, t->file_offset + t->size - tail, t->file_offset + t->size - tail + 4, t->name,
                   "scale");
        add_region(s, t->file_offset + t->size - tail + 4, t->file_offset + t->size, t->name,
                   "spare bytes");
    }
    bc_file_close(&file);
    bitconv_gguf_close(gguf);
}

/* The scales of the first blocks of every tensor of the pack (of zeros, in flip_blocks) and of some
 * further on. */
static void add_block_scales(struct subject *s, const struct bc_block_pack *bp)
{
    static const uint64_t blocks[] = {0, 1, 2, 9};
    struct bitconv_gguf *gguf = NULL;
    struct bitconv_error err = {0};
    assert_int_equal(bitconv_gguf_open(s->path, &gguf, &err), BITCONV_OK);
    for (size_t i = 0; i < bitconv_gguf_n_tensors(gguf); i++) {
        const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(gguf, i);
        if (strcmp(t->type_name, bp->format->type_name) != 0) continue;
        for (size_t j = 0; j < sizeof blocks / sizeof blocks[0]; j++) {
            const uint64_t at = t->file_offset + blocks[j] * bp->block_size + bp->scale_offset;
            add_region(s, at, at + 2, t->name, "scale of a block");
        }
    }
    bitconv_gguf_close(gguf);
}

/* Converts the checkpoint s->source. */
static void convert_with(struct subject *s, struct bitconv_convert_options options)
{
    struct bitconv_conversion *conversion = NULL;
    struct bitconv_error err = {0};
    s->dir = temp_dir_new();
    s->path = temp_dir_path(s->dir, "model.gguf");
    options.outfile = s->path;
    const enum bitconv_status status =
        bitconv_convert(s->source, &options, NULL, &conversion, &err);
    if (status != BITCONV_OK) fail_msg("%s", err.text);
    bitconv_conversion_free(conversion);
    map_regions(s);
}

static void convert_subject(struct subject *s, const char *outtype)
{
    convert_with(s, (struct bitconv_convert_options){.outtype = outtype});
}

static void make_subject(struct subject *s, const char *model, const char *outtype)
{
    memset(s, 0, sizeof *s);
    snprintf(s->source, sizeof s->source, "%s/fixtures/models/%s", BITCONV_SOURCE_DIR, model);
    convert_subject(s, outtype);
}

static void drop_subject(struct subject *s)
{
    free(s->path);
    temp_dir_remove(s->dir);
}

/* True when verify is content; what it said goes to `report`. */
static bool passes(const struct subject *s, struct report *report)
{
    const struct bitconv_verify_options options = {.source = s->source, .n_threads = 1};
    const struct bitconv_sink sink = {.message = on_message, .user = report};
    struct bitconv_verification *result = NULL;
    struct bitconv_error err = {0};
    report->used = 0;
    report->text[0] = '\0';
    if (bitconv_verify(s->path, &options, &sink, &result, &err) != BITCONV_OK) {
        say(report, err.text);
        return false;
    }
    const bool ok = result->ok;
    for (size_t i = 0; i < result->n_proofs; i++)
        if (result->proofs[i].verdict == BITCONV_FAILED) say(report, result->proofs[i].detail);
    bitconv_verification_free(result);
    return ok;
}

static void flip(int fd, uint64_t offset, unsigned bit)
{
    uint8_t byte = 0;
    assert_int_equal(pread(fd, &byte, 1, (off_t)offset), 1);
    byte = (uint8_t)(byte ^ 1u << bit);
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)offset), 1);
}

/* Flips one bit, verifies, flips it back. Returns false, after saying why, when that went unnoticed
 * or the tensor was not named. */
static bool is_caught(const struct subject *s, const struct region *r, int fd, uint64_t offset,
                      unsigned bit, struct report *report)
{
    flip(fd, offset, bit);
    const bool passed = passes(s, report);
    flip(fd, offset, bit);
    if (!passed && strstr(report->text, r->tensor) != NULL) return true;
    fprintf(stderr, "bit %u of offset %llu (%s of %s): %s\n%s", bit, (unsigned long long)offset,
            r->what, r->tensor, passed ? "passed" : "not named", report->text);
    return false;
}

/* `n` flips, the regions in turn, so that small ones (scales, names) get as many as large ones. */
static size_t flip_many(const struct subject *s, size_t n, uint64_t seed)
{
    static struct report report; /* too large for the stack */
    const int fd = open(s->path, O_RDWR);
    size_t missed = 0;
    assert_true(fd >= 0);
    if (!passes(s, &report)) fail_msg("the intact file does not pass: %s", report.text);
    for (size_t i = 0; i < n; i++) {
        const struct region *r = &s->regions[i % s->n_regions];
        const uint64_t offset = r->begin + rng_below(&seed, r->end - r->begin);
        missed += !is_caught(s, r, fd, offset, (unsigned)rng_below(&seed, 8), &report);
    }
    close(fd);
    if (!passes(s, &report)) fail_msg("flips were not undone: %s", report.text);
    return missed;
}

static void flips_of(const char *model, const char *outtype, size_t n)
{
    static struct subject s;
    make_subject(&s, model, outtype);
    const size_t missed = flip_many(&s, n, 1);
    drop_subject(&s);
    assert_int_equal(missed, 0);
}

static void packed_offline(void **state)
{
    (void)state;
    flips_of("bitnet", "i2_s", 1000);
}

static void packed_master(void **state)
{
    (void)state;
    flips_of("qwen3-embed", "i2_s", 500);
}

static void packed_permuted(void **state)
{
    (void)state;
    flips_of("llama-158", "i2_s", 400);
}

static void tiled_offline(void **state)
{
    (void)state;
    flips_of("bitnet", "tl1", 400);
}

/* No fixture has rows that are long enough for TL2. */
static void tiled_triples(void **state)
{
    static struct subject s;
    struct convert_run *r = *state;
    struct llama_model m = {.values = {NULL}};
    memset(&s, 0, sizeof s);
    llama_model_make(r, &m, 256, 288);
    snprintf(s.source, sizeof s.source, "%s", r->model);
    convert_subject(&s, "tl2");
    const size_t missed = flip_many(&s, 200, 2);
    drop_subject(&s);
    llama_model_free(&m);
    assert_int_equal(missed, 0);
}

static void bitmap_offline(void **state)
{
    (void)state;
    flips_of("bitnet", "bitcos", 500);
}

static void bitmap_of_experts(void **state)
{
    (void)state;
    flips_of("mixtral", "bitcos", 300);
}

static void five_trits_master(void **state)
{
    (void)state;
    flips_of("qwen3-embed", "t5", 400);
}

/* Packs with a scale per block: the scales are regions of their own, as few flips among all bytes
 * of a tensor would hit them. */
static void flip_blocks(void **state, const char *pack, bool scale_tensor)
{
    static struct subject s;
    struct convert_run *r = *state;
    struct llama_model m = {.values = {NULL}};
    memset(&s, 0, sizeof s);
    llama_model_make(r, &m, 256, 256);
    for (size_t t = 4; t < 11; t++) {
        const uint64_t n = m.edits[t].shape[0] * m.edits[t].shape[1];
        for (uint64_t i = 0; i < n; i++)
            if (m.values[t][i] == 0.0f && strcmp(pack, "q1_0") == 0) m.values[t][i] = -0.25f;
        for (uint64_t i = 0; i < 512 && strcmp(pack, "q1_0") != 0; i++)
            m.values[t][i] = 0.0f; /* whole blocks of zeros */
    }
    llama_model_write(r, &m, 256, 256);
    snprintf(s.source, sizeof s.source, "%s", r->model);
    convert_with(&s,
                 (struct bitconv_convert_options){.outtype = pack, .scale_tensor = scale_tensor});
    add_block_scales(&s, bc_block_pack_find(pack));
    const size_t missed = flip_many(&s, 160, 3);
    drop_subject(&s);
    llama_model_free(&m);
    assert_int_equal(missed, 0);
}

static void block_packs(void **state)
{
    for (size_t i = 0; bc_block_pack_at(i) != NULL; i++)
        flip_blocks(state, bc_block_pack_at(i)->format->name, false);
}

static void block_packs_with_scale_tensors(void **state)
{
    for (size_t i = 0; bc_block_pack_at(i) != NULL; i++)
        flip_blocks(state, bc_block_pack_at(i)->format->name, true);
}

static void block_packs_of_experts(void **state)
{
    static struct subject s;
    (void)state;
    for (int beside = 0; beside < 2; beside++) {
        memset(&s, 0, sizeof s);
        snprintf(s.source, sizeof s.source, "%s/fixtures/models/mixtral", BITCONV_SOURCE_DIR);
        convert_with(
            &s, (struct bitconv_convert_options){.outtype = "q2_0", .scale_tensor = beside != 0});
        add_block_scales(&s, bc_block_pack_find("q2_0"));
        const size_t missed = flip_many(&s, 160, 4);
        drop_subject(&s);
        assert_int_equal(missed, 0);
    }
}

static void blocks_of_floats(void **state)
{
    (void)state;
    flips_of("llama-ternary", "q8_0", 200);
}

static void floats_with_norms(void **state)
{
    (void)state;
    flips_of("gemma3-embed", "bf16", 300);
}

static void floats_of_experts(void **state)
{
    (void)state;
    flips_of("mixtral", "f16", 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_offline),
        cmocka_unit_test(packed_master),
        cmocka_unit_test(packed_permuted),
        cmocka_unit_test(floats_with_norms),
        cmocka_unit_test(floats_of_experts),
        cmocka_unit_test(tiled_offline),
        cmocka_unit_test_setup_teardown(tiled_triples, convert_run_set_up, convert_run_tear_down),
        cmocka_unit_test(bitmap_offline),
        cmocka_unit_test(bitmap_of_experts),
        cmocka_unit_test(five_trits_master),
        cmocka_unit_test(blocks_of_floats),
        cmocka_unit_test_setup_teardown(block_packs, convert_run_set_up, convert_run_tear_down),
        cmocka_unit_test_setup_teardown(block_packs_with_scale_tensors, convert_run_set_up,
                                        convert_run_tear_down),
        cmocka_unit_test(block_packs_of_experts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
