/* SPDX-License-Identifier: MIT
 * bitconv inspect: what is in a GGUF, a safetensors file or a checkpoint folder. */
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "inspect_view.h"
#include "report.h"

#define DEFAULT_HEAD 32u /* values shown with --tensor */

struct settings {
    bool tensors, metadata, stats, hash, diffable, all, force;
    const char *tensor, *dialect, *kernel_config, *i2s_layout, *report;
    uint64_t head;
};

static const struct option_row options[] = {
    {"tensors", 0, OPTION_FLAG, offsetof(struct settings, tensors), NULL,
     "only the table of tensors"},
    {"metadata", 0, OPTION_FLAG, offsetof(struct settings, metadata), NULL, "only the metadata"},
    {"all", 0, OPTION_FLAG, offsetof(struct settings, all), NULL,
     "do not cut long arrays and texts"},
    {"stats", 0, OPTION_FLAG, offsetof(struct settings, stats), NULL,
     "trit histogram, zeros, entropy, scale, sizes\nin other packs; range, mean, outliers "
     "of\nfloat tensors"},
    {"hash", 0, OPTION_FLAG, offsetof(struct settings, hash), NULL,
     "XXH3-128 of the bytes, ternary fingerprints"},
    {"tensor", 0, OPTION_STRING, offsetof(struct settings, tensor), "NAME",
     "decoded values of one tensor"},
    {"head", 0, OPTION_SIZE, offsetof(struct settings, head), "N", "how many values (default 32)"},
    {"diffable", 0, OPTION_FLAG, offsetof(struct settings, diffable), NULL,
     "no offsets, no paths, sorted by name"},
    {"report", 0, OPTION_OUTPUT, offsetof(struct settings, report), "FILE",
     "write a page for the browser: zeros, bits,\nscales, sizes as pictures (HTML with SVG)"},
    {"force", 'f', OPTION_FLAG, offsetof(struct settings, force), NULL,
     "let --report replace a page"},
    {"dialect", 0, OPTION_STRING, offsetof(struct settings, dialect), "D",
     "read type ids as upstream, bitnet,\nbitnet-rebased or prism"},
    {"kernel-config", 0, OPTION_STRING, offsetof(struct settings, kernel_config), "FILE",
     "tiles of TL1 and TL2 tensors that do not\nstate theirs (INI)"},
    {"i2s-layout", 0, OPTION_STRING, offsetof(struct settings, i2s_layout), "128|64",
     "layout of I2_S tensors that do not state\ntheirs (64: ARM builds of bitnet.cpp)"},
    {NULL, 0, OPTION_FLAG, 0, NULL, NULL},
};

static int by_key_name(const void *a, const void *b)
{
    const struct bitconv_inspected_key *const *x = a;
    const struct bitconv_inspected_key *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static int by_tensor_name(const void *a, const void *b)
{
    const struct bitconv_inspected_tensor *const *x = a;
    const struct bitconv_inspected_tensor *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static int show(struct ui *ui, const struct globals *globals, const struct settings *s,
                const struct bitconv_inspection *it)
{
    const bool sections = s->tensors || s->metadata;
    struct inspect_view view = {.it = it, .ui = ui, .diffable = s->diffable, .full = s->all};
    const struct bitconv_inspected_key **keys = bc_alloc_array(it->n_keys, sizeof *keys);
    const struct bitconv_inspected_tensor **table = bc_alloc_array(it->n_tensors, sizeof *table);
    struct bc_buf text = {0};
    bool ok = keys != NULL && table != NULL;
    for (size_t i = 0; ok && i < it->n_keys; i++)
        keys[i] = &it->keys[i];
    for (size_t i = 0; ok && i < it->n_tensors; i++)
        table[i] = &it->tensors[i];
    if (ok && s->diffable && it->n_keys > 1) qsort(keys, it->n_keys, sizeof *keys, by_key_name);
    if (ok && s->diffable && it->n_tensors > 1)
        qsort(table, it->n_tensors, sizeof *table, by_tensor_name);
    view.keys = keys;
    view.table = table;
    view.summary = !sections && s->tensor == NULL;
    view.metadata = s->metadata || (!sections && s->tensor == NULL);
    view.tensors = s->tensors || (!sections && s->tensor == NULL);
    view.stats = s->stats;
    view.hash = s->hash;
    if (ok && globals->json)
        inspect_json(&view, &text);
    else if (ok)
        inspect_text(&view, &text);
    text.failed = text.failed || !ok;
    bc_free(keys);
    bc_free(table);
    return ui_finish(ui, &text);
}

static int write_report(struct ui *ui, const struct settings *s,
                        const struct bitconv_inspection *it)
{
    struct report report;
    report_from_inspection(it, &report);
    return report_write(ui, s->report, s->force, &report);
}

static int run(struct ui *ui, const struct globals *globals, const void *settings,
               const char *const *args, size_t n_args)
{
    const struct settings *s = settings;
    struct bitconv_inspection *it = NULL;
    struct bitconv_error err = {0};
    if (n_args != 1)
        return ui_usage(ui, "inspect", "one file or folder was expected, %zu given", n_args);
    if (s->head != 0 && s->tensor == NULL)
        return ui_usage(ui, "inspect", "--head goes with --tensor NAME");
    const struct bitconv_inspect_options inspect = {
        .dialect = s->dialect,
        .kernel_config = s->kernel_config,
        .i2s_layout = s->i2s_layout,
        .tensor = s->tensor,
        .head = s->head != 0 ? s->head : DEFAULT_HEAD,
        .stats = s->stats || s->report != NULL,
        .hash = s->hash,
        .n_threads = globals->threads,
        .cpu = globals->cpu,
    };
    if (s->report != NULL && report_check_target(ui, s->report, NULL, s->force) != 0) return 2;
    if (bitconv_inspect(args[0], &inspect, &ui->sink, &it, &err) != BITCONV_OK)
        return ui_fail(ui, &err);
    int status = show(ui, globals, s, it);
    if (status == 0 && s->report != NULL) status = write_report(ui, s, it);
    bitconv_inspection_free(it);
    return status;
}

const struct command command_inspect = {
    .name = "inspect",
    .summary = "show what a GGUF, a safetensors file or a checkpoint folder holds",
    .usage = "inspect FILE|DIR [options]",
    .examples = "  bitconv inspect model.gguf\n"
                "  bitconv inspect model.gguf --stats --hash\n"
                "  bitconv inspect model.gguf --tensor blk.0.attn_q.weight --head 8\n"
                "  bitconv inspect checkpoint/ --json\n"
                "  bitconv inspect model.gguf --report model.html\n"
                "  diff <(bitconv inspect a.gguf --diffable --hash) \\\n"
                "       <(bitconv inspect b.gguf --diffable --hash)\n",
    .options = options,
    .settings_size = sizeof(struct settings),
    .run = run,
};
