/* SPDX-License-Identifier: MIT
 * What `convert` says about its result: tables for people, JSON for programs. */
#ifndef BC_TOOLS_CONVERT_PRINT_H
#define BC_TOOLS_CONVERT_PRINT_H

#include "bitconv/convert.h"
#include "ui.h"

/* All that a command says about its result: JSON, or the tables; the plan too when it was a dry run.
 * Nothing when the GGUF itself went to standard output (`outfile`). */
void convert_print(const struct ui *ui, const struct bitconv_conversion *c, const char *outfile,
                   bool dry_run);
/* A table of types: tensors, parameters, bytes, bits per weight; how the trits came about; hints.
 */
void convert_print_summary(const struct ui *ui, const struct bitconv_conversion *c, bool dry_run);
/* A row per ternary tensor (with `all`, per tensor): how its trits were obtained, zeros, scale,
 * relative error. Nothing when there is no row. */
void convert_print_tensors(const struct ui *ui, const struct bitconv_conversion *c, bool all);
/* A row per tensor: type, shape, bytes; and the memory that the conversion takes. */
void convert_print_plan(const struct ui *ui, const struct bitconv_conversion *c);
void convert_print_json(const struct ui *ui, const struct bitconv_conversion *c);

#endif
