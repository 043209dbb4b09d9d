/* SPDX-License-Identifier: MIT
 * A main() for fuzz entry points without a fuzzing engine.
 *
 * Without arguments it takes the seeds of its target (fuzz_NAME reads fixtures/seeds/NAME) and
 * feeds every prefix, every bit flip, extreme numbers at every place and random mixtures of them.
 * With arguments it feeds those files as they are. Files called *.hex are hexadecimal text with
 * comments behind '#'; others are taken byte by byte. Every input must be dealt with in a second.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/rng.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_SEED = 1 << 20, EXHAUSTIVE = 4096, N_MIXTURES = 20000, SKIPPED = 77 };

static unsigned long n_inputs;

static void die(const char *what, const char *name)
{
    fprintf(stderr, "%s: %s\n", name, what);
    exit(2);
}

/* An exact copy on the heap, so that a sanitizer sees reads behind the end. */
static void feed(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL) die("out of memory", "driver");
    if (size > 0) memcpy(copy, data, size);
    const clock_t before = clock();
    LLVMFuzzerTestOneInput(copy, size);
    if (clock() - before > CLOCKS_PER_SEC) {
        fprintf(stderr, "an input of %zu bytes took more than a second\n", size);
        exit(1);
    }
    free(copy);
    n_inputs++;
}

/* Hexadecimal text to bytes, in place; the number of bytes. */
static size_t decode_hex(uint8_t *text, size_t size, const char *name)
{
    size_t n = 0;
    int high = -1;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '#') {
            while (i < size && text[i] != '\n')
                i++;
            continue;
        }
        if (isspace(text[i])) continue;
        if (!isxdigit(text[i])) die("not hexadecimal", name);
        const int digit = isdigit(text[i]) ? text[i] - '0' : tolower(text[i]) - 'a' + 10;
        if (high < 0) {
            high = digit;
        } else {
            text[n++] = (uint8_t)(high << 4 | digit);
            high = -1;
        }
    }
    if (high >= 0) die("an odd number of digits", name);
    return n;
}

static size_t load(const char *path, uint8_t *buf)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) die("cannot be opened", path);
    size_t size = fread(buf, 1, MAX_SEED, file);
    fclose(file);
    const size_t len = strlen(path);
    if (len > 4 && strcmp(path + len - 4, ".hex") == 0) size = decode_hex(buf, size, path);
    return size;
}

/* Numbers at which arithmetic on lengths tends to go wrong; `i` selects one. */
static uint64_t extreme(size_t i)
{
    static const uint64_t numbers[] = {0,
                                       1,
                                       0x7f,
                                       0x80,
                                       0xffff,
                                       0x7fffffff,
                                       0x80000000,
                                       0xffffffff,
                                       UINT64_C(0x3fffffffffffffff),
                                       UINT64_C(0x7fffffffffffffff),
                                       UINT64_C(0x8000000000000000),
                                       UINT64_C(0xffffffffffffffe0),
                                       UINT64_C(0xffffffffffffffff)};
    return numbers[i % (sizeof numbers / sizeof numbers[0])];
}
enum { N_EXTREMES = 13 };

/* Stores up to eight bytes, little-endian, as far as they fit. */
static void store(uint8_t *data, size_t size, size_t at, uint64_t number, size_t width)
{
    for (size_t i = 0; i < width && at + i < size; i++)
        data[at + i] = (uint8_t)(number >> 8 * i);
}

static void feed_neighbours(uint8_t *data, size_t size)
{
    feed(data, size);
    for (size_t n = 0; n < size && n < EXHAUSTIVE; n++)
        feed(data, n);
    for (size_t at = 0; at < size && at < EXHAUSTIVE; at++) {
        uint8_t before[8];
        const size_t width = size - at < 8 ? size - at : 8;
        memcpy(before, data + at, width);
        for (unsigned bit = 0; bit < 8; bit++) {
            data[at] = (uint8_t)(before[0] ^ 1u << bit);
            feed(data, size);
        }
        for (size_t i = 0; i < N_EXTREMES; i++) {
            memcpy(data + at, before, width);
            store(data, size, at, extreme(i), i % 2 == 0 ? 8 : 4);
            feed(data, size);
        }
        memcpy(data + at, before, width);
    }
}

/* One change at a random place; the new size. */
static size_t mutate(uint64_t *state, uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    const size_t at = rng_below(state, size);
    const size_t n = 1 + rng_below(state, size - at < 64 ? size - at : 64);
    switch (rng_below(state, 5)) {
    case 0:
        data[at] ^= (uint8_t)(1u << rng_below(state, 8));
        return size;
    case 1:
        store(data, size, at, extreme(rng_below(state, N_EXTREMES)), 1u << rng_below(state, 4));
        return size;
    case 2: /* take a piece out */
        memmove(data + at, data + at + n, size - at - n);
        return size - n;
    case 3: /* double a piece */
        if (size + n > MAX_SEED) return size;
        memmove(data + at + n, data + at, size - at);
        return size + n;
    default: /* copy a piece over another place */
        memmove(data + rng_below(state, size - n + 1), data + at, n);
        return size;
    }
}

static void feed_mixtures(const uint8_t *data, size_t size, uint8_t *scratch)
{
    uint64_t state = size;
    if (size > EXHAUSTIVE) return;
    for (int i = 0; i < N_MIXTURES; i++) {
        size_t n = size;
        if (n > 0) memcpy(scratch, data, n);
        for (uint64_t k = 1 + rng_below(&state, 6); k > 0; k--)
            n = mutate(&state, scratch, n);
        feed(scratch, n);
    }
}

static int feed_seeds(const char *target, uint8_t *buf, uint8_t *scratch)
{
    char folder[1024], path[2048];
    int n_seeds = 0;
    snprintf(folder, sizeof folder, "%s/fixtures/seeds/%s", BITCONV_SOURCE_DIR, target);
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        printf("skipped: no seeds in %s\n", folder);
        return SKIPPED;
    }
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        const size_t size = load(path, buf);
        feed_neighbours(buf, size);
        feed_mixtures(buf, size, scratch);
        n_seeds++;
    }
    closedir(dir);
    printf("%lu inputs from %d seeds\n", n_inputs, n_seeds);
    return n_seeds > 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    uint8_t *buf = malloc(MAX_SEED), *scratch = malloc(MAX_SEED);
    if (buf == NULL || scratch == NULL) die("out of memory", "driver");
    int result = 0;
    if (argc > 1) {
        for (int i = 1; i < argc; i++)
            feed(buf, load(argv[i], buf));
    } else {
        const char *name = strstr(argv[0], "fuzz_");
        for (const char *next = name; next != NULL; next = strstr(next + 1, "fuzz_"))
            name = next;
        if (name == NULL) die("must be called fuzz_NAME", argv[0]);
        result = feed_seeds(name + 5, buf, scratch);
    }
    free(buf);
    free(scratch);
    return result;
}
