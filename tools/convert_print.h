/* SPDX-License-Identifier: MIT
 * What `convert` says about its result: tables for people, JSON for programs. */
#ifndef BC_TOOLS_CONVERT_PRINT_H
#define BC_TOOLS_CONVERT_PRINT_H

#include "bitconv/convert.h"
#include "ui.h"

/* All that a command says about its result: JSON, or the tables; the plan too when it was a dry run.
 * Nothing when the GGUF itself went to standard output (`outfile`). Returns the exit status, as
 * ui_finish does. */
int convert_print(struct ui *ui, const struct bitconv_conversion *c, const char *outfile,
                  bool dry_run);
/* The JSON alone, wherever the GGUF went. */
int convert_print_json(struct ui *ui, const struct bitconv_conversion *c);

#endif
