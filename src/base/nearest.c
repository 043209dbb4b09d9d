/* SPDX-License-Identifier: MIT
 * Edit distances of short words. */
#include "base/nearest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MAX_LEN = 63, MAX_DISTANCE = 3 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* A letter and its capital are no different: types are shown as I2_S and given as i2_s. */
static bool same(char a, char b)
{
    if (a >= 'A' && a <= 'Z') a = (char)(a - 'A' + 'a');
    if (b >= 'A' && b <= 'Z') b = (char)(b - 'A' + 'a');
    return a == b;
}

/* Optimal string alignment distance of words of at most MAX_LEN bytes: three rows of the table of
 * distances between their beginnings. */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t rows[3][MAX_LEN + 1] = {{0}};
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= m; j++)
        last[j] = j;
    for (size_t i = 1; i <= n; i++) {
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            const size_t replaced = last[j - 1] + !same(a[i - 1], b[j - 1]);
            row[j] = least(replaced, least(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                row[j] = least(row[j], before[j - 2] + 1);
        }
        size_t *const spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[m];
}

void bc_nearest_offer(struct bc_nearest *nearest, const char *candidate)
{
    const size_t n = strlen(nearest->word), m = strlen(candidate);
    if (n > MAX_LEN || m > MAX_LEN) return;
    const size_t found = distance(nearest->word, n, candidate, m);
    if (3 * found > (n > m ? n : m) + 1 || found > MAX_DISTANCE) return;
    if (nearest->best != NULL && found >= nearest->distance) return;
    nearest->best = candidate;
    nearest->distance = found;
}

const char *bc_nearest_hint(const struct bc_nearest *nearest, const char *prefix, char *buf,
                            size_t size)
{
    buf[0] = '\0';
    if (nearest->best != NULL)
        (void)snprintf(buf, size, ": did you mean %s%s?", prefix, nearest->best);
    return buf;
}
