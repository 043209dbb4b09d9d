/* SPDX-License-Identifier: MIT
 * Special ids, what is put around a text, and chat templates. Internal to model/tokenizer*.c. */
#ifndef BC_MODEL_TOKENIZER_SPECIAL_H
#define BC_MODEL_TOKENIZER_SPECIAL_H

#include "model/tokenizer.h"
#include "model/tokenizer_load.h"

enum bc_special {
    BC_SPECIAL_BOS,
    BC_SPECIAL_EOS,
    BC_SPECIAL_UNK,
    BC_SPECIAL_SEP,
    BC_SPECIAL_PAD,
    BC_SPECIAL_CLS,
    BC_SPECIAL_MASK,
    BC_SPECIAL_EOT, /* the chat's end of turn, where the end of a text is another token */
    BC_N_SPECIALS
};

/* Names of a special token: GGUF key (its spelling is the format's), token key, id key. */
struct bc_special_name {
    const char *gguf;      /* NULL: never written */
    const char *token_key; /* tokenizer_config.json, special_tokens_map.json: text */
    const char *id_key;    /* generation_config.json, config.json: number */
};
const struct bc_special_name *bc_special_name(enum bc_special kind);

/* The special ids of a checkpoint, in the order in which they were found. */
struct bc_specials {
    int64_t id[BC_N_SPECIALS];       /* -1: none */
    const char *from[BC_N_SPECIALS]; /* file that said it */
    bool end_is_known;               /* eos was set by `end` of bc_specials_find */
    enum bc_special order[BC_N_SPECIALS];
    size_t n;
    uint32_t *eog; /* every id of an eos_token_id list, in order; owned */
    size_t n_eog;
};

/* What is put around a text: 1, 0, or -1 when nothing says. */
struct bc_affixes {
    int bos, eos, sep;
};

/* Reads the ids from tokenizer_config.json, special_tokens_map.json, generation_config.json,
 * config.json and tokenizer.model, the first that names one wins; contradictions are warnings.
 * `end` (or NULL) is the token that ends every text, known from elsewhere (`end_from`): it is eos,
 * and the eos_token of the files is the end of turn where it is another. bc_specials_release in any
 * case. */
enum bitconv_status bc_specials_find(const struct bc_checkpoint *ckpt,
                                     const struct bc_tokenizer_files *files,
                                     const struct bc_vocab *vocab, const struct bc_token *end,
                                     const char *end_from, const struct bitconv_sink *sink,
                                     struct bc_specials *out, struct bitconv_error *err);
void bc_specials_release(struct bc_specials *s);
/* Sets an id; it keeps its place when it had one. */
void bc_specials_set(struct bc_specials *s, enum bc_special kind, uint32_t id, const char *from);

/* The last token of the post_processor's template in tokenizer.json, NULL when it ends with the
 * text. */
const struct bc_token *bc_affixes_end(const struct bc_tokenizer_files *files,
                                      const struct bc_vocab *vocab);

/* Reads post_processor of tokenizer.json and add_*_token of tokenizer_config.json (the rules of
 * gguf-py's SpecialVocab); a vocab.txt has cls and sep around every text. May set sep where only the
 * template has one. */
void bc_affixes_find(const struct bc_tokenizer_files *files, const struct bc_vocab *vocab,
                     const struct bitconv_sink *sink, struct bc_specials *specials,
                     struct bc_affixes *out);

/* Writes the ids (those below n_rows; others are dropped with a warning) and add_*_token. */
enum bitconv_status bc_specials_write(const struct bc_specials *specials,
                                      const struct bc_affixes *affixes, uint32_t n_rows,
                                      const struct bitconv_sink *sink,
                                      struct bitconv_gguf_writer *w, struct bitconv_error *err);

/* Writes tokenizer.chat_template, .chat_template.NAME and .chat_templates: `given` (or NULL), else
 * chat_template.jinja and additional_chat_templates/NAME.jinja, else chat_template.json, else
 * tokenizer_config.json. A chat_template of another form is left out with a warning. */
enum bitconv_status bc_chat_template_write(const struct bc_tokenizer_files *files,
                                           const char *given, const struct bitconv_sink *sink,
                                           struct bitconv_gguf_writer *w,
                                           struct bitconv_error *err);

#endif
