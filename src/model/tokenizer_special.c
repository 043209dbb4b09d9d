/* SPDX-License-Identifier: MIT
 * Special ids: where they are said, in which order, and what contradicts. */
#include "model/tokenizer_special.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"

static const struct bc_special_name names[BC_N_SPECIALS] = {
    [BC_SPECIAL_BOS] = {"tokenizer.ggml.bos_token_id", "bos_token", "bos_token_id"},
    [BC_SPECIAL_EOS] = {"tokenizer.ggml.eos_token_id", "eos_token", "eos_token_id"},
    [BC_SPECIAL_UNK] = {"tokenizer.ggml.unknown_token_id", "unk_token", "unk_token_id"},
    [BC_SPECIAL_SEP] = {"tokenizer.ggml.seperator_token_id", "sep_token", "sep_token_id"},
    [BC_SPECIAL_PAD] = {"tokenizer.ggml.padding_token_id", "pad_token", "pad_token_id"},
    [BC_SPECIAL_CLS] = {NULL, "cls_token", "cls_token_id"},
    [BC_SPECIAL_MASK] = {"tokenizer.ggml.mask_token_id", "mask_token", "mask_token_id"},
    [BC_SPECIAL_EOT] = {"tokenizer.ggml.eot_token_id", "eot_token", "eot_token_id"},
};

const struct bc_special_name *bc_special_name(enum bc_special kind)
{
    return &names[kind];
}

void bc_specials_set(struct bc_specials *s, enum bc_special kind, uint32_t id, const char *from)
{
    if (s->id[kind] < 0) s->order[s->n++] = kind;
    s->id[kind] = id;
    s->from[kind] = from;
}

/* One source says an id. The first source wins; a later one that differs is worth a warning. */
static void say_id(struct bc_specials *s, enum bc_special kind, uint64_t id, const char *from,
                   const struct bitconv_sink *sink)
{
    if (id > UINT32_MAX) {
        bc_say(sink, BITCONV_WARNING, "%s: %s is %" PRIu64 ", which is no id", from,
               names[kind].id_key, id);
        return;
    }
    /* Not the end of a text: then it is what ends a turn. */
    if (kind == BC_SPECIAL_EOS && s->end_is_known && s->id[kind] != (int64_t)id)
        kind = BC_SPECIAL_EOT;
    if (s->id[kind] < 0)
        bc_specials_set(s, kind, (uint32_t)id, from);
    else if (s->id[kind] != (int64_t)id)
        bc_say(sink, BITCONV_WARNING, "%s: %" PRId64 " in %s, %" PRIu64 " in %s; %s is taken",
               names[kind].id_key, s->id[kind], s->from[kind], id, from, s->from[kind]);
}

/* tokenizer_config.json and special_tokens_map.json name tokens by their text. */
static void read_texts(struct bc_specials *s, const struct bc_json *object, const char *from,
                       const struct bc_vocab *vocab, const struct bitconv_sink *sink)
{
    for (int kind = 0; kind < BC_N_SPECIALS; kind++) {
        const char *const text = bc_tokenizer_named_token(object, names[kind].token_key);
        if (text == NULL) continue;
        const struct bc_token *const token = bc_vocab_find(vocab, text, strlen(text));
        if (token == NULL)
            bc_say(sink, BITCONV_WARNING, "%s: %s \"%.64s\" is not in the vocabulary", from,
                   names[kind].token_key, text);
        else
            say_id(s, (enum bc_special)kind, token->id, from, sink);
    }
}

/* True when the list holds the id that is set already: then it contradicts nothing. */
static bool list_holds(const struct bc_json *list, int64_t id)
{
    for (const struct bc_json *node = bc_json_first(list); node != NULL;
         node = bc_json_next(node)) {
        int64_t value;
        if (bc_json_i64(node, &value) && value == id) return true;
    }
    return false;
}

static enum bitconv_status add_eog(struct bc_specials *s, uint64_t id, struct bitconv_error *err)
{
    if (id > UINT32_MAX) return BITCONV_OK;
    for (size_t i = 0; i < s->n_eog; i++)
        if (s->eog[i] == id) return BITCONV_OK;
    uint32_t *const bigger = bc_realloc_array(s->eog, s->n_eog + 1, sizeof *s->eog);
    if (bigger == NULL) return bc_fail_nomem(err, "special ids");
    s->eog = bigger;
    s->eog[s->n_eog++] = (uint32_t)id;
    return BITCONV_OK;
}

/* A list of ids ends generation with any of them; the first stands for all where one is wanted. */
static enum bitconv_status read_list(struct bc_specials *s, enum bc_special kind,
                                     const struct bc_json *list, const char *from,
                                     const struct bitconv_sink *sink, struct bitconv_error *err)
{
    uint64_t first;
    if (bc_json_u64(bc_json_first(list), &first) && !list_holds(list, s->id[kind]))
        say_id(s, kind, first, from, sink);
    for (const struct bc_json *node = bc_json_first(list); node != NULL && kind == BC_SPECIAL_EOS;
         node = bc_json_next(node)) {
        uint64_t id;
        if (bc_json_u64(node, &id))
            BC_TRY(add_eog(s, id, err));
        else
            bc_say(sink, BITCONV_WARNING, "%s: %s: an entry of the list is no id, not carried",
                   from, names[kind].id_key);
    }
    return BITCONV_OK;
}

/* Absent, null and negative numbers mean "none"; what is neither that nor an id is said. */
static bool says_none(const struct bc_json *node)
{
    int64_t value;
    return node == NULL || bc_json_is(node, BC_JSON_NULL) ||
           (bc_json_i64(node, &value) && value < 0);
}

/* generation_config.json and config.json give ids. Numbers below 0 mean "none". */
static enum bitconv_status read_ids(struct bc_specials *s, const struct bc_json *object,
                                    const char *from, const struct bitconv_sink *sink,
                                    struct bitconv_error *err)
{
    for (int kind = 0; kind < BC_N_SPECIALS; kind++) {
        const struct bc_json *const node = bc_json_get(object, names[kind].id_key);
        uint64_t id;
        if (bc_json_is(node, BC_JSON_ARRAY))
            BC_TRY(read_list(s, (enum bc_special)kind, node, from, sink, err));
        else if (bc_json_u64(node, &id))
            say_id(s, (enum bc_special)kind, id, from, sink);
        else if (!says_none(node))
            bc_say(sink, BITCONV_WARNING, "%s: %s is no id, not carried", from, names[kind].id_key);
    }
    return BITCONV_OK;
}

/* The trainer's own ids, where no file says anything: defaults are no contradiction. */
static void read_trainer(struct bc_specials *s, const struct bc_vocab *vocab)
{
    const struct {
        enum bc_special kind;
        int64_t id;
        enum bc_token_type type; /* what the piece must be for the id to be believed */
    } ids[] = {
        {BC_SPECIAL_BOS, vocab->spm_bos, BC_TOKEN_CONTROL},
        {BC_SPECIAL_EOS, vocab->spm_eos, BC_TOKEN_CONTROL},
        {BC_SPECIAL_UNK, vocab->spm_unk, BC_TOKEN_UNKNOWN},
        {BC_SPECIAL_PAD, vocab->spm_pad, BC_TOKEN_CONTROL},
    };
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        if (ids[i].id < 0 || s->id[ids[i].kind] >= 0) continue;
        const struct bc_token *const token = bc_vocab_at(vocab, (uint32_t)ids[i].id);
        if (token != NULL && token->type == ids[i].type)
            bc_specials_set(s, ids[i].kind, token->id, "tokenizer.model");
    }
}

/* BertTokenizer's own names, where no file says anything. */
static void read_bert_names(struct bc_specials *s, const struct bc_vocab *vocab)
{
    static const struct {
        enum bc_special kind;
        const char *text;
    } defaults[] = {{BC_SPECIAL_UNK, "[UNK]"},
                    {BC_SPECIAL_SEP, "[SEP]"},
                    {BC_SPECIAL_PAD, "[PAD]"},
                    {BC_SPECIAL_CLS, "[CLS]"},
                    {BC_SPECIAL_MASK, "[MASK]"}};
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++) {
        const struct bc_token *const token =
            bc_vocab_find(vocab, defaults[i].text, strlen(defaults[i].text));
        if (token != NULL && s->id[defaults[i].kind] < 0)
            bc_specials_set(s, defaults[i].kind, token->id, "vocab.txt");
    }
}

enum bitconv_status bc_specials_find(const struct bc_checkpoint *ckpt,
                                     const struct bc_tokenizer_files *files,
                                     const struct bc_vocab *vocab, const struct bc_token *end,
                                     const char *end_from, const struct bitconv_sink *sink,
                                     struct bc_specials *out, struct bitconv_error *err)
{
    *out = (struct bc_specials){.end_is_known = end != NULL};
    for (int kind = 0; kind < BC_N_SPECIALS; kind++)
        out->id[kind] = -1;
    if (end != NULL) bc_specials_set(out, BC_SPECIAL_EOS, end->id, end_from);
    read_texts(out, files->config, "tokenizer_config.json", vocab, sink);
    read_texts(out, files->special_map, "special_tokens_map.json", vocab, sink);
    BC_TRY(read_ids(out, ckpt->generation_config, "generation_config.json", sink, err));
    BC_TRY(read_ids(out, ckpt->text, "config.json", sink, err));
    if (ckpt->config != ckpt->text) BC_TRY(read_ids(out, ckpt->config, "config.json", sink, err));
    if (strcmp(vocab->source, "tokenizer.model") == 0) read_trainer(out, vocab);
    if (strcmp(vocab->source, "vocab.txt") == 0) read_bert_names(out, vocab);
    /* BERT has no bos and eos of that name: its cls and sep stand around every text. */
    if (out->id[BC_SPECIAL_BOS] < 0 && out->id[BC_SPECIAL_CLS] >= 0)
        bc_specials_set(out, BC_SPECIAL_BOS, (uint32_t)out->id[BC_SPECIAL_CLS],
                        out->from[BC_SPECIAL_CLS]);
    if (out->id[BC_SPECIAL_EOS] < 0 && out->id[BC_SPECIAL_SEP] >= 0)
        bc_specials_set(out, BC_SPECIAL_EOS, (uint32_t)out->id[BC_SPECIAL_SEP],
                        out->from[BC_SPECIAL_SEP]);
    return BITCONV_OK;
}

void bc_specials_release(struct bc_specials *s)
{
    bc_free(s->eog);
    *s = (struct bc_specials){0};
}

static enum bitconv_status write_eog(const struct bc_specials *s, uint32_t n_rows,
                                     const struct bitconv_sink *sink, struct bitconv_gguf_writer *w,
                                     struct bitconv_error *err)
{
    struct bc_buf payload = {0};
    for (size_t i = 0; i < s->n_eog; i++) {
        if (s->eog[i] < n_rows)
            bc_buf_u32(&payload, s->eog[i]);
        else if (s->id[BC_SPECIAL_EOS] != (int64_t)s->eog[i])
            bc_say(sink, BITCONV_WARNING,
                   "eos_token_id: %" PRIu32 " of the list is beyond the %" PRIu32
                   " rows of the embedding and is not written",
                   s->eog[i], n_rows);
    }
    if (!payload.failed && payload.size > 0)
        bitconv_gguf_set_array(w, "tokenizer.ggml.eog_token_ids", BITCONV_GGUF_UINT32,
                               payload.size / 4, payload.data, payload.size);
    const bool failed = payload.failed;
    bc_buf_release(&payload);
    return failed ? bc_fail_nomem(err, "special ids") : BITCONV_OK;
}

enum bitconv_status bc_specials_write(const struct bc_specials *specials,
                                      const struct bc_affixes *affixes, uint32_t n_rows,
                                      const struct bitconv_sink *sink,
                                      struct bitconv_gguf_writer *w, struct bitconv_error *err)
{
    for (size_t i = 0; i < specials->n; i++) {
        const enum bc_special kind = specials->order[i];
        const int64_t id = specials->id[kind];
        if (names[kind].gguf == NULL) continue;
        if (id >= (int64_t)n_rows)
            bc_say(sink, BITCONV_WARNING,
                   "%s: %s %" PRId64 " is beyond the %" PRIu32
                   " rows of the embedding and is not written",
                   specials->from[kind], names[kind].id_key, id, n_rows);
        else
            bitconv_gguf_set_u32(w, names[kind].gguf, (uint32_t)id);
    }
    BC_TRY(write_eog(specials, n_rows, sink, w, err));
    if (affixes->bos >= 0)
        bitconv_gguf_set_bool(w, "tokenizer.ggml.add_bos_token", affixes->bos != 0);
    if (affixes->eos >= 0)
        bitconv_gguf_set_bool(w, "tokenizer.ggml.add_eos_token", affixes->eos != 0);
    if (affixes->sep >= 0)
        bitconv_gguf_set_bool(w, "tokenizer.ggml.add_sep_token", affixes->sep != 0);
    return BITCONV_OK;
}
