/* SPDX-License-Identifier: MIT
 * A second opinion on the name of a pre-tokenizer, for convert. */
#include "tokenizer/check_splitting.h"

#include <string.h>

#include "base/pool.h"
#include "tokenizer/build.h"
#include "tokenizer/steps_read.h"

/* Puts the splitting that `pre` names in the place of the tokenizer's own; false when the name is
 * not known. */
static bool take_splitting(struct bitconv_tokenizer *tok, const char *pre)
{
    struct bc_steps normalizer = {0};
    struct bc_steps pre_steps = {0};
    bool ignore_merges = false;
    if (bc_steps_of_name(pre, &normalizer, &pre_steps, &ignore_merges, NULL) != BITCONV_OK) {
        bc_steps_release(&normalizer);
        bc_steps_release(&pre_steps);
        return false;
    }
    bc_steps_release(&tok->normalizer);
    bc_steps_release(&tok->pre_steps);
    tok->normalizer = normalizer;
    tok->pre_steps = pre_steps;
    tok->ignore_merges = ignore_merges;
    return true;
}

static void compare(struct bitconv_tokenizer *tok, const char *pre, const struct bitconv_sink *sink)
{
    struct bitconv_check_hash own[BITCONV_N_CHECK_TEXTS];
    struct bitconv_check_hash named;
    for (int i = 0; i < BITCONV_N_CHECK_TEXTS; i++) {
        if (bitconv_tokenizer_check_hash(tok, (enum bitconv_check_text)i, &own[i], NULL) !=
            BITCONV_OK)
            return;
        if (own[i].name != NULL && !bc_pre_same(own[i].name, pre))
            bc_say(sink, BITCONV_WARNING,
                   "tokenizer.ggml.pre: %s is written, but converters that know this tokenizer by "
                   "the hash of its ids (%.12s...) call it %s; --pre %s follows them",
                   pre, own[i].sha256, own[i].name, own[i].name);
    }
    if (!take_splitting(tok, pre) ||
        bitconv_tokenizer_check_hash(tok, BITCONV_CHECK_UPSTREAM, &named, NULL) != BITCONV_OK)
        return;
    if (strcmp(named.sha256, own[BITCONV_CHECK_UPSTREAM].sha256) != 0)
        bc_say(sink, BITCONV_WARNING,
               "tokenizer.ggml.pre: %s splits the converters' test text otherwise than "
               "tokenizer.json does; readers of the file will see other tokens",
               pre);
}

/* The check while it runs. */
struct check {
    const struct bc_tokenizer_files *files;
    struct bitconv_tokenizer *tok; /* NULL: this one cannot be run here */
    struct bc_task *task;
};

static void build(void *ctx)
{
    struct check *const check = ctx;
    (void)bc_tokenizer_of_json(check->files, NULL, &check->tok, NULL);
}

static bool is_byte_level_bpe(const struct bc_tokenizer_files *files)
{
    const struct bc_json *const model = bc_json_get(files->tokenizer, "model");
    const char *const type = bc_json_string(bc_json_get(model, "type"));
    bool byte_fallback = false;
    (void)bc_json_bool(bc_json_get(model, "byte_fallback"), &byte_fallback);
    return type != NULL && strcmp(type, "BPE") == 0 && !byte_fallback;
}

static void *begin(const struct bc_tokenizer_files *files)
{
    struct check *const check = is_byte_level_bpe(files) ? bc_alloc_array(1, sizeof *check) : NULL;
    if (check == NULL) return NULL;
    check->files = files;
    if (bc_task_start(build, check, &check->task, NULL) == BITCONV_OK) return check;
    bc_free(check);
    return NULL;
}

static void end(void *state, const char *pre, const struct bitconv_sink *sink)
{
    struct check *const check = state;
    bc_task_join(check->task);
    if (check->tok != NULL && pre != NULL) compare(check->tok, pre, sink);
    bitconv_tokenizer_close(check->tok);
    bc_free(check);
}

const struct bc_tokenizer_check bc_check_splitting = {.begin = begin, .end = end};
