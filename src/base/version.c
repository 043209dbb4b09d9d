/* SPDX-License-Identifier: MIT
 * The version of the library at run time. */
#include "bitconv/bitconv.h"

const char *bitconv_version(void)
{
    return BITCONV_VERSION_STRING;
}
