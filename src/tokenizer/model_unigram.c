/* SPDX-License-Identifier: MIT
 * SentencePiece's unigram model: Viterbi over the pieces that start at each character
 * (google/sentencepiece, src/unigram_model.cc; the tokenizers library does the same in doubles). */
#include "base/mem.h"
#include "base/utf8.h"
#include "tokenizer/runtime.h"

/* The best way that ends before a byte. */
struct bc_path_node {
    double score;
    size_t start; /* of its last piece */
    uint32_t id;
    bool reached;
};

static double sum(const struct bitconv_tokenizer *tok, double a, double b)
{
    return tok->exact_sums ? a + b : (double)((float)a + (float)b);
}

static double score_of(const struct bitconv_tokenizer *tok, uint32_t id, size_t len)
{
    const struct bc_piece *const piece = &tok->pieces[id];
    if (piece->type != BC_TOKEN_USER_DEFINED || tok->exact_sums) return piece->score;
    return (double)((float)((double)((float)len * (float)tok->user_defined_score) - 0.1));
}

static void offer(struct bc_path_node *node, double score, size_t start, uint32_t id)
{
    if (node->reached && score <= node->score) return;
    *node = (struct bc_path_node){score, start, id, true};
}

/* Offers every piece that starts at `at`, and the unknown token where no piece is the character. */
static void extend(const struct bitconv_tokenizer *tok, const char *s, size_t len, size_t at,
                   size_t n_char, struct bc_path_node *path)
{
    const double here = path[at].score;
    uint32_t node = 0;
    uint32_t id = BC_TRIE_NONE;
    bool has_char = false;
    for (size_t i = at; i < len && bc_trie_step(&tok->trie, &node, (uint8_t)s[i], &id); i++) {
        const size_t n = i + 1 - at;
        if (id == BC_TRIE_NONE || tok->pieces[id].type == BC_TOKEN_UNUSED) continue;
        offer(&path[i + 1], sum(tok, score_of(tok, id, n), here), at, id);
        has_char = has_char || n == n_char;
    }
    if (!has_char) offer(&path[at + n_char], sum(tok, tok->unknown_score, here), at, BC_NO_ID);
}

/* Turns the links around, so that the path can be read from its start. The nodes' start becomes the
 * end of the piece that starts there. */
static void reverse(struct bc_path_node *path, size_t len)
{
    size_t end = len;
    size_t next_end = len;
    uint32_t next_id = BC_NO_ID;
    bool first = true;
    while (end > 0) {
        const struct bc_path_node node = path[end];
        if (!first) {
            path[end].start = next_end;
            path[end].id = next_id;
        }
        first = false;
        next_end = end;
        next_id = node.id;
        end = node.start;
    }
    path[0].start = next_end;
    path[0].id = next_id;
}

static enum bitconv_status put_path(const struct bitconv_tokenizer *tok, const char *s, size_t len,
                                    const struct bc_path_node *path, struct bc_work *work,
                                    struct bitconv_error *err)
{
    bool in_run = false;
    for (size_t at = 0; at < len;) {
        const size_t end = path[at].start;
        const uint32_t id = path[at].id;
        if (id != BC_NO_ID) {
            in_run = false;
            BC_TRY(bc_put_id(work->ids, id, err));
        } else if (bc_has_byte_ids(tok, s + at, end - at)) {
            for (size_t i = at; i < end; i++)
                BC_TRY(bc_put_id(work->ids, tok->byte_ids[(uint8_t)s[i]], err));
        } else {
            if (!in_run && tok->unknown != BC_NO_ID)
                BC_TRY(bc_put_id(work->ids, tok->unknown, err));
            in_run = tok->fuse_unknown;
        }
        at = end;
    }
    return BITCONV_OK;
}

enum bitconv_status bc_encode_unigram(const struct bitconv_tokenizer *tok, const char *s,
                                      size_t len, struct bc_work *work, struct bitconv_error *err)
{
    if (len >= work->cap_path) {
        struct bc_path_node *const bigger = bc_realloc_array(work->path, len + 1, sizeof *bigger);
        if (bigger == NULL) return bc_fail_nomem(err, "text to tokenize");
        work->path = bigger;
        work->cap_path = len + 1;
    }
    for (size_t i = 0; i <= len; i++)
        work->path[i].reached = false;
    work->path[0] = (struct bc_path_node){0, 0, BC_NO_ID, true};
    for (size_t at = 0; at < len;) {
        uint32_t cp;
        size_t n = bc_utf8_decode(s + at, len - at, &cp);
        if (n == 0) n = 1;
        extend(tok, s, len, at, n, work->path);
        at += n;
    }
    reverse(work->path, len);
    return put_path(tok, s, len, work->path, work, err);
}
