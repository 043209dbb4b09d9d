/* SPDX-License-Identifier: MIT
 * Where output goes: internal to base/file_*.c. */
#ifndef BC_BASE_FILE_TARGET_H
#define BC_BASE_FILE_TARGET_H

#include <sys/types.h>

#include "base/file.h"

/* Owned strings. Zero-initialise. */
struct bc_out_target {
    char *path;   /* as the caller gave it, for messages */
    char *folder; /* of the file to write, symlinks of the file itself resolved; NULL when direct */
    char *base;   /* its name there; NULL when direct */
    bool direct;  /* a device, pipe or open descriptor: written to as it is */
    bool exists;  /* a regular file of that name is there */
    mode_t mode;  /* permissions: those of the existing file, or 0666 (to be masked by umask) */
};

/* Finds out where `path` leads and whether it may be written: ARG when it is a folder, one of the
 * inputs, or an existing file without options->force. Release *target in any case. */
enum bitconv_status bc_out_target_find(const char *path, const struct bc_out_options *options,
                                       struct bc_out_target *target, struct bitconv_error *err);
void bc_out_target_release(struct bc_out_target *target);

#endif
