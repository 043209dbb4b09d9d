/* SPDX-License-Identifier: MIT
 * Steps that several descriptions of a tokenizer have in common. */
#include <string.h>

#include "tokenizer/steps_read.h"

/* openai/gpt-2, src/encoder.py. */
#define GPT2_REGEX                                                                                 \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

static enum bitconv_status add(struct bc_steps *steps, bc_step_fn *run, struct bc_step **out,
                               struct bitconv_error *err)
{
    *out = bc_steps_add(steps, run);
    return *out == NULL ? bc_fail_nomem(err, "tokenizer") : BITCONV_OK;
}

enum bitconv_status bc_steps_add_regex(struct bc_steps *steps, const char *regex, const char *where,
                                       enum bc_behavior behavior, bool invert,
                                       struct bitconv_error *err)
{
    struct bc_step *step;
    BC_TRY(add(steps, bc_step_split, &step, err));
    step->behavior = behavior;
    step->invert = invert;
    return bc_pattern_regex(regex, where, &step->pattern, err);
}

enum bitconv_status bc_steps_add_kind(struct bc_steps *steps, bool (*is)(uint32_t),
                                      enum bc_behavior behavior, struct bitconv_error *err)
{
    struct bc_step *step;
    BC_TRY(add(steps, bc_step_split, &step, err));
    step->behavior = behavior;
    return bc_pattern_kind(is, &step->pattern, err);
}

enum bitconv_status bc_steps_add_bytes(struct bc_steps *steps, bool prefix, bool cuts,
                                       struct bitconv_error *err)
{
    struct bc_step *step;
    BC_TRY(add(steps, bc_step_bytes, &step, err));
    step->prefix = prefix ? BC_PREFIX_ALWAYS : BC_PREFIX_NEVER;
    return cuts ? bc_pattern_regex(GPT2_REGEX, "ByteLevel", &step->pattern, err) : BITCONV_OK;
}

enum bitconv_status bc_steps_add_text(struct bc_steps *steps, bc_step_fn *run, const char *text,
                                      struct bc_step **out, struct bitconv_error *err)
{
    BC_TRY(add(steps, run, out, err));
    bc_buf_puts(&(*out)->text, text);
    return (*out)->text.failed ? bc_fail_nomem(err, "tokenizer") : BITCONV_OK;
}

enum bitconv_status bc_steps_add_replace(struct bc_steps *steps, const char *from, const char *to,
                                         struct bitconv_error *err)
{
    struct bc_step *step;
    BC_TRY(bc_steps_add_text(steps, bc_step_replace, to, &step, err));
    return bc_pattern_string(from, strlen(from), &step->pattern, err);
}

bool bc_is_bert_punctuation(uint32_t cp)
{
    if (cp < 0x80)
        return (cp >= '!' && cp <= '/') || (cp >= ':' && cp <= '@') || (cp >= '[' && cp <= '`') ||
               (cp >= '{' && cp <= '~');
    return bc_unicode_is_punctuation(cp);
}

enum bitconv_status bc_steps_add_bert(struct bc_steps *normalizer, struct bc_steps *pre, bool lower,
                                      bool strip_accents, struct bitconv_error *err)
{
    struct bc_step *step;
    BC_TRY(add(normalizer, bc_step_bert, &step, err));
    step->clean = step->cjk_blanks = true;
    step->lower = lower;
    step->accents = strip_accents;
    BC_TRY(bc_steps_add_kind(pre, bc_unicode_is_space, BC_REMOVED, err));
    return bc_steps_add_kind(pre, bc_is_bert_punctuation, BC_ISOLATED, err);
}

enum bitconv_status bc_steps_add_words_decoder(struct bc_steps *decoder, const char *mark,
                                               bool clean, struct bitconv_error *err)
{
    struct bc_step *step;
    BC_TRY(bc_steps_add_text(decoder, bc_step_join_words, mark, &step, err));
    step->clean = clean;
    return BITCONV_OK;
}
