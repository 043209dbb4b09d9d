/* SPDX-License-Identifier: MIT
 * Fixture checkpoints made wider: 256 columns, which the packs with blocks of 256 and TL2 want. */
#ifndef TESTS_SUPPORT_WIDE_MODEL_H
#define TESTS_SUPPORT_WIDE_MODEL_H

#include "support/convert_run.h"

/* Makes r->model from a fixture with a single weight file: twice the heads and the widths, new random
 * values (linear weights ternary), everything else as in the fixture. Failures end the test. */
void wide_model(struct convert_run *r, const char *fixture);

#endif
