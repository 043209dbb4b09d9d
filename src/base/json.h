/* SPDX-License-Identifier: MIT
 * Strict JSON on top of cJSON, and a JSON writer. json.c is the only file that includes cJSON.h.
 *
 * The text is checked before cJSON sees it: RFC 8259 grammar, valid UTF-8, nesting of at most
 * BC_JSON_MAX_DEPTH, no duplicate keys in an object, no NUL in keys or strings (cJSON keeps C
 * strings), numbers of at most 63 characters, nothing behind the value. So what the tree says is
 * what the text said. */
#ifndef BC_BASE_JSON_H
#define BC_BASE_JSON_H

#include "base/mem.h"

#define BC_JSON_MAX_DEPTH 128
#define BC_JSON_MAX_VALUES                                                                         \
    16777216 /* keeps the tree of a small hostile file within about 1.3 GB                         \
              */

struct bc_json; /* a node; opaque */

enum bc_json_type {
    BC_JSON_NULL,
    BC_JSON_BOOL,
    BC_JSON_NUMBER,
    BC_JSON_STRING,
    BC_JSON_ARRAY,
    BC_JSON_OBJECT
};

/* Parses a whole text. `where` names the file in messages. Free the root with bc_json_free. */
enum bitconv_status bc_json_parse(const char *text, size_t size, const char *where,
                                  struct bc_json **out, struct bitconv_error *err);
/* Reads and parses a file; one that starts with the gzip magic is inflated first (bounded: at most
 * 1032 times the file's own size, zlib's limit, and 4 GiB). Git LFS pointers and HTML pages are
 * named. */
enum bitconv_status bc_json_load(const char *path, struct bc_json **out, struct bitconv_error *err);
void bc_json_free(struct bc_json *root);

/* All of these accept NULL nodes (type NULL, no children), so chains need no checks. */
enum bc_json_type bc_json_type(const struct bc_json *node);
bool bc_json_is(const struct bc_json *node, enum bc_json_type type); /* false for a NULL pointer */
/* Member of an object by exact, case-sensitive key; NULL when absent or not an object. O(n). */
const struct bc_json *bc_json_get(const struct bc_json *object, const char *key);
/* "a.b.c" through nested objects. */
const struct bc_json *bc_json_path(const struct bc_json *root, const char *path);
const struct bc_json *bc_json_first(const struct bc_json *parent); /* first child or NULL */
const struct bc_json *bc_json_next(const struct bc_json *node);    /* next sibling or NULL */
size_t bc_json_size(const struct bc_json *parent);                 /* number of children, O(n) */
const char *bc_json_key(const struct bc_json *node); /* key within its object, or NULL */
/* NULL when the node is not a string. Borrowed. */
const char *bc_json_string(const struct bc_json *node);
/* Exact integers only: false when not a number, not integral, or not within +-(2^53 - 1), beyond
 * which a double cannot tell neighbours apart. */
bool bc_json_i64(const struct bc_json *node, int64_t *out);
bool bc_json_u64(const struct bc_json *node, uint64_t *out); /* the same, and not negative */
bool bc_json_f64(const struct bc_json *node, double *out); /* false when beyond a double's range */
bool bc_json_bool(const struct bc_json *node, bool *out);

/* Whole content of a file that may be gzip-compressed; buf is appended to. */
enum bitconv_status bc_text_load(const char *path, struct bc_buf *buf, struct bitconv_error *err);

/* Writer: appends to a bc_buf; commas and indentation (2 blanks) are its business. Strings are
 * escaped; bytes that are not UTF-8 become U+FFFD; control characters (bc_utf8_is_control) are
 * \u-escaped.
 * Non-finite numbers are written as the strings "NaN", "Infinity", "-Infinity"; integral ones below
 * 1e15 without exponent. Start with {.buf = &buf}; the end of the text gets no line feed. */
struct bc_jw {
    struct bc_buf *buf;
    int depth;
    bool first;
    bool after_key;
};
void bc_jw_begin_object(struct bc_jw *w);
void bc_jw_end_object(struct bc_jw *w);
void bc_jw_begin_array(struct bc_jw *w);
void bc_jw_end_array(struct bc_jw *w);
void bc_jw_key(struct bc_jw *w, const char *key);
void bc_jw_string(struct bc_jw *w, const char *s); /* NULL writes null */
void bc_jw_string_n(struct bc_jw *w, const char *s, size_t len);
void bc_jw_u64(struct bc_jw *w, uint64_t v);
void bc_jw_i64(struct bc_jw *w, int64_t v);
void bc_jw_f32(struct bc_jw *w, float v); /* shortest text that reads back to the same float */
void bc_jw_f64(struct bc_jw *w, double v);
void bc_jw_bool(struct bc_jw *w, bool v);
void bc_jw_null(struct bc_jw *w);
/* A member of an object, key and value at once. */
void bc_jw_key_string(struct bc_jw *w, const char *key, const char *value); /* NULL writes null */
void bc_jw_key_u64(struct bc_jw *w, const char *key, uint64_t value);
void bc_jw_key_count(struct bc_jw *w, const char *key,
                     uint64_t value); /* 0 writes null: not known */
void bc_jw_key_f64(struct bc_jw *w, const char *key, double value);
/* null unless `known` */
void bc_jw_key_known_u64(struct bc_jw *w, const char *key, bool known, uint64_t value);
void bc_jw_key_known_f32(struct bc_jw *w, const char *key, bool known, float value);
void bc_jw_key_known_f64(struct bc_jw *w, const char *key, bool known, double value);
void bc_jw_key_bool(struct bc_jw *w, const char *key, bool value);
/* The same with an array of n values. */
void bc_jw_key_strings(struct bc_jw *w, const char *key, const char *const *values, size_t n);
void bc_jw_key_u64s(struct bc_jw *w, const char *key, const uint64_t *values, size_t n);

#endif
