/* SPDX-License-Identifier: MIT
 * Building a tokenizer: what the readers of its files have in common. */
#ifndef BC_TOKENIZER_BUILD_H
#define BC_TOKENIZER_BUILD_H

#include "model/tokenizer_load.h"
#include "model/tokenizer_special.h"
#include "tokenizer/runtime.h"

/* A zeroed tokenizer without tokens and ids. */
enum bitconv_status bc_build_new(const char *source, const char *model_name,
                                 struct bitconv_tokenizer **out, struct bitconv_error *err);

/* Copies a sealed vocabulary: pieces by id, byte tokens, and the map of the
 * pieces that the model may produce, for which `produces` decides. LIMIT when ids run far beyond the
 * number of tokens. */
enum bitconv_status bc_build_pieces(struct bitconv_tokenizer *tok, const struct bc_vocab *vocab,
                                    bool (*produces)(const struct bc_token *token),
                                    struct bitconv_error *err);

/* Makes a token one that is looked for in the text. Empty texts are passed over. LIMIT when it is
 * longer than BC_TRIE_MAX_LEN. */
enum bitconv_status bc_build_added(struct bitconv_tokenizer *tok, const struct bc_added *added,
                                   bool normalized, struct bitconv_error *err);

/* Adds a merge of a list; those of unknown parts are passed over. */
enum bitconv_status bc_build_merge(struct bitconv_tokenizer *tok, const struct bc_merge_text *merge,
                                   uint32_t rank, struct bitconv_error *err);

/* The same for a GGUF array of "left right" strings: its payload, and how many they are. */
enum bitconv_status bc_build_merge_payload(struct bitconv_tokenizer *tok, const uint8_t *payload,
                                           uint64_t size, uint64_t count,
                                           struct bitconv_error *err);

/* Fills the trie of a unigram model with the pieces of by_text, and the scores around them: of the
 * unknown token 10 below the worst piece, of user-defined ones the best. LIMIT as for added tokens. */
enum bitconv_status bc_build_trie(struct bitconv_tokenizer *tok, struct bitconv_error *err);
/* Fills the trie of SentencePiece's user-defined pieces. */
enum bitconv_status bc_build_user_defined(struct bitconv_tokenizer *tok, struct bitconv_error *err);

/* The decoder of SentencePiece models: marks to blanks, bytes, and the dummy prefix off. */
enum bitconv_status bc_build_spm_decoder(struct bitconv_tokenizer *tok, bool dummy_prefix,
                                         struct bitconv_error *err);

/* Appends an id. */
enum bitconv_status bc_id_list_add(struct bc_id_list *list, uint32_t id, struct bitconv_error *err);
/* An id around every text; ids that have no token are passed over. */
enum bitconv_status bc_build_affix(struct bitconv_tokenizer *tok, struct bc_id_list *list,
                                   int64_t id, struct bitconv_error *err);

/* The readers. Each gives a complete tokenizer or fails with nothing to free. */
enum bitconv_status bc_tokenizer_of_json(const struct bc_tokenizer_files *files,
                                         const struct bitconv_sink *sink,
                                         struct bitconv_tokenizer **out, struct bitconv_error *err);
/* *out NULL and BITCONV_OK when the folder has no such file. */
enum bitconv_status bc_tokenizer_of_spm(const struct bc_tokenizer_files *files,
                                        const struct bitconv_sink *sink,
                                        struct bitconv_tokenizer **out, struct bitconv_error *err);
enum bitconv_status bc_tokenizer_of_pair(const struct bc_tokenizer_files *files,
                                         const struct bitconv_sink *sink,
                                         struct bitconv_tokenizer **out, struct bitconv_error *err);
enum bitconv_status bc_tokenizer_of_lines(const struct bc_tokenizer_files *files,
                                          const struct bitconv_sink *sink,
                                          struct bitconv_tokenizer **out,
                                          struct bitconv_error *err);

/* bos, eos and pad as the files beside a tokenizer name them, and where no template says what is put
 * around a text, add_bos_token and add_eos_token. `fallback` is what holds when nothing is said. */
enum bitconv_status bc_build_specials(struct bitconv_tokenizer *tok,
                                      const struct bc_tokenizer_files *files,
                                      const struct bc_vocab *vocab, bool has_template,
                                      struct bc_affixes fallback, const struct bitconv_sink *sink,
                                      struct bitconv_error *err);

#endif
