/* SPDX-License-Identifier: MIT
 * Members of golden JSON files that have to be there: a test without them fails. */
#ifndef BC_TESTS_JSON_FIELDS_H
#define BC_TESTS_JSON_FIELDS_H

#include <stdint.h>

#include "base/json.h"

/* The member's number, or text (borrowed); ends the running cmocka test where it is another thing. */
uint64_t json_number_of(const struct bc_json *entry, const char *key);
const char *json_string_of(const struct bc_json *entry, const char *key);

#endif
