/* SPDX-License-Identifier: MIT
 * Members of golden JSON files. */
#include "support/json_fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

uint64_t json_number_of(const struct bc_json *entry, const char *key)
{
    uint64_t value = 0;
    if (!bc_json_u64(bc_json_get(entry, key), &value)) fail_msg("no number %s", key);
    return value;
}

const char *json_string_of(const struct bc_json *entry, const char *key)
{
    const char *text = bc_json_string(bc_json_get(entry, key));
    if (text == NULL) fail_msg("no string %s", key);
    return text;
}
