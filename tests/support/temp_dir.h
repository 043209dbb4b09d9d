/* SPDX-License-Identifier: MIT
 * Scratch folders for tests. Failures end the running cmocka test. */
#ifndef TESTS_SUPPORT_TEMP_DIR_H
#define TESTS_SUPPORT_TEMP_DIR_H

#include <stddef.h>

/* A new empty folder under $TMPDIR or /tmp; hand it to temp_dir_remove. */
char *temp_dir_new(void);
/* Removes the folder with all that is in it, and frees `dir`; NULL is fine. */
void temp_dir_remove(char *dir);
/* "DIR/NAME"; free() it. */
char *temp_dir_path(const char *dir, const char *name);
/* Writes DIR/NAME; folders in NAME ("1_Pooling/config.json") are made. */
void temp_dir_write(const char *dir, const char *name, const void *data, size_t size);
/* The same with a string. */
void temp_dir_puts(const char *dir, const char *name, const char *text);

#endif
