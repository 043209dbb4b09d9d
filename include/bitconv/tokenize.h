/* SPDX-License-Identifier: MIT
 * Tokenizers at run time: text to token ids and back, from a checkpoint's tokenizer files or from
 * the metadata of a GGUF alone.
 *
 * Byte-level BPE, SentencePiece BPE and unigram, and WordPiece. Ids are those of the Hugging Face
 * tokenizers library for tokenizer.json, of SentencePiece for tokenizer.model; a GGUF gives what its
 * keys can say (which pre-tokenizer by name, which tokens are special), and no more. Padding and
 * truncation of a tokenizer.json are not applied.
 *
 * Unicode: classes in regular expressions are those of version 16 at least, whatever PCRE2 is
 * installed; normal forms and BERT's classes are those of the installed libutf8proc, which for
 * characters of the last versions may be younger or older than the tables of those libraries. */
#ifndef BITCONV_TOKENIZE_H
#define BITCONV_TOKENIZE_H

#include "bitconv/gguf.h"
#include "bitconv/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bitconv_tokenizer; /* immutable once open: any number of threads may use it */

/* Opens the tokenizer of a GGUF (one file of a split set will do) or of a folder with tokenizer.json,
 * tokenizer.model, vocab.json and merges.txt, or vocab.txt; the first of these that is there is
 * taken. Warnings go to the sink (may be NULL). CORRUPT and UNSUPPORTED as for convert. */
BITCONV_API enum bitconv_status bitconv_tokenizer_open(const char *path,
                                                       const struct bitconv_sink *sink,
                                                       struct bitconv_tokenizer **out,
                                                       struct bitconv_error *err);
/* The same from an opened GGUF, which may be closed afterwards. */
BITCONV_API enum bitconv_status bitconv_tokenizer_open_gguf(const struct bitconv_gguf *file,
                                                            const struct bitconv_sink *sink,
                                                            struct bitconv_tokenizer **out,
                                                            struct bitconv_error *err);
BITCONV_API void bitconv_tokenizer_close(struct bitconv_tokenizer *tok); /* NULL is fine */

struct bitconv_tokenizer_info {
    const char *algorithm; /* "BPE", "SentencePiece BPE", "unigram", "WordPiece" */
    const char *source;    /* what it was made from: "tokenizer.json", "GGUF metadata" ... */
    const char *model;     /* tokenizer.ggml.model: "gpt2", "llama", "t5", "bert" */
    const char *pre;       /* tokenizer.ggml.pre, NULL where the name is not known or not needed */
    uint32_t n_tokens;     /* ids are below this; some may have no token */
    int64_t bos, eos, pad; /* ids, -1: none */
};
/* Fills *out; its texts live as long as the tokenizer. */
BITCONV_API void bitconv_tokenizer_info(const struct bitconv_tokenizer *tok,
                                        struct bitconv_tokenizer_info *out);

/* A growing list of ids; zero-initialise, release at the end. */
struct bitconv_ids {
    uint32_t *ids;
    size_t n, cap;
};
BITCONV_API void bitconv_ids_release(struct bitconv_ids *ids);

/* Appends the ids of a text. Special tokens that stand in the text are recognised; with add_special
 * those that belong around every text are added (bos, eos, [CLS]...). Bytes that are not UTF-8 are
 * read as U+FFFD, one for each maximal ill-formed part (the Unicode Standard, chapter 3), as Python
 * and Rust programs in front of the original tokenizers do. Time is O(n log n) in the length of a
 * word. LIMIT when a regular expression of the tokenizer cannot be applied within its bound of
 * steps; ids may have grown then. */
BITCONV_API enum bitconv_status bitconv_tokenizer_encode(const struct bitconv_tokenizer *tok,
                                                         const char *text, size_t len,
                                                         bool add_special, struct bitconv_ids *ids,
                                                         struct bitconv_error *err);

/* A growing text; NUL-terminated when data is not NULL. Zero-initialise, release at the end. */
struct bitconv_text {
    char *data;
    size_t size;
};
BITCONV_API void bitconv_text_release(struct bitconv_text *text);

/* The text of ids, replacing *text: the bytes as they are, which need not be UTF-8 where the ids do
 * not end with a character. skip_special leaves special tokens out. ARG for an id that has no token.
 */
BITCONV_API enum bitconv_status
bitconv_tokenizer_decode(const struct bitconv_tokenizer *tok, const uint32_t *ids, size_t n,
                         bool skip_special, struct bitconv_text *text, struct bitconv_error *err);

/* The token of an id as the vocabulary spells it ("Ġworld", "▁world", "##ing"); NULL when the id has
 * none. Borrowed, NUL-terminated; *special (may be NULL): a control token. */
BITCONV_API const char *bitconv_tokenizer_piece(const struct bitconv_tokenizer *tok, uint32_t id,
                                                bool *special);

/* The hash by which Python converters recognise a pre-tokenizer: SHA-256 of the printed list of the
 * ids of a test text, special tokens added. Two texts are in use. */
enum bitconv_check_text {
    BITCONV_CHECK_UPSTREAM,  /* llama.cpp's convert_hf_to_gguf.py and BitNet's copies of it */
    BITCONV_CHECK_EMBEDDING, /* BitNet's convert-bitnet-embedding-to-gguf.py */
    BITCONV_N_CHECK_TEXTS
};
struct bitconv_check_hash {
    char sha256[65];
    const char *name; /* tokenizer.ggml.pre that the converters' lists give it; NULL: not listed */
    bool agrees; /* false when the structure of the tokenizer says another splitting than name */
};
BITCONV_API enum bitconv_status bitconv_tokenizer_check_hash(const struct bitconv_tokenizer *tok,
                                                             enum bitconv_check_text which,
                                                             struct bitconv_check_hash *out,
                                                             struct bitconv_error *err);

#ifdef __cplusplus
}
#endif
#endif
