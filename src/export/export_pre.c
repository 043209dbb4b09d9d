/* SPDX-License-Identifier: MIT
 * From the readers' name of a splitting to the normalizer and pre-tokenizer that do it: the table of
 * signatures (tokenizer_pre_table.c) read backwards. */
#include <string.h>

#include "export/export_vocab.h"
#include "model/tokenizer_pre.h"

/* Takes `word` off the front of *text. */
static bool take(const char **text, const char *word)
{
    const size_t n = strlen(word);
    if (strncmp(*text, word, n) != 0) return false;
    *text += n;
    return true;
}

/* "merged-with-previous" -> MergedWithPrevious. */
static void put_behavior(struct bc_jw *w, const char *words, size_t len)
{
    struct bc_buf name = {0};
    bool upper = true;
    for (size_t i = 0; i < len; i++) {
        const bool starts = upper && words[i] >= 'a' && words[i] <= 'z';
        if (words[i] != '-') bc_buf_putc(&name, starts ? (char)(words[i] - 'a' + 'A') : words[i]);
        upper = words[i] == '-';
    }
    bc_jw_key_string(w, "behavior", bc_buf_str(&name));
    bc_buf_release(&name);
}

/* "isolated/REGEX/", "removed-inverted/REGEX/": the slash that ends it has a blank behind it. */
static bool put_split(struct bc_jw *w, const char **text)
{
    static const char inverted[] = "-inverted";
    const char *open = strchr(*text, '/');
    if (open == NULL) return false;
    const char *close = open + 1;
    while (*close != '\0' && !(*close == '/' && (close[1] == ' ' || close[1] == '\0')))
        close++;
    if (*close == '\0') return false;
    size_t len = (size_t)(open - *text);
    const size_t n = strlen(inverted);
    const bool invert = len > n && memcmp(open - n, inverted, n) == 0;
    if (invert) len -= n;
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "type", "Split");
    bc_jw_key(w, "pattern");
    bc_jw_begin_object(w);
    bc_jw_key(w, "Regex");
    bc_jw_string_n(w, open + 1, (size_t)(close - open - 1));
    bc_jw_end_object(w);
    put_behavior(w, *text, len);
    bc_jw_key_bool(w, "invert", invert);
    bc_jw_end_object(w);
    *text = close + 1;
    return true;
}

/* Steps that are one word. */
static bool put_word(struct bc_jw *w, const char **text)
{
    bc_jw_begin_object(w);
    if (take(text, "gpt2-bytes")) {
        bc_jw_key_string(w, "type", "ByteLevel");
        bc_jw_key_bool(w, "add_prefix_space", false);
        bc_jw_key_bool(w, "trim_offsets", true);
        bc_jw_key_bool(w, "use_regex", true);
    } else if (take(text, "bytes")) {
        bc_jw_key_string(w, "type", "ByteLevel");
        bc_jw_key_bool(w, "add_prefix_space", false);
        bc_jw_key_bool(w, "trim_offsets", true);
        bc_jw_key_bool(w, "use_regex", false);
    } else if (take(text, "digits-each")) {
        bc_jw_key_string(w, "type", "Digits");
        bc_jw_key_bool(w, "individual_digits", true);
    } else if (take(text, "digits")) {
        bc_jw_key_string(w, "type", "Digits");
        bc_jw_key_bool(w, "individual_digits", false);
    } else if (take(text, "punctuation-")) {
        const size_t len = strcspn(*text, " ");
        bc_jw_key_string(w, "type", "Punctuation");
        put_behavior(w, *text, len);
        *text += len;
    } else {
        return false;
    }
    bc_jw_end_object(w);
    return true;
}

static bool put_steps(struct bc_jw *w, const char *text)
{
    bc_jw_key(w, "pre_tokenizer");
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "type", "Sequence");
    bc_jw_key(w, "pretokenizers");
    bc_jw_begin_array(w);
    while (*text != '\0') {
        const bool ok = take(&text, "split-") ? put_split(w, &text) : put_word(w, &text);
        if (!ok || (*text != '\0' && !take(&text, " "))) return false;
    }
    bc_jw_end_array(w);
    bc_jw_end_object(w);
    return true;
}

static bool put_normalizer(struct bc_jw *w, const char **text)
{
    bc_jw_key(w, "normalizer");
    if (take(text, "none")) {
        bc_jw_null(w);
    } else if (take(text, "NFC")) {
        bc_jw_begin_object(w);
        bc_jw_key_string(w, "type", "NFC");
        bc_jw_end_object(w);
    } else {
        return false;
    }
    return take(text, " | ");
}

bool bc_export_pre(struct bc_jw *w, const char *pre, bool *ignore_merges)
{
    for (size_t i = 0; pre != NULL && i < bc_pre_n_rows; i++) {
        const char *text = bc_pre_rows[i].signature;
        if (strcmp(bc_pre_rows[i].name, pre) != 0) continue;
        *ignore_merges = bc_pre_rows[i].ignore_merges == 1;
        return put_normalizer(w, &text) && put_steps(w, text);
    }
    return false;
}
