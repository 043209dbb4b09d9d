/* SPDX-License-Identifier: MIT
 * Steps from the name of a pre-tokenizer, which is all that a GGUF says: through the signatures
 * of model/tokenizer_pre_table.c, of which bc_pre_signature documents the form. */
#include <stdlib.h>
#include <string.h>

#include "model/tokenizer_pre.h"
#include "tokenizer/steps_read.h"

/* Other names of llama.cpp's llama-vocab.cpp for a splitting of the table. */
static const char *const aliases[][2] = {
    {"llama3", "llama-bpe"},    {"llama-v3", "llama-bpe"},
    {"falcon3", "llama-bpe"},   {"falcon-h1", "llama-bpe"},
    {"pixtral", "llama-bpe"},   {"lfm2", "llama-bpe"},
    {"gpt2", "gpt-2"},          {"phi-2", "gpt-2"},
    {"roberta-bpe", "gpt-2"},   {"jina-es", "gpt-2"},
    {"jina-de", "gpt-2"},       {"jina-v2-es", "gpt-2"},
    {"jina-v2-de", "gpt-2"},    {"mpt", "olmo"},
    {"refact", "starcoder"},    {"smollm", "starcoder"},
    {"codeshell", "starcoder"}, {"deepseek-r1-qwen", "qwen2"},
    {"megrez", "qwen2"},        {"llama4", "gpt-4o"},
};

struct word {
    const char *text;
    bool (*is)(uint32_t);
    enum bc_behavior behavior;
};

/* Words that cut by a kind of character. */
static const struct word kinds[] = {
    {"digits-each", bc_unicode_is_number, BC_ISOLATED},
    {"digits", bc_unicode_is_number, BC_CONTIGUOUS},
    {"punctuation-isolated", bc_is_bert_punctuation, BC_ISOLATED},
    {"punctuation-contiguous", bc_is_bert_punctuation, BC_CONTIGUOUS},
};

static bool skip_word(const char **pos, const char *word)
{
    const size_t n = strlen(word);
    if (strncmp(*pos, word, n) != 0 || ((*pos)[n] != ' ' && (*pos)[n] != '\0')) return false;
    *pos += n;
    *pos += strspn(*pos, " ");
    return true;
}

/* A "/" ends an expression when nothing follows or a known word does: expressions hold it too. */
static const char *end_of_regex(const char *pos)
{
    static const char *const words[] = {" split-", " bytes", " gpt2-bytes", " digits",
                                        " punctuation"};
    for (; *pos != '\0'; pos++) {
        if (*pos != '/') continue;
        if (pos[1] == '\0') return pos;
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
            if (strncmp(pos + 1, words[i], strlen(words[i])) == 0) return pos;
    }
    return NULL;
}

/* "split-isolated/REGEX/" and "split-removed-inverted/REGEX/". */
static enum bitconv_status read_split(const char **pos, const char *name, struct bc_steps *out,
                                      bool *done, struct bitconv_error *err)
{
    static const char isolated[] = "split-isolated/";
    static const char removed[] = "split-removed-inverted/";
    const bool is_removed = strncmp(*pos, removed, strlen(removed)) == 0;
    const char *const head = is_removed ? removed : isolated;
    *done = strncmp(*pos, head, strlen(head)) == 0;
    const char *const start = *pos + strlen(head);
    const char *const end = *done ? end_of_regex(start) : NULL;
    *done = end != NULL;
    if (!*done) return BITCONV_OK;
    struct bc_buf regex = {0};
    bc_buf_append(&regex, start, (size_t)(end - start));
    const enum bitconv_status status =
        regex.failed ? bc_fail_nomem(err, "pre-tokenizer")
                     : bc_steps_add_regex(out, bc_buf_str(&regex), name,
                                          is_removed ? BC_REMOVED : BC_ISOLATED, is_removed, err);
    bc_buf_release(&regex);
    *pos = end + 1;
    *pos += strspn(*pos, " ");
    return status;
}

static enum bitconv_status read_word(const char **pos, const char *name, struct bc_steps *out,
                                     struct bitconv_error *err)
{
    bool done = false;
    BC_TRY(read_split(pos, name, out, &done, err));
    if (done) return BITCONV_OK;
    if (skip_word(pos, "bytes")) return bc_steps_add_bytes(out, false, false, err);
    if (skip_word(pos, "gpt2-bytes")) return bc_steps_add_bytes(out, false, true, err);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (skip_word(pos, kinds[i].text))
            return bc_steps_add_kind(out, kinds[i].is, kinds[i].behavior, err);
    return bc_fail(err, BITCONV_E_BUG, "pre-tokenizer %s: step not understood: %.60s", name, *pos);
}

enum bitconv_status bc_steps_of_signature(const char *signature, const char *name,
                                          struct bc_steps *normalizer, struct bc_steps *pre,
                                          struct bitconv_error *err)
{
    const char *pos = signature;
    if (skip_word(&pos, "NFC")) {
        struct bc_step *const step = bc_steps_add(normalizer, bc_step_unicode);
        if (step == NULL) return bc_fail_nomem(err, "pre-tokenizer");
        step->form = BC_NFC;
    } else if (!skip_word(&pos, "none")) {
        return bc_fail(err, BITCONV_E_BUG, "pre-tokenizer %s: normalizer not understood", name);
    }
    (void)skip_word(&pos, "|");
    while (*pos != '\0')
        BC_TRY(read_word(&pos, name, pre, err));
    return BITCONV_OK;
}

static const char *unaliased(const char *name)
{
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++)
        if (strcmp(name, aliases[i][0]) == 0) return aliases[i][1];
    return name;
}

bool bc_pre_same(const char *a, const char *b)
{
    return strcmp(unaliased(a), unaliased(b)) == 0;
}

enum bitconv_status bc_steps_of_name(const char *name, struct bc_steps *normalizer,
                                     struct bc_steps *pre, bool *ignore_merges,
                                     struct bitconv_error *err)
{
    const char *const row_name = unaliased(name);
    for (size_t i = 0; i < bc_pre_n_rows; i++) {
        const struct bc_pre_row *const row = &bc_pre_rows[i];
        if (strcmp(row->name, row_name) != 0) continue;
        /* Readers take whole pieces first for Tekken as well, whatever its file said. */
        *ignore_merges = row->ignore_merges == 1 || strcmp(row_name, "tekken") == 0;
        return bc_steps_of_signature(row->signature, name, normalizer, pre, err);
    }
    return bc_fail(err, BITCONV_E_UNSUPPORTED,
                   "tokenizer.ggml.pre: \"%.48s\" is not a pre-tokenizer whose splitting is known; "
                   "tokenize from the checkpoint's own files",
                   name);
}
