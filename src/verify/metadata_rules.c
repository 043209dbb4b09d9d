/* SPDX-License-Identifier: MIT
 * Metadata against tensors: required keys, counts, file_type, as the readers of either target demand
 * them. */
#include "verify/metadata_rules.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "io/gguf_types.h"
#include "model/scale_tensor.h"
#include "verify/metadata_shapes.h"

enum { KEY_BYTES = 160, FILE_TYPE_F16 = 1 };

struct checker {
    const struct bitconv_gguf *file;
    const struct bc_rule_report *report;
    char arch[64]; /* "" when the file does not say or says nonsense */
};

void bc_rule_say(const struct bc_rule_report *report, bool is_error, const char *fmt, ...)
{
    struct bc_buf text = {0};
    va_list ap;
    va_start(ap, fmt);
    bc_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    report->say(report->user, is_error, bc_buf_str(&text));
    bc_buf_release(&text);
}

static void read_arch(struct checker *c)
{
    const char *text = NULL;
    size_t len = 0;
    if (!bitconv_gguf_value_string(bitconv_gguf_find_key(c->file, "general.architecture"), &text,
                                   &len) ||
        len >= sizeof c->arch || memchr(text, '\0', len) != NULL)
        len = 0;
    if (len != 0) memcpy(c->arch, text, len);
    c->arch[len] = '\0';
}

const struct bitconv_gguf_value *bc_arch_key(const struct bitconv_gguf *file, const char *arch,
                                             const char *suffix)
{
    char key[KEY_BYTES];
    if (arch[0] == '\0') return NULL;
    snprintf(key, sizeof key, "%s.%s", arch, suffix);
    return bitconv_gguf_find_key(file, key);
}

static const struct bitconv_gguf_value *arch_key(const struct checker *c, const char *suffix)
{
    return bc_arch_key(c->file, c->arch, suffix);
}

static bool arch_count(const struct checker *c, const char *suffix, uint64_t *out)
{
    return bitconv_gguf_value_u64(arch_key(c, suffix), out);
}

bool bc_gguf_is_model(const struct bitconv_gguf *file)
{
    struct checker c = {.file = file};
    read_arch(&c);
    return bitconv_gguf_find_tensor(file, "token_embd.weight") != NULL ||
           arch_key(&c, "block_count") != NULL;
}

static bool starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Architectures whose readers' demands are known, the key of their normalisation's epsilon, and one
 * that only they have (or NULL). */
static const struct known_arch {
    const char *name, *epsilon, *own;
} known_archs[] = {
    {"llama", "attention.layer_norm_rms_epsilon", NULL},
    {"bitnet", "attention.layer_norm_rms_epsilon", NULL},
    {"bitnet-25", "attention.layer_norm_rms_epsilon", NULL},
    {"bitnet-b1.58", "attention.layer_norm_rms_epsilon", NULL},
    {"qwen2", "attention.layer_norm_rms_epsilon", NULL},
    {"qwen3", "attention.layer_norm_rms_epsilon", NULL},
    {"gemma3", "attention.layer_norm_rms_epsilon", NULL},
    {"gemma-embedding", "attention.layer_norm_rms_epsilon", NULL},
    {"phi3", "attention.layer_norm_rms_epsilon", NULL},
    {"bert", "attention.layer_norm_epsilon", NULL},
    {"lfm2", "attention.layer_norm_rms_epsilon", "shortconv.l_cache"},
};

static const struct known_arch *find_arch(const struct checker *c)
{
    for (size_t i = 0; i < sizeof known_archs / sizeof known_archs[0]; i++)
        if (strcmp(known_archs[i].name, c->arch) == 0) return &known_archs[i];
    return NULL;
}

static void check_required(const struct checker *c, const struct known_arch *known)
{
    static const char *const required[] = {"context_length", "embedding_length", "block_count",
                                           "feed_forward_length", "attention.head_count"};
    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++)
        if (arch_key(c, required[i]) == NULL)
            bc_rule_say(c->report, true, "key %s.%s is missing, its readers demand it", c->arch,
                        required[i]);
    const char *const of_arch[] = {known->epsilon, known->own};
    for (size_t i = 0; i < 2; i++)
        if (of_arch[i] != NULL && arch_key(c, of_arch[i]) == NULL)
            bc_rule_say(c->report, true, "key %s.%s is missing, its readers demand it", c->arch,
                        of_arch[i]);
    if (starts_with(c->arch, "bitnet") && arch_key(c, "hidden_activation") == NULL)
        bc_rule_say(
            c->report, false,
            "key %s.hidden_activation is missing: a reader uses its default, which may not be the "
            "model's activation (relu2 or silu)",
            c->arch);
}

const char *bc_block_name(const char *name, uint64_t *block)
{
    if (!starts_with(name, "blk.")) return NULL;
    const char *p = name + 4;
    size_t digits = 0;
    *block = 0;
    for (; *p >= '0' && *p <= '9' && digits < 10; p++, digits++)
        *block = *block * 10 + (uint64_t)(*p - '0');
    return digits > 0 && *p == '.' ? p + 1 : NULL;
}

static bool is_text(const struct bitconv_gguf_value *v, const char *wanted)
{
    const char *text = NULL;
    size_t len = 0;
    return bitconv_gguf_value_string(v, &text, &len) && len == strlen(wanted) &&
           memcmp(text, wanted, len) == 0;
}

/* Values that no reader can compute with. */
static void check_values(const struct checker *c)
{
    static const struct {
        const char *suffix;
        bool zero_allowed;
    } reals[] = {
        {"rope.freq_base", false},
        {"rope.freq_base_swa", false},
        {"rope.scaling.factor", false},
        {"rope.scaling.attn_factor", false},
        {"attention.scale", false},
        {"attention.layer_norm_epsilon", true},
        {"attention.layer_norm_rms_epsilon", true},
    };
    static const char *const scalings[] = {"none", "linear", "yarn", "longrope", "llama3"};
    enum { MAX_POOLING = 4 }; /* none, mean, cls, last, rank */
    uint64_t pooling = 0;
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) {
        double d = 1;
        (void)bitconv_gguf_value_f64(arch_key(c, reals[i].suffix), &d);
        if (!isfinite(d) || d < 0 || (d == 0 && !reals[i].zero_allowed))
            bc_rule_say(c->report, true, "key %s.%s is %g, a finite positive number was expected",
                        c->arch, reals[i].suffix, d);
    }
    if (arch_count(c, "pooling_type", &pooling) && pooling > MAX_POOLING)
        bc_rule_say(c->report, true, "key %s.pooling_type is %" PRIu64 ", 0 to %d are defined",
                    c->arch, pooling, MAX_POOLING);
    const struct bitconv_gguf_value *scaling = arch_key(c, "rope.scaling.type");
    bool known = scaling == NULL;
    for (size_t i = 0; i < sizeof scalings / sizeof scalings[0]; i++)
        known = known || is_text(scaling, scalings[i]);
    if (!known)
        bc_rule_say(c->report, false, "key %s.rope.scaling.type is none that readers know",
                    c->arch);
}

/* True when the blocks are as many as the key says. */
static bool check_blocks(const struct checker *c, uint64_t *n_blocks)
{
    uint64_t block_count = 0;
    uint64_t found = 0; /* highest block + 1 */
    const char *last = NULL;
    for (size_t i = 0; i < bitconv_gguf_n_tensors(c->file); i++) {
        const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(c->file, i);
        uint64_t block = 0;
        if (bc_block_name(t->name, &block) == NULL || block < found) continue;
        found = block + 1;
        last = t->name;
    }
    if (!arch_count(c, "block_count", &block_count) || bitconv_gguf_n_tensors(c->file) == 0)
        return false;
    if (found > block_count)
        bc_rule_say(c->report, true, "tensor %s: key %s.block_count says %" PRIu64 " blocks", last,
                    c->arch, block_count);
    else if (found < block_count)
        bc_rule_say(c->report, true,
                    "key %s.block_count says %" PRIu64 " blocks, the tensors are of %" PRIu64,
                    c->arch, block_count, found);
    *n_blocks = block_count;
    return found == block_count;
}

static uint64_t array_count(const struct checker *c, const char *key, bool *found)
{
    const struct bitconv_gguf_value *v = bitconv_gguf_find_key(c->file, key);
    *found = v != NULL && v->type == BITCONV_GGUF_ARRAY;
    return *found ? v->count : 0;
}

static void check_token_arrays(const struct checker *c, uint64_t n_tokens)
{
    static const char *const parallel[] = {"tokenizer.ggml.scores", "tokenizer.ggml.token_type"};
    static const char *const ids[] = {
        "bos_token_id",       "eos_token_id", "unknown_token_id", "padding_token_id",
        "seperator_token_id", "cls_token_id", "mask_token_id",    "eot_token_id",
    };
    bool found = false;
    for (size_t i = 0; i < sizeof parallel / sizeof parallel[0]; i++) {
        const uint64_t n = array_count(c, parallel[i], &found);
        if (found && n != n_tokens)
            bc_rule_say(c->report, true,
                        "key %s has %" PRIu64 " entries, tokenizer.ggml.tokens has %" PRIu64,
                        parallel[i], n, n_tokens);
    }
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        char key[KEY_BYTES];
        uint64_t id = 0;
        snprintf(key, sizeof key, "tokenizer.ggml.%s", ids[i]);
        if (bitconv_gguf_value_u64(bitconv_gguf_find_key(c->file, key), &id) && id >= n_tokens)
            bc_rule_say(c->report, true,
                        "key %s is %" PRIu64 ", the vocabulary has %" PRIu64 " tokens", key, id,
                        n_tokens);
    }
}

/* Files that say so, and those that are no models (general.type: adapter, predictor, ...). */
static bool has_no_vocabulary(const struct checker *c)
{
    const struct bitconv_gguf_value *model = bitconv_gguf_find_key(c->file, "tokenizer.ggml.model");
    const struct bitconv_gguf_value *type = bitconv_gguf_find_key(c->file, "general.type");
    return is_text(model, "no_vocab") || is_text(model, "none") ||
           (type != NULL && !is_text(type, "model"));
}

/* A byte-level BPE is nothing without its merges (llama.cpp #9692). */
static void check_merges(const struct checker *c)
{
    const struct bitconv_gguf_value *model = bitconv_gguf_find_key(c->file, "tokenizer.ggml.model");
    bool found = false;
    const uint64_t n = array_count(c, "tokenizer.ggml.merges", &found);
    if (model == NULL)
        bc_rule_say(c->report, true, "key tokenizer.ggml.model is missing, readers demand it");
    else if (is_text(model, "gpt2") && n == 0)
        bc_rule_say(c->report, true, "key tokenizer.ggml.merges is %s, the model gpt2 needs them",
                    found ? "empty" : "missing");
}

/* The rows of the embedding are the authority for the size of the vocabulary. */
static void check_vocabulary(const struct checker *c)
{
    const struct bitconv_gguf_tensor *embd = bitconv_gguf_find_tensor(c->file, "token_embd.weight");
    uint64_t n = 0;
    bool found = false;
    const uint64_t n_tokens = array_count(c, "tokenizer.ggml.tokens", &found);
    if (embd != NULL && arch_count(c, "embedding_length", &n) && n != embd->ne[0])
        bc_rule_say(c->report, true,
                    "tensor token_embd.weight: rows of %" PRIu64
                    ", key %s.embedding_length says %" PRIu64,
                    embd->ne[0], c->arch, n);
    if (embd != NULL && arch_count(c, "vocab_size", &n) && n != embd->ne[1])
        bc_rule_say(c->report, true,
                    "tensor token_embd.weight: %" PRIu64 " rows, key %s.vocab_size says %" PRIu64,
                    embd->ne[1], c->arch, n);
    if (has_no_vocabulary(c)) return;
    if (!found) {
        if (c->arch[0] != '\0')
            bc_rule_say(c->report, true, "key tokenizer.ggml.tokens is missing, readers demand it");
        return;
    }
    if (embd != NULL && n_tokens != embd->ne[1])
        bc_rule_say(c->report, true,
                    "tensor token_embd.weight: %" PRIu64 " rows, tokenizer.ggml.tokens has %" PRIu64
                    " entries",
                    embd->ne[1], n_tokens);
    check_token_arrays(c, n_tokens);
    check_merges(c);
}

/* What general.file_type promises. Ids 38 to 42 mean one thing in bitnet.cpp and another in
 * mainline; either will do. A file_type of a mixture ("mostly Q4_K") promises nothing that could be
 * checked. */
static const struct file_type {
    uint64_t id;
    const char *types[2];
} file_types[] = {
    {0, {"F32", NULL}},     {1, {"F16", NULL}},    {7, {"Q8_0", NULL}},    {32, {"BF16", NULL}},
    {36, {"TQ1_0", NULL}},  {37, {"TQ2_0", NULL}}, {38, {"TL1", "MXFP4"}}, {39, {"TL2", "NVFP4"}},
    {40, {"I2_S", "Q1_0"}}, {41, {"Q2_0", NULL}},  {42, {"TL2", NULL}},
};

static size_t count_types(const struct checker *c, const struct file_type *row, size_t *n_matrices)
{
    size_t n = 0;
    for (size_t i = 0; i < bitconv_gguf_n_tensors(c->file); i++) {
        const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(c->file, i);
        *n_matrices += t->n_dims >= 2;
        for (size_t j = 0; j < 2; j++)
            n += row->types[j] != NULL && strcmp(row->types[j], t->type_name) == 0;
    }
    return n;
}

static bool holds_type(const struct checker *c, const char *type)
{
    for (size_t i = 0; i < bitconv_gguf_n_tensors(c->file); i++)
        if (strcmp(bitconv_gguf_tensor_at(c->file, i)->type_name, type) == 0) return true;
    return false;
}

/* Only rows that mean one thing, a type of blocks. */
static bool holds_misfits_only(const struct checker *c, const struct file_type *row)
{
    const struct bc_type *type = bc_type_by_name(row->types[0], BITCONV_DIALECT_UPSTREAM);
    if (row->types[1] != NULL || type == NULL || type->block <= 1 || !holds_type(c, "F16"))
        return false;
    for (size_t i = 0; i < bitconv_gguf_n_tensors(c->file); i++) {
        const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(c->file, i);
        if (t->n_dims >= 2 && t->ne[0] % type->block == 0) return false;
    }
    return true;
}

bool bc_gguf_holds_misfits_only(const struct bitconv_gguf *file, uint64_t file_type)
{
    const struct checker c = {.file = file};
    for (size_t i = 0; i < sizeof file_types / sizeof file_types[0]; i++)
        if (file_types[i].id == file_type) return holds_misfits_only(&c, &file_types[i]);
    return false;
}

/* Packs of bitnet.cpp, whose files say so. */
static const struct pack_type {
    const char *type;
    uint64_t ids[2];
} pack_types[] = {{"I2_S", {40, 40}}, {"TL1", {38, 38}}, {"TL2", {39, 42}}};

/* Outtype auto: no id stands for a mixture of packs, "mostly F16" does. */
static bool is_mixture(const struct checker *c)
{
    size_t n = 0;
    for (size_t i = 0; i < sizeof pack_types / sizeof pack_types[0]; i++)
        n += holds_type(c, pack_types[i].type);
    return n > 1 || bitconv_gguf_find_key(c->file, "bitconv.auto") != NULL;
}

/* A file type other than that of the packs in the file. */
static void check_pack_type(const struct checker *c, uint64_t id)
{
    const struct pack_type *missed = NULL;
    if (id == FILE_TYPE_F16 && is_mixture(c)) return;
    for (size_t i = 0; i < sizeof pack_types / sizeof pack_types[0]; i++) {
        const struct pack_type *row = &pack_types[i];
        if (!holds_type(c, row->type)) continue;
        if (id == row->ids[0] || id == row->ids[1]) return;
        missed = row;
    }
    if (missed != NULL)
        bc_rule_say(c->report, true,
                    "general.file_type is %" PRIu64 ", the file holds %s tensors (%" PRIu64 ")", id,
                    missed->type, missed->ids[0]);
}

static void check_file_type(const struct checker *c)
{
    uint64_t id = 0;
    size_t n_matrices = 0;
    if (!bitconv_gguf_value_u64(bitconv_gguf_find_key(c->file, "general.file_type"), &id)) return;
    for (size_t i = 0; i < sizeof file_types / sizeof file_types[0]; i++) {
        const struct file_type *row = &file_types[i];
        if (row->id != id) continue;
        if (count_types(c, row, &n_matrices) > 0 || n_matrices == 0) continue;
        /* As payload files say, and those of outtype auto. */
        if (holds_misfits_only(c, row)) continue;
        if (id == FILE_TYPE_F16 && (holds_type(c, "I8") || is_mixture(c))) continue;
        bc_rule_say(c->report, true,
                    "general.file_type %" PRIu64 " says %s%s%s%s, 0 tensors are %s", id,
                    row->types[0], row->types[1] != NULL ? " (in mainline " : "",
                    row->types[1] != NULL ? row->types[1] : "", row->types[1] != NULL ? ")" : "",
                    row->types[0]);
        return;
    }
    check_pack_type(c, id);
}

/* What is called like the scales of a tensor of blocks and cannot be them is not applied. */
static void check_scale_tensors(const struct checker *c)
{
    for (size_t i = 0; i < bitconv_gguf_n_tensors(c->file); i++) {
        const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(c->file, i);
        const struct bitconv_gguf_tensor *weight = bc_scale_named_owner(c->file, t);
        if (weight == NULL || bc_scale_owner(c->file, t) != NULL) continue;
        bc_rule_say(c->report, true,
                    "tensor %s: cannot hold the scales of %s: an F32 vector of one value, or one "
                    "per slice, was expected",
                    t->name, weight->name);
    }
}

/* Another converter keeps the scale in a tensor of its own, to be divided by: never applied
 * silently. */
static void check_companions(const struct checker *c)
{
    for (size_t i = 0; i < bitconv_gguf_n_tensors(c->file); i++) {
        const char *name = bitconv_gguf_tensor_at(c->file, i)->name;
        const size_t len = strlen(name);
        if (len > 6 && strcmp(name + len - 6, "_scale") == 0) {
            bc_rule_say(
                c->report, false,
                "tensor %s: a companion scale, as other converters write it; it is not applied",
                name);
            return;
        }
    }
}

void bc_check_model_metadata(const struct bitconv_gguf *file, const struct bc_rule_report *report)
{
    struct checker c = {.file = file, .report = report};
    read_arch(&c);
    check_file_type(&c);
    check_companions(&c);
    check_scale_tensors(&c);
    if (!bc_gguf_is_model(file)) return;
    const struct known_arch *known = find_arch(&c);
    uint64_t n_blocks = 0;
    if (known != NULL) check_required(&c, known);
    if (check_blocks(&c, &n_blocks) && known != NULL)
        bc_check_model_tensors(file, c.arch, n_blocks, report);
    check_values(&c);
    check_vocabulary(&c);
    if (known != NULL) bc_check_model_shapes(file, c.arch, report);
}
