/* SPDX-License-Identifier: MIT
 * bitconv bench: how fast models run on this machine. --pack measures the packs themselves. */
#include <stdlib.h>
#include <string.h>

#include "bench_models_view.h"
#include "bench_view.h"
#include "cmd.h"

enum { MAX_LIST = 32 };

struct settings {
    bool pack;
    uint64_t rows, cols;
    unsigned repetitions;
    const char *zeros, *output;
    const char *prompts, *generates, *threads, *mode;
};

static const struct option_row options[] = {
    {"n-prompt", 'p', OPTION_STRING, offsetof(struct settings, prompts), "N,N",
     "tokens of prompts (default 128,512; 0: none)"},
    {"n-gen", 'n', OPTION_STRING, offsetof(struct settings, generates), "N,N",
     "tokens to generate (default 32; 0: none)"},
    {"threads", 't', OPTION_STRING, offsetof(struct settings, threads), "N,N",
     "all of it with each of these numbers of threads\n(default: online processors)"},
    {"mode", 0, OPTION_STRING, offsetof(struct settings, mode), "MODE",
     "int8 (default): inputs of ternary weights are\nrounded as the deployed runtimes do; float"},
    {"pack", 0, OPTION_FLAG, offsetof(struct settings, pack), NULL,
     "no model: pack, unpack and multiply a matrix in\nevery ternary pack, against memcpy; one "
     "thread\nunless -t asks for more, each with a matrix\nof its own"},
    {"rows", 0, OPTION_SIZE, offsetof(struct settings, rows), "N",
     "of the matrix (default 4K, which is 4096)"},
    {"cols", 0, OPTION_SIZE, offsetof(struct settings, cols), "N", "of the matrix (default 4K)"},
    {"zeros", 0, OPTION_STRING, offsetof(struct settings, zeros), "Z",
     "share of zero weights, 0 to 1 (default 1/3)"},
    {"repetitions", 'r', OPTION_WIDTH, offsetof(struct settings, repetitions), "N",
     "measure N times (default 3; with --pack 5, of\nwhich the median counts)"},
    {"output", 0, OPTION_STRING, offsetof(struct settings, output), "FORMAT",
     "md (default for models), csv or json"},
    {NULL, 0, OPTION_FLAG, 0, NULL, NULL},
};

/* The formats of --output. With --pack there is also a table for people, shown without it. */
static const struct report {
    const char *name;
    void (*packs)(const struct ui *ui, const struct bitconv_pack_bench *bench, struct bc_buf *out);
    void (*models)(const struct bitconv_model_bench *bench, struct bc_buf *out);
} reports[] = {
    {"text", bench_packs_text, bench_models_markdown},
    {"md", bench_packs_markdown, bench_models_markdown},
    {"csv", bench_packs_csv, bench_models_csv},
    {"json", bench_packs_json, bench_models_json},
};

/* NULL: unknown. */
static const struct report *find_report(const char *name)
{
    for (size_t i = 0; i < sizeof reports / sizeof reports[0]; i++)
        if (strcmp(reports[i].name, name) == 0) return &reports[i];
    return NULL;
}

/* A list of numbers with commas between; n 0 when no text was given. */
struct numbers {
    unsigned items[MAX_LIST];
    size_t n;
};

/* False when it is something else, or too long. */
static bool read_numbers(const char *text, struct numbers *out)
{
    out->n = 0;
    while (text != NULL) {
        const size_t len = strspn(text, "0123456789");
        if (len == 0 || len > 7 || out->n == MAX_LIST) return false;
        out->items[out->n++] = (unsigned)strtoul(text, NULL, 10);
        if (text[len] != '\0' && text[len] != ',') return false;
        text = text[len] == ',' ? text + len + 1 : NULL;
    }
    return true;
}

/* ---- packs ---- */

/* False when the text is no number from 0 to 1. */
static bool read_share(const char *text, double *share)
{
    char *end = NULL;
    *share = strtod(text, &end);
    return end != text && *end == '\0' && *share >= 0 && *share <= 1;
}

static int bench_packs(struct ui *ui, const struct globals *globals, const struct settings *s,
                       const struct report *report, const struct numbers *threads,
                       const char *const *packs, size_t n_packs)
{
    struct bitconv_bench_packs_options o = {.packs = packs,
                                            .n_packs = n_packs,
                                            .rows = s->rows,
                                            .cols = s->cols,
                                            .has_zeros = s->zeros != NULL,
                                            .repetitions = s->repetitions,
                                            .n_threads = threads->n > 0 ? threads->items[0] : 1,
                                            .cpu = globals->cpu};
    struct bitconv_pack_bench *bench = NULL;
    struct bitconv_error err = {0};
    struct bc_buf text = {0};
    if (threads->n > 1) return ui_usage(ui, "bench", "--pack: one number of threads was expected");
    if (s->zeros != NULL && !read_share(s->zeros, &o.zeros))
        return ui_usage(ui, "bench", "--zeros: a share from 0 to 1 was expected");
    if (bitconv_bench_packs(&o, &ui->sink, &bench, &err) != BITCONV_OK)
        return ui_fail_to_do(ui, &err);
    report->packs(ui, bench, &text);
    bitconv_pack_bench_free(bench);
    return ui_finish(ui, &text);
}

/* ---- models ---- */

static int bench_models(struct ui *ui, const struct globals *globals, const struct settings *s,
                        const struct report *report, const struct numbers *threads,
                        const char *const *paths, size_t n_paths)
{
    struct numbers prompts, generates;
    struct bitconv_model_bench *bench = NULL;
    struct bitconv_error err = {0};
    struct bc_buf text = {0};
    if (!read_numbers(s->prompts, &prompts) || !read_numbers(s->generates, &generates))
        return ui_usage(ui, "bench", "-p, -n: numbers of tokens such as 128,512 were expected");
    const struct bitconv_bench_models_options o = {
        .paths = paths,
        .n_paths = n_paths,
        .prompts = s->prompts != NULL ? prompts.items : NULL,
        .n_prompts = prompts.n,
        .generates = s->generates != NULL ? generates.items : NULL,
        .n_generates = generates.n,
        .threads = threads->n > 0 ? threads->items : NULL,
        .n_threads = threads->n,
        .repetitions = s->repetitions,
        .mode = s->mode,
        .cpu = globals->cpu};
    if (bitconv_bench_models(&o, &ui->sink, &bench, &err) != BITCONV_OK)
        return ui_fail_to_do(ui, &err);
    report->models(bench, &text);
    bitconv_model_bench_free(bench);
    return ui_finish(ui, &text);
}

static int run(struct ui *ui, const struct globals *globals, const void *settings,
               const char *const *args, size_t n_args)
{
    const struct settings *s = settings;
    const char *name = globals->json ? "json" : s->output != NULL ? s->output : "text";
    const struct report *report = find_report(name);
    struct numbers threads;
    if (report == NULL) return ui_usage(ui, "bench", "--output: md, csv or json was expected");
    if (!read_numbers(s->threads, &threads))
        return ui_usage(ui, "bench", "-t: numbers of threads such as 1,2 were expected");
    if (s->pack) return bench_packs(ui, globals, s, report, &threads, args, n_args);
    if (n_args == 0) return ui_usage(ui, "bench", "a GGUF, a folder or --pack was expected");
    return bench_models(ui, globals, s, report, &threads, args, n_args);
}

const struct command command_bench = {
    .name = "bench",
    .summary = "measure models (prompts, generation) or the packs themselves",
    .usage = "bench FILE... [options], bench --pack [PACK...] [options]",
    .examples = "  bitconv bench model.gguf\n"
                "  bitconv bench i2_s.gguf bitcos.gguf -p 128,512 -n 32 -t 1,2 -r 5\n"
                "  bitconv bench model.gguf --mode float --output csv\n"
                "  bitconv bench --pack\n"
                "  bitconv bench --pack i2_s bitcos --rows 2560 --cols 6912\n"
                "  bitconv bench --pack -r 9 -t 2 --zeros 0.5 --cpu scalar\n"
                "  bitconv bench --pack --json\n",
    .options = options,
    .settings_size = sizeof(struct settings),
    .run = run,
};
