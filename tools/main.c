/* SPDX-License-Identifier: MIT
 * The command-line tool: command table, help, dispatch, and the ending all commands share. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"
#include "bitconv/bitconv.h"
#include "cmd.h"

static const struct command *const commands[] = {
    &command_convert, &command_inspect,  &command_verify,  &command_repack,   &command_diff,
    &command_export,  &command_tokenize, &command_embed,   &command_generate, &command_sparse,
    &command_bench,   &command_dummy,    &command_codegen, &command_formats,  &command_archs,
};
#define N_COMMANDS (sizeof commands / sizeof commands[0])

static void print_overview(void)
{
    printf("bitconv %s: ternary models, Hugging Face checkpoint to GGUF, proven lossless\n\n"
           "usage: bitconv COMMAND [options] ARGS\n\ncommands:\n",
           bitconv_version());
    for (size_t i = 0; i < N_COMMANDS; i++)
        printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
    printf("\n`bitconv COMMAND --help` shows the options of a command, with examples.\n"
           "exit status: 0 done; 1 a verification or check found a difference;\n"
           "             2 could not do it (usage, input, I/O)\n");
}

static void print_command_help(const struct command *command)
{
    printf("usage: bitconv %s\n\n%s\n", command->usage, command->summary);
    if (command->options->name != NULL) printf("\noptions:\n");
    opts_print_help(command->options, NULL);
    printf("\ngeneral:\n");
    opts_print_help(global_options, command->options);
    printf("\nexamples:\n%s", command->examples);
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}

/* Whether standard output is a pipe whose reader has seen enough (`| head`), which needs no words. */
static bool reader_is_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

/* A full disk behind a redirected stdout must not look like success. */
static int finish(int status)
{
    const bool failed = ferror(stdout) != 0, gone = reader_is_gone();
    errno = 0;
    if (fclose(stdout) != 0 || failed) {
        if (!gone)
            fprintf(stderr, "bitconv: standard output: %s\n",
                    errno ? strerror(errno) : "write error");
        return 2;
    }
    return status;
}

static int run_command(const struct command *command, int argc, char **argv)
{
    struct globals globals = {0};
    struct parsed parsed;
    struct ui ui;
    char message[512];
    const bool ok = opts_parse(argc, argv, command->options, command->settings_size, &globals,
                               &parsed, message, sizeof message);
    ui_init(&ui, &globals);
    int status = 0;
    if (!ok)
        status = ui_usage(&ui, command->name, "%s", message);
    else if (globals.help)
        print_command_help(command);
    else if (globals.version)
        printf("bitconv %s\n", bitconv_version());
    else
        status = command->run(&ui, &globals, parsed.settings, parsed.args, parsed.n_args);
    ui_release(&ui);
    opts_free(&parsed);
    return status;
}

/* Finds the command word: the first argument that is not an option ("bitconv --json inspect F"
 * works as long as the options before it take no value), and removes it from argv. */
static const char *take_command_word(int *argc, char **argv)
{
    for (int i = 1; i < *argc; i++) {
        if (argv[i][0] == '-') {
            if (strcmp(argv[i], "--") == 0) return NULL;
            if (strcmp(argv[i], "--threads") == 0 || strcmp(argv[i], "--cpu") == 0 ||
                strcmp(argv[i], "-t") == 0)
                i++;
            continue;
        }
        const char *word = argv[i];
        memmove(&argv[i], &argv[i + 1], (size_t)(*argc - i) * sizeof *argv);
        --*argc;
        return word;
    }
    return NULL;
}

/* "bitconv: unknown WHAT 'WORD' ..." with the word masked and the hint, if any; the exit status. */
static int complain(const char *what, const char *word, const struct bc_nearest *nearest)
{
    char hint[BC_NEAREST_HINT_SIZE] = "";
    struct bc_buf masked = {0};
    if (nearest != NULL) bc_nearest_hint(nearest, "", hint, sizeof hint);
    ui_cell(&masked, word, 60, true);
    while (masked.size > 0 && masked.data[masked.size - 1] == ' ')
        masked.data[--masked.size] = '\0';
    fprintf(stderr, "bitconv: unknown %s '%s'%s (try `bitconv --help`)\n", what,
            bc_buf_str(&masked), hint);
    bc_buf_release(&masked);
    return 2;
}

static int unknown_command(const char *word)
{
    struct bc_nearest nearest = {.word = word};
    for (size_t i = 0; i < N_COMMANDS; i++)
        bc_nearest_offer(&nearest, commands[i]->name);
    return complain("command", word, &nearest);
}

/* "bitconv help [COMMAND]". */
static int show_help(const char *topic)
{
    const struct command *command = topic ? find_command(topic) : NULL;
    if (topic != NULL && strcmp(topic, "help") == 0) topic = NULL;
    if (topic != NULL && command == NULL) return unknown_command(topic);
    if (command != NULL)
        print_command_help(command);
    else
        print_overview();
    return finish(0);
}

/* What can be said without a command. */
static int run_without_command(const char *option)
{
    if (option != NULL && (strcmp(option, "--help") == 0 || strcmp(option, "-h") == 0))
        return show_help(NULL);
    if (option != NULL && strcmp(option, "--version") == 0) {
        printf("bitconv %s\n", bitconv_version());
        return finish(0);
    }
    if (option != NULL && !opts_is_global(option)) return complain("option", option, NULL);
    fprintf(stderr, "bitconv: no command given (try `bitconv --help`)\n");
    return 2;
}

int main(int argc, char **argv)
{
    const char *word = take_command_word(&argc, argv);
    if (word == NULL) return run_without_command(argc > 1 ? argv[1] : NULL);
    if (strcmp(word, "help") == 0) return show_help(take_command_word(&argc, argv));
    const struct command *command = find_command(word);
    if (command == NULL) return unknown_command(word);
    return finish(run_command(command, argc, argv));
}
