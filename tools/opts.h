/* SPDX-License-Identifier: MIT
 * Command-line options as a table: one row gives the parser, the help text and the place of the
 * value. */
#ifndef BC_TOOLS_OPTS_H
#define BC_TOOLS_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
    OPTION_FLAG,   /* bool */
    OPTION_STRING, /* const char * */
    OPTION_OUTPUT, /* const char *: where to write; "-" is refused */
    OPTION_PRINT,  /* const char *: where to write text; "-" becomes OPTS_STDOUT */
    OPTION_UINT,   /* unsigned, up to a million; 0 is the default */
    OPTION_WIDTH,  /* the same, where 0 would make no sense */
    OPTION_COUNT,  /* struct option_count: like OPTION_UINT, where 0 is not the same as nothing */
    OPTION_NUMBER, /* uint64_t, any */
    OPTION_SIZE,   /* uint64_t above 0: 2G, 512M, 64K, plain number; powers of 1024 */
    OPTION_LIST    /* struct option_list: may be given several times */
};

#define OPTS_STDOUT "/dev/stdout"

struct option_count {
    unsigned n;
    bool given;
};

struct option_list {
    const char *const *items;
    size_t n;
};

struct option_row {
    const char *name; /* without "--" */
    char letter;      /* 0: none */
    enum option_kind kind;
    size_t offset;     /* into the settings struct: offsetof(struct settings, member) */
    const char *value; /* what the help calls the value ("FILE"), NULL for flags */
    const char *help;  /* one line; the words after a '\n' go to the next line of the column */
};

/* What every command understands. */
struct globals {
    bool help, version, json, quiet, verbose, no_progress;
    unsigned threads; /* 0: online processors */
    const char *cpu;  /* NULL: best */
};
extern const struct option_row global_options[];

/* The result of parsing. args (and list items) point into argv or `storage`. */
struct parsed {
    const char **args;
    size_t n_args;
    void *settings; /* the command's struct, zeroed and filled in */
    const char ***lists;
    size_t n_lists;
};

/* Parses argv[1..]: options before, between and after arguments, "--opt value", "--opt=value",
 * "-o value", "-ovalue", "-o=value"; "--" ends options. Numbers are checked. The name of an option is
 * not taken for the value of the one before it, unless behind '='. On an error fills message and
 * returns false. Free with opts_free in either case. */
bool opts_parse(int argc, char **argv, const struct option_row *rows, size_t settings_size,
                struct globals *globals, struct parsed *out, char *message, size_t message_size);
void opts_free(struct parsed *parsed);

/* Whether an argument is "--", or an option that every command understands. */
bool opts_is_global(const char *arg);

/* Prints rows as a help column of at most 80 characters, without those that are in `instead` (NULL:
 * none) under the same name. */
void opts_print_help(const struct option_row *rows, const struct option_row *instead);

#endif
