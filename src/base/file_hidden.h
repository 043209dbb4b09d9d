/* SPDX-License-Identifier: MIT
 * The hidden names ".NAME.XXXXXX.partial" of unfinished output: internal to base/file_*.c. */
#ifndef BC_BASE_FILE_HIDDEN_H
#define BC_BASE_FILE_HIDDEN_H

#include <stdbool.h>

/* A hidden name for the target `base`, other for every attempt, time and process; bc_free; NULL
 * when out of memory. It is within NAME_MAX when `base` is. */
char *bc_hidden_name(const char *base, int attempt);

/* Locks an unfinished file for as long as fd is open, so that other runs can tell that its writer
 * lives. Where locks do not work nothing happens. */
void bc_hidden_lock(int fd);

/* True when `name` in the folder is the file behind fd. */
bool bc_hidden_names_fd(int dir_fd, const char *name, int fd);

/* Removes the unlocked partial files and folders of the target `base`: what killed runs left behind.
 * Best effort: a failure is not worth failing for. */
void bc_hidden_remove_stale(int dir_fd, const char *base);

/* Removes a folder with the files in it and in its folders, of which nothing deeper is expected.
 * False (errno) when something could not be removed. */
bool bc_hidden_remove_folder(int dir_fd, const char *name);

#endif
