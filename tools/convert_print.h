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
/* The document of `convert --check`: what convert says but for an output, and "ok" and "reasons";
 * where it cannot be converted (`c` NULL) the folder, the asked type, and the reasons: those that
 * were found, else that of `err`. Returns the exit status, as ui_finish does. */
int convert_print_check(struct ui *ui, const char *dir, const char *outtype,
                        const struct bitconv_conversion *c, const struct bitconv_error *err);

#endif
