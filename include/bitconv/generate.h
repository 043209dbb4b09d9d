/* SPDX-License-Identifier: MIT
 * Text from a model: choosing tokens from logits, and the loop around it. The same model, prompt and
 * options give the same text on any number of threads and with any instruction set. */
#ifndef BITCONV_GENERATE_H
#define BITCONV_GENERATE_H

#include "bitconv/engine.h"
#include "bitconv/tokenize.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a token is chosen. Zero-initialised: the likeliest one, of equals that with the lowest id.
 * Steps are those of Hugging Face's generate(), in its order. */
struct bitconv_sampling {
    double
        temperature; /* 0: the likeliest token, whatever else is set; else logits are divided by it */
    uint32_t top_k; /* of the likeliest so many; 0: of all */
    double top_p;   /* of the likeliest that together reach that probability; 0 or 1: of all */
    uint64_t seed;  /* of the random numbers (splitmix64) */
};

struct bitconv_sampler;
/* ARG for a temperature or top_p that is not finite or out of its range. */
BITCONV_API enum bitconv_status bitconv_sampler_new(const struct bitconv_sampling *sampling,
                                                    uint32_t n_vocab, struct bitconv_sampler **out,
                                                    struct bitconv_error *err);
/* The next token by n_vocab logits. NaN counts as the smallest. */
BITCONV_API uint32_t bitconv_sampler_next(struct bitconv_sampler *sampler, const float *logits);
BITCONV_API void bitconv_sampler_free(struct bitconv_sampler *sampler); /* NULL is fine */

/* One candidate for the next token. */
struct bitconv_candidate {
    uint32_t id;
    float logit;
    double probability; /* softmax over all logits */
};
/* The n likeliest tokens in falling order (of equals the lower id first) into `out`; returns how many:
 * n, or n_vocab where that is less. NOMEM is 0. */
BITCONV_API size_t bitconv_top_candidates(const float *logits, uint32_t n_vocab, size_t n,
                                          struct bitconv_candidate *out);

/* Appends the ids of a prompt: those of the text with what belongs in front of every text (bos), but
 * not what belongs behind it (eos, [SEP]), as the text is to go on. */
BITCONV_API enum bitconv_status bitconv_prompt_encode(const struct bitconv_tokenizer *tok,
                                                      const char *text, size_t len,
                                                      struct bitconv_ids *ids,
                                                      struct bitconv_error *err);

/* Appends the ids that end a text: eos of the tokenizer; eos, eot, eom and lists of them as the
 * metadata of the GGUF or generation_config.json and config.json of the folder state them. */
BITCONV_API enum bitconv_status bitconv_stop_ids(const char *path,
                                                 const struct bitconv_tokenizer *tok,
                                                 struct bitconv_ids *ids,
                                                 struct bitconv_error *err);

/* Called with text as it comes, always whole characters where the model writes UTF-8: bytes of a
 * character that is not complete yet are held back, until the end at most. A status other than
 * BITCONV_OK stops the generation. */
typedef enum bitconv_status bitconv_text_fn(void *user, const char *text, size_t len,
                                            struct bitconv_error *err);

enum bitconv_stop {
    BITCONV_STOP_LENGTH, /* n_predict tokens */
    BITCONV_STOP_TOKEN,  /* one of stop_ids, which is not part of the result */
    BITCONV_STOP_CONTEXT /* no room for a further token */
};
/* "length", "stop", "context". */
BITCONV_API const char *bitconv_stop_name(enum bitconv_stop stop);

struct bitconv_generate_options {
    struct bitconv_sampling sampling;
    size_t n_predict; /* tokens at most */
    const uint32_t *stop_ids;
    size_t n_stop_ids;
    bool show_special; /* special tokens are part of the text */
    bitconv_text_fn *on_text;
    void *user;
};

struct bitconv_generation {
    struct bitconv_ids tokens; /* what was chosen */
    struct bitconv_text text;  /* what follows the text of the prompt; bytes as they are */
    enum bitconv_stop stop;
    double prompt_seconds, generate_seconds;
};

/* Resets the session, runs the prompt and goes on from it. Ids without a token (padding of the
 * vocabulary) are never chosen. Polls sink->cancel (CANCELED). ARG for an
 * empty prompt or a model that attends in both directions, LIMIT for a prompt that does not fit.
 * Release *out in any case: it holds what came before a failure. */
BITCONV_API enum bitconv_status
bitconv_generate(struct bitconv_session *session, const struct bitconv_tokenizer *tok,
                 const uint32_t *prompt, size_t n_prompt,
                 const struct bitconv_generate_options *options, const struct bitconv_sink *sink,
                 struct bitconv_generation *out, struct bitconv_error *err);
BITCONV_API void bitconv_generation_release(struct bitconv_generation *generation);

#ifdef __cplusplus
}
#endif
#endif
