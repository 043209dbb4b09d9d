/* SPDX-License-Identifier: MIT
 * The commands. To add one: write tools/cmd_NAME.c with a `const struct command command_NAME` (its
 * options, help and run function), declare it here, add it to commands[] in main.c,
 * and describe it in README.md; tests/lint/help.sh then checks that its --help
 * works and has examples. */
#ifndef BC_TOOLS_CMD_H
#define BC_TOOLS_CMD_H

#include "opts.h"
#include "ui.h"

struct command {
    const char *name;
    const char *summary;              /* one line for the list of commands */
    const char *usage;                /* "convert DIR --outtype T [options]" */
    const char *examples;             /* indented lines, each a complete command */
    const struct option_row *options; /* ends with a row whose name is NULL */
    size_t settings_size;             /* bytes of the command's own settings struct */
    int (*run)(struct ui *ui, const struct globals *globals, const void *settings,
               const char *const *args, size_t n_args); /* returns the exit status */
};

extern const struct command command_archs;
extern const struct command command_bench;
extern const struct command command_codegen;
extern const struct command command_convert;
extern const struct command command_diff;
extern const struct command command_dummy;
extern const struct command command_embed;
extern const struct command command_export;
extern const struct command command_formats;
extern const struct command command_generate;
extern const struct command command_inspect;
extern const struct command command_repack;
extern const struct command command_sparse;
extern const struct command command_tokenize;
extern const struct command command_verify;

#endif
