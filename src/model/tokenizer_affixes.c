/* SPDX-License-Identifier: MIT
 * What is put around a text: the post_processor of tokenizer.json and the add_*_token switches.
 * The rules are those by which gguf-py's SpecialVocab reads simple templates. */
#include <string.h>

#include "base/error.h"
#include "model/tokenizer_special.h"

struct reading {
    const struct bc_vocab *vocab;
    const struct bitconv_sink *sink;
    struct bc_specials *specials;
    struct bc_affixes *affixes;
};

/* The token of a template's element, NULL when it is a sequence or not in the vocabulary. */
static const struct bc_token *token_of(const struct bc_vocab *vocab, const struct bc_json *element)
{
    const char *const text = bc_json_string(bc_json_path(element, "SpecialToken.id"));
    return text == NULL ? NULL : bc_vocab_find(vocab, text, strlen(text));
}

static int64_t special_of(const struct reading *r, const struct bc_json *element)
{
    const struct bc_token *const token = token_of(r->vocab, element);
    return token == NULL ? -1 : (int64_t)token->id;
}

/* The last child, NULL when there are fewer than two: a template of one element adds nothing. */
static const struct bc_json *last_of_several(const struct bc_json *list)
{
    const struct bc_json *last = bc_json_first(list);
    const struct bc_json *const first = last;
    for (const struct bc_json *node = first; node != NULL; node = bc_json_next(node))
        last = node;
    return last == first ? NULL : last;
}

static bool is_template(const struct bc_json *processor)
{
    const char *const type = bc_json_string(bc_json_get(processor, "type"));
    return type != NULL && strcmp(type, "TemplateProcessing") == 0;
}

const struct bc_token *bc_affixes_end(const struct bc_tokenizer_files *files,
                                      const struct bc_vocab *vocab)
{
    const struct bc_json *const processor = bc_json_get(files->tokenizer, "post_processor");
    if (is_template(processor))
        return token_of(vocab, last_of_several(bc_json_get(processor, "single")));
    const struct bc_token *end = NULL;
    for (const struct bc_json *node = bc_json_first(bc_json_get(processor, "processors"));
         node != NULL; node = bc_json_next(node))
        if (is_template(node)) end = token_of(vocab, last_of_several(bc_json_get(node, "single")));
    return end;
}

static bool is_sequence(const struct bc_json *element, const char *name)
{
    const char *const id = bc_json_string(bc_json_path(element, "Sequence.id"));
    return id != NULL && strcmp(id, name) == 0;
}

static bool is_kind(const struct reading *r, int64_t id, enum bc_special kind)
{
    return id >= 0 && r->specials->id[kind] == id;
}

/* Between A and B of the pair template stands a separator when no token ends every text and one
 * does stand there, or when two do ("A sep eos B"). */
static int separator_of_pair(const struct reading *r, const struct bc_json *pair, int64_t last)
{
    const struct bc_json *node = bc_json_first(pair);
    while (node != NULL && !is_sequence(node, "A"))
        node = bc_json_next(node);
    node = bc_json_next(node);
    if (node == NULL || is_sequence(node, "B")) return -1;
    const int64_t first = special_of(r, node);
    const struct bc_json *const after = bc_json_next(node);
    const bool known = is_kind(r, first, BC_SPECIAL_SEP) || is_kind(r, first, BC_SPECIAL_EOS);
    if (is_sequence(after, "B")) return known && last < 0;
    const int64_t second = special_of(r, after);
    return is_sequence(bc_json_next(after), "B") &&
           (is_kind(r, second, BC_SPECIAL_SEP) || is_kind(r, second, BC_SPECIAL_EOS));
}

static void read_template(const struct reading *r, const struct bc_json *processor)
{
    const struct bc_json *const single = bc_json_get(processor, "single");
    const struct bc_json *const tail = last_of_several(single);
    const int64_t first = tail == NULL ? -1 : special_of(r, bc_json_first(single));
    const int64_t last = special_of(r, tail);
    if (first >= 0) {
        r->affixes->bos = is_kind(r, first, BC_SPECIAL_BOS) || is_kind(r, first, BC_SPECIAL_CLS);
        if (!r->affixes->bos)
            bc_say(r->sink, BITCONV_WARNING,
                   "tokenizer.json: post_processor starts a text with a token that is neither bos "
                   "nor cls; readers of the file will not add it");
    }
    if (last >= 0) r->affixes->eos = 1;
    const int sep = separator_of_pair(r, bc_json_get(processor, "pair"), last);
    if (sep >= 0) r->affixes->sep = sep;
    if (sep == 1 && r->specials->id[BC_SPECIAL_SEP] < 0 && r->specials->id[BC_SPECIAL_EOS] >= 0)
        bc_specials_set(r->specials, BC_SPECIAL_SEP, (uint32_t)r->specials->id[BC_SPECIAL_EOS],
                        "tokenizer.json");
}

static void read_processor(const struct reading *r, const struct bc_json *processor)
{
    const char *const type = bc_json_string(bc_json_get(processor, "type"));
    if (type == NULL) return;
    if (is_template(processor)) {
        read_template(r, processor);
    } else if (strcmp(type, "RobertaProcessing") == 0 || strcmp(type, "BertProcessing") == 0) {
        *r->affixes = (struct bc_affixes){1, 1, strcmp(type, "RobertaProcessing") == 0};
    } else if (strcmp(type, "ByteLevel") == 0) {
        if (r->affixes->bos < 0) r->affixes->bos = 0;
        if (r->affixes->eos < 0) r->affixes->eos = 0;
    }
}

/* A switch of tokenizer_config.json: used where the post_processor says nothing. */
static void read_switch(const struct reading *r, const struct bc_json *config, const char *key,
                        int *affix)
{
    bool value;
    if (!bc_json_bool(bc_json_get(config, key), &value)) return;
    if (*affix < 0)
        *affix = value;
    else if (*affix != (int)value)
        bc_say(r->sink, BITCONV_WARNING,
               "tokenizer_config.json: %s is %s, but the post_processor of tokenizer.json says "
               "otherwise; the latter is taken",
               key, value ? "true" : "false");
}

void bc_affixes_find(const struct bc_tokenizer_files *files, const struct bc_vocab *vocab,
                     const struct bitconv_sink *sink, struct bc_specials *specials,
                     struct bc_affixes *out)
{
    *out = (struct bc_affixes){-1, -1, -1};
    /* BertTokenizer, which is the one with a vocab.txt, always puts cls and sep around a text */
    if (strcmp(vocab->source, "vocab.txt") == 0) *out = (struct bc_affixes){1, 1, 0};
    const struct reading r = {vocab, sink, specials, out};
    const struct bc_json *const processor = bc_json_get(files->tokenizer, "post_processor");
    const struct bc_json *const list = bc_json_get(processor, "processors");
    read_processor(&r, processor);
    for (const struct bc_json *node = bc_json_first(list); node != NULL; node = bc_json_next(node))
        read_processor(&r, node);
    read_switch(&r, files->config, "add_bos_token", &out->bos);
    read_switch(&r, files->config, "add_eos_token", &out->eos);
    read_switch(&r, files->config, "add_sep_token", &out->sep);
    /* A byte-level tokenizer.json that names nothing adds nothing; readers of some pre-tokenizers
     * would add bos on their own. */
    if (files->tokenizer != NULL && strcmp(vocab->model, "gpt2") == 0) {
        if (out->bos < 0) out->bos = 0;
        if (out->eos < 0) out->eos = 0;
    }
}
