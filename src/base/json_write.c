/* SPDX-License-Identifier: MIT
 * The JSON writer: appends indented JSON to a bc_buf. */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static void new_line(struct bc_jw *w)
{
    bc_buf_putc(w->buf, '\n');
    for (int i = 0; i < w->depth; i++)
        bc_buf_puts(w->buf, "  ");
}

/* What comes before a key, or before a value that is not behind a key. */
static void separate(struct bc_jw *w)
{
    if (w->after_key) {
        w->after_key = false;
        return;
    }
    if (w->depth == 0) return;
    if (!w->first) bc_buf_putc(w->buf, ',');
    new_line(w);
    w->first = false;
}

static void begin(struct bc_jw *w, char bracket)
{
    separate(w);
    bc_buf_putc(w->buf, bracket);
    w->depth++;
    w->first = true;
}

static void end(struct bc_jw *w, char bracket)
{
    w->depth--;
    if (!w->first) new_line(w);
    bc_buf_putc(w->buf, bracket);
    w->first = false;
}

void bc_jw_begin_object(struct bc_jw *w)
{
    begin(w, '{');
}

void bc_jw_end_object(struct bc_jw *w)
{
    end(w, '}');
}

void bc_jw_begin_array(struct bc_jw *w)
{
    begin(w, '[');
}

void bc_jw_end_array(struct bc_jw *w)
{
    end(w, ']');
}

static void put_escaped(struct bc_buf *buf, const char *s, size_t len)
{
    static const char specials[] = "\"\\\b\f\n\r\t";
    static const char names[] = "\"\\bfnrt";
    bc_buf_putc(buf, '"');
    for (size_t i = 0; i < len;) {
        uint32_t cp = 0;
        const size_t n = bc_utf8_decode(s + i, len - i, &cp);
        const char *const special =
            n == 1 && cp != 0 ? memchr(specials, (int)cp, sizeof specials - 1) : NULL;
        if (n == 0)
            bc_buf_puts(buf, "\xef\xbf\xbd");
        else if (special != NULL)
            bc_buf_printf(buf, "\\%c", names[special - specials]);
        else if (bc_utf8_is_control(cp))
            bc_buf_printf(buf, "\\u%04x", (unsigned)cp);
        else
            bc_buf_append(buf, s + i, n);
        i += n > 0 ? n : 1;
    }
    bc_buf_putc(buf, '"');
}

void bc_jw_key(struct bc_jw *w, const char *key)
{
    separate(w);
    put_escaped(w->buf, key, strlen(key));
    bc_buf_puts(w->buf, ": ");
    w->after_key = true;
}

void bc_jw_string(struct bc_jw *w, const char *s)
{
    if (s == NULL)
        bc_jw_null(w);
    else
        bc_jw_string_n(w, s, strlen(s));
}

void bc_jw_string_n(struct bc_jw *w, const char *s, size_t len)
{
    separate(w);
    put_escaped(w->buf, s, len);
}

void bc_jw_u64(struct bc_jw *w, uint64_t v)
{
    separate(w);
    bc_buf_printf(w->buf, "%" PRIu64, v);
}

void bc_jw_i64(struct bc_jw *w, int64_t v)
{
    separate(w);
    bc_buf_printf(w->buf, "%" PRId64, v);
}

/* Appends printf's text of a number with '.' for whatever the locale's decimal point is. */
static void put_number(struct bc_buf *buf, const char *text)
{
    static const char plain[] = "0123456789+-e";
    while (*text != '\0') {
        const size_t n = strspn(text, plain);
        bc_buf_append(buf, text, n);
        text += n;
        const size_t point = strcspn(text, plain);
        if (point > 0) bc_buf_putc(buf, '.');
        text += point;
    }
}

/* Writes non-finite numbers and integral ones of up to 15 digits; false for all others. */
static bool put_simple(struct bc_jw *w, double v)
{
    if (isnan(v)) {
        bc_buf_puts(w->buf, "\"NaN\"");
    } else if (isinf(v)) {
        bc_buf_puts(w->buf, v > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    } else if (fabs(v) < 1e15 && floor(v) == v) {
        bc_buf_printf(w->buf, "%.0f", v);
    } else {
        return false;
    }
    return true;
}

void bc_jw_f32(struct bc_jw *w, float v)
{
    separate(w);
    if (put_simple(w, (double)v)) return;
    char text[64];
    /* Nine digits tell any two floats apart. */
    for (int digits = 1; digits <= 9; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, (double)v);
        if (strtof(text, NULL) == v) break;
    }
    put_number(w->buf, text);
}

void bc_jw_f64(struct bc_jw *w, double v)
{
    separate(w);
    if (put_simple(w, v)) return;
    char text[64];
    for (int digits = 1; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v) break;
    }
    put_number(w->buf, text);
}

void bc_jw_bool(struct bc_jw *w, bool v)
{
    separate(w);
    bc_buf_puts(w->buf, v ? "true" : "false");
}

void bc_jw_null(struct bc_jw *w)
{
    separate(w);
    bc_buf_puts(w->buf, "null");
}

void bc_jw_key_string(struct bc_jw *w, const char *key, const char *value)
{
    bc_jw_key(w, key);
    bc_jw_string(w, value);
}

void bc_jw_key_u64(struct bc_jw *w, const char *key, uint64_t value)
{
    bc_jw_key(w, key);
    bc_jw_u64(w, value);
}

void bc_jw_key_count(struct bc_jw *w, const char *key, uint64_t value)
{
    bc_jw_key_known_u64(w, key, value != 0, value);
}

void bc_jw_key_known_u64(struct bc_jw *w, const char *key, bool known, uint64_t value)
{
    bc_jw_key(w, key);
    if (known)
        bc_jw_u64(w, value);
    else
        bc_jw_null(w);
}

void bc_jw_key_known_f32(struct bc_jw *w, const char *key, bool known, float value)
{
    bc_jw_key(w, key);
    if (known)
        bc_jw_f32(w, value);
    else
        bc_jw_null(w);
}

void bc_jw_key_known_f64(struct bc_jw *w, const char *key, bool known, double value)
{
    bc_jw_key(w, key);
    if (known)
        bc_jw_f64(w, value);
    else
        bc_jw_null(w);
}

void bc_jw_key_f64(struct bc_jw *w, const char *key, double value)
{
    bc_jw_key(w, key);
    bc_jw_f64(w, value);
}

void bc_jw_key_bool(struct bc_jw *w, const char *key, bool value)
{
    bc_jw_key(w, key);
    bc_jw_bool(w, value);
}

void bc_jw_key_strings(struct bc_jw *w, const char *key, const char *const *values, size_t n)
{
    bc_jw_key(w, key);
    bc_jw_begin_array(w);
    for (size_t i = 0; i < n; i++)
        bc_jw_string(w, values[i]);
    bc_jw_end_array(w);
}

void bc_jw_key_u64s(struct bc_jw *w, const char *key, const uint64_t *values, size_t n)
{
    bc_jw_key(w, key);
    bc_jw_begin_array(w);
    for (size_t i = 0; i < n; i++)
        bc_jw_u64(w, values[i]);
    bc_jw_end_array(w);
}
