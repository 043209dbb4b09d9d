/* SPDX-License-Identifier: MIT
 * The element types of safetensors as a table. */
#include "io/dtype.h"

#include <string.h>

struct dtype_info {
    const char *name;
    uint8_t size; /* bytes of one element */
    bool is_float;
};

static const struct dtype_info dtypes[BITCONV_N_DTYPES] = {
    [BITCONV_BOOL] = {"BOOL", 1, false},      [BITCONV_U8] = {"U8", 1, false},
    [BITCONV_I8] = {"I8", 1, false},          [BITCONV_F8_E5M2] = {"F8_E5M2", 1, true},
    [BITCONV_F8_E4M3] = {"F8_E4M3", 1, true}, [BITCONV_F8_E8M0] = {"F8_E8M0", 1, true},
    [BITCONV_I16] = {"I16", 2, false},        [BITCONV_U16] = {"U16", 2, false},
    [BITCONV_F16] = {"F16", 2, true},         [BITCONV_BF16] = {"BF16", 2, true},
    [BITCONV_I32] = {"I32", 4, false},        [BITCONV_U32] = {"U32", 4, false},
    [BITCONV_F32] = {"F32", 4, true},         [BITCONV_F64] = {"F64", 8, true},
    [BITCONV_I64] = {"I64", 8, false},        [BITCONV_U64] = {"U64", 8, false},
};

static const char *const foreign_dtypes[] = {"F4",          "F6_E2M3",     "F6_E3M2",
                                             "F8_E4M3FNUZ", "F8_E5M2FNUZ", "C64"};

/* The row of a type, or NULL for a value that is no type. */
static const struct dtype_info *info_of(enum bitconv_dtype dtype)
{
    return (unsigned)dtype < BITCONV_N_DTYPES ? &dtypes[dtype] : NULL;
}

const char *bitconv_dtype_name(enum bitconv_dtype dtype)
{
    const struct dtype_info *const info = info_of(dtype);
    return info != NULL ? info->name : "?";
}

size_t bitconv_dtype_size(enum bitconv_dtype dtype)
{
    const struct dtype_info *const info = info_of(dtype);
    return info != NULL ? info->size : 0;
}

bool bitconv_dtype_is_float(enum bitconv_dtype dtype)
{
    const struct dtype_info *const info = info_of(dtype);
    return info != NULL && info->is_float;
}

bool bc_dtype_from_name(const char *name, enum bitconv_dtype *out)
{
    for (unsigned i = 0; i < BITCONV_N_DTYPES; i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            *out = (enum bitconv_dtype)i;
            return true;
        }
    }
    return false;
}

bool bc_dtype_is_foreign(const char *name)
{
    for (size_t i = 0; i < sizeof foreign_dtypes / sizeof foreign_dtypes[0]; i++) {
        if (strcmp(foreign_dtypes[i], name) == 0) return true;
    }
    return false;
}
