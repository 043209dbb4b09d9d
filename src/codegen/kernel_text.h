/* SPDX-License-Identifier: MIT
 * The parts of a generated kernel header that are the same for every shape, as C source.
 *
 * Each is a list of fragments (a string literal may have 4095 characters), ended by NULL; every
 * fragment begins with an empty line and ends with a line feed. What depends on the shapes stands
 * behind them: emit.c. The kernels take the tile as arguments; the functions of a shape call
 * them with constants, and compilers specialise them. */
#ifndef BC_CODEGEN_KERNEL_TEXT_H
#define BC_CODEGEN_KERNEL_TEXT_H

extern const char *const bc_kernel_text_common[];
extern const char *const bc_kernel_text_tl1[]; /* bitconv_tl1_walk, bitconv_tl1_walk_plain */
extern const char *const bc_kernel_text_tl2[]; /* bitconv_tl2_walk, bitconv_tl2_walk_plain */

#endif
