/* SPDX-License-Identifier: MIT
 * What differs between families and targets in the token lists of a GGUF, as one table. The rows are
 * what Microsoft's two converters and mainline llama.cpp's do. */
#include "model/tokenizer_rules.h"

#include <string.h>

/* LLAMA and PHI3 as in Microsoft's hf script, QWEN and GEMMA as in its embedding script. */
static const struct bc_tokenizer_rules bitnet_rules[BC_N_TOKENIZER_POLICIES] = {
    [BC_TOKENIZER_LLAMA] = {.spm_first = true,
                            .gpt2_padding = BC_TOKEN_USER_DEFINED,
                            .counted_padding = true,
                            .padding_score = -1000.0F},
    [BC_TOKENIZER_PHI3] = {.spm_first = true,
                           .gpt2_padding = BC_TOKEN_USER_DEFINED,
                           .counted_padding = true,
                           .padding_score = -1000.0F},
    [BC_TOKENIZER_QWEN] = {.looks = BC_LOOKS_BRACKETS,
                           .gpt2_padding = BC_TOKEN_UNUSED,
                           .padding_score = -1000.0F,
                           .pooled_eos = true},
    [BC_TOKENIZER_GEMMA] = {.looks = BC_LOOKS_BRACKETS,
                            .gpt2_padding = BC_TOKEN_UNUSED,
                            .padding_score = -1000.0F,
                            .no_space_prefix = true},
    [BC_TOKENIZER_BERT] = {.gpt2_padding = BC_TOKEN_UNUSED, .padding_score = -1000.0F},
};

static const struct bc_tokenizer_rules llama_cpp_rules[BC_N_TOKENIZER_POLICIES] = {
    [BC_TOKENIZER_LLAMA] = {.spm_first = true,
                            .looks = BC_LOOKS_MARKERS,
                            .gpt2_padding = BC_TOKEN_UNUSED,
                            .padding_score = -10000.0F,
                            .redeclare_pieces = true,
                            .unescape_spaces = true},
    [BC_TOKENIZER_PHI3] = {.spm_first = true,
                           .looks = BC_LOOKS_NONE,
                           .gpt2_padding = BC_TOKEN_UNUSED,
                           .padding_score = -10000.0F,
                           .redeclare_pieces = true,
                           .unescape_spaces = true},
    [BC_TOKENIZER_QWEN] = {.spm_first = true,
                           .looks = BC_LOOKS_MARKERS,
                           .gpt2_padding = BC_TOKEN_UNUSED,
                           .padding_score = -10000.0F,
                           .redeclare_pieces = true,
                           .unescape_spaces = true,
                           .pooled_eos = true},
    [BC_TOKENIZER_GEMMA] = {.spm_first = true,
                            .looks = BC_LOOKS_MARKERS,
                            .gpt2_padding = BC_TOKEN_UNUSED,
                            .padding_score = -10000.0F,
                            .redeclare_pieces = true,
                            .unescape_spaces = true,
                            .no_space_prefix = true},
    [BC_TOKENIZER_BERT] = {.looks = BC_LOOKS_MARKERS,
                           .gpt2_padding = BC_TOKEN_UNUSED,
                           .padding_score = -10000.0F},
};

const struct bc_tokenizer_rules *bc_tokenizer_rules(enum bc_tokenizer_policy policy,
                                                    enum bc_target target)
{
    return target == BC_TARGET_LLAMA_CPP ? &llama_cpp_rules[policy] : &bitnet_rules[policy];
}

static bool enclosed(const char *text, const char *open, const char *close)
{
    const size_t len = strlen(text);
    const size_t n_open = strlen(open);
    const size_t n_close = strlen(close);
    return len >= n_open + n_close && memcmp(text, open, n_open) == 0 &&
           memcmp(text + len - n_close, close, n_close) == 0;
}

static bool looks_special(enum bc_special_looks looks, const char *text)
{
    /* U+FF5C is the full-width bar of DeepSeek's tokens; the names without bars are those of
     * Gemma, Chinese-LLaMA and Falcon that are not declared special. */
    static const char *const names[] = {"<pad>", "<mask>", "<2mass>", "[@BOS@]"};
    if (looks == BC_LOOKS_BRACKETS) return enclosed(text, "<", ">") || enclosed(text, "[", "]");
    if (looks == BC_LOOKS_NONE) return false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(text, names[i]) == 0) return true;
    return enclosed(text, "<|", "|>") || enclosed(text, "<\xef\xbd\x9c", "\xef\xbd\x9c>") ||
           enclosed(text, "<unused", ">");
}

enum bc_token_type bc_added_token_type(const struct bc_tokenizer_rules *rules, const char *text,
                                       bool special)
{
    return special || looks_special(rules->looks, text) ? BC_TOKEN_CONTROL : BC_TOKEN_USER_DEFINED;
}
