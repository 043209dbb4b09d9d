/* SPDX-License-Identifier: MIT
 * Copies committed checkpoints, with changes. */
#include "support/model_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "bitconv/safetensors.h"
#include "support/st_builder.h"
#include "support/temp_dir.h"

static const char models[] = BITCONV_SOURCE_DIR "/fixtures/models";

char *model_copy_source(const char *name)
{
    return temp_dir_path(models, name);
}

static void copy_file(const char *from, const char *dir, const char *name)
{
    struct bc_file file;
    struct bitconv_error err = {.status = BITCONV_OK};
    if (bc_file_open(from, &file, &err) != BITCONV_OK) fail_msg("%s", err.text);
    temp_dir_write(dir, name, file.data, (size_t)file.size);
    bc_file_close(&file);
}

/* Copies a folder and its folders; `below` is the path within the fixture, "" or "X/". */
static void copy_folder(const char *from, const char *dir, const char *below)
{
    char **names;
    size_t n;
    assert_int_equal(bc_dir_list(from, &names, &n, NULL), BITCONV_OK);
    for (size_t i = 0; i < n; i++) {
        struct bc_buf name = {0}, inner = {0};
        char *const path = temp_dir_path(from, names[i]);
        bc_buf_printf(&name, "%s%s", below, names[i]);
        bc_buf_printf(&inner, "%s%s/", below, names[i]);
        if (bc_path_kind(path) == BC_PATH_DIR)
            copy_folder(path, dir, bc_buf_str(&inner));
        else
            copy_file(path, dir, bc_buf_str(&name));
        free(path);
        bc_buf_release(&name);
        bc_buf_release(&inner);
        bc_free(names[i]);
    }
    bc_free(names);
}

static void add_edit(struct st_builder *b, const struct model_edit *e)
{
    if (e->drop) return;
    if (e->values != NULL)
        st_builder_add_floats(b, e->name, e->dtype, e->n_dims, e->shape, e->values);
    else
        st_builder_add(b, e->name, e->dtype, e->n_dims, e->shape, e->bytes, e->size);
}

static void rewrite_weights(const char *from, const char *dir, const struct model_edit *edits,
                            size_t n)
{
    struct bitconv_safetensors *file;
    struct st_builder b = {.data = {0}};
    bool used[64] = {false};
    assert_true(n <= 64);
    assert_int_equal(bitconv_safetensors_open(from, &file, NULL), BITCONV_OK);
    for (size_t i = 0; i < bitconv_safetensors_count(file); i++) {
        const struct bitconv_tensor *t = bitconv_safetensors_at(file, i);
        size_t e = 0;
        while (e < n && strcmp(edits[e].name, t->name) != 0)
            e++;
        if (e == n) {
            st_builder_add(&b, t->name, t->dtype, t->n_dims, t->shape, t->data, (size_t)t->size);
            continue;
        }
        used[e] = true;
        add_edit(&b, &edits[e]);
    }
    for (size_t e = 0; e < n; e++)
        if (!used[e]) add_edit(&b, &edits[e]);
    char *const path = temp_dir_path(dir, "model.safetensors");
    assert_true(st_builder_write(&b, path));
    free(path);
    st_builder_release(&b);
    bitconv_safetensors_close(file);
}

void model_copy(const char *name, const char *dir, const struct model_edit *edits, size_t n)
{
    char *const from = model_copy_source(name);
    char *const weights = temp_dir_path(from, "model.safetensors");
    copy_folder(from, dir, "");
    if (n > 0) {
        char *const old = temp_dir_path(dir, "model.safetensors");
        assert_int_equal(remove(old), 0);
        free(old);
        rewrite_weights(weights, dir, edits, n);
    }
    free(weights);
    free(from);
}

void model_copy_config(const char *dir, const char *from, const char *to)
{
    struct bc_buf text = {0}, changed = {0};
    char *const path = temp_dir_path(dir, "config.json");
    assert_int_equal(bc_text_load(path, &text, NULL), BITCONV_OK);
    const char *const at = strstr(bc_buf_str(&text), from);
    assert_non_null(at);
    bc_buf_append(&changed, text.data, (size_t)(at - bc_buf_str(&text)));
    bc_buf_puts(&changed, to);
    bc_buf_puts(&changed, at + strlen(from));
    assert_int_equal(remove(path), 0);
    temp_dir_puts(dir, "config.json", bc_buf_str(&changed));
    free(path);
    bc_buf_release(&text);
    bc_buf_release(&changed);
}
