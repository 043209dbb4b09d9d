/* SPDX-License-Identifier: MIT
 * What the tests need of base/file_out.c beyond base/file.h. */
#ifndef BC_BASE_FILE_INTERNAL_H
#define BC_BASE_FILE_INTERNAL_H

#include "base/file.h"

/* How the bytes get to their name. Each falls back on the next where the file system cannot do it.
 */
enum bc_out_method {
    BC_OUT_UNNAMED, /* an O_TMPFILE that is linked at commit; what bc_out_open starts with */
    BC_OUT_COPIED,  /* an O_TMPFILE that cannot be linked: copied to a named file at commit */
    BC_OUT_NAMED    /* ".NAME.XXXXXX.partial" from the start */
};

/* bc_out_open with the method given. */
enum bitconv_status bc_out_open_with(const char *path, const struct bc_out_options *options,
                                     enum bc_out_method method, struct bc_out **out,
                                     struct bitconv_error *err);

#endif
