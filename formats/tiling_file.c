/* SPDX-License-Identifier: MIT
 * Kernel configurations from a file in INI form; the rules are in tiling.md. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/mem.h"
#include "formats/tiling.h"

enum { MAX_BYTES = 1 << 20, N_KEYS = 5, SHOWN = 40 /* bytes of a line that a message repeats */ };

static const char *const key_names[N_KEYS] = {"m", "k", "bm", "bk", "bmm"};

struct text {
    const char *data;
    size_t size;
};

struct parser {
    const char *path;
    struct text rest; /* what is still to be read */
    uint32_t line;
    uint32_t section;        /* line of the current section's head, 0 before the first */
    uint32_t values[N_KEYS]; /* of the current section; 0: not yet seen */
    struct bc_tilings *out;
    size_t cap;
    struct bitconv_error *err;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static struct text trim(struct text t)
{
    while (t.size > 0 && is_blank(t.data[0])) {
        t.data++;
        t.size--;
    }
    while (t.size > 0 && is_blank(t.data[t.size - 1]))
        t.size--;
    return t;
}

static struct text next_line(struct text *rest)
{
    const char *const end = memchr(rest->data, '\n', rest->size);
    struct text line = *rest;
    if (end != NULL) line.size = (size_t)(end - rest->data);
    const size_t used = line.size + (end != NULL);
    rest->data += used;
    rest->size -= used;
    return trim(line);
}

static int shown(struct text t)
{
    return t.size < SHOWN ? (int)t.size : SHOWN;
}

/* The section that ends here becomes an item, if it is complete. */
static enum bitconv_status end_section(struct parser *p)
{
    if (p->section == 0) return BITCONV_OK;
    for (size_t i = 0; i < N_KEYS; i++) {
        if (p->values[i] != 0) continue;
        return bc_fail(p->err, BITCONV_E_CORRUPT,
                       "%s: line %" PRIu32 ": the section that begins here has no '%s', a kernel "
                       "configuration has the keys m, k, bm, bk and bmm",
                       p->path, p->section, key_names[i]);
    }
    void *items = p->out->items;
    if (!bc_grow(&items, &p->cap, p->out->n, sizeof *p->out->items))
        return bc_fail_nomem(p->err, "kernel configuration");
    p->out->items = items;
    const struct bc_tiling item = {
        p->values[0], p->values[1], {p->values[2], p->values[3], p->values[4]}, p->section};
    p->out->items[p->out->n++] = item;
    memset(p->values, 0, sizeof p->values);
    return BITCONV_OK;
}

static enum bitconv_status begin_section(struct parser *p, struct text line)
{
    if (line.data[line.size - 1] != ']')
        return bc_fail(p->err, BITCONV_E_CORRUPT,
                       "%s: line %" PRIu32 ": '%.*s' has no ']', a section's head is [NAME]",
                       p->path, p->line, shown(line), line.data);
    BC_TRY(end_section(p));
    p->section = p->line;
    return BITCONV_OK;
}

/* A positive decimal number of 32 bits; 0 when it is none. */
static uint32_t parse_number(struct text t)
{
    uint64_t value = 0;
    if (t.size == 0) return 0;
    for (size_t i = 0; i < t.size; i++) {
        if (t.data[i] < '0' || t.data[i] > '9') return 0;
        value = 10 * value + (uint64_t)(t.data[i] - '0');
        if (value > UINT32_MAX) return 0;
    }
    return (uint32_t)value;
}

static enum bitconv_status put_value(struct parser *p, size_t key, struct text value)
{
    if (p->values[key] != 0)
        return bc_fail(p->err, BITCONV_E_CORRUPT,
                       "%s: line %" PRIu32 ": '%s' stands twice in the section that begins at line "
                       "%" PRIu32,
                       p->path, p->line, key_names[key], p->section);
    p->values[key] = parse_number(value);
    if (p->values[key] == 0)
        return bc_fail(p->err, BITCONV_E_CORRUPT,
                       "%s: line %" PRIu32 ": '%s' is '%.*s', a whole number from 1 to %" PRIu32
                       " was expected",
                       p->path, p->line, key_names[key], shown(value), value.data, UINT32_MAX);
    return BITCONV_OK;
}

static enum bitconv_status parse_pair(struct parser *p, struct text line)
{
    const char *sign = memchr(line.data, '=', line.size);
    if (sign == NULL) sign = memchr(line.data, ':', line.size);
    if (sign == NULL)
        return bc_fail(p->err, BITCONV_E_CORRUPT,
                       "%s: line %" PRIu32 ": '%.*s' is neither [SECTION] nor KEY = NUMBER",
                       p->path, p->line, shown(line), line.data);
    if (p->section == 0)
        return bc_fail(p->err, BITCONV_E_CORRUPT,
                       "%s: line %" PRIu32 ": '%.*s' stands before the first [SECTION]", p->path,
                       p->line, shown(line), line.data);
    const size_t at = (size_t)(sign - line.data);
    const struct text key = trim((struct text){line.data, at});
    const struct text value = trim((struct text){sign + 1, line.size - at - 1});
    for (size_t i = 0; i < N_KEYS; i++) {
        if (strlen(key_names[i]) == key.size && strncasecmp(key.data, key_names[i], key.size) == 0)
            return put_value(p, i, value);
    }
    return BITCONV_OK; /* other keys are other programs' business */
}

static enum bitconv_status parse_lines(struct parser *p)
{
    while (p->rest.size > 0) {
        const struct text line = next_line(&p->rest);
        p->line++;
        if (line.size == 0 || line.data[0] == '#' || line.data[0] == ';') continue;
        if (line.data[0] == '[')
            BC_TRY(begin_section(p, line));
        else
            BC_TRY(parse_pair(p, line));
    }
    BC_TRY(end_section(p));
    if (p->out->n == 0)
        return bc_fail(p->err, BITCONV_E_CORRUPT,
                       "%s: no [SECTION] with a kernel configuration in it", p->path);
    return BITCONV_OK;
}

enum bitconv_status bc_tilings_parse(const char *path, const uint8_t *text, uint64_t size,
                                     struct bc_tilings *out, struct bitconv_error *err)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    *out = (struct bc_tilings){0};
    if (size > MAX_BYTES)
        return bc_fail(err, BITCONV_E_LIMIT,
                       "%s: %" PRIu64 " bytes, a kernel configuration has at most %d", path, size,
                       MAX_BYTES);
    struct parser p = {.path = path, .out = out, .err = err};
    p.rest = (struct text){(const char *)text, (size_t)size};
    if (size >= 3 && memcmp(text, byte_order_mark, 3) == 0)
        p.rest = (struct text){p.rest.data + 3, p.rest.size - 3};

    const size_t path_size = strlen(path) + 1;
    out->path = bc_alloc_array(path_size, 1);
    enum bitconv_status status = BITCONV_OK;
    if (out->path == NULL) {
        status = bc_fail_nomem(err, "path");
    } else {
        memcpy(out->path, path, path_size);
        status = parse_lines(&p);
    }
    if (status != BITCONV_OK) bc_tilings_release(out);
    return status;
}

enum bitconv_status bc_tilings_load(const char *path, struct bc_tilings *out,
                                    struct bitconv_error *err)
{
    struct bc_file file;
    *out = (struct bc_tilings){0};
    BC_TRY(bc_file_open(path, &file, err));
    const enum bitconv_status status = bc_tilings_parse(path, file.data, file.size, out, err);
    bc_file_close(&file);
    return status;
}

void bc_tilings_release(struct bc_tilings *tilings)
{
    bc_free(tilings->items);
    bc_free(tilings->path);
    *tilings = (struct bc_tilings){0};
}
