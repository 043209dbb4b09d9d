/* SPDX-License-Identifier: MIT
 * Does a GGUF's metadata describe the tensors that are in it? Shared by verify (errors fail) and
 * inspect (everything is a warning). The types of single values are the reader's business
 * (io/gguf_check.c). */
#ifndef BC_VERIFY_METADATA_RULES_H
#define BC_VERIFY_METADATA_RULES_H

#include "base/error.h"
#include "bitconv/gguf.h"

/* Where remarks go: is_error false means that the file can be right all the same. */
struct bc_rule_report {
    void (*say)(void *user, bool is_error, const char *text);
    void *user;
};

/* Hands a formatted remark to the report. */
void bc_rule_say(const struct bc_rule_report *report, bool is_error, const char *fmt, ...)
    BC_PRINTF(3, 4);

/* The value of the key ARCH.SUFFIX; NULL when the file has none or `arch` is empty. */
const struct bitconv_gguf_value *bc_arch_key(const struct bitconv_gguf *file, const char *arch,
                                             const char *suffix);

/* "blk.7.attn_q.weight" -> "attn_q.weight", *block = 7; NULL for names of no block. */
const char *bc_block_name(const char *name, uint64_t *block);

/* True when the file holds a model rather than loose tensors: it has an embedding or a block count.
 * Only then are the architecture's keys asked for. */
bool bc_gguf_is_model(const struct bitconv_gguf *file);

/* Mainline's converter stores what does not fit the blocks of a type as F16 and keeps the file_type,
 * also when that is all. True when the file can be one of those: its matrices have F16 among them
 * and no row that is whole blocks of the type of `file_type`. */
bool bc_gguf_holds_misfits_only(const struct bitconv_gguf *file, uint64_t file_type);

/* Checks the keys that the architecture's readers demand, block count, embedding and vocabulary
 * sizes against the tensors, the lengths of the token arrays, special ids, values that no reader can
 * compute with, general.file_type against the types of the tensors; of known architectures also
 * which tensors there are and their shapes (metadata_shapes.h). Warns of a BitNet model without
 * hidden_activation, of unknown RoPE scalings and of companion scales. */
void bc_check_model_metadata(const struct bitconv_gguf *file, const struct bc_rule_report *report);

#endif
