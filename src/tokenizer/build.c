/* SPDX-License-Identifier: MIT
 * Building a tokenizer: what the readers of its files have in common. */
#include "tokenizer/build.h"

#include <float.h>
#include <inttypes.h>
#include <string.h>

#include "model/checkpoint.h"
#include "tokenizer/steps_read.h"

/* Ids without a token, at most: the list by id may not outgrow the files by more than this. */
#define MAX_GAPS 0x100000u

enum bitconv_status bc_build_new(const char *source, const char *model_name,
                                 struct bitconv_tokenizer **out, struct bitconv_error *err)
{
    struct bitconv_tokenizer *const tok = bc_alloc_array(1, sizeof *tok);
    *out = tok;
    if (tok == NULL) return bc_fail_nomem(err, "tokenizer");
    tok->source = source;
    tok->model_name = model_name;
    tok->unknown = BC_NO_ID;
    tok->bos = tok->eos = tok->pad = -1;
    for (size_t i = 0; i < 256; i++)
        tok->byte_ids[i] = BC_NO_ID;
    return BITCONV_OK;
}

void bitconv_tokenizer_close(struct bitconv_tokenizer *tok)
{
    if (tok == NULL) return;
    bc_free(tok->pieces);
    bc_map_release(&tok->by_text);
    bc_free(tok->added);
    bc_trie_release(&tok->raw_added);
    bc_trie_release(&tok->normalized_added);
    bc_steps_release(&tok->normalizer);
    bc_steps_release(&tok->pre_steps);
    bc_steps_release(&tok->decoder);
    bc_merges_release(&tok->merges);
    bc_trie_release(&tok->trie);
    bc_trie_release(&tok->user_defined);
    bc_free(tok->prefix.ids);
    bc_free(tok->suffix.ids);
    bc_arena_release(&tok->arena);
    bc_free(tok);
}

static enum bitconv_status add_piece(struct bitconv_tokenizer *tok, const struct bc_token *token,
                                     bool produced, struct bitconv_error *err)
{
    const char *const text = bc_arena_strndup(&tok->arena, token->text, token->len);
    if (text == NULL) return bc_fail_nomem(err, "vocabulary");
    tok->pieces[token->id] = (struct bc_piece){
        .text = text,
        .len = token->len,
        .score = token->score,
        .type = (uint8_t)(token->user_defined ? BC_TOKEN_USER_DEFINED : token->type),
        .special = token->type == BC_TOKEN_CONTROL || token->type == BC_TOKEN_UNKNOWN,
    };
    const int byte = bc_byte_piece(text, token->len);
    if (byte >= 0) tok->byte_ids[byte] = token->id;
    if (!produced) return BITCONV_OK;
    if (bc_map_put(&tok->by_text, text, token->len, token->id, NULL) == BC_MAP_NOMEM)
        return bc_fail_nomem(err, "vocabulary");
    if (token->len > tok->longest) tok->longest = token->len;
    if (token->type == BC_TOKEN_UNUSED) tok->has_unused = true;
    return BITCONV_OK;
}

enum bitconv_status bc_build_pieces(struct bitconv_tokenizer *tok, const struct bc_vocab *vocab,
                                    bool (*produces)(const struct bc_token *token),
                                    struct bitconv_error *err)
{
    const uint32_t last = vocab->tokens[vocab->order[vocab->n_tokens - 1]].id;
    if (last - vocab->n_tokens >= MAX_GAPS && last > vocab->n_tokens)
        return bc_fail(err, BITCONV_E_LIMIT,
                       "%s: %zu tokens with ids up to %" PRIu32
                       ": more than %u ids without a token",
                       vocab->source, vocab->n_tokens, last, MAX_GAPS);
    tok->n_pieces = last + 1;
    tok->pieces = bc_alloc_array(tok->n_pieces, sizeof *tok->pieces);
    if (tok->pieces == NULL) return bc_fail_nomem(err, "vocabulary");
    for (size_t i = 0; i < vocab->n_tokens; i++)
        BC_TRY(add_piece(tok, &vocab->tokens[i], produces(&vocab->tokens[i]), err));
    return BITCONV_OK;
}

static enum bitconv_status check_len(const struct bitconv_tokenizer *tok, const char *text,
                                     size_t len, struct bitconv_error *err)
{
    if (len <= BC_TRIE_MAX_LEN) return BITCONV_OK;
    return bc_fail(err, BITCONV_E_LIMIT,
                   "%s: token \"%.32s...\" of %zu bytes: one that is looked for everywhere in a "
                   "text may have %d",
                   tok->source, text, len, BC_TRIE_MAX_LEN);
}

enum bitconv_status bc_build_added(struct bitconv_tokenizer *tok, const struct bc_added *added,
                                   bool normalized, struct bitconv_error *err)
{
    if (added->len == 0) return BITCONV_OK;
    BC_TRY(check_len(tok, added->text, added->len, err));
    struct bc_trie *const trie = normalized ? &tok->normalized_added : &tok->raw_added;
    if (!bc_grow((void **)&tok->added, &tok->cap_added, tok->n_added, sizeof *tok->added) ||
        !bc_trie_put(trie, added->text, added->len, (uint32_t)tok->n_added))
        return bc_fail_nomem(err, "added tokens");
    tok->added[tok->n_added] = *added;
    tok->added[tok->n_added++].text = NULL; /* the trie has it */
    return BITCONV_OK;
}

enum bitconv_status bc_build_merge(struct bitconv_tokenizer *tok, const struct bc_merge_text *merge,
                                   uint32_t rank, struct bitconv_error *err)
{
    char small[256];
    const size_t len = merge->n_left + merge->n_right;
    const uint32_t left = bc_piece_id(tok, merge->left, merge->n_left);
    const uint32_t right = bc_piece_id(tok, merge->right, merge->n_right);
    if (left == BC_NO_ID || right == BC_NO_ID || len > tok->longest) return BITCONV_OK;
    char *const both = len <= sizeof small ? small : bc_alloc_array(len, 1);
    if (both == NULL) return bc_fail_nomem(err, "merges");
    memcpy(both, merge->left, merge->n_left);
    memcpy(both + merge->n_left, merge->right, merge->n_right);
    const uint32_t result = bc_piece_id(tok, both, len);
    if (both != small) bc_free(both);
    return result == BC_NO_ID ? BITCONV_OK
                              : bc_merges_put(&tok->merges, left, right, rank, result, err);
}

static enum bitconv_status put_piece(const struct bitconv_tokenizer *tok, struct bc_trie *trie,
                                     uint32_t id, struct bitconv_error *err)
{
    const struct bc_piece *const piece = &tok->pieces[id];
    BC_TRY(check_len(tok, piece->text, piece->len, err));
    return bc_trie_put(trie, piece->text, piece->len, id) ? BITCONV_OK
                                                          : bc_fail_nomem(err, "vocabulary");
}

/* Is it one of those that the model may produce? */
static bool is_produced(const struct bitconv_tokenizer *tok, uint32_t id)
{
    const struct bc_piece *const piece = &tok->pieces[id];
    return piece->text != NULL && piece->len > 0 && bc_piece_id(tok, piece->text, piece->len) == id;
}

enum bitconv_status bc_build_trie(struct bitconv_tokenizer *tok, struct bitconv_error *err)
{
    double worst = (double)FLT_MAX;
    double best = (double)FLT_MIN; /* where SentencePiece starts, although scores are negative */
    for (uint32_t id = 0; id < tok->n_pieces; id++) {
        const struct bc_piece *const piece = &tok->pieces[id];
        if (!is_produced(tok, id)) continue;
        BC_TRY(put_piece(tok, &tok->trie, id, err));
        if (piece->type != BC_TOKEN_NORMAL && !tok->exact_sums) continue;
        if (piece->score < worst) worst = piece->score;
        if (piece->score > best) best = piece->score;
    }
    tok->unknown_score = worst - 10.0;
    tok->user_defined_score = best;
    return BITCONV_OK;
}

enum bitconv_status bc_build_user_defined(struct bitconv_tokenizer *tok, struct bitconv_error *err)
{
    for (uint32_t id = 0; id < tok->n_pieces; id++)
        if (tok->pieces[id].type == BC_TOKEN_USER_DEFINED && is_produced(tok, id))
            BC_TRY(put_piece(tok, &tok->user_defined, id, err));
    return BITCONV_OK;
}

enum bitconv_status bc_build_spm_decoder(struct bitconv_tokenizer *tok, bool dummy_prefix,
                                         struct bitconv_error *err)
{
    struct bc_step *step;
    BC_TRY(bc_steps_add_replace(&tok->decoder, "\xe2\x96\x81", " ", err));
    if (bc_steps_add(&tok->decoder, bc_step_byte_fallback) == NULL ||
        bc_steps_add(&tok->decoder, bc_step_fuse) == NULL)
        return bc_fail_nomem(err, "tokenizer");
    if (!dummy_prefix) return BITCONV_OK;
    BC_TRY(bc_steps_add_text(&tok->decoder, bc_step_strip_text, " ", &step, err));
    step->start = 1;
    return BITCONV_OK;
}

enum bitconv_status bc_id_list_add(struct bc_id_list *list, uint32_t id, struct bitconv_error *err)
{
    if (!bc_grow((void **)&list->ids, &list->cap, list->n, sizeof *list->ids))
        return bc_fail_nomem(err, "tokenizer");
    list->ids[list->n++] = id;
    return BITCONV_OK;
}

enum bitconv_status bc_build_affix(struct bitconv_tokenizer *tok, struct bc_id_list *list,
                                   int64_t id, struct bitconv_error *err)
{
    if (id < 0 || id >= (int64_t)tok->n_pieces || tok->pieces[id].text == NULL) return BITCONV_OK;
    return bc_id_list_add(list, (uint32_t)id, err);
}

static enum bitconv_status add_affixes(struct bitconv_tokenizer *tok, const struct bc_specials *s,
                                       const struct bc_affixes *affixes, struct bc_affixes fallback,
                                       struct bitconv_error *err)
{
    const int bos = affixes->bos < 0 ? fallback.bos : affixes->bos;
    const int eos = affixes->eos < 0 ? fallback.eos : affixes->eos;
    if (bos > 0) BC_TRY(bc_build_affix(tok, &tok->prefix, s->id[BC_SPECIAL_BOS], err));
    if (eos > 0) BC_TRY(bc_build_affix(tok, &tok->suffix, s->id[BC_SPECIAL_EOS], err));
    return BITCONV_OK;
}

enum bitconv_status bc_build_specials(struct bitconv_tokenizer *tok,
                                      const struct bc_tokenizer_files *files,
                                      const struct bc_vocab *vocab, bool has_template,
                                      struct bc_affixes fallback, const struct bitconv_sink *sink,
                                      struct bitconv_error *err)
{
    struct bc_json *config = NULL;
    struct bc_json *generation = NULL;
    struct bc_specials specials = {0};
    struct bc_affixes affixes;
    enum bitconv_status status = bc_checkpoint_object(files->dir, "config.json", &config, err);
    if (status == BITCONV_OK)
        status = bc_checkpoint_object(files->dir, "generation_config.json", &generation, err);
    const struct bc_checkpoint around = {
        .config = config, .text = config, .generation_config = generation};
    if (status == BITCONV_OK)
        status = bc_specials_find(&around, files, vocab, bc_affixes_end(files, vocab),
                                  "tokenizer.json", sink, &specials, err);
    if (status == BITCONV_OK) {
        tok->bos = specials.id[BC_SPECIAL_BOS];
        tok->eos = specials.id[BC_SPECIAL_EOS];
        tok->pad = specials.id[BC_SPECIAL_PAD];
        bc_affixes_find(files, vocab, sink, &specials, &affixes);
        if (!has_template) status = add_affixes(tok, &specials, &affixes, fallback, err);
    }
    bc_specials_release(&specials);
    bc_json_free(config);
    bc_json_free(generation);
    return status;
}
