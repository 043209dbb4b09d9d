/* SPDX-License-Identifier: MIT
 * Tests of checkpoint folders: which files are taken as the weights, and every fault of a set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "model/checkpoint.h"
#include "support/st_builder.h"
#include "support/temp_dir.h"

#define INDEX "model.safetensors.index.json"

/* What a sink was told, one line a message: "note: ...", "warning: ...", "finding: ...". */
static void collect(void *user, enum bitconv_severity severity, const char *text)
{
    static const char *const names[] = {"note", "warning", "finding"};
    bc_buf_printf(user, "%s: %s\n", names[severity], text);
}

struct fixture {
    char *dir;
    struct bc_buf messages;
    struct bitconv_sink sink;
    struct bitconv_error err;
    struct bc_checkpoint *ckpt;
};

static int set_up(void **state)
{
    struct fixture *const f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->dir = temp_dir_new();
    f->sink.message = collect;
    f->sink.user = &f->messages;
    temp_dir_puts(f->dir, "config.json", "{\"model_type\":\"llama\"}");
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *const f = *state;
    bc_checkpoint_close(f->ckpt);
    bc_buf_release(&f->messages);
    temp_dir_remove(f->dir);
    free(f);
    return 0;
}

/* A safetensors file with tensors of two F32 each; `names` ends with NULL. */
static void put_weights(const struct fixture *f, const char *file, const char *const *names)
{
    const uint64_t shape[] = {2};
    const float values[] = {1.0f, -1.0f};
    struct st_builder b = {.data = {NULL, 0, 0, false}};
    for (; *names != NULL; names++)
        st_builder_add_floats(&b, *names, BITCONV_F32, 1, shape, values);
    char *const path = temp_dir_path(f->dir, file);
    assert_true(st_builder_write(&b, path));
    free(path);
    st_builder_release(&b);
}

/* Opens the folder anew; messages and error of an earlier try are dropped. */
static enum bitconv_status open_dir(struct fixture *f)
{
    bc_checkpoint_close(f->ckpt);
    bc_buf_clear(&f->messages);
    memset(&f->err, 0, sizeof f->err);
    return bc_checkpoint_open(f->dir, true, &f->sink, &f->ckpt, &f->err);
}

static void assert_opens(struct fixture *f, size_t n_shards, size_t n_tensors)
{
    if (open_dir(f) != BITCONV_OK)
        fail_msg("refused: %s\n%s", f->err.text, bc_buf_str(&f->messages));
    assert_int_equal(f->ckpt->n_shards, n_shards);
    assert_int_equal(f->ckpt->n_tensors, n_tensors);
    assert_null(strstr(bc_buf_str(&f->messages), "finding: "));
}

static size_t count_lines(const char *text, const char *start)
{
    size_t n = 0;
    for (; text != NULL && *text != '\0'; text = strchr(text, '\n') + 1)
        n += strncmp(text, start, strlen(start)) == 0;
    return n;
}

/* Refused at once, with `text` in the error. */
static void assert_refused(struct fixture *f, const char *text)
{
    if (open_dir(f) == BITCONV_OK) fail_msg("accepted, wanted: %s", text);
    assert_null(f->ckpt);
    if (strstr(f->err.text, text) == NULL) fail_msg("wanted '%s' in: %s", text, f->err.text);
}

static void assert_said(const struct fixture *f, const char *severity, const char *text)
{
    const char *line = bc_buf_str(&f->messages);
    while (*line != '\0') {
        const char *const end = strchr(line, '\n');
        const char *const found = strstr(line, text);
        if (strncmp(line, severity, strlen(severity)) == 0 && found != NULL && found < end) return;
        line = end + 1;
    }
    fail_msg("no %s with '%s' in:\n%s", severity, text, bc_buf_str(&f->messages));
}

/* Refused with exactly n findings; assert_said looks at them. */
static void assert_findings(struct fixture *f, size_t n)
{
    if (open_dir(f) == BITCONV_OK) fail_msg("accepted, wanted %zu findings", n);
    assert_null(f->ckpt);
    if (count_lines(bc_buf_str(&f->messages), "finding: ") != n)
        fail_msg("wanted %zu findings, got:\n%s%s", n, bc_buf_str(&f->messages), f->err.text);
    assert_non_null(strstr(f->err.text, f->dir));
}

static const char *const names_ab[] = {"a", "b", NULL};
static const char *const names_cd[] = {"c", "d", NULL};

/* ---- which files ---- */

static void test_single(void **state)
{
    struct fixture *const f = *state;
    put_weights(f, "model.safetensors", names_ab);
    assert_opens(f, 1, 2);
    assert_int_equal(f->messages.size, 0);
    assert_string_equal(f->ckpt->dir, f->dir);
    assert_string_equal(f->ckpt->base_name, strrchr(f->dir, '/') + 1);
    assert_string_equal(bc_json_string(bc_json_get(f->ckpt->config, "model_type")), "llama");
    assert_ptr_equal(f->ckpt->text, f->ckpt->config);
    assert_null(f->ckpt->generation_config);
    assert_null(f->ckpt->modules);
    assert_null(f->ckpt->pooling);
    assert_ptr_equal(bc_checkpoint_find(f->ckpt, "b"), f->ckpt->tensors[1]);
    assert_null(bc_checkpoint_find(f->ckpt, "c"));
    const struct bc_file *const map = bc_checkpoint_file_of(f->ckpt, f->ckpt->tensors[1]);
    assert_string_equal(map->path, f->ckpt->shard_paths[0]);
    const struct bitconv_tensor foreign = {.name = "b", .file = "elsewhere"};
    assert_null(bc_checkpoint_file_of(f->ckpt, &foreign));
}

static void test_only_file(void **state)
{
    struct fixture *const f = *state;
    put_weights(f, "weights.safetensors", names_ab);
    assert_opens(f, 1, 2);
    put_weights(f, "other.safetensors", names_cd);
    assert_refused(f, "2 safetensors files (other.safetensors, weights.safetensors)");
    put_weights(f, "model.safetensors", names_cd);
    assert_opens(f, 1, 2);
    assert_non_null(bc_checkpoint_find(f->ckpt, "c"));
    assert_said(f, "note", "weights.safetensors: ignored, the weights are taken from model.");
}

/* Names sorted bytewise within each file, files in the order of their names. */
static void test_order(void **state)
{
    struct fixture *const f = *state;
    static const char *const first[] = {"model.norm",        "model.layers.2.w", "lm_head",
                                        "model.layers.10.w", "model.layers.1.w", NULL};
    static const char *const second[] = {"b", "a", NULL};
    static const char *const sorted[] = {
        "lm_head", "model.layers.1.w", "model.layers.10.w", "model.layers.2.w", "model.norm", "a",
        "b"};
    put_weights(f, "model-00002-of-00002.safetensors", second);
    put_weights(f, "model-00001-of-00002.safetensors", first);
    assert_opens(f, 2, 7);
    for (size_t i = 0; i < 7; i++)
        assert_string_equal(f->ckpt->tensors[i]->name, sorted[i]);
    temp_dir_puts(f->dir, INDEX,
                  "{\"weight_map\":{\"b\":\"model-00002-of-00002.safetensors\","
                  "\"lm_head\":\"model-00001-of-00002.safetensors\","
                  "\"model.layers.2.w\":\"model-00001-of-00002.safetensors\","
                  "\"model.layers.10.w\":\"model-00001-of-00002.safetensors\","
                  "\"model.layers.1.w\":\"model-00001-of-00002.safetensors\","
                  "\"model.norm\":\"model-00001-of-00002.safetensors\","
                  "\"a\":\"model-00002-of-00002.safetensors\"}}");
    assert_opens(f, 2, 7);
    for (size_t i = 0; i < 7; i++)
        assert_string_equal(f->ckpt->tensors[i]->name, sorted[i]);
}

static void test_numbered_gaps(void **state)
{
    struct fixture *const f = *state;
    put_weights(f, "model-00001-of-00002.safetensors", names_ab);
    assert_findings(f, 1);
    assert_said(f, "finding", "model-00002-of-00002.safetensors: missing");
    temp_dir_puts(f->dir, "model-00002-of-00002.safetensors.incomplete", "");
    assert_findings(f, 1);
    assert_said(f, "finding", "did not finish");
    put_weights(f, "model-00002-of-00002.safetensors", names_cd);
    assert_opens(f, 2, 4);
    assert_said(f, "warning", "model-00002-of-00002.safetensors.incomplete: a download that did");
}

static void test_numbered_strays(void **state)
{
    struct fixture *const f = *state;
    static const char *const none[] = {NULL};
    put_weights(f, "model-00002-of-00005.safetensors", names_ab);
    put_weights(f, "model-00004-of-00005.safetensors", names_cd);
    put_weights(f, "model-00004-of-00006.safetensors", none);
    put_weights(f, "model-00007-of-00005.safetensors", none);
    assert_findings(f, 5);
    assert_said(f, "finding", "model-00001-of-00005.safetensors: missing");
    assert_said(f, "finding", "model-00003-of-00005.safetensors: missing");
    assert_said(f, "finding", "model-00005-of-00005.safetensors: missing");
    assert_said(f, "finding", "model-00004-of-00006.safetensors: does not belong");
    assert_said(f, "finding", "model-00007-of-00005.safetensors: does not belong");
}

/* Ninety thousand missing parts are told in a bounded number of lines. */
static void test_numbered_flood(void **state)
{
    struct fixture *const f = *state;
    put_weights(f, "model-90001-of-99999.safetensors", names_ab);
    assert_findings(f, 101);
    assert_said(f, "finding", "99898 more parts missing");
    assert_non_null(strstr(f->err.text, "101 faults in the weight files, the first: "));
}

static void test_part_of_other_name(void **state)
{
    struct fixture *const f = *state;
    put_weights(f, "consolidated-00001-of-00003.safetensors", names_ab);
    assert_findings(f, 1);
    assert_said(f, "finding", "the only one of 3 parts");
}

static void test_no_weights(void **state)
{
    struct fixture *const f = *state;
    assert_refused(f, "holds no weights (*.safetensors)");
    temp_dir_puts(f->dir, "model.gguf", "GGUF");
    assert_refused(f, "model.gguf is a GGUF already");
    temp_dir_puts(f->dir, "model.safetensors.incomplete", "");
    assert_refused(f, "model.safetensors.incomplete is a download that did not finish");
    temp_dir_puts(f->dir, "training_args.bin", "x");
    assert_refused(f, "model.safetensors.incomplete is");
    temp_dir_puts(f->dir, "pytorch_model-00001-of-00002.bin", "PK");
    assert_refused(f, "pytorch_model-00001-of-00002.bin is PyTorch weights: convert them to "
                      "safetensors first");
}

/* Tokenizer and metadata work needs no weights. */
static void test_vocab_only(void **state)
{
    struct fixture *const f = *state;
    assert_int_equal(bc_checkpoint_open(f->dir, false, &f->sink, &f->ckpt, &f->err), BITCONV_OK);
    assert_int_equal(f->ckpt->n_tensors, 0);
    assert_int_equal(f->ckpt->n_shards, 0);
    assert_null(bc_checkpoint_find(f->ckpt, "a"));
}

/* ---- the index ---- */

/* Two good files with their index; tests then break one thing. */
static void put_sharded(const struct fixture *f)
{
    put_weights(f, "x-1.safetensors", names_ab);
    put_weights(f, "x-2.safetensors", names_cd);
    temp_dir_puts(
        f->dir, INDEX,
        "{\"metadata\":{\"total_size\":32},\"weight_map\":{\"a\":\"x-1.safetensors\","
        "\"b\":\"x-1.safetensors\",\"c\":\"x-2.safetensors\",\"d\":\"x-2.safetensors\"}}");
}

static void test_index_wins(void **state)
{
    struct fixture *const f = *state;
    put_sharded(f);
    assert_opens(f, 2, 4);
    assert_int_equal(f->messages.size, 0);
    static const char *const stale[] = {"a", "z", NULL};
    put_weights(f, "model.safetensors", stale);
    put_weights(f, "consolidated.safetensors", stale);
    put_weights(f, "model-00001-of-00009.safetensors", stale);
    assert_opens(f, 2, 4);
    assert_int_equal(count_lines(bc_buf_str(&f->messages), "note: "), 3);
    assert_said(f, "note", "/model.safetensors: ignored, " INDEX " does not name it");
    assert_said(f, "note", "/consolidated.safetensors: ignored");
    assert_null(bc_checkpoint_find(f->ckpt, "z"));
}

static void test_stale_parts_beside_single(void **state)
{
    struct fixture *const f = *state;
    put_weights(f, "model.safetensors", names_ab);
    put_weights(f, "model-00001-of-00001.safetensors", names_cd);
    assert_opens(f, 1, 2);
    assert_said(f, "warning", "model-00001-of-00001.safetensors: ignored");
}

static void test_shard_missing(void **state)
{
    struct fixture *const f = *state;
    put_sharded(f);
    char *const path = temp_dir_path(f->dir, "x-2.safetensors");
    assert_int_equal(unlink(path), 0);
    assert_findings(f, 1); /* the tensors that are in it are not told one by one */
    assert_said(f, "finding", "x-2.safetensors: missing, 2 tensors are indexed there");
    temp_dir_puts(f->dir, "x-2.safetensors.incomplete", "");
    assert_findings(f, 1);
    assert_said(f, "finding", "x-2.safetensors: missing (its download, .incomplete, did not");
    assert_int_equal(symlink("../blobs/0123abcd", path), 0);
    temp_dir_puts(f->dir, "x-2.safetensors.incomplete.old", "");
    char *const leftover = temp_dir_path(f->dir, "x-2.safetensors.incomplete");
    assert_int_equal(unlink(leftover), 0);
    assert_findings(f, 1);
    assert_said(f, "finding", "missing (a symbolic link that leads nowhere)");
    free(leftover);
    free(path);
}

static void test_index_disagrees(void **state)
{
    struct fixture *const f = *state;
    put_sharded(f);
    temp_dir_puts(f->dir, INDEX,
                  "{\"weight_map\":{\"a\":\"x-1.safetensors\",\"c\":\"x-1.safetensors\","
                  "\"d\":\"x-2.safetensors\",\"e\":\"x-2.safetensors\"}}");
    assert_findings(f, 3);
    assert_said(f, "finding", "x-1.safetensors: c: indexed here, but it is in ");
    assert_said(f, "finding", "x-2.safetensors: e: indexed here, but it is in no file");
    assert_said(f, "finding", "x-1.safetensors: b: not in " INDEX);
    assert_non_null(strstr(f->err.text, "3 faults in the weight files, the first: "));
}

static void test_ignorable_extra(void **state)
{
    struct fixture *const f = *state;
    put_sharded(f);
    static const char *const names[] = {"a", "b", "model.layers.0.self_attn.rotary_emb.inv_freq",
                                        NULL};
    put_weights(f, "x-1.safetensors", names);
    assert_opens(f, 2, 5);
    assert_said(f, "note", "rotary_emb.inv_freq: not in " INDEX);
}

static void test_tensor_twice(void **state)
{
    struct fixture *const f = *state;
    put_sharded(f);
    static const char *const names[] = {"c", "d", "a", NULL};
    put_weights(f, "x-2.safetensors", names);
    assert_findings(f, 1);
    assert_said(f, "finding", "x-2.safetensors: a: is also in ");
    assert_non_null(strstr(f->err.text, "x-1.safetensors"));
}

static void test_names_leave_folder(void **state)
{
    struct fixture *const f = *state;
    temp_dir_puts(f->dir, INDEX,
                  "{\"weight_map\":{\"a\":\"../../etc/passwd\",\"b\":\"/etc/passwd\",\"c\":\"..\","
                  "\"d\":\"sub/../../x\",\"e\":\"\",\"f\":\"./x\",\"g\":\"sub//x\",\"h\":\"x/\","
                  "\"i\":1,\"j\":null}}");
    assert_findings(f, 10);
    assert_said(f, "finding", INDEX ": '../../etc/passwd' is not a file name within the folder");
    assert_said(f, "finding", "'/etc/passwd' is not a file name");
    assert_said(f, "finding", INDEX ": i: its value is not a file name");
}

static void test_shards_in_subfolder(void **state)
{
    struct fixture *const f = *state;
    temp_dir_puts(f->dir, "sub/x", "");
    put_weights(f, "sub/..x.safetensors", names_ab);
    temp_dir_puts(f->dir, INDEX,
                  "{\"weight_map\":{\"a\":\"sub/..x.safetensors\",\"b\":\"sub/..x.safetensors\"}}");
    assert_opens(f, 1, 2);
}

static void test_wrong_total_size(void **state)
{
    struct fixture *const f = *state;
    put_sharded(f);
    static const char map[] = "\"weight_map\":{\"a\":\"x-1.safetensors\",\"b\":\"x-1.safetensors\","
                              "\"c\":\"x-2.safetensors\",\"d\":\"x-2.safetensors\"}}";
    char text[512];
    (void)snprintf(text, sizeof text, "{\"metadata\":{\"total_size\":33},%s", map);
    temp_dir_puts(f->dir, INDEX, text);
    assert_opens(f, 2, 4);
    assert_said(f, "warning", INDEX ": total_size is 33, the tensors have 32 bytes");
    (void)snprintf(text, sizeof text, "{\"metadata\":{\"total_size\":32.0},%s", map);
    temp_dir_puts(f->dir, INDEX, text);
    assert_opens(f, 2, 4);
    assert_int_equal(f->messages.size, 0);
    (void)snprintf(text, sizeof text, "{\"metadata\":{\"total_size\":\"32\"},%s", map);
    temp_dir_puts(f->dir, INDEX, text);
    assert_opens(f, 2, 4);
    assert_said(f, "warning", INDEX ": metadata.total_size is not a number of bytes");
    (void)snprintf(text, sizeof text, "{\"metadata\":{},%s", map);
    temp_dir_puts(f->dir, INDEX, text);
    assert_opens(f, 2, 4);
    assert_int_equal(f->messages.size, 0);
}

static void test_impostors(void **state)
{
    struct fixture *const f = *state;
    put_sharded(f);
    temp_dir_puts(f->dir, "x-1.safetensors",
                  "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1178623988\n");
    temp_dir_puts(f->dir, "x-2.safetensors", "<html><body>404</body></html>");
    assert_findings(f, 2);
    assert_said(f, "finding",
                "x-1.safetensors: is a Git LFS pointer (73 bytes; real size "
                "1178623988): run `git lfs pull`");
    assert_said(f, "finding", "x-2.safetensors: is an HTML page");
}

static void test_broken_index(void **state)
{
    struct fixture *const f = *state;
    put_weights(f, "model.safetensors", names_ab);
    static const char *const texts[] = {"{}", "[]", "{\"weight_map\":{}}", "{\"weight_map\":[1]}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        temp_dir_puts(f->dir, INDEX, texts[i]);
        assert_refused(f, INDEX ": weight_map is missing, empty or not an object");
    }
    temp_dir_puts(f->dir, INDEX, "{\"weight_map\":{\"a\":\"x\",\"a\":\"x\"}}");
    assert_refused(f, INDEX ": JSON");
    temp_dir_puts(f->dir, INDEX, "version https://git-lfs.github.com/spec/v1\nsize 5\n");
    assert_refused(f, "Git LFS pointer");
}

/* ---- the JSON files ---- */

static void test_bad_folders(void **state)
{
    struct fixture *const f = *state;
    char *const config = temp_dir_path(f->dir, "config.json");
    struct bc_checkpoint *ckpt;
    struct bitconv_error err = {BITCONV_OK, 0, 0, ""};
    assert_int_equal(bc_checkpoint_open(config, true, NULL, &ckpt, &err), BITCONV_E_ARG);
    assert_null(ckpt);
    assert_non_null(strstr(err.text, "config.json: is a file, a checkpoint folder"));
    memset(&err, 0, sizeof err);
    char *const absent = temp_dir_path(f->dir, "absent");
    assert_int_equal(bc_checkpoint_open(absent, true, NULL, &ckpt, &err), BITCONV_E_IO);
    assert_non_null(strstr(err.text, "absent: "));
    assert_int_equal(unlink(config), 0);
    assert_refused(f, "holds no config.json, so it is not a Hugging Face checkpoint");
    temp_dir_puts(f->dir, "config.json", "[1]");
    assert_refused(f, "config.json: the JSON text is not an object");
    temp_dir_puts(f->dir, "config.json", "{\"a\":1,}");
    assert_refused(f, "config.json: JSON");
    free(absent);
    free(config);
}

static void test_base_name(void **state)
{
    struct fixture *const f = *state;
    put_weights(f, "model.safetensors", names_ab);
    char *const base = strdup(strrchr(f->dir, '/') + 1);
    char *const slashed = temp_dir_path(f->dir, "./");
    assert_int_equal(bc_checkpoint_open(slashed, true, NULL, &f->ckpt, NULL), BITCONV_OK);
    assert_string_equal(f->ckpt->base_name, base);
    assert_string_equal(f->ckpt->dir, slashed);
    free(slashed);
    free(base);
}

static void test_nested_config(void **state)
{
    struct fixture *const f = *state;
    put_weights(f, "model.safetensors", names_ab);
    temp_dir_puts(f->dir, "config.json", "{\"text_config\":{\"hidden_size\":8},\"x\":1}");
    temp_dir_puts(f->dir, "generation_config.json", "{\"eos_token_id\":[1,2]}");
    assert_opens(f, 1, 2);
    uint64_t v;
    assert_true(bc_json_u64(bc_json_get(f->ckpt->text, "hidden_size"), &v));
    assert_int_equal(v, 8);
    assert_int_equal(bc_json_size(bc_json_get(f->ckpt->generation_config, "eos_token_id")), 2);
    temp_dir_puts(f->dir, "config.json", "{\"text_config\":null,\"x\":1}");
    assert_opens(f, 1, 2);
    assert_ptr_equal(f->ckpt->text, f->ckpt->config);
    temp_dir_puts(f->dir, "generation_config.json", "3");
    assert_refused(f, "generation_config.json: the JSON text is not an object");
}

static void test_pooling(void **state)
{
    struct fixture *const f = *state;
    put_weights(f, "model.safetensors", names_ab);
    temp_dir_puts(f->dir, "modules.json",
                  "[{\"type\":\"sentence_transformers.models.Transformer\",\"path\":\"\"},"
                  "{\"type\":\"sentence_transformers.models.Pooling\",\"path\":\"1_Pooling\"},"
                  "{\"type\":\"a.Pooling\",\"path\":\"2_Pooling\"}]");
    assert_opens(f, 1, 2);
    assert_null(f->ckpt->pooling);
    assert_said(f, "warning", "1_Pooling/config.json: missing, though modules.json names it");
    temp_dir_puts(f->dir, "1_Pooling/config.json", "{\"pooling_mode_lasttoken\":true}");
    temp_dir_puts(f->dir, "2_Pooling/config.json", "{}");
    assert_opens(f, 1, 2);
    bool last = false;
    assert_true(bc_json_bool(bc_json_get(f->ckpt->pooling, "pooling_mode_lasttoken"), &last));
    assert_true(last);
    assert_int_equal(f->messages.size, 0);
    temp_dir_puts(f->dir, "modules.json", "[{\"type\":\"X.Normalize\",\"path\":\"2_Normalize\"}]");
    assert_opens(f, 1, 2);
    assert_null(f->ckpt->pooling);
    temp_dir_puts(f->dir, "modules.json", "[{\"type\":\"Pooling\",\"path\":\"../../x\"}]");
    assert_refused(f, "modules.json: the path of the pooling module is not a folder within");
    temp_dir_puts(f->dir, "modules.json", "[{\"type\":\"Pooling\"}]");
    assert_refused(f, "modules.json: the path of the pooling module");
    temp_dir_puts(f->dir, "modules.json", "{}");
    assert_refused(f, "modules.json: the JSON text is not an array");
}

/* {"a":1} by gzip, both as NAME.gz and under the plain name. */
static void test_compressed_json(void **state)
{
    struct fixture *const f = *state;
    static const uint8_t gz[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                                 0x03, 0xab, 0x56, 0x4a, 0x54, 0xb2, 0x32, 0xac, 0x05,
                                 0x00, 0xaf, 0xac, 0x1b, 0x56, 0x07, 0x00, 0x00, 0x00};
    static const char *const names[] = {"x.json.gz", "y.json"};
    for (size_t i = 0; i < 2; i++) {
        temp_dir_write(f->dir, names[i], gz, sizeof gz);
        struct bc_json *json;
        const char *const asked = i == 0 ? "x.json" : "y.json";
        struct bitconv_error err = {BITCONV_OK, 0, 0, ""};
        if (bc_checkpoint_json(f->dir, asked, &json, &err) != BITCONV_OK) fail_msg("%s", err.text);
        uint64_t v = 0;
        assert_true(bc_json_u64(bc_json_get(json, "a"), &v));
        assert_int_equal(v, 1);
        bc_json_free(json);
    }
    temp_dir_puts(f->dir, "x.json", "{\"plain\":true}"); /* goes before x.json.gz */
    struct bc_json *json;
    assert_int_equal(bc_checkpoint_json(f->dir, "x.json", &json, NULL), BITCONV_OK);
    assert_non_null(bc_json_get(json, "plain"));
    bc_json_free(json);
    assert_int_equal(bc_checkpoint_json(f->dir, "z.json", &json, NULL), BITCONV_OK);
    assert_null(json);
    temp_dir_puts(f->dir, "z.json/x", "");
    assert_int_not_equal(bc_checkpoint_json(f->dir, "z.json", &json, NULL), BITCONV_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_single),
        TEST(test_only_file),
        TEST(test_order),
        TEST(test_numbered_gaps),
        TEST(test_numbered_strays),
        TEST(test_numbered_flood),
        TEST(test_part_of_other_name),
        TEST(test_no_weights),
        TEST(test_vocab_only),
        TEST(test_index_wins),
        TEST(test_stale_parts_beside_single),
        TEST(test_shard_missing),
        TEST(test_index_disagrees),
        TEST(test_ignorable_extra),
        TEST(test_tensor_twice),
        TEST(test_names_leave_folder),
        TEST(test_shards_in_subfolder),
        TEST(test_wrong_total_size),
        TEST(test_impostors),
        TEST(test_broken_index),
        TEST(test_bad_folders),
        TEST(test_base_name),
        TEST(test_nested_config),
        TEST(test_pooling),
        TEST(test_compressed_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
