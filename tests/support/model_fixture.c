/* SPDX-License-Identifier: MIT
 * Tiny checkpoints in a scratch folder, and what loading them says. */
#include "support/model_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "support/temp_dir.h"

static void collect(void *user, enum bitconv_severity severity, const char *text)
{
    static const char *const names[] = {"note", "warning", "finding"};
    bc_buf_printf(user, "%s: %s\n", names[severity], text);
}

int model_fixture_set_up(void **state)
{
    struct model_fixture *const f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->dir = temp_dir_new();
    f->sink.message = collect;
    f->sink.user = &f->messages;
    *state = f;
    return 0;
}

static void drop_results(struct model_fixture *f)
{
    bc_model_free(f->model);
    bc_checkpoint_close(f->ckpt);
    f->model = NULL;
    f->ckpt = NULL;
    f->err = (struct bitconv_error){0};
    bc_buf_clear(&f->messages);
}

int model_fixture_tear_down(void **state)
{
    struct model_fixture *const f = *state;
    drop_results(f);
    bc_buf_release(&f->messages);
    st_builder_release(&f->tensors);
    temp_dir_remove(f->dir);
    free(f);
    return 0;
}

struct bc_hparams model_fixture_sizes(void)
{
    static bool layer_is_conv[] = {true, false};
    return (struct bc_hparams){.n_layers = 2,
                               .n_embd = 8,
                               .n_ff = 12,
                               .n_head = 2,
                               .n_head_kv = 1,
                               .head_dim_k = 4,
                               .head_dim_v = 4,
                               .n_vocab = 16,
                               .n_expert = 2,
                               .n_ctx = 64,
                               .layer_is_conv = layer_is_conv,
                               .conv_l_cache = 3,
                               .n_token_types = 2};
}

void model_fixture_add(struct model_fixture *f, const char *name, enum bitconv_dtype dtype,
                       uint64_t rows, uint64_t cols)
{
    const uint64_t shape[2] = {rows, cols};
    const size_t n = (size_t)(rows * (cols == 0 ? 1 : cols));
    st_builder_add(&f->tensors, name, dtype, cols == 0 ? 1 : 2, shape, NULL,
                   n * bitconv_dtype_size(dtype));
}

static void add_unless(struct model_fixture *f, const char *name, const char *omit, uint64_t rows,
                       uint64_t cols)
{
    assert_non_null(name);
    if (omit == NULL || strcmp(name, omit) != 0)
        model_fixture_add(f, name, BITCONV_BF16, rows, cols);
}

void model_fixture_add_family(struct model_fixture *f, const struct bc_arch *arch,
                              const char *prefix, const char *omit)
{
    struct bc_hparams hp = model_fixture_sizes();
    if (arch == &bc_arch_bert) hp.n_head_kv = hp.n_head;
    for (const struct bc_arch_tensor *row = arch->tensors; row->role != BC_ROLE_NONE; row++) {
        const enum bc_layers layers = bc_pattern_layers(row->hf[0]);
        const uint32_t n_layers = layers != BC_LAYERS_NONE ? hp.n_layers : 1;
        const uint32_t n_experts = strstr(row->hf[0], "{e}") != NULL ? hp.n_expert : 1;
        if (row->role == BC_ROLE_OUTPUT || row->gguf == NULL) continue;
        for (uint32_t i = 0; i < n_layers * n_experts; i++) {
            struct bc_arena arena = {NULL};
            if (!bc_layer_is_one_of(&hp, layers, i / n_experts)) continue;
            const char *base =
                bc_pattern_fill(&arena, row->hf[0], i / n_experts, i % n_experts, "");
            add_unless(f, bc_arena_printf(&arena, "%s%s.weight", prefix, base), omit,
                       bc_dim_size(&hp, row->shape[0]),
                       row->shape[1] == BC_N_NONE ? 0 : bc_dim_size(&hp, row->shape[1]));
            if (bc_arch_has_bias(arch, row))
                add_unless(f, bc_arena_printf(&arena, "%s%s.bias", prefix, base), omit,
                           bc_dim_size(&hp, row->shape[0]), 0);
            bc_arena_release(&arena);
        }
    }
}

void model_fixture_load(struct model_fixture *f, const char *config_members)
{
    struct bc_buf config = {0};
    char *const weights = temp_dir_path(f->dir, "model.safetensors");
    drop_results(f);
    bc_buf_printf(&config, "{%s}", config_members);
    temp_dir_puts(f->dir, "config.json", bc_buf_str(&config));
    bc_buf_release(&config);
    assert_true(st_builder_write(&f->tensors, weights));
    free(weights);
    if (bc_checkpoint_open(f->dir, true, &f->sink, &f->ckpt, &f->err) != BITCONV_OK) return;
    (void)bc_model_load(f->ckpt, &f->options, &f->sink, &f->model, &f->err);
}

void model_fixture_load_family(struct model_fixture *f, const struct bc_arch *arch,
                               const char *config_members)
{
    st_builder_release(&f->tensors);
    f->tensors = (struct st_builder){0};
    model_fixture_add_family(f, arch, "model.", NULL);
    model_fixture_load(f, config_members);
}

void model_fixture_accept(struct model_fixture *f, const char *config_members)
{
    model_fixture_load(f, config_members);
    if (f->model == NULL) print_error("refused: %s\n", f->err.text);
    assert_non_null(f->model);
}

void model_fixture_refuse(struct model_fixture *f, const char *config_members, const char *text)
{
    model_fixture_load(f, config_members);
    const bool said = strstr(f->err.text, text) != NULL || model_fixture_said(f, text);
    if (!said) print_error("\"%s\" is not in: %s\n%s", text, f->err.text, bc_buf_str(&f->messages));
    assert_null(f->model);
    assert_int_not_equal(f->err.status, BITCONV_OK);
    assert_true(said);
}

bool model_fixture_said(const struct model_fixture *f, const char *text)
{
    return strstr(bc_buf_str(&f->messages), text) != NULL;
}

const struct bc_weight *model_fixture_weight(const struct model_fixture *f, const char *name)
{
    for (size_t i = 0; i < f->model->n_weights; i++)
        if (strcmp(f->model->weights[i].name, name) == 0) return &f->model->weights[i];
    return NULL;
}

struct bitconv_gguf *model_fixture_metadata(struct model_fixture *f)
{
    struct bitconv_gguf_writer *const w = bitconv_gguf_writer_new();
    struct bitconv_gguf *file = NULL;
    const uint8_t *header = NULL;
    uint64_t header_size = 0, file_size = 0;
    char *const path = temp_dir_path(f->dir, "metadata.gguf");
    assert_non_null(w);
    assert_int_equal(bc_model_metadata(f->model, "a name", 1, w, &f->err), BITCONV_OK);
    assert_int_equal(bitconv_gguf_writer_plan(w, &header, &header_size, &file_size, &f->err),
                     BITCONV_OK);
    assert_int_equal(bc_file_write(path, header, (size_t)header_size, true, &f->err), BITCONV_OK);
    assert_int_equal(bitconv_gguf_open(path, &file, &f->err), BITCONV_OK);
    bitconv_gguf_writer_free(w);
    free(path);
    return file;
}
