/* SPDX-License-Identifier: MIT
 * What `embed` and `generate` share: options, an open model with its tokenizer, and texts to run. */
#ifndef BC_TOOLS_MODEL_RUN_H
#define BC_TOOLS_MODEL_RUN_H

#include "bitconv/engine.h"
#include "bitconv/tokenize.h"
#include "ui.h"

/* Place it in a command's settings and its rows in the command's table: MODEL_RUN_OPTIONS. */
struct model_settings {
    struct option_list texts; /* further ones are arguments behind the model */
    const char *file, *tokens, *mode;
    bool escaped;
    unsigned n_ctx;
};

/* Rows of an option table for `member`, a struct model_settings of `type`. A macro, as a table's rows
 * have no other way to be shared. */
#define MODEL_RUN_OPTIONS(type, member)                                                            \
    {"prompt",    'p',                                                                             \
     OPTION_LIST, offsetof(type, member.texts),                                                    \
     "TEXT",      "a text; may be given several times, and as\narguments behind the model"},       \
        {"file",        0,                                                                         \
         OPTION_STRING, offsetof(type, member.file),                                               \
         "FILE",        "one text a line (-: standard input); a line\nof JSON for each"},          \
        {"escaped",   0,                                                                           \
         OPTION_FLAG, offsetof(type, member.escaped),                                              \
         NULL,        "the lines of FILE are JSON strings: \"a\\nb\""},                            \
        {"tokens",      0,                                                                         \
         OPTION_STRING, offsetof(type, member.tokens),                                             \
         "IDS",         "token ids in place of a text: 1,2,3"},                                    \
        {"mode",                                                                                   \
         0,                                                                                        \
         OPTION_STRING,                                                                            \
         offsetof(type, member.mode),                                                              \
         "MODE",                                                                                   \
         "int8 (default): inputs of ternary weights are\nrounded as the deployed runtimes do; "    \
         "float"},                                                                                 \
    {                                                                                              \
        "ctx-size", 'c', OPTION_UINT, offsetof(type, member.n_ctx), "N",                           \
            "tokens of context (default: the model's, at\nmost 4096)"                              \
    }

struct model_run {
    const char *path;
    struct bitconv_engine *engine;
    struct bitconv_session *session;
    struct bitconv_tokenizer *tok;
    struct bitconv_engine_info info;
};

/* Checks that there is one model and something to run; 0, or 2 after saying what is wrong. args[0] is
 * the model. */
int model_check_usage(struct ui *ui, const char *command, const struct model_settings *s,
                      size_t n_args);
/* Opens everything; model_close in any case. */
enum bitconv_status model_open(struct ui *ui, const struct globals *globals, const char *path,
                               const struct model_settings *s, struct model_run *run,
                               struct bitconv_error *err);
void model_close(struct model_run *run);

/* One text to run, valid during the call. */
struct model_input {
    size_t index;
    const char *text; /* NULL: `ids` is what was given */
    size_t len;
    const char *ids;
};
typedef enum bitconv_status model_input_fn(void *user, const struct model_input *input,
                                           struct bitconv_error *err);
/* Calls fn for every text, from the first -p to the last argument, or for every line of the file; with
 * progress under that name. Stops at the first failure. */
enum bitconv_status model_each_input(struct ui *ui, const struct model_settings *s,
                                     const char *const *args, size_t n_args, const char *progress,
                                     model_input_fn *fn, void *user, struct bitconv_error *err);

/* The ids of an input, replacing *ids: of a text by `encode`. */
typedef enum bitconv_status model_encode_fn(const struct bitconv_tokenizer *tok, const char *text,
                                            size_t len, struct bitconv_ids *ids,
                                            struct bitconv_error *err);
enum bitconv_status model_encode(const struct model_run *run, const struct model_input *input,
                                 model_encode_fn *encode, struct bitconv_ids *ids,
                                 struct bitconv_error *err);

/* Whether a failure is that of one text, behind which others may succeed. */
bool model_failed_input(enum bitconv_status status);

/* Pieces of JSON on one line. */
void model_put_string(struct bc_buf *out, const char *s, size_t len);
void model_put_ids(struct bc_buf *out, const struct bitconv_ids *ids);
void model_put_floats(struct bc_buf *out, const float *values, size_t n);
/* {"index": 3, "text": "...", with the brace left open; ids in place of a text. */
void model_put_input(struct bc_buf *out, const struct model_input *input);
/* The line of an input that failed. */
void model_put_failure(struct bc_buf *out, const struct model_input *input,
                       const struct bitconv_error *err);

/* Parses a finite number; false when it is none. */
bool model_parse_number(const char *text, double *out);

#endif
