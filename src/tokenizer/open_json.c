/* SPDX-License-Identifier: MIT
 * A tokenizer from tokenizer.json (huggingface/tokenizers): what its members say, taken literally. */
#include <string.h>

#include "model/tokenizer_pre.h"
#include "tokenizer/build.h"
#include "tokenizer/steps_read.h"

static const char source[] = "tokenizer.json";

struct reading {
    const struct bc_tokenizer_files *files;
    const struct bc_json *model;
    const struct bitconv_sink *sink;
    struct bitconv_tokenizer *tok;
    struct bc_vocab vocab;
    bool has_template; /* the post_processor says what is put around a text */
};

static bool flag(const struct bc_json *node, const char *key, bool fallback)
{
    bool value = fallback;
    (void)bc_json_bool(bc_json_get(node, key), &value);
    return value;
}

static bool is_base(const struct bc_token *token)
{
    return token->base;
}

/* ---- vocabularies ---- */

/* [[piece, score], ...] of a unigram model; the place in the list is the id. */
static enum bitconv_status load_scored_list(struct reading *r, struct bitconv_error *err)
{
    const struct bc_json *const list = bc_json_get(r->model, "vocab");
    uint64_t id = 0;
    for (const struct bc_json *node = bc_json_first(list); node != NULL;
         node = bc_json_next(node), id++) {
        const struct bc_json *const first = bc_json_first(node);
        const char *const text = bc_json_string(first);
        struct bc_token *token;
        double score;
        if (!bc_json_is(node, BC_JSON_ARRAY) || text == NULL ||
            !bc_json_f64(bc_json_next(first), &score))
            return bc_fail(err, BITCONV_E_CORRUPT,
                           "tokenizer.json: entry %llu of model.vocab is not [piece, score]",
                           (unsigned long long)id);
        BC_TRY(bc_vocab_add(&r->vocab, source, text, strlen(text), id, &token, err));
        token->base = true;
        token->score = score;
    }
    return BITCONV_OK;
}

/* What one entry of a list of added tokens says. */
struct entry {
    const char *text;
    uint64_t id;
    const struct bc_json *flags;
};

/* Tokens of the vocabulary keep their place in it; the flags of the first declaration count. */
static enum bitconv_status declare(struct reading *r, const struct entry *entry,
                                   struct bitconv_error *err)
{
    struct bc_token *token;
    BC_TRY(
        bc_vocab_add(&r->vocab, source, entry->text, strlen(entry->text), entry->id, &token, err));
    if (token->added) return BITCONV_OK;
    token->added = true;
    token->special = flag(entry->flags, "special", false);
    token->type = token->special ? BC_TOKEN_CONTROL : BC_TOKEN_USER_DEFINED;
    const struct bc_added added = {
        .text = token->text,
        .len = token->len,
        .id = token->id,
        .lstrip = flag(entry->flags, "lstrip", false),
        .rstrip = flag(entry->flags, "rstrip", false),
        .single_word = flag(entry->flags, "single_word", false),
    };
    /* Absent: what AddedToken's constructor takes. */
    const bool normalized = flag(entry->flags, "normalized", !token->special);
    if (!normalized || r->tok->normalizer.n == 0)
        return bc_build_added(r->tok, &added, normalized, err);
    /* It is looked for behind the normalizer, so in its normal form. */
    struct bc_pieces form = {0};
    struct bc_pieces spare = {0};
    struct bc_added normal = added;
    bc_pieces_add(&form, added.text, added.len);
    enum bitconv_status status = bc_pieces_check(&form, err);
    if (status == BITCONV_OK) status = bc_steps_run(&r->tok->normalizer, &form, &spare, err);
    normal.text = bc_buf_str(&form.text);
    normal.len = (uint32_t)form.text.size;
    if (status == BITCONV_OK) status = bc_build_added(r->tok, &normal, true, err);
    bc_pieces_release(&form);
    bc_pieces_release(&spare);
    return status;
}

static enum bitconv_status declare_list(struct reading *r, struct bitconv_error *err)
{
    const struct bc_json *const list = bc_json_get(r->files->tokenizer, "added_tokens");
    for (const struct bc_json *node = bc_json_first(list); node != NULL;
         node = bc_json_next(node)) {
        struct entry entry = {.text = bc_json_string(bc_json_get(node, "content")), .flags = node};
        if (entry.text == NULL || !bc_json_u64(bc_json_get(node, "id"), &entry.id))
            return bc_fail(err, BITCONV_E_CORRUPT,
                           "tokenizer.json: an entry of added_tokens lacks its content or its id");
        BC_TRY(declare(r, &entry, err));
    }
    return BITCONV_OK;
}

/* The smaller files name tokens that tokenizer.json may lack. Those that contradict it are the
 * business of convert; here tokenizer.json is right. */
static enum bitconv_status declare_others(struct reading *r, struct bitconv_error *err)
{
    const struct bc_json *const decoder = bc_json_get(r->files->config, "added_tokens_decoder");
    BC_TRY(bc_vocab_seal(&r->vocab, err));
    for (const struct bc_json *node = bc_json_first(decoder); node != NULL;
         node = bc_json_next(node)) {
        struct entry entry = {.text = bc_json_string(bc_json_get(node, "content")), .flags = node};
        const char *const key = bc_json_key(node);
        if (entry.text == NULL || strlen(key) > 8 || strspn(key, "0123456789") != strlen(key))
            continue;
        for (const char *c = key; *c != '\0'; c++)
            entry.id = entry.id * 10 + (uint64_t)(*c - '0');
        if (entry.id > BC_VOCAB_MAX_ID || bc_vocab_at(&r->vocab, (uint32_t)entry.id) != NULL ||
            bc_vocab_find(&r->vocab, entry.text, strlen(entry.text)) != NULL)
            continue;
        BC_TRY(declare(r, &entry, err));
    }
    return bc_vocab_seal(&r->vocab, err);
}

static enum bitconv_status load_merges(struct reading *r, struct bitconv_error *err)
{
    const struct bc_json *const list = bc_json_get(r->model, "merges");
    uint32_t rank = 0;
    for (const struct bc_json *node = bc_json_first(list); node != NULL;
         node = bc_json_next(node), rank++) {
        struct bc_merge_text merge;
        if (!bc_merge_of_json(node, &merge))
            return bc_fail(err, BITCONV_E_CORRUPT,
                           "tokenizer.json: merge %u is neither \"left right\" nor [\"left\", "
                           "\"right\"]",
                           rank);
        BC_TRY(bc_build_merge(r->tok, &merge, rank, err));
    }
    return BITCONV_OK;
}

/* ---- models ---- */

static void find_unknown(struct reading *r, const char *text)
{
    if (text == NULL) return;
    r->tok->unknown = bc_piece_id(r->tok, text, strlen(text));
    if (r->tok->unknown != BC_NO_ID) return;
    const struct bc_token *const token = bc_vocab_find(&r->vocab, text, strlen(text));
    if (token != NULL) r->tok->unknown = token->id; /* an added token only */
}

static enum bitconv_status read_bpe(struct reading *r, struct bitconv_error *err)
{
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    struct bitconv_tokenizer *const tok = r->tok;
    for (size_t i = 0; i < sizeof affixes / sizeof affixes[0]; i++) {
        const char *const value = bc_json_string(bc_json_get(r->model, affixes[i]));
        if (value != NULL && value[0] != '\0')
            return bc_fail(err, BITCONV_E_UNSUPPORTED,
                           "tokenizer.json: model.%s is \"%.32s\": BPE with it is not supported",
                           affixes[i], value);
    }
    tok->model = BC_MODEL_BPE;
    tok->byte_fallback = flag(r->model, "byte_fallback", false);
    tok->fuse_unknown = flag(r->model, "fuse_unk", false);
    tok->ignore_merges = flag(r->model, "ignore_merges", false);
    tok->model_name = tok->byte_fallback ? "llama" : "gpt2";
    find_unknown(r, bc_json_string(bc_json_get(r->model, "unk_token")));
    return load_merges(r, err);
}

static enum bitconv_status read_unigram(struct reading *r, struct bitconv_error *err)
{
    struct bitconv_tokenizer *const tok = r->tok;
    uint64_t unknown;
    tok->model = BC_MODEL_UNIGRAM;
    tok->model_name = "t5";
    tok->exact_sums = true;
    tok->fuse_unknown = true;
    tok->byte_fallback = flag(r->model, "byte_fallback", false);
    if (bc_json_u64(bc_json_get(r->model, "unk_id"), &unknown) && unknown < tok->n_pieces)
        tok->unknown = (uint32_t)unknown;
    return bc_build_trie(tok, err);
}

static enum bitconv_status read_wordpiece(struct reading *r, struct bitconv_error *err)
{
    struct bitconv_tokenizer *const tok = r->tok;
    const char *const mark = bc_json_string(bc_json_get(r->model, "continuing_subword_prefix"));
    const char *const unknown = bc_json_string(bc_json_get(r->model, "unk_token"));
    uint64_t max_chars = 100;
    if (mark != NULL && strcmp(mark, "##") != 0)
        return bc_fail(err, BITCONV_E_UNSUPPORTED,
                       "tokenizer.json: WordPiece with continuing_subword_prefix \"%.32s\" instead "
                       "of \"##\" is not supported",
                       mark);
    (void)bc_json_u64(bc_json_get(r->model, "max_input_chars_per_word"), &max_chars);
    tok->model = BC_MODEL_WORDPIECE;
    tok->model_name = "bert";
    tok->max_chars = max_chars > UINT32_MAX ? UINT32_MAX : (uint32_t)max_chars;
    find_unknown(r, unknown == NULL ? "[UNK]" : unknown);
    return BITCONV_OK;
}

static const struct {
    const char *type;
    bool scored_list;
    enum bitconv_status (*read)(struct reading *r, struct bitconv_error *err);
} model_readers[] = {
    {"BPE", false, read_bpe},
    {"Unigram", true, read_unigram},
    {"WordPiece", false, read_wordpiece},
};

static enum bitconv_status load_model(struct reading *r, struct bitconv_error *err)
{
    const char *type = bc_json_string(bc_json_get(r->model, "type"));
    if (type == NULL) type = "BPE";
    for (size_t i = 0; i < sizeof model_readers / sizeof model_readers[0]; i++) {
        if (strcmp(type, model_readers[i].type) != 0) continue;
        if (model_readers[i].scored_list)
            BC_TRY(load_scored_list(r, err));
        else
            BC_TRY(bc_load_vocab_object(bc_json_get(r->model, "vocab"), source, &r->vocab, err));
        BC_TRY(declare_list(r, err));
        BC_TRY(declare_others(r, err));
        BC_TRY(bc_build_pieces(r->tok, &r->vocab, is_base, err));
        return model_readers[i].read(r, err);
    }
    return bc_fail(err, BITCONV_E_UNSUPPORTED,
                   "tokenizer.json: tokenizer type %.32s is not supported (BPE, Unigram and "
                   "WordPiece are)",
                   type);
}

/* ---- what is put around a text ---- */

/* One element of a template that is not the text: its ids, by the map beside the template. */
static enum bitconv_status add_template_token(const struct bc_json *processor, const char *name,
                                              struct bc_id_list *list, struct bitconv_error *err)
{
    const struct bc_json *const entry = bc_json_get(bc_json_get(processor, "special_tokens"), name);
    for (const struct bc_json *node = bc_json_first(bc_json_get(entry, "ids")); node != NULL;
         node = bc_json_next(node)) {
        uint64_t id;
        if (!bc_json_u64(node, &id) || id > BC_VOCAB_MAX_ID)
            return bc_fail(err, BITCONV_E_CORRUPT,
                           "tokenizer.json: post_processor: \"%.48s\" has an id that is none",
                           name);
        BC_TRY(bc_id_list_add(list, (uint32_t)id, err));
    }
    return BITCONV_OK;
}

static enum bitconv_status read_template(struct reading *r, const struct bc_json *processor,
                                         struct bitconv_error *err)
{
    struct bc_id_list *list = &r->tok->prefix;
    for (const struct bc_json *node = bc_json_first(bc_json_get(processor, "single")); node != NULL;
         node = bc_json_next(node)) {
        const char *const name = bc_json_string(bc_json_path(node, "SpecialToken.id"));
        if (name == NULL)
            list = &r->tok->suffix; /* behind the text */
        else
            BC_TRY(add_template_token(processor, name, list, err));
    }
    return BITCONV_OK;
}

/* "cls": ["[CLS]", 101] of BertProcessing and RobertaProcessing. */
static enum bitconv_status read_pair(const struct bc_json *pair, struct bc_id_list *list,
                                     struct bitconv_error *err)
{
    uint64_t id;
    if (!bc_json_u64(bc_json_next(bc_json_first(pair)), &id) || id > BC_VOCAB_MAX_ID)
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "tokenizer.json: post_processor: cls or sep is not [token, id]");
    return bc_id_list_add(list, (uint32_t)id, err);
}

static enum bitconv_status read_processor(struct reading *r, const struct bc_json *node,
                                          struct bitconv_error *err)
{
    const char *const type = bc_json_string(bc_json_get(node, "type"));
    if (type == NULL) return BITCONV_OK;
    if (strcmp(type, "Sequence") == 0) {
        for (const struct bc_json *step = bc_json_first(bc_json_get(node, "processors"));
             step != NULL; step = bc_json_next(step))
            BC_TRY(read_processor(r, step, err));
    } else if (strcmp(type, "TemplateProcessing") == 0) {
        r->has_template = true;
        return read_template(r, node, err);
    } else if (strcmp(type, "BertProcessing") == 0 || strcmp(type, "RobertaProcessing") == 0) {
        r->has_template = true;
        BC_TRY(read_pair(bc_json_get(node, "cls"), &r->tok->prefix, err));
        return read_pair(bc_json_get(node, "sep"), &r->tok->suffix, err);
    } else if (strcmp(type, "ByteLevel") != 0) { /* which concerns offsets only */
        return bc_fail(err, BITCONV_E_UNSUPPORTED,
                       "tokenizer.json: post_processor of type %.48s is not supported", type);
    }
    return BITCONV_OK;
}

static enum bitconv_status read_all(struct reading *r, struct bitconv_error *err)
{
    static const struct bc_affixes nothing = {0, 0, 0};
    const struct bc_json *const json = r->files->tokenizer;
    const struct bc_json *const decoder = bc_json_get(json, "decoder");
    BC_TRY(bc_steps_read_normalizer(bc_json_get(json, "normalizer"), &r->tok->normalizer, err));
    BC_TRY(bc_steps_read_pre(bc_json_get(json, "pre_tokenizer"), &r->tok->pre_steps, err));
    BC_TRY(bc_steps_read_decoder(decoder, &r->tok->decoder, err));
    r->tok->joins_with_blanks = r->tok->decoder.n == 0;
    BC_TRY(load_model(r, err));
    BC_TRY(read_processor(r, bc_json_get(json, "post_processor"), err));
    r->tok->pre = bc_pre_name(json, r->tok->model_name);
    r->vocab.model = r->tok->model_name;
    return bc_build_specials(r->tok, r->files, &r->vocab, r->has_template, nothing, r->sink, err);
}

enum bitconv_status bc_tokenizer_of_json(const struct bc_tokenizer_files *files,
                                         const struct bitconv_sink *sink,
                                         struct bitconv_tokenizer **out, struct bitconv_error *err)
{
    struct reading r = {
        .files = files,
        .model = bc_json_get(files->tokenizer, "model"),
        .sink = sink,
        .vocab = {.source = source},
    };
    BC_TRY(bc_build_new(source, "gpt2", &r.tok, err));
    const enum bitconv_status status = read_all(&r, err);
    bc_vocab_release(&r.vocab);
    if (status != BITCONV_OK) {
        bitconv_tokenizer_close(r.tok);
        r.tok = NULL;
    }
    *out = r.tok;
    return status;
}
