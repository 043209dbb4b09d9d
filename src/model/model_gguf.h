/* SPDX-License-Identifier: MIT
 * The hyper-parameters of a model from the metadata of a GGUF, whoever wrote it. */
#ifndef BC_MODEL_MODEL_GGUF_H
#define BC_MODEL_MODEL_GGUF_H

#include "bitconv/gguf.h"
#include "model/arch.h"

/* The value of "ARCH.suffix"; NULL when the file has no such key. */
const struct bitconv_gguf_value *bc_gguf_find_arch_key(const struct bitconv_gguf *file,
                                                       const char *arch_name, const char *suffix);

/* Fills *hp from the keys of general.architecture (any name that a family answers to; a llama file
 * with experts is read by the mixtral tables) and *arch with the family. n_vocab comes from the rows
 * of token_embd.weight, `tied` from the absence of output.weight. A fact that the file does not
 * state takes the family's default; all of those are said in one NOTE through the sink. Strings and
 * arrays are arena-owned.
 * Refused, naming the key: no or an unknown architecture (UNSUPPORTED), a count that is missing, 0
 * or above 2^32 - 1, values of a wrong type, more layers than the file has tensors, heads that do
 * not divide, a pattern of another length (CORRUPT), an unknown RoPE scaling (UNSUPPORTED). */
enum bitconv_status bc_hparams_from_gguf(const struct bitconv_gguf *file, struct bc_arena *arena,
                                         const struct bitconv_sink *sink,
                                         const struct bc_arch **arch, struct bc_hparams *hp,
                                         struct bitconv_error *err);

#endif
