/* SPDX-License-Identifier: MIT
 * Shannon's bound for trits, against which packs are measured. */
#include <math.h>

#include "bitconv/support.h"

double bitconv_entropy_bound(double zeros)
{
    const double rest = 1.0 - zeros;
    const double of_zeros = zeros > 0.0 ? -zeros * log2(zeros) : 0.0;
    const double of_signs = rest > 0.0 ? -rest * log2(rest / 2.0) : 0.0;
    return of_zeros + of_signs;
}
