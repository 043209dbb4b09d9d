/* SPDX-License-Identifier: MIT
 * Reads the code blocks of formats/NAME.md. */
#include "support/spec_example.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

char *spec_text(const char *name)
{
    char path[512];
    struct bc_buf buf = {0};
    struct bitconv_error err = {0};
    snprintf(path, sizeof path, "%s/formats/%s.md", BITCONV_SOURCE_DIR, name);
    if (bc_text_load(path, &buf, &err) != BITCONV_OK) fail_msg("%s", err.text);
    return (char *)buf.data;
}

const char *spec_after(const char *text, const char *mark)
{
    const char *found = strstr(text, mark);
    if (found == NULL) fail_msg("no block %s", mark);
    return found + strlen(mark);
}

static size_t read_hex(const char *text, uint8_t *bytes, size_t max)
{
    size_t n = 0;
    const char *p = spec_after(text, "```hex");
    while (*p != '`') {
        char *end;
        const unsigned long byte = strtoul(p, &end, 16);
        if (end == p) fail_msg("not hex: %.10s", p);
        assert_true(n < max && byte < 256);
        bytes[n++] = (uint8_t)byte;
        for (p = end; *p == ' ' || *p == '\n'; p++)
            continue;
    }
    return n;
}

size_t spec_hex_read(const char *name, uint8_t *bytes, size_t max)
{
    char *text = spec_text(name);
    const size_t n = read_hex(text, bytes, max);
    bc_free(text);
    return n;
}

void spec_example_read(const char *name, struct spec_example *e)
{
    static const char alphabet[] = "-0+";
    unsigned long long cols, rows, slices;
    char *text = spec_text(name);
    const char *p = spec_after(text, "```trits ");
    memset(e, 0, sizeof *e);
    uint32_t *const tile = e->shape.tile; /* zeros unless the pack is tiled */
    const int n_read =
        sscanf(p, "cols=%llu rows=%llu slices=%llu scale=%f tile=%" SCNu32 ",%" SCNu32 ",%" SCNu32,
               &cols, &rows, &slices, &e->scale, &tile[0], &tile[1], &tile[2]);
    assert_true(n_read == 4 || n_read == 7);
    e->shape.cols = cols;
    e->shape.rows = rows;
    e->shape.slices = slices;
    e->shape.n = cols * rows * slices;
    size_t n = 0;
    for (p = strchr(p, '\n'); *p != '`'; p++) {
        if (*p == '\n') continue;
        const char *letter = strchr(alphabet, *p);
        assert_true(letter != NULL && n < sizeof e->trits);
        e->trits[n++] = (int8_t)(letter - alphabet - 1);
    }
    assert_int_equal(n, e->shape.n);
    e->n_bytes = read_hex(p, e->bytes, sizeof e->bytes);
    bc_free(text);
}
