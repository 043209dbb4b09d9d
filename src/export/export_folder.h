/* SPDX-License-Identifier: MIT
 * The folder while it is being made, and the list of what is in it. Internal to src/export. */
#ifndef BC_EXPORT_EXPORT_FOLDER_H
#define BC_EXPORT_EXPORT_FOLDER_H

#include "base/file.h"
#include "base/mem.h"

struct bc_export_folder {
    struct bc_out_folder *out;
    const char **files; /* names within it, arena-owned */
    size_t n_files, cap_files;
    struct bc_arena *arena;
};

/* Opens the output folder; with force one that holds nothing but files that an export writes goes.
 * bc_export_folder_release in any case; it aborts what has not been committed. */
enum bitconv_status bc_export_folder_open(struct bc_export_folder *folder, const char *dir,
                                          bool force, struct bc_arena *arena,
                                          struct bitconv_error *err);
enum bitconv_status bc_export_folder_commit(struct bc_export_folder *folder,
                                            struct bitconv_error *err);
void bc_export_folder_release(struct bc_export_folder *folder);
/* The path of a file inside, noted as one of the folder's; bc_free; NULL when out of memory. */
char *bc_export_folder_add(struct bc_export_folder *folder, const char *name);

#endif
