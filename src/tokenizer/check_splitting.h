/* SPDX-License-Identifier: MIT
 * A second opinion on the name of a pre-tokenizer, for convert. */
#ifndef BC_TOKENIZER_CHECK_SPLITTING_H
#define BC_TOKENIZER_CHECK_SPLITTING_H

#include "model/tokenizer.h"

/* Tokenizes the converters' test texts as tokenizer.json says. Warns where their lists know the hash
 * under the name of another splitting than the one that is written, and where that splitting gives
 * other ids than the tokenizer itself (--pre). Says nothing where it cannot be done: a tokenizer that
 * can be converted need not be one that can be run here. The tokenizer is built on a thread of its
 * own. */
extern const struct bc_tokenizer_check bc_check_splitting;

#endif
