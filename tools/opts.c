/* SPDX-License-Identifier: MIT
 * The option parser and the help column. */
#include "opts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"

const struct option_row global_options[] = {
    {"help", 'h', OPTION_FLAG, offsetof(struct globals, help), NULL, "show this help"},
    {"version", 0, OPTION_FLAG, offsetof(struct globals, version), NULL, "show the version"},
    {"json", 0, OPTION_FLAG, offsetof(struct globals, json), NULL,
     "one JSON document on standard output"},
    {"quiet", 'q', OPTION_FLAG, offsetof(struct globals, quiet), NULL,
     "no warnings, no progress, no summary"},
    {"verbose", 'v', OPTION_FLAG, offsetof(struct globals, verbose), NULL, "notes and long tables"},
    {"no-progress", 0, OPTION_FLAG, offsetof(struct globals, no_progress), NULL,
     "no progress bar (there is none when piped)"},
    {"threads", 't', OPTION_UINT, offsetof(struct globals, threads), "N",
     "worker threads (default, 0: online processors)"},
    {"cpu", 0, OPTION_STRING, offsetof(struct globals, cpu), "SET",
     "instruction set: scalar, avx2, avx512, neon"},
    {NULL, 0, OPTION_FLAG, 0, NULL, NULL},
};

struct parser {
    int argc, at;
    char **argv;
    const struct option_row *rows;
    struct globals *globals;
    struct parsed *out;
    char *message;
    size_t message_size;
};

static const struct option_row *find_row(const struct option_row *rows, const char *name,
                                         size_t len, char letter)
{
    for (; rows && rows->name; rows++) {
        if (letter != 0 && rows->letter == letter) return rows;
        if (letter == 0 && strlen(rows->name) == len && memcmp(rows->name, name, len) == 0)
            return rows;
    }
    return NULL;
}

static bool parse_size(const char *text, uint64_t *out)
{
    if (text[0] < '0' || text[0] > '9') return false;
    char *end = NULL;
    errno = 0;
    const unsigned long long v = strtoull(text, &end, 10);
    if (errno != 0) return false;
    static const char units[] = "KMGT";
    unsigned shift = 0;
    if (*end != '\0') {
        const char *unit = strchr(units, *end >= 'a' ? *end - 32 : *end);
        if (unit == NULL) return false;
        shift = 10 * (unsigned)(unit - units + 1);
        end++;
        if (strcmp(end, "iB") == 0 || strcmp(end, "B") == 0) end += strlen(end);
    }
    if (*end != '\0' || (shift != 0 && v > UINT64_MAX >> shift)) return false;
    *out = (uint64_t)v << shift;
    return true;
}

static bool parse_number(const char *text, uint64_t *out)
{
    return strspn(text, "0123456789") == strlen(text) && parse_size(text, out);
}

static bool parse_uint(const char *text, unsigned *out)
{
    uint64_t v;
    if (!parse_number(text, &v) || v > 1000000) return false;
    *out = (unsigned)v;
    return true;
}

/* Lists keep their items in an array of their own, which grows by one. */
static bool append_list(struct parser *p, struct option_list *list, const char *value)
{
    struct parsed *out = p->out;
    size_t slot = 0;
    while (slot < out->n_lists && (const char *const *)out->lists[slot] != list->items)
        slot++;
    if (list->n == 0) slot = out->n_lists;
    if (slot == out->n_lists) {
        const char ***lists = realloc(out->lists, (out->n_lists + 1) * sizeof *lists);
        if (lists == NULL) return false;
        out->lists = lists;
        lists[out->n_lists++] = NULL;
    }
    const char **items = realloc(out->lists[slot], (list->n + 1) * sizeof *items);
    if (items == NULL) return false;
    out->lists[slot] = items;
    items[list->n++] = value;
    list->items = items;
    return true;
}

static bool complain(struct parser *p, const char *format, const char *name, const char *value)
{
    snprintf(p->message, p->message_size, format, name, value);
    return false;
}

/* Files appear under a name when they are complete, which standard output cannot give. */
static bool store_output(struct parser *p, const struct option_row *row, const char **place,
                         const char *value)
{
    *place = value;
    if (value[0] == '\0') return complain(p, "--%s: the name is empty%s", row->name, "");
    if (strcmp(value, "-") != 0) return true;
    *place = OPTS_STDOUT;
    if (row->kind == OPTION_PRINT) return true;
    return complain(p,
                    "--%s: '%s' would be standard output, the name of a file was expected "
                    "(./- for one that is called so)",
                    row->name, value);
}

static bool store(struct parser *p, const struct option_row *row, void *base, const char *value)
{
    void *place = (char *)base + row->offset;
    switch (row->kind) {
    case OPTION_FLAG:
        *(bool *)place = true;
        return true;
    case OPTION_STRING:
        *(const char **)place = value;
        return true;
    case OPTION_OUTPUT:
    case OPTION_PRINT:
        return store_output(p, row, place, value);
    case OPTION_UINT:
        if (parse_uint(value, place)) return true;
        return complain(p, "--%s: '%s' is not a whole number from 0 to 1000000", row->name, value);
    case OPTION_WIDTH:
        if (parse_uint(value, place) && *(unsigned *)place > 0) return true;
        return complain(p, "--%s: '%s' is not a whole number from 1 to 1000000", row->name, value);
    case OPTION_COUNT:
        ((struct option_count *)place)->given = true;
        if (parse_uint(value, &((struct option_count *)place)->n)) return true;
        return complain(p, "--%s: '%s' is not a whole number from 0 to 1000000", row->name, value);
    case OPTION_NUMBER:
        if (parse_number(value, place)) return true;
        return complain(p, "--%s: '%s' is not a whole number from 0 to 2^64 - 1", row->name, value);
    case OPTION_SIZE:
        if (parse_size(value, place) && *(uint64_t *)place > 0) return true;
        return complain(p, "--%s: '%s' is not a size such as 2G or 512M", row->name, value);
    case OPTION_LIST:
        if (append_list(p, place, value)) return true;
        return complain(p, "--%s: out of memory at '%s'", row->name, value);
    }
    return false;
}

static void offer_rows(struct bc_nearest *nearest, const struct option_row *rows)
{
    for (; rows && rows->name; rows++)
        bc_nearest_offer(nearest, rows->name);
}

/* `len` 0: a letter, which is near to nothing. */
static bool unknown_option(struct parser *p, const char *name, size_t len)
{
    char word[64] = "", hint[BC_NEAREST_HINT_SIZE];
    struct bc_nearest nearest = {.word = word};
    if (len < sizeof word) memcpy(word, len > 0 ? name : "", len);
    if (word[0] != '\0') {
        offer_rows(&nearest, p->rows);
        offer_rows(&nearest, global_options);
    }
    return complain(p, "unknown option '%s'%s", p->argv[p->at],
                    bc_nearest_hint(&nearest, "--", hint, sizeof hint));
}

/* Whether an argument is "--" and the name of an option, in place of the value of another. */
static bool is_option_name(const struct parser *p, const char *arg)
{
    if (strncmp(arg, "--", 2) != 0 || arg[2] == '\0') return false;
    return find_row(p->rows, arg + 2, strlen(arg + 2), 0) != NULL ||
           find_row(global_options, arg + 2, strlen(arg + 2), 0) != NULL;
}

static const struct option_row *find_letter(const struct parser *p, char letter)
{
    const struct option_row *const row = find_row(p->rows, NULL, 0, letter);
    return row != NULL ? row : find_row(global_options, NULL, 0, letter);
}

/* One option, `name` of `len` bytes or a letter; `inline_value` behind '=' or NULL. */
static bool take_option(struct parser *p, const char *name, size_t len, char letter,
                        const char *inline_value)
{
    void *base = p->out->settings;
    const struct option_row *row = find_row(p->rows, name, len, letter);
    if (row == NULL) {
        row = find_row(global_options, name, len, letter);
        base = p->globals;
    }
    if (row == NULL) return unknown_option(p, name, len);
    if (row->kind == OPTION_FLAG) {
        if (inline_value) return complain(p, "--%s takes no value ('%s')", row->name, inline_value);
        return store(p, row, base, NULL);
    }
    const char *value = inline_value;
    if (value == NULL) {
        if (p->at + 1 >= p->argc || is_option_name(p, p->argv[p->at + 1]))
            return complain(p, "--%s needs a value (%s)", row->name, row->value);
        value = p->argv[++p->at];
    }
    return store(p, row, base, value);
}

/* The letters behind a '-': flags, "-f" or several, "-qf", then at most one with a value, which is
 * the rest ("-n8", "-n=8") or the next argument ("-n 8"). */
static bool take_letters(struct parser *p, const char *letters)
{
    for (; letters[0] != '\0'; letters++) {
        const struct option_row *const row = find_letter(p, letters[0]);
        const char *rest = letters[1] != '\0' ? letters + 1 : NULL;
        if (row != NULL && row->kind == OPTION_FLAG && letters[1] != '=') rest = NULL;
        if (letters[1] == '=') rest = letters + 2;
        if (!take_option(p, NULL, 0, letters[0], rest)) return false;
        if (row->kind != OPTION_FLAG) return true;
    }
    return true;
}

bool opts_parse(int argc, char **argv, const struct option_row *rows, size_t settings_size,
                struct globals *globals, struct parsed *out, char *message, size_t message_size)
{
    memset(out, 0, sizeof *out);
    struct parser p = {argc, 1, argv, rows, globals, out, message, message_size};
    out->args = calloc((size_t)argc + 1, sizeof *out->args);
    out->settings = calloc(1, settings_size + 1);
    if (out->args == NULL || out->settings == NULL)
        return complain(&p, "out of memory%s%s", "", "");
    bool options_end = false;
    for (; p.at < argc; p.at++) {
        const char *arg = argv[p.at];
        if (options_end || arg[0] != '-' || arg[1] == '\0') {
            out->args[out->n_args++] = arg;
        } else if (strcmp(arg, "--") == 0) {
            options_end = true;
        } else if (arg[1] == '-') {
            const char *equal = strchr(arg, '=');
            const size_t len = equal ? (size_t)(equal - arg - 2) : strlen(arg + 2);
            if (!take_option(&p, arg + 2, len, 0, equal ? equal + 1 : NULL)) return false;
        } else {
            if (!take_letters(&p, arg + 1)) return false;
        }
    }
    return true;
}

bool opts_is_global(const char *arg)
{
    if (strncmp(arg, "--", 2) == 0)
        return arg[2] == '\0' ||
               find_row(global_options, arg + 2, strcspn(arg + 2, "="), 0) != NULL;
    return arg[0] == '-' && arg[1] != '\0' && find_row(global_options, "", 0, arg[1]) != NULL;
}

void opts_free(struct parsed *parsed)
{
    for (size_t i = 0; i < parsed->n_lists; i++)
        free((void *)parsed->lists[i]);
    free((void *)parsed->lists);
    free((void *)parsed->args);
    free(parsed->settings);
    memset(parsed, 0, sizeof *parsed);
}

void opts_print_help(const struct option_row *rows, const struct option_row *instead)
{
    for (; rows->name; rows++) {
        if (find_row(instead, rows->name, strlen(rows->name), 0) != NULL) continue;
        char left[64];
        int used = rows->letter ? snprintf(left, sizeof left, "-%c, ", rows->letter)
                                : snprintf(left, sizeof left, "    ");
        snprintf(left + used, sizeof left - (size_t)used, "--%s%s%s", rows->name,
                 rows->value ? " " : "", rows->value ? rows->value : "");
        printf("  %-30s", left);
        for (const char *line = rows->help; line != NULL;) {
            const char *end = strchr(line, '\n');
            printf("%s%.*s\n", line == rows->help ? " " : "                                 ",
                   end ? (int)(end - line) : (int)strlen(line), line);
            line = end ? end + 1 : NULL;
        }
    }
}
