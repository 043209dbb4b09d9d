/* SPDX-License-Identifier: MIT
 * bitconv export: a GGUF back to a Hugging Face checkpoint folder. */
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "bitconv/export.h"
#include "cmd.h"

struct settings {
    const char *output, *dtype, *pre, *dialect, *kernel_config, *i2s_layout;
    uint64_t max_shard_size;
    bool force, tensors;
};

#define AT(member) offsetof(struct settings, member)
static const struct option_row options[] = {
    {"outdir", 'o', OPTION_OUTPUT, AT(output), "DIR", "the folder to make (required)"},
    {"dtype", 0, OPTION_STRING, AT(dtype), "T",
     "packed: ternary weights as uint8 with their\nscale, all floats as float32, which is what\n"
     "transformers runs (default where there are\nany); f32, f16, bf16: what is packed or\n"
     "quantized is decoded to that, plain numbers\nkeep their type"},
    {"max-shard-size", 0, OPTION_SIZE, AT(max_shard_size), "SIZE",
     "tensor bytes of one file (default 5G)"},
    {"force", 'f', OPTION_FLAG, AT(force), NULL,
     "replace the folder, if it holds nothing but\nan earlier export"},
    {"tensors", 0, OPTION_FLAG, AT(tensors), NULL, "list every tensor"},
    {"pre", 0, OPTION_STRING, AT(pre), "NAME",
     "how a byte-level tokenizer splits text, where\nthe file's name for it is not known"},
    {"dialect", 0, OPTION_STRING, AT(dialect), "D",
     "read type ids as upstream, bitnet,\nbitnet-rebased or prism"},
    {"kernel-config", 0, OPTION_STRING, AT(kernel_config), "FILE",
     "tiles of TL1 and TL2 tensors that do not\nstate theirs (INI)"},
    {"i2s-layout", 0, OPTION_STRING, AT(i2s_layout), "128|64",
     "layout of I2_S tensors that do not state\ntheirs"},
    {NULL, 0, OPTION_FLAG, 0, NULL, NULL},
};
#undef AT

static void print_json(struct ui *ui, const struct bitconv_export *x, struct bc_buf *out)
{
    struct bc_jw w = {.buf = out};
    bc_jw_begin_object(&w);
    bc_jw_key_string(&w, "output", x->output);
    bc_jw_key_string(&w, "class", x->class_name);
    bc_jw_key_string(&w, "dtype", x->dtype);
    bc_jw_key_u64(&w, "n_shards", x->n_shards);
    bc_jw_key_u64(&w, "bytes", x->size);
    bc_jw_key_strings(&w, "files", x->files, x->n_files);
    bc_jw_key(&w, "tensors");
    bc_jw_begin_array(&w);
    for (size_t i = 0; i < x->n_tensors; i++) {
        const struct bitconv_exported_tensor *t = &x->tensors[i];
        bc_jw_begin_object(&w);
        bc_jw_key_string(&w, "name", t->name);
        bc_jw_key_string(&w, "source", t->source);
        bc_jw_key_string(&w, "type", t->type);
        bc_jw_key_string(&w, "dtype", t->dtype);
        bc_jw_key_u64s(&w, "shape", t->shape, t->n_dims);
        bc_jw_key_u64(&w, "bytes", t->size);
        bc_jw_key_u64(&w, "inexact", t->n_inexact);
        bc_jw_end_object(&w);
    }
    bc_jw_end_array(&w);
    bc_jw_key_strings(&w, "warnings", (const char *const *)ui->warnings.items, ui->warnings.n);
    bc_jw_end_object(&w);
    bc_buf_putc(out, '\n');
}

static void print_tensor(const struct bitconv_exported_tensor *t, struct bc_buf *out)
{
    struct bc_buf shape = {0};
    for (uint32_t d = 0; d < t->n_dims; d++)
        bc_buf_printf(&shape, "%s%llu", d > 0 ? " x " : "", (unsigned long long)t->shape[d]);
    ui_cell(out, t->name, 46, true);
    bc_buf_puts(out, " ");
    ui_cell(out, t->type, 7, true);
    bc_buf_puts(out, " ");
    ui_cell(out, t->dtype, 5, true);
    bc_buf_printf(out, " %s\n", bc_buf_str(&shape));
    bc_buf_release(&shape);
}

static void print_text(const struct settings *s, const struct bitconv_export *x, struct bc_buf *out)
{
    size_t n_packed = 0;
    uint64_t n_inexact = 0;
    for (size_t i = 0; i < x->n_tensors; i++) {
        const struct bitconv_exported_tensor *t = &x->tensors[i];
        if (s->tensors) print_tensor(t, out);
        if (t->dtype[0] == 'U') n_packed++;
        n_inexact += t->n_inexact;
    }
    bc_buf_puts(out, "wrote ");
    bc_utf8_mask(out, x->output, strlen(x->output), 0);
    bc_buf_printf(out, "\n  %s, %zu tensors (%zu packed) in %u file%s, ", x->class_name,
                  x->n_tensors, n_packed, (unsigned)x->n_shards, x->n_shards == 1 ? "" : "s");
    ui_bytes(out, x->size);
    bc_buf_puts(out, "\n");
    if (n_inexact != 0)
        bc_buf_printf(out, "       %llu values were rounded (--verbose says where)\n",
                      (unsigned long long)n_inexact);
}

static int run(struct ui *ui, const struct globals *globals, const void *settings,
               const char *const *args, size_t n_args)
{
    const struct settings *s = settings;
    struct bitconv_export *x = NULL;
    struct bitconv_error err = {0};
    struct bc_buf text = {0};
    if (n_args != 1) return ui_usage(ui, "export", "one file was expected, %zu given", n_args);
    if (s->output == NULL) return ui_usage(ui, "export", "no output folder given (-o DIR)");
    const struct bitconv_export_options o = {.dir = s->output,
                                             .dtype = s->dtype,
                                             .pre = s->pre,
                                             .dialect = s->dialect,
                                             .kernel_config = s->kernel_config,
                                             .i2s_layout = s->i2s_layout,
                                             .max_shard_size = s->max_shard_size,
                                             .force = s->force,
                                             .cpu = globals->cpu};
    if (bitconv_export(args[0], &o, &ui->sink, &x, &err) != BITCONV_OK) return ui_fail(ui, &err);
    if (globals->json)
        print_json(ui, x, &text);
    else if (!globals->quiet)
        print_text(s, x, &text);
    bitconv_export_free(x);
    return ui_finish(ui, &text);
}

const struct command command_export = {
    .name = "export",
    .summary = "GGUF -> Hugging Face checkpoint folder",
    .usage = "export FILE -o DIR [options]",
    .examples = "  bitconv export model-i2_s.gguf -o checkpoint/\n"
                "  bitconv export model-i2_s.gguf -o floats/ --dtype bf16\n"
                "  bitconv export llama-q4_k_m.gguf -o llama/ --dtype f16 --max-shard-size 2G\n"
                "  bitconv export model.gguf -o checkpoint/ --force --tensors\n"
                "  bitconv export model.gguf -o checkpoint/ --json\n",
    .options = options,
    .settings_size = sizeof(struct settings),
    .run = run,
};
