/* SPDX-License-Identifier: MIT
 * bitconv dummy: synthetic models, as checkpoint folders and straight to GGUF. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "bitconv/dummy.h"
#include "cmd.h"

struct settings {
    struct bitconv_dummy_options options;
    const char *zeros, *seed;
    bool baked, packed;
};

#define AT(member)      offsetof(struct settings, member)
#define OPTION(member)  offsetof(struct settings, options.member)
#define CONVERT(member) offsetof(struct settings, options.conversion.member)

static const struct option_row options[] = {
    {"arch", 0, OPTION_STRING, OPTION(arch), "A",
     "bitnet bitnet-1bitllm llama mistral mixtral\nqwen2 qwen3 qwen3-embed gemma3 "
     "gemma3-embed\nphi3 bert lfm2"},
    {"size", 0, OPTION_STRING, OPTION(size), "N",
     "parameters: 1M 125M 1.5B 70B 100B, or a\npublished shape such as 2B-4T (bitnet)"},
    {"outfile", 'o', OPTION_OUTPUT, OPTION(outfile), "PATH", "folder, or with --outtype the GGUF"},
    {"name", 0, OPTION_STRING, OPTION(name), "NAME",
     "of the model (default: the last part of PATH,\nwithout .gguf)"},
    {"packed", 0, OPTION_FLAG, AT(packed), NULL, "linear weights as uint8 with weight_scale"},
    {"baked", 0, OPTION_FLAG, AT(baked), NULL, "linear weights as trit * scale"},
    {"dtype", 0, OPTION_STRING, OPTION(dtype), "T", "bf16 (default), f16, f32"},
    {"zeros", 0, OPTION_STRING, AT(zeros), "Z", "share of zero trits, 0 to 0.95 (default 1/3)"},
    {"seed", 0, OPTION_STRING, AT(seed), "N", "other numbers, other weights (default 0)"},
    {"layers", 0, OPTION_WIDTH, OPTION(layers), "N", "shape, instead of what follows from --size"},
    {"hidden", 0, OPTION_WIDTH, OPTION(hidden), "N", "hidden size"},
    {"ffn", 0, OPTION_WIDTH, OPTION(ffn), "N", "width of the feed-forward block"},
    {"heads", 0, OPTION_WIDTH, OPTION(heads), "N", "attention heads"},
    {"kv-heads", 0, OPTION_WIDTH, OPTION(kv_heads), "N", "heads of keys and values"},
    {"head-dim", 0, OPTION_WIDTH, OPTION(head_dim), "N", "width of a head"},
    {"vocab", 0, OPTION_WIDTH, OPTION(vocab), "N", "size of the vocabulary"},
    {"experts", 0, OPTION_WIDTH, OPTION(experts), "N", "experts of a layer (mixtral)"},
    {"shards", 0, OPTION_WIDTH, OPTION(shards), "N", "number of safetensors files"},
    {"max-shard-size", 0, OPTION_SIZE, OPTION(max_shard_size), "SIZE",
     "of a safetensors file (default 5G)"},
    {"outtype", 0, OPTION_STRING, OPTION(outtype), "T",
     "straight to a GGUF: what `convert --outtype T`\nmakes of the --packed folder"},
    {"target", 0, OPTION_STRING, CONVERT(target), "T", "as of convert: bitnet, llama.cpp"},
    {"auto-packs", 0, OPTION_STRING, CONVERT(auto_packs), "LIST",
     "packs to choose from with --outtype auto"},
    {"dialect", 0, OPTION_STRING, CONVERT(dialect), "D", "type ids: bitnet, bitnet-rebased"},
    {"on-misfit", 0, OPTION_STRING, CONVERT(on_misfit), "T", "fail (default), or a float type"},
    {"embd-type", 0, OPTION_STRING, CONVERT(embd_type), "T", "type of token_embd"},
    {"output-type", 0, OPTION_STRING, CONVERT(output_type), "T", "type of output"},
    {"i2s-layout", 0, OPTION_STRING, CONVERT(i2s_layout), "128|64", "I2_S layout"},
    {"kernel-config", 0, OPTION_STRING, CONVERT(kernel_config), "FILE",
     "tiles of tl1 and tl2 (INI)"},
    {"scale-tensor", 0, OPTION_FLAG, CONVERT(scale_tensor), NULL,
     "exact scales of block packs beside them"},
    {"plain", 0, OPTION_FLAG, CONVERT(plain), NULL, "leave out bitconv.* metadata"},
    {"split-max-size", 0, OPTION_SIZE, CONVERT(split_max_size), "SIZE",
     "several GGUF files of at most SIZE"},
    {"force", 'f', OPTION_FLAG, OPTION(force), NULL, "replace what is there"},
    {"dry-run", 'n', OPTION_FLAG, OPTION(dry_run), NULL,
     "config, tensors and sizes; nothing is written"},
    {NULL, 0, OPTION_FLAG, 0, NULL, NULL},
};

static const char *form_name(enum bitconv_dummy_form form)
{
    static const char *const names[] = {[BITCONV_DUMMY_MASTERS] = "masters",
                                        [BITCONV_DUMMY_BAKED] = "baked",
                                        [BITCONV_DUMMY_PACKED] = "packed"};
    return names[form];
}

/* ---- JSON ---- */

static void put_shape(struct bc_jw *w, const struct bitconv_dummy *d)
{
    const struct {
        const char *key;
        uint32_t value;
    } members[] = {
        {"layers", d->layers},    {"hidden_size", d->hidden}, {"intermediate_size", d->ffn},
        {"heads", d->heads},      {"kv_heads", d->kv_heads},  {"head_dim", d->head_dim},
        {"vocab_size", d->vocab}, {"experts", d->experts},    {"context_length", d->context}};
    bc_jw_key(w, "model");
    bc_jw_begin_object(w);
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        bc_jw_key_u64(w, members[i].key, members[i].value);
    bc_jw_key_bool(w, "tied", d->tied);
    bc_jw_end_object(w);
}

static void put_tensors(struct bc_jw *w, const struct bitconv_dummy *d)
{
    bc_jw_key(w, "tensors");
    bc_jw_begin_array(w);
    for (size_t i = 0; i < d->n_tensors; i++) {
        const struct bitconv_dummy_tensor *t = &d->tensors[i];
        bc_jw_begin_object(w);
        bc_jw_key_string(w, "name", t->name);
        bc_jw_key_string(w, "type", t->type);
        bc_jw_key_u64s(w, "shape", t->shape, t->n_dims);
        bc_jw_key_u64(w, "bytes", t->size);
        bc_jw_end_object(w);
    }
    bc_jw_end_array(w);
}

static void print_json(struct bc_buf *out, const struct ui *ui, const struct bitconv_dummy *d)
{
    struct bc_jw w = {.buf = out};
    bc_jw_begin_object(&w);
    bc_jw_key_string(&w, "output", d->output);
    bc_jw_key_string(&w, "outtype", d->outtype);
    bc_jw_key_string(&w, "name", d->name);
    bc_jw_key_string(&w, "arch", d->arch);
    bc_jw_key_string(&w, "class", d->class_name);
    bc_jw_key_string(&w, "form", form_name(d->form));
    bc_jw_key_u64(&w, "parameters", d->parameters);
    put_shape(&w, d);
    bc_jw_key_f64(&w, "zeros", d->zeros);
    bc_jw_key_u64(&w, "seed", d->seed);
    bc_jw_key_u64(&w, "n_files", d->n_files);
    bc_jw_key_u64(&w, "bytes", d->size);
    bc_jw_key_bool(&w, "bytes_expected", d->size_is_expected);
    bc_jw_key_u64(&w, "peak_memory", d->peak_memory);
    put_tensors(&w, d);
    bc_jw_key_strings(&w, "warnings", (const char *const *)ui->warnings.items, ui->warnings.n);
    bc_jw_end_object(&w);
    bc_buf_putc(out, '\n');
}

/* ---- text ---- */

static void put_size(struct bc_buf *out, uint64_t bytes)
{
    struct bc_buf cell = {0};
    ui_bytes(&cell, bytes);
    bc_buf_printf(out, "%12s", bc_buf_str(&cell));
    bc_buf_release(&cell);
}

static void print_plan(struct bc_buf *out, const struct bitconv_dummy *d)
{
    bc_buf_puts(out, d->config);
    for (size_t i = 0; i < d->n_tensors; i++) {
        const struct bitconv_dummy_tensor *t = &d->tensors[i];
        struct bc_buf shape = {0};
        for (uint32_t k = 0; k < t->n_dims; k++)
            bc_buf_printf(&shape, "%s%" PRIu64, k > 0 ? " x " : "", t->shape[k]);
        ui_cell(out, t->name, 42, true);
        bc_buf_printf(out, " %-6s%18s", t->type, bc_buf_str(&shape));
        put_size(out, t->size);
        bc_buf_putc(out, '\n');
        bc_buf_release(&shape);
    }
}

static void print_summary(struct bc_buf *out, const struct bitconv_dummy *d, bool dry_run)
{
    ui_cell(out, d->output, 0, false);
    bc_buf_printf(out, ": %s, %s, %s%s\n", d->arch, d->class_name,
                  d->outtype != NULL ? d->outtype : form_name(d->form),
                  dry_run ? " (not written)" : "");
    bc_buf_puts(out, "  parameters  ");
    ui_count(out, d->parameters);
    bc_buf_printf(out,
                  "\n  shape       %" PRIu32 " layers, hidden %" PRIu32 ", ffn %" PRIu32
                  ", heads %" PRIu32 "/%" PRIu32 " x %" PRIu32,
                  d->layers, d->hidden, d->ffn, d->heads, d->kv_heads, d->head_dim);
    if (d->experts > 0) bc_buf_printf(out, ", %" PRIu32 " experts", d->experts);
    bc_buf_printf(out, "\n  vocabulary  %" PRIu32 "%s\n", d->vocab, d->tied ? ", tied" : "");
    bc_buf_printf(out, "  zeros       %.4f, seed %" PRIu64 "\n", d->zeros, d->seed);
    bc_buf_puts(out, "  size        ");
    ui_bytes(out, d->size);
    bc_buf_printf(out, "%s in %" PRIu32 " file%s, memory ",
                  d->size_is_expected ? " (expected)" : "", d->n_files, d->n_files == 1 ? "" : "s");
    ui_bytes(out, d->peak_memory);
    bc_buf_putc(out, '\n');
}

static int report(struct ui *ui, const struct bitconv_dummy *d, bool dry_run)
{
    struct bc_buf out = {0};
    if (ui->globals->json) {
        print_json(&out, ui, d);
    } else if (!ui->globals->quiet) {
        if (dry_run) print_plan(&out, d);
        print_summary(&out, d, dry_run);
    }
    return ui_finish(ui, &out);
}

/* ---- options ---- */

static bool read_seed(const char *text, uint64_t *out)
{
    char *end;
    if (text == NULL) return true;
    if (text[0] < '0' || text[0] > '9') return false;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0';
}

static bool read_zeros(const char *text, struct bitconv_dummy_options *o)
{
    char *end;
    if (text == NULL) return true;
    if (text[0] < '0' || text[0] > '9') return false;
    o->zeros = strtod(text, &end);
    o->has_zeros = true;
    return *end == '\0' && isfinite(o->zeros);
}

static bool ends_in_gguf(const char *path)
{
    const size_t len = strlen(path);
    return len > 5 && strcmp(path + len - 5, ".gguf") == 0;
}

static int run(struct ui *ui, const struct globals *globals, const void *settings,
               const char *const *args, size_t n_args)
{
    const struct settings *s = settings;
    struct bitconv_dummy_options o = s->options;
    struct bitconv_dummy *dummy = NULL;
    struct bitconv_error err = {0};
    if (n_args != 0) return ui_usage(ui, "dummy", "unexpected argument '%s'", args[0]);
    if (o.arch == NULL) return ui_usage(ui, "dummy", "--arch is missing");
    if (o.outfile == NULL) return ui_usage(ui, "dummy", "-o PATH is missing");
    if (s->baked && s->packed) return ui_usage(ui, "dummy", "--baked and --packed exclude another");
    if (s->baked && o.outtype != NULL)
        return ui_usage(ui, "dummy", "--baked: a GGUF is made of packed weights");
    if (o.outtype == NULL && ends_in_gguf(o.outfile))
        return ui_usage(ui, "dummy", "-o %s: a GGUF needs --outtype, a folder another name",
                        o.outfile);
    if (!read_seed(s->seed, &o.seed))
        return ui_usage(ui, "dummy", "--seed: '%s' is not a number below 2^64", s->seed);
    if (!read_zeros(s->zeros, &o))
        return ui_usage(ui, "dummy", "--zeros: '%s' is not a share such as 0.33", s->zeros);
    if (s->baked) o.form = BITCONV_DUMMY_BAKED;
    if (s->packed) o.form = BITCONV_DUMMY_PACKED;
    o.n_threads = globals->threads;
    o.cpu = globals->cpu;
    if (bitconv_dummy(&o, &ui->sink, &dummy, &err) != BITCONV_OK) return ui_fail(ui, &err);
    const int status = report(ui, dummy, o.dry_run);
    bitconv_dummy_free(dummy);
    return status;
}

const struct command command_dummy = {
    .name = "dummy",
    .summary = "make up a model of any family and size, as a folder or a GGUF",
    .usage = "dummy --arch A --size N -o PATH [--outtype T] [options]",
    .examples = "  bitconv dummy --arch bitnet --size 125M -o dummy-125m\n"
                "  bitconv dummy --arch qwen3-embed --size 1M --packed --seed 7 -o tiny\n"
                "  bitconv dummy --arch llama --layers 2 --hidden 256 --zeros 0.5 -o two\n"
                "  bitconv dummy --arch bitnet --size 2B-4T --outtype i2_s -o 2b4t.gguf\n"
                "  bitconv dummy --arch llama --size 100B --outtype bitcos \\\n"
                "          -o 100b.gguf --dry-run\n",
    .options = options,
    .settings_size = sizeof(struct settings),
    .run = run,
};
