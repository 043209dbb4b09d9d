/* SPDX-License-Identifier: MIT
 * A llama checkpoint of one layer whose sizes a test chooses. Failures end the test. */
#ifndef TESTS_SUPPORT_LLAMA_MODEL_H
#define TESTS_SUPPORT_LLAMA_MODEL_H

#include "support/convert_run.h"

enum { LLAMA_MODEL_TENSORS = 12, LLAMA_MODEL_HEADS = 4, LLAMA_MODEL_VOCAB = 320 };

/* Its tensors; the linear weights (from 4 on: q, k, v, o, gate, up, down) are trits of 0.25. */
struct llama_model {
    struct model_edit edits[LLAMA_MODEL_TENSORS];
    float *values[LLAMA_MODEL_TENSORS];
};

/* Makes r->model: `hidden` and `ff` are hidden_size and intermediate_size; k and v have hidden / 2
 * rows. Zero-initialise m; sets r->options.target to bitnet. */
void llama_model_make(struct convert_run *r, struct llama_model *m, uint64_t hidden, uint64_t ff);
/* Makes r->model anew after edits or values were changed; sizes as before. */
void llama_model_write(struct convert_run *r, const struct llama_model *m, uint64_t hidden,
                       uint64_t ff);
void llama_model_free(struct llama_model *m);

#endif
