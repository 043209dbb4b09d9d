/* SPDX-License-Identifier: MIT
 * Findings about GGUF metadata: well-known keys of the wrong type, negative counts, bools that are
 * neither 0 nor 1 (formats/gguf.md, "Metadata"). */
#include "io/gguf_impl.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What a key must hold. COUNT: an integer of any width that is not negative. */
enum kind {
    KIND_STRING,
    KIND_COUNT,
    KIND_COUNTS, /* a COUNT, or an array of them: one per layer */
    KIND_FLOAT,
    KIND_BOOL,
    KIND_STRINGS,
    KIND_FLOATS,
    KIND_INTEGERS
};

static const char *const wanted[] = {"STRING",
                                     "an integer that is not negative",
                                     "an integer that is not negative, or an array of them",
                                     "FLOAT32",
                                     "BOOL",
                                     "an array of STRING",
                                     "an array of FLOAT32",
                                     "an array of integers"};

struct rule {
    const char *key; /* a leading "*" stands for the architecture's name */
    enum kind kind;
};

static const struct rule rules[] = {
    {"general.architecture", KIND_STRING},
    {"general.name", KIND_STRING},
    {"general.type", KIND_STRING},
    {"general.file_type", KIND_COUNT},
    {"general.quantization_version", KIND_COUNT},
    {"split.no", KIND_COUNT},
    {"split.count", KIND_COUNT},
    {"split.tensors.count", KIND_COUNT},
    {"*.context_length", KIND_COUNT},
    {"*.embedding_length", KIND_COUNT},
    {"*.block_count", KIND_COUNT},
    {"*.vocab_size", KIND_COUNT},
    {"*.feed_forward_length", KIND_COUNTS},
    {"*.expert_count", KIND_COUNT},
    {"*.expert_used_count", KIND_COUNT},
    {"*.pooling_type", KIND_COUNT},
    {"*.hidden_activation", KIND_STRING},
    {"*.attention.head_count", KIND_COUNTS},
    {"*.attention.head_count_kv", KIND_COUNTS},
    {"*.attention.key_length", KIND_COUNT},
    {"*.attention.value_length", KIND_COUNT},
    {"*.attention.sliding_window", KIND_COUNT},
    {"*.attention.layer_norm_epsilon", KIND_FLOAT},
    {"*.attention.layer_norm_rms_epsilon", KIND_FLOAT},
    {"*.attention.scale", KIND_FLOAT},
    {"*.attention.causal", KIND_BOOL},
    {"*.rope.dimension_count", KIND_COUNT},
    {"*.rope.freq_base", KIND_FLOAT},
    {"*.rope.freq_base_swa", KIND_FLOAT},
    {"*.rope.scaling.type", KIND_STRING},
    {"*.rope.scaling.factor", KIND_FLOAT},
    {"*.rope.scaling.original_context_length", KIND_COUNT},
    {"tokenizer.ggml.model", KIND_STRING},
    {"tokenizer.ggml.pre", KIND_STRING},
    {"tokenizer.ggml.tokens", KIND_STRINGS},
    {"tokenizer.ggml.merges", KIND_STRINGS},
    {"tokenizer.ggml.scores", KIND_FLOATS},
    {"tokenizer.ggml.token_type", KIND_INTEGERS},
    {"tokenizer.ggml.token_type_count", KIND_COUNT},
    {"tokenizer.ggml.bos_token_id", KIND_COUNT},
    {"tokenizer.ggml.eos_token_id", KIND_COUNT},
    {"tokenizer.ggml.eot_token_id", KIND_COUNT},
    {"tokenizer.ggml.unknown_token_id", KIND_COUNT},
    {"tokenizer.ggml.padding_token_id", KIND_COUNT},
    {"tokenizer.ggml.mask_token_id", KIND_COUNT},
    {"tokenizer.ggml.add_bos_token", KIND_BOOL},
    {"tokenizer.ggml.add_eos_token", KIND_BOOL},
    {"tokenizer.ggml.add_space_prefix", KIND_BOOL},
    {"tokenizer.chat_template", KIND_STRING},
    {"bitconv.version", KIND_STRING},
    {"bitconv.source", KIND_STRING},
    {"bitconv.fingerprint", KIND_STRING},
    {"bitconv.auto", KIND_STRING},
    {"bitconv.tensor.name", KIND_STRINGS},
    {"bitconv.tensor.pack", KIND_STRINGS},
    {"bitconv.tensor.fingerprint", KIND_STRINGS},
    {"bitconv.tensor.zeros", KIND_FLOATS},
    {"bitconv.tensor.tile", KIND_INTEGERS},
};

static bool is_integer(enum bitconv_gguf_type type)
{
    return type != BITCONV_GGUF_STRING && type != BITCONV_GGUF_ARRAY && type != BITCONV_GGUF_BOOL &&
           type != BITCONV_GGUF_FLOAT32 && type != BITCONV_GGUF_FLOAT64;
}

static bool are_counts(const struct bitconv_gguf_value *v)
{
    struct bitconv_gguf_value element;
    uint64_t count;
    if (!is_integer(v->elem)) return false;
    for (uint64_t i = 0; i < v->count; i++) {
        if (!bitconv_gguf_array_at(v, i, &element) || !bitconv_gguf_value_u64(&element, &count)) {
            return false;
        }
    }
    return true;
}

static bool obeys(const struct bitconv_gguf_value *v, enum kind kind)
{
    uint64_t u;
    const bool array = v->type == BITCONV_GGUF_ARRAY;
    switch (kind) {
    case KIND_STRING:
        return v->type == BITCONV_GGUF_STRING;
    case KIND_COUNT:
        return bitconv_gguf_value_u64(v, &u);
    case KIND_COUNTS:
        return array ? are_counts(v) : bitconv_gguf_value_u64(v, &u);
    case KIND_FLOAT:
        return v->type == BITCONV_GGUF_FLOAT32 || v->type == BITCONV_GGUF_FLOAT64;
    case KIND_BOOL:
        return v->type == BITCONV_GGUF_BOOL;
    case KIND_STRINGS:
        return array && v->elem == BITCONV_GGUF_STRING;
    case KIND_FLOATS:
        return array && v->elem == BITCONV_GGUF_FLOAT32;
    case KIND_INTEGERS:
        return array && is_integer(v->elem);
    }
    return false;
}

static void describe(const struct bitconv_gguf_value *v, char *out, size_t size)
{
    int64_t i;
    if (v->type == BITCONV_GGUF_ARRAY) {
        snprintf(out, size, "ARRAY of %" PRIu64 " %s", v->count, bitconv_gguf_type_name(v->elem));
    } else if (bitconv_gguf_value_i64(v, &i) && i < 0) {
        snprintf(out, size, "%s %" PRId64, bitconv_gguf_type_name(v->type), i);
    } else {
        snprintf(out, size, "%s", bitconv_gguf_type_name(v->type));
    }
}

static void check_rule(struct bitconv_gguf *g, const struct rule *rule, const char *arch)
{
    char key[192], found[64];
    if (rule->key[0] == '*') {
        if (arch == NULL) return;
        snprintf(key, sizeof key, "%s%s", arch, rule->key + 1);
    } else {
        snprintf(key, sizeof key, "%s", rule->key);
    }
    const struct bitconv_gguf_value *v = bitconv_gguf_find_key(g, key);
    if (v == NULL || obeys(v, rule->kind)) return;
    describe(v, found, sizeof found);
    bc_gguf_note(g, &g->findings, true, "key %s: %s, wanted %s", key, found, wanted[rule->kind]);
}

static void check_bools(struct bitconv_gguf *g, const struct bitconv_gguf_key *key)
{
    const struct bitconv_gguf_value *v = &key->value;
    const enum bitconv_gguf_type type = v->type == BITCONV_GGUF_ARRAY ? v->elem : v->type;
    if (type != BITCONV_GGUF_BOOL) return;
    for (uint64_t i = 0; i < v->size; i++) {
        if (v->data[i] <= 1) continue;
        bc_gguf_note(g, &g->findings, true, "key %s: a BOOL of value %u, only 0 and 1 are legal",
                     bc_gguf_key_label(key).text, (unsigned)v->data[i]);
        return;
    }
}

/* Strings in arrays are left alone: vocabularies of byte tokens are not UTF-8 in the wild. */
static void check_text(struct bitconv_gguf *g, const struct bitconv_gguf_key *key)
{
    const char *text;
    size_t len;
    if (!bitconv_gguf_value_string(&key->value, &text, &len) || bc_utf8_valid(text, len)) return;
    bc_gguf_note(g, &g->findings, false, "key %s: its text is not UTF-8",
                 bc_gguf_key_label(key).text);
}

/* Weights stored in another basis look like any others: only this key tells. */
static void check_transforms(struct bitconv_gguf *g)
{
    for (size_t i = 0; i < g->shards[0].n_keys; i++) {
        const struct bitconv_gguf_key *key = &g->shards[0].keys[i];
        if (strncmp(key->name, "prism.hadamard.", sizeof "prism.hadamard." - 1) != 0) continue;
        bc_gguf_note(g, &g->findings, false,
                     "key %s: declares a transform of the weights that bitconv does not undo",
                     bc_gguf_key_label(key).text);
        return;
    }
}

void bc_gguf_check_metadata(struct bitconv_gguf *g)
{
    const struct bitconv_gguf_value *arch = bitconv_gguf_find_key(g, "general.architecture");
    char name[80];
    const char *text;
    size_t len;
    bool usable = false;
    if (arch == NULL) {
        bc_gguf_note(g, &g->findings, true, "key general.architecture is missing");
    } else if (bitconv_gguf_value_string(arch, &text, &len)) {
        usable = len > 0 && len < sizeof name && memchr(text, '\0', len) == NULL;
        if (!usable) {
            bc_gguf_note(g, &g->findings, true,
                         "key general.architecture: a text of %zu bytes is not a name", len);
        } else {
            snprintf(name, sizeof name, "%.*s", (int)len, text);
        }
    }
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        check_rule(g, &rules[i], usable ? name : NULL);
    }
    for (size_t i = 0; i < g->shards[0].n_keys; i++) {
        check_bools(g, &g->shards[0].keys[i]);
        check_text(g, &g->shards[0].keys[i]);
    }
    check_transforms(g);
}
