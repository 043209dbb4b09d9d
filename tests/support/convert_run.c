/* SPDX-License-Identifier: MIT
 * Runs conversions for tests. */
#include "support/convert_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/json.h"
#include "formats/format.h"
#include "io/gguf_types.h"
#include "support/temp_dir.h"

static void collect(void *user, enum bitconv_severity severity, const char *text)
{
    static const char *const names[] = {"note", "warning", "finding"};
    struct convert_run *r = user;
    bc_buf_printf(&r->messages, "%s: %s\n", names[severity], text);
}

int convert_run_set_up(void **state)
{
    struct convert_run *const r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->root = temp_dir_new();
    r->model = temp_dir_path(r->root, "model");
    r->out = temp_dir_path(r->root, "out.gguf");
    r->options.outfile = r->out;
    r->sink.message = collect;
    r->sink.user = r;
    *state = r;
    return 0;
}

static void drop_results(struct convert_run *r)
{
    bitconv_gguf_close(r->gguf);
    bitconv_conversion_free(r->result);
    r->gguf = NULL;
    r->result = NULL;
    r->err = (struct bitconv_error){.status = BITCONV_OK};
    bc_buf_clear(&r->messages);
}

int convert_run_tear_down(void **state)
{
    struct convert_run *const r = *state;
    drop_results(r);
    bc_buf_release(&r->messages);
    temp_dir_remove(r->root);
    free(r->model);
    free(r->out);
    free(r);
    return 0;
}

void convert_run_model(struct convert_run *r, const char *fixture, const struct model_edit *edits,
                       size_t n)
{
    drop_results(r);
    temp_dir_remove(r->model);
    r->model = temp_dir_path(r->root, "model");
    assert_int_equal(mkdir(r->model, 0755), 0);
    model_copy(fixture, r->model, edits, n);
}

enum bitconv_status convert_run(struct convert_run *r, const char *outtype)
{
    drop_results(r);
    r->options.outtype = outtype;
    return bitconv_convert(r->model, &r->options, &r->sink, &r->result, &r->err);
}

void convert_run_accept(struct convert_run *r, const char *outtype)
{
    (void)remove(r->out);
    if (convert_run(r, outtype) != BITCONV_OK) fail_msg("%s", r->err.text);
    if (r->options.dry_run) return;
    if (bitconv_gguf_open(r->result->output, &r->gguf, &r->err) != BITCONV_OK)
        fail_msg("%s", r->err.text);
}

bool convert_run_said(const struct convert_run *r, const char *text)
{
    return strstr(bc_buf_str(&r->messages), text) != NULL || strstr(r->err.text, text) != NULL;
}

void convert_run_refuse(struct convert_run *r, const char *outtype, enum bitconv_status status,
                        const char *text)
{
    struct stat st;
    (void)remove(r->out);
    assert_int_equal(convert_run(r, outtype), status);
    assert_null(r->result);
    if (!convert_run_said(r, text))
        fail_msg("neither '%s' nor the messages hold '%s':\n%s", r->err.text, text,
                 bc_buf_str(&r->messages));
    assert_int_not_equal(stat(r->out, &st), 0);
}

const struct bitconv_converted_tensor *convert_run_tensor(const struct convert_run *r,
                                                          const char *name)
{
    for (size_t i = 0; i < r->result->n_tensors; i++)
        if (strcmp(r->result->tensors[i].name, name) == 0) return &r->result->tensors[i];
    fail_msg("no tensor %s in the result", name);
    return NULL;
}

const struct bitconv_gguf_tensor *convert_run_stored(const struct convert_run *r, const char *name)
{
    const struct bitconv_gguf_tensor *t = bitconv_gguf_find_tensor(r->gguf, name);
    if (t == NULL) fail_msg("no tensor %s in the file", name);
    return t;
}

float convert_run_value(const struct convert_run *r, const char *name, uint64_t index)
{
    const struct bitconv_gguf_tensor *t = convert_run_stored(r, name);
    assert_true(index < t->n_elements);
    switch (t->type) {
    case BC_TYPE_F32:
        return bc_get_f32(t->data + 4 * index);
    case BC_TYPE_F16:
        return bc_f16_to_f32(bc_get_u16(t->data + 2 * index));
    case BC_TYPE_BF16:
        return bc_bf16_to_f32(bc_get_u16(t->data + 2 * index));
    default:
        fail_msg("%s: %s is no float type", name, t->type_name);
        return 0.0f;
    }
}

/* The pack of a stored tensor, as bitconv.tensor.pack says it, and its shape. */
static const struct bc_format *pack_of(const struct convert_run *r, const char *name,
                                       struct bc_pack_shape *shape)
{
    const struct bitconv_gguf_tensor *t = convert_run_stored(r, name);
    const char *pack = convert_run_tensor(r, name)->pack;
    assert_non_null(pack);
    *shape = (struct bc_pack_shape){
        .cols = t->ne[0], .rows = t->ne[1], .slices = t->ne[2], .n = t->n_elements};
    return bc_format_find(pack);
}

int convert_run_trit(const struct convert_run *r, const char *name, uint64_t index)
{
    struct bc_pack_shape shape;
    const struct bc_format *pack = pack_of(r, name, &shape);
    return pack->trit_at(&shape, convert_run_stored(r, name)->data,
                         index / (shape.cols * shape.rows), index / shape.cols % shape.rows,
                         index % shape.cols);
}

float convert_run_scale(const struct convert_run *r, const char *name)
{
    struct bc_pack_shape shape;
    const struct bc_format *pack = pack_of(r, name, &shape);
    return pack->get_scale(&shape, convert_run_stored(r, name)->data, 0);
}

void convert_run_file(const char *path, struct bc_buf *out)
{
    struct bitconv_error err = {.status = BITCONV_OK};
    bc_buf_clear(out);
    if (bc_text_load(path, out, &err) != BITCONV_OK) fail_msg("%s", err.text);
}
