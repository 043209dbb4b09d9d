/* SPDX-License-Identifier: MIT
 * The byte-level splittings that GGUF readers know by name: left the name that llama.cpp's
 * llama-vocab.cpp has an expression for, right what the tokenizer.json of those models says. */
#include "model/tokenizer_pre.h"

/* Broken where the parts of an expression end: that is easier to compare. */
/* clang-format off */
const struct bc_pre_row bc_pre_rows[] = {
    /* Llama 3. Readers take whole words from the vocabulary first (ignore_merges) for this name. */
    {"llama-bpe", 1,
     "none | "
     "split-isolated/(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"
     "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+/ "
     "bytes"},
    {"llama-bpe", 1,
     "none | "
     "split-removed-inverted/(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"
     "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+/ "
     "bytes"},
    /* The same splitting without ignore_merges: Smaug, DBRX, GPT-4. */
    {"smaug-bpe", 0,
     "none | "
     "split-isolated/(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"
     "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+/ "
     "bytes"},
    {"dbrx", 0,
     "none | "
     "split-removed-inverted/(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"
     "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+/ "
     "bytes"},
    /* Qwen 2, 2.5, 3: every digit alone. NFC is nothing that readers know. */
    {"qwen2", -1,
     "NFC | "
     "split-isolated/(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
     "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+/ "
     "bytes"},
    {"qwen2", -1,
     "none | "
     "split-isolated/(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
     "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+/ "
     "bytes"},
    /* Qwen 3.5: marks belong to letters. */
    {"qwen35", -1,
     "NFC | "
     "split-isolated/(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}"
     "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+/ "
     "bytes"},
    /* GPT-2 and its many heirs (Phi 2, RoBERTa, Jina); with NFC GPT-NeoX's (OLMo, MPT). */
    {"gpt-2", -1,
     "none | "
     "gpt2-bytes"},
    {"olmo", -1,
     "NFC | "
     "gpt2-bytes"},
    /* Single digits, then GPT-2's: StarCoder, Refact, SmolLM; with NFC Command R. */
    {"starcoder", -1,
     "none | "
     "digits-each "
     "gpt2-bytes"},
    {"command-r", -1,
     "NFC | "
     "digits-each "
     "gpt2-bytes"},
    /* Falcon (1). */
    {"falcon", -1,
     "none | "
     "punctuation-contiguous "
     "gpt2-bytes "
     "digits "
     "split-isolated/[0-9][0-9][0-9]/"},
    /* DeepSeek: LLM and V2, Coder, V3 and later. */
    {"deepseek-llm", -1,
     "none | "
     "split-isolated/[\\r\\n]/ "
     "split-isolated/"
     "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-"
     "ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-"
     "ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-"
     "𑣟𞤀-𞥃]+/ "
     "split-isolated/\\s?[!-/:-~！-／：-～‘-‟　-。]+/ "
     "split-isolated/\\s+$/ "
     "split-isolated/[一-龥ࠀ-一가-퟿]+/ "
     "digits-each "
     "bytes"},
    {"deepseek-coder", -1,
     "none | "
     "split-isolated/[\\r\\n]/ "
     "split-isolated/\\s?\\p{L}+/ "
     "split-isolated/\\s?\\p{P}+/ "
     "split-isolated/[一-龥ࠀ-一가-퟿]+/ "
     "digits-each "
     "bytes"},
    {"deepseek-v3", -1,
     "none | "
     "split-isolated/\\p{N}{1,3}/ "
     "split-isolated/[一-龥぀-ゟ゠-ヿ]+/ "
     "split-isolated/[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
     "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|"
     "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+/ "
     "bytes"},
    /* Mistral NeMo and later (Tekken). */
    {"tekken", -1,
     "none | "
     "split-isolated/"
     "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|"
     "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|"
     "\\p{N}"
     "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+/ "
     "bytes"},
    /* GPT-4o, gpt-oss, Llama 4. */
    {"gpt-4o", -1,
     "none | "
     "split-isolated/"
     "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:"
     "'s|'t|'re|'ve|'m|'ll|'d)?|"
     "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:"
     "'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}"
     "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+/ "
     "bytes"},
    {"gpt-4o", -1,
     "none | "
     "split-removed-inverted/"
     "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:"
     "'s|'t|'re|'ve|'m|'ll|'d)?|"
     "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:"
     "'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}"
     "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+/ "
     "bytes"},
    /* BLOOM. */
    {"bloom", -1,
     "none | "
     "split-isolated/ ?[^(\\s|[.,!?…。，、।۔،])]+/ "
     "bytes"},
    /* Seed-Coder, Ling (BailingMoE). */
    {"seed-coder", -1,
     "none | "
     "split-isolated/(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}"
     "| ?[^\\s\\p{L}\\p{N}\\r\\n]+|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+/ "
     "bytes"},
    {"bailingmoe", -1,
     "none | "
     "split-isolated/'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}"
     "| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+/ "
     "bytes"},
};
/* clang-format on */

const size_t bc_pre_n_rows = sizeof bc_pre_rows / sizeof bc_pre_rows[0];
