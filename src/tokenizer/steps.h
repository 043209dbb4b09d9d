/* SPDX-License-Identifier: MIT
 * The steps of a tokenizer before and behind its model: normalizers, pre-tokenizers, decoders.
 * What each does is defined by the Hugging Face tokenizers library (the `type` of a step in
 * tokenizer.json) and by SentencePiece (src/normalizer.cc). */
#ifndef BC_TOKENIZER_STEPS_H
#define BC_TOKENIZER_STEPS_H

#include "base/unicode.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/pattern.h"
#include "tokenizer/pieces.h"
#include "tokenizer/trie.h"

/* What happens to the matches of a pattern that cuts a text. */
enum bc_behavior {
    BC_REMOVED,
    BC_ISOLATED,
    BC_MERGED_WITH_PREVIOUS,
    BC_MERGED_WITH_NEXT,
    BC_CONTIGUOUS
};

/* Where a blank or its mark is put in front. */
enum bc_prefix { BC_PREFIX_NEVER, BC_PREFIX_FIRST, BC_PREFIX_ALWAYS };

/* The normalizer_spec of a SentencePiece model. */
struct bc_spm_rules {
    bool dummy_prefix;
    bool remove_extra_spaces;
    bool escape_spaces;   /* " " becomes U+2581 */
    bool space_is_suffix; /* treat_whitespace_as_suffix: the dummy is put behind */
};

struct bc_step;
/* Makes `out` (empty, at_start set) of `in`. Normalizers map each piece to one, pre-tokenizers
 * drop empty pieces, decoders see the texts of tokens. */
typedef enum bitconv_status bc_step_fn(const struct bc_step *step, const struct bc_pieces *in,
                                       struct bc_pieces *out, struct bitconv_error *err);

/* One step; only what its function reads is set. */
struct bc_step {
    bc_step_fn *run;
    struct bc_pattern *pattern; /* owned */
    enum bc_behavior behavior;
    bool invert;
    struct bc_buf text; /* owned: what is put in */
    enum bc_unicode_form form;
    bool left, right;                       /* Strip: which ends */
    unsigned start, stop;                   /* Strip of decoders: how many at most */
    bool clean, cjk_blanks, accents, lower; /* BertNormalizer; accents: stripped */
    enum bc_prefix prefix;
    bool splits;             /* Metaspace */
    struct bc_charsmap *map; /* owned */
    struct bc_spm_rules spm;
    const struct bc_trie
        *verbatim; /* user-defined pieces, which SentencePiece does not normalize */
};

struct bc_steps {
    struct bc_step *items;
    size_t n, cap;
};

/* A zeroed step at the end, NULL when out of memory. */
struct bc_step *bc_steps_add(struct bc_steps *steps, bc_step_fn *run);
void bc_steps_release(struct bc_steps *steps);
/* Runs them all over *pieces; `spare` is scratch. The result is in *pieces. */
enum bitconv_status bc_steps_run(const struct bc_steps *steps, struct bc_pieces *pieces,
                                 struct bc_pieces *spare, struct bitconv_error *err);

/* Normalizers. */
bc_step_fn bc_step_unicode; /* form */
bc_step_fn bc_step_lowercase;
bc_step_fn bc_step_strip;         /* left, right: white space */
bc_step_fn bc_step_strip_accents; /* all marks; NFD comes before it */
bc_step_fn bc_step_replace;       /* pattern -> text; also a decoder */
bc_step_fn bc_step_prepend;       /* text, before what is not empty */
bc_step_fn bc_step_charsmap;      /* map, as the tokenizers library applies it: by graphemes */
bc_step_fn bc_step_bert;          /* clean, cjk_blanks, accents, lower */
bc_step_fn bc_step_spm;           /* map, spm, verbatim: SentencePiece's own normalizer */

/* Pre-tokenizers. */
bc_step_fn bc_step_split;     /* pattern, behavior, invert */
bc_step_fn bc_step_bytes;     /* prefix: a blank; bytes to the byte-level alphabet */
bc_step_fn bc_step_metaspace; /* text, prefix, splits */

/* Decoders. */
bc_step_fn bc_step_unbytes;       /* the byte-level alphabet to bytes */
bc_step_fn bc_step_byte_fallback; /* "<0xHH>" to the byte */
bc_step_fn bc_step_fuse;          /* all to one */
bc_step_fn bc_step_strip_text;    /* text at most `start` times in front, `stop` times behind */
bc_step_fn bc_step_unmetaspace;   /* text to a blank, prefix */
bc_step_fn bc_step_join_words;    /* text: mark of a continuation; clean: blanks before marks */

/* The byte-level alphabet of GPT-2 (openai/gpt-2, src/encoder.py, bytes_to_unicode): printable
 * Latin-1 characters stand for themselves, the other bytes for U+0100 and up in order. */
/* The byte of a character, -1 when it is not of the alphabet. */
int bc_char_to_byte(uint32_t cp);
/* The byte of "<0xHH>", -1 for any other text. */
int bc_byte_piece(const char *text, size_t len);

#endif
