/* SPDX-License-Identifier: MIT
 * Every row of this machine against the scalar one, without a test library: for cross builds that
 * run under an emulator (tests/cross/neon.sh). Exit 0: all equal, and at least one row besides
 * scalar ran. */
#include <stdio.h>

#include "support/kernel_compare.h"
#include "support/kernel_compare_bitcos.h"
#include "support/kernel_compare_dot.h"

int main(void)
{
    size_t n_rows = 0;
    for (; bc_kernels_at(n_rows) != NULL; n_rows++) {
        const struct bc_kernels *row = bc_kernels_at(n_rows);
        char why[256] = "";
        if (!kernel_row_equals_scalar(row, why, sizeof why) ||
            !kernel_halves_equal_scalar(row, why, sizeof why) ||
            !kernel_bitcos_equals_definition(row, why, sizeof why) ||
            !kernel_dots_equal_scalar(row, why, sizeof why)) {
            printf("%s\n", why);
            return 1;
        }
        printf("row %s equals scalar\n", row->name);
    }
    if (n_rows < 2) printf("no vector row on this machine\n");
    return n_rows < 2;
}
