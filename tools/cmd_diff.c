/* SPDX-License-Identifier: MIT
 * bitconv diff: whether two files or checkpoints are the same model, and where not. */
#include <stdio.h>

#include "cmd.h"
#include "diff_view.h"

struct settings {
    bool strict, all;
    const char *dialect, *kernel_config;
};

static const struct option_row options[] = {
    {"strict", 0, OPTION_FLAG, offsetof(struct settings, strict), NULL,
     "count what describes the file as well:\nits name, who wrote it, types of tensors"},
    {"all", 0, OPTION_FLAG, offsetof(struct settings, all), NULL,
     "list every tensor, do not cut lists"},
    {"dialect", 0, OPTION_STRING, offsetof(struct settings, dialect), "D",
     "read type ids as upstream, bitnet,\nbitnet-rebased or prism"},
    {"kernel-config", 0, OPTION_STRING, offsetof(struct settings, kernel_config), "FILE",
     "tiles of TL1 and TL2 tensors that do not\nstate theirs (INI)"},
    {NULL, 0, OPTION_FLAG, 0, NULL, NULL},
};

/* The one line on standard error that goes with exit status 1. */
static int different(struct ui *ui, const struct bitconv_diff *it)
{
    struct bitconv_error err = {.status = BITCONV_E_MISMATCH};
    struct bc_buf verdict = {0};
    diff_verdict(it, &verdict);
    snprintf(err.text, sizeof err.text, "%s, %s: %s", it->a, it->b, bc_buf_str(&verdict));
    bc_buf_release(&verdict);
    return ui_fail(ui, &err);
}

static int run(struct ui *ui, const struct globals *globals, const void *settings,
               const char *const *args, size_t n_args)
{
    const struct settings *s = settings;
    struct bitconv_diff *it = NULL;
    struct bitconv_error err = {0};
    struct bc_buf text = {0};
    if (n_args != 2)
        return ui_usage(ui, "diff", "two files or folders were expected, %zu given", n_args);
    const struct bitconv_diff_options compare = {
        .dialect = s->dialect,
        .kernel_config = s->kernel_config,
        .strict = s->strict,
        .n_threads = globals->threads,
        .cpu = globals->cpu,
    };
    if (bitconv_diff(args[0], args[1], &compare, &ui->sink, &it, &err) != BITCONV_OK)
        return ui_fail(ui, &err);
    const struct diff_view view = {.it = it, .ui = ui, .strict = s->strict, .all = s->all};
    if (globals->json)
        diff_json(&view, &text);
    else if (!globals->quiet)
        diff_text(&view, &text);
    int status = ui_finish(ui, &text);
    if (status == 0 && !it->equal) status = different(ui, it);
    bitconv_diff_free(it);
    return status;
}

const struct command command_diff = {
    .name = "diff",
    .summary = "compare two GGUFs or two checkpoints: metadata, decoded tensors",
    .usage = "diff A B [options]",
    .examples = "  bitconv diff a.gguf b.gguf\n"
                "  bitconv diff model-i2_s.gguf model-tl1.gguf --strict\n"
                "  bitconv diff model-f32.gguf model-f16.gguf --all\n"
                "  bitconv diff checkpoint/ finetuned/ --json\n"
                "  bitconv diff a.gguf b.gguf --quiet && echo same model\n",
    .options = options,
    .settings_size = sizeof(struct settings),
    .run = run,
};
