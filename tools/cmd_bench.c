/* SPDX-License-Identifier: MIT
 * bitconv bench: how fast this machine is. --pack measures the packs themselves. */
#include <stdlib.h>
#include <string.h>

#include "bench_view.h"
#include "cmd.h"

struct settings {
    bool pack;
    uint64_t rows, cols;
    unsigned repetitions;
    const char *zeros, *output;
};

static const struct option_row options[] = {
    {"pack", 0, OPTION_FLAG, offsetof(struct settings, pack), NULL,
     "pack, unpack and multiply a matrix in every\nternary pack, against memcpy; one "
     "thread\nunless -t asks for more, each with a matrix\nof its own"},
    {"rows", 0, OPTION_SIZE, offsetof(struct settings, rows), "N",
     "of the matrix (default 4K, which is 4096)"},
    {"cols", 0, OPTION_SIZE, offsetof(struct settings, cols), "N", "of the matrix (default 4K)"},
    {"zeros", 0, OPTION_STRING, offsetof(struct settings, zeros), "PERCENT",
     "zero weights of the matrix (default: a third)"},
    {"repetitions", 'r', OPTION_UINT, offsetof(struct settings, repetitions), "N",
     "measure N times and take the median (default 5)"},
    {"output", 0, OPTION_STRING, offsetof(struct settings, output), "FORMAT",
     "md, csv or json instead of the table for people"},
    {NULL, 0, OPTION_FLAG, 0, NULL, NULL},
};

/* The formats of --output; the first is what is shown without it. */
struct report {
    const char *name;
    void (*show)(const struct ui *ui, const struct bitconv_pack_bench *bench, struct bc_buf *out);
};

static const struct report reports[] = {
    {"text", bench_packs_text},
    {"md", bench_packs_markdown},
    {"csv", bench_packs_csv},
    {"json", bench_packs_json},
};

/* NULL: unknown. */
static const struct report *find_report(const char *name)
{
    for (size_t i = 0; i < sizeof reports / sizeof reports[0]; i++)
        if (strcmp(reports[i].name, name) == 0) return &reports[i];
    return NULL;
}

/* False when the text is no number from 0 to 100. */
static bool read_percent(const char *text, double *share)
{
    char *end = NULL;
    const double percent = strtod(text, &end);
    *share = percent / 100;
    return end != text && *end == '\0' && percent >= 0 && percent <= 100;
}

static int bench_packs(struct ui *ui, const struct globals *globals, const struct settings *s,
                       const struct report *report, const char *const *packs, size_t n_packs)
{
    struct bitconv_bench_packs_options o = {.packs = packs,
                                            .n_packs = n_packs,
                                            .rows = s->rows,
                                            .cols = s->cols,
                                            .has_zeros = s->zeros != NULL,
                                            .repetitions = s->repetitions,
                                            .n_threads = globals->threads,
                                            .cpu = globals->cpu};
    struct bitconv_pack_bench *bench = NULL;
    struct bitconv_error err = {0};
    struct bc_buf text = {0};
    if (s->zeros != NULL && !read_percent(s->zeros, &o.zeros))
        return ui_usage(ui, "bench", "--zeros: a number from 0 to 100 was expected");
    if (bitconv_bench_packs(&o, &ui->sink, &bench, &err) != BITCONV_OK) return ui_fail(ui, &err);
    report->show(ui, bench, &text);
    bitconv_pack_bench_free(bench);
    return ui_finish(ui, &text);
}

static int run(struct ui *ui, const struct globals *globals, const void *settings,
               const char *const *args, size_t n_args)
{
    const struct settings *s = settings;
    const char *name = globals->json ? "json" : s->output != NULL ? s->output : "text";
    const struct report *report = find_report(name);
    if (report == NULL) return ui_usage(ui, "bench", "--output: md, csv or json was expected");
    if (!s->pack) return ui_usage(ui, "bench", "--pack was expected");
    return bench_packs(ui, globals, s, report, args, n_args);
}

const struct command command_bench = {
    .name = "bench",
    .summary = "measure the packs: packing, unpacking, multiplying against memcpy",
    .usage = "bench --pack [PACK...] [options]",
    .examples = "  bitconv bench --pack\n"
                "  bitconv bench --pack i2_s bitcos --rows 2560 --cols 6912\n"
                "  bitconv bench --pack -r 9 -t 2 --zeros 50 --cpu scalar\n"
                "  bitconv bench --pack --output md\n"
                "  bitconv bench --pack --json\n",
    .options = options,
    .settings_size = sizeof(struct settings),
    .run = run,
};
