/* SPDX-License-Identifier: MIT
 * The architecture's numbers against the tensors (key names: ggml docs/gguf.md; shapes: what
 * the engine's graph multiplies). */
#include "verify/metadata_shapes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/map.h"
#include "model/scale_tensor.h"

/* Hostile files may lack a tensor in each of many blocks: the first ones say enough. */
enum { MAX_MISSING = 16 };

/* Longer ones than the format allows (64 bytes) are none of a block's. */
enum { MAX_SUFFIX = 64, BLOCK_NAME_BYTES = MAX_SUFFIX + 32 };

/* The numbers that shapes follow from; 0 where the file does not say. */
enum number {
    NONE,
    EMBD,
    FFN,
    EXPERT_FFN,
    EXPERTS,
    KEY,
    VALUE,
    Q_ROWS,
    K_ROWS,
    V_ROWS,
    O_COLUMNS,
    QKV_ROWS,
    GATE_UP_ROWS,
    CONV_ROWS,
    CONV_LENGTH,
    POSITIONS,
    ROTARY_PAIRS,
    N_NUMBERS
};

static const char *const meanings[N_NUMBERS] = {
    [EMBD] = "embedding_length",
    [FFN] = "feed_forward_length",
    [EXPERT_FFN] = "expert_feed_forward_length (or feed_forward_length)",
    [EXPERTS] = "expert_count",
    [KEY] = "attention.key_length",
    [VALUE] = "attention.value_length",
    [Q_ROWS] = "attention.head_count times key_length",
    [K_ROWS] = "attention.head_count_kv times key_length",
    [V_ROWS] = "attention.head_count_kv times value_length",
    [O_COLUMNS] = "attention.head_count times value_length",
    [QKV_ROWS] = "attention.head_count and head_count_kv times key_length and value_length",
    [GATE_UP_ROWS] = "feed_forward_length times 2",
    [CONV_ROWS] = "embedding_length times 3",
    [CONV_LENGTH] = "shortconv.l_cache",
    [POSITIONS] = "context_length",
    [ROTARY_PAIRS] = "rope.dimension_count / 2",
};

/* ne[0] = columns, ne[1] = rows, ne[2] = experts. */
struct shape_rule {
    const char *suffix;
    enum number ne[3];
};

static const struct shape_rule block_rules[] = {
    {"attn_norm.weight", {EMBD}},
    {"attn_q.weight", {EMBD, Q_ROWS}},
    {"attn_k.weight", {EMBD, K_ROWS}},
    {"attn_v.weight", {EMBD, V_ROWS}},
    {"attn_qkv.weight", {EMBD, QKV_ROWS}},
    {"attn_output.weight", {O_COLUMNS, EMBD}},
    {"attn_q.bias", {Q_ROWS}},
    {"attn_k.bias", {K_ROWS}},
    {"attn_v.bias", {V_ROWS}},
    {"attn_qkv.bias", {QKV_ROWS}},
    {"attn_output.bias", {EMBD}},
    {"attn_output_norm.weight", {EMBD}},
    {"attn_output_norm.bias", {EMBD}},
    {"layer_output_norm.weight", {EMBD}},
    {"layer_output_norm.bias", {EMBD}},
    {"shortconv.in_proj.weight", {EMBD, CONV_ROWS}},
    {"shortconv.conv.weight", {CONV_LENGTH, EMBD}},
    {"shortconv.out_proj.weight", {EMBD, EMBD}},
    {"attn_q_norm.weight", {KEY}},
    {"attn_k_norm.weight", {KEY}},
    {"attn_sub_norm.weight", {O_COLUMNS}},
    {"post_attention_norm.weight", {EMBD}},
    {"ffn_norm.weight", {EMBD}},
    {"ffn_gate.weight", {EMBD, FFN}},
    {"ffn_up.weight", {EMBD, FFN}},
    {"ffn_down.weight", {FFN, EMBD}},
    {"ffn_up.bias", {FFN}},
    {"ffn_down.bias", {EMBD}},
    {"ffn_sub_norm.weight", {FFN}},
    {"post_ffw_norm.weight", {EMBD}},
    {"ffn_gate_inp.weight", {EMBD, EXPERTS}},
    {"ffn_gate_exps.weight", {EMBD, EXPERT_FFN, EXPERTS}},
    {"ffn_up_exps.weight", {EMBD, EXPERT_FFN, EXPERTS}},
    {"ffn_down_exps.weight", {EXPERT_FFN, EMBD, EXPERTS}},
};

/* What one architecture has otherwise. */
static const struct {
    const char *arch;
    struct shape_rule rule;
} own_rules[] = {
    {"phi3", {"ffn_up.weight", {EMBD, GATE_UP_ROWS}}}, /* gate and up in one tensor */
};

static const struct shape_rule model_rules[] = {
    {"output_norm.weight", {EMBD}},
    {"output.weight", {EMBD}},
    {"token_embd_norm.weight", {EMBD}},
    {"token_embd_norm.bias", {EMBD}},
    {"position_embd.weight", {EMBD, POSITIONS}},
    {"token_types.weight", {EMBD}},
    {"rope_factors_long.weight", {ROTARY_PAIRS}},
    {"rope_factors_short.weight", {ROTARY_PAIRS}},
};

struct checker {
    const struct bitconv_gguf *file;
    const char *arch;
    const struct bc_rule_report *report;
};

/* A number of the architecture, for one block where it is an array; 0 when not stated. */
static uint64_t stated(const struct checker *c, const char *suffix, uint64_t block)
{
    const struct bitconv_gguf_value *v = bc_arch_key(c->file, c->arch, suffix);
    struct bitconv_gguf_value element;
    uint64_t n = 0;
    if (v != NULL && v->type == BITCONV_GGUF_ARRAY)
        v = bitconv_gguf_array_at(v, block, &element) ? &element : NULL;
    return bitconv_gguf_value_u64(v, &n) ? n : 0;
}

static uint64_t either(uint64_t first, uint64_t otherwise)
{
    return first != 0 ? first : otherwise;
}

/* Products of what the file states; one that overflows is no size of a tensor, and is left out. */
static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product = 0;
    return bc_mul_u64(a, b, &product) ? product : 0;
}

/* 0 where one of both is not stated, or no sum. */
static uint64_t sum(uint64_t a, uint64_t b)
{
    return a != 0 && b != 0 && a <= UINT64_MAX - b ? a + b : 0;
}

static void read_numbers(const struct checker *c, uint64_t block, uint64_t out[N_NUMBERS])
{
    const uint64_t heads = stated(c, "attention.head_count", block);
    const uint64_t kv_heads = either(stated(c, "attention.head_count_kv", block), heads);
    memset(out, 0, N_NUMBERS * sizeof *out);
    out[EMBD] = stated(c, "embedding_length", block);
    out[FFN] = stated(c, "feed_forward_length", block);
    out[EXPERT_FFN] = either(stated(c, "expert_feed_forward_length", block), out[FFN]);
    out[EXPERTS] = stated(c, "expert_count", block);
    const uint64_t head_size = heads != 0 ? out[EMBD] / heads : 0;
    out[KEY] = either(stated(c, "attention.key_length", block), head_size);
    out[VALUE] = either(stated(c, "attention.value_length", block), head_size);
    out[Q_ROWS] = times(heads, out[KEY]);
    out[K_ROWS] = times(kv_heads, out[KEY]);
    out[V_ROWS] = times(kv_heads, out[VALUE]);
    out[O_COLUMNS] = times(heads, out[VALUE]);
    out[QKV_ROWS] = sum(out[Q_ROWS], sum(out[K_ROWS], out[V_ROWS]));
    out[GATE_UP_ROWS] = times(2, out[FFN]);
    out[CONV_ROWS] = times(3, out[EMBD]);
    out[CONV_LENGTH] = stated(c, "shortconv.l_cache", block);
    out[POSITIONS] = stated(c, "context_length", block);
    out[ROTARY_PAIRS] = stated(c, "rope.dimension_count", block) / 2;
}

/* Containers of their own format (T5, BITCOS) are bytes in one dimension; the pack's header holds
 * the shape. */
static bool is_payload(const struct bitconv_gguf_tensor *t)
{
    return t->n_dims == 1 && strcmp(t->type_name, "I8") == 0;
}

static void check_rule(const struct checker *c, const struct bitconv_gguf_tensor *t,
                       const struct shape_rule *rule, const uint64_t numbers[N_NUMBERS])
{
    static const char *const axes[] = {"columns", "rows", "slices"};
    for (size_t d = 0; d < 3; d++) {
        const uint64_t wanted = numbers[rule->ne[d]];
        if (rule->ne[d] == NONE || wanted == 0 || t->ne[d] == wanted) continue;
        bc_rule_say(c->report, true, "tensor %s: %" PRIu64 " %s, %s.%s gives %" PRIu64, t->name,
                    t->ne[d], axes[d], c->arch, meanings[rule->ne[d]], wanted);
        return;
    }
}

static const struct shape_rule *find_rule(const struct shape_rule *rules, size_t n,
                                          const char *suffix)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(rules[i].suffix, suffix) == 0) return &rules[i];
    return NULL;
}

static const struct shape_rule *find_block_rule(const struct checker *c, const char *suffix)
{
    for (size_t i = 0; i < sizeof own_rules / sizeof own_rules[0]; i++)
        if (strcmp(own_rules[i].arch, c->arch) == 0 &&
            strcmp(own_rules[i].rule.suffix, suffix) == 0)
            return &own_rules[i].rule;
    return find_rule(block_rules, sizeof block_rules / sizeof block_rules[0], suffix);
}

static void check_shapes(const struct checker *c)
{
    uint64_t numbers[N_NUMBERS];
    uint64_t of_block = 0;
    read_numbers(c, 0, numbers);
    for (size_t i = 0; i < bitconv_gguf_n_tensors(c->file); i++) {
        const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(c->file, i);
        const struct shape_rule *rule;
        uint64_t block = 0;
        const char *suffix = bc_block_name(t->name, &block);
        if (is_payload(t)) continue;
        if (suffix == NULL) {
            rule = find_rule(model_rules, sizeof model_rules / sizeof model_rules[0], t->name);
        } else {
            rule = find_block_rule(c, suffix);
            if (block != of_block) read_numbers(c, block, numbers);
            of_block = block;
        }
        if (rule != NULL) check_rule(c, t, rule, numbers);
    }
}

/* Groups of queries, of every block where they are listed by block; the first misfit. */
static void check_groups(const struct checker *c)
{
    const struct bitconv_gguf_value *list =
        bc_arch_key(c->file, c->arch, "attention.head_count_kv");
    const uint64_t n = list != NULL && list->type == BITCONV_GGUF_ARRAY ? list->count : 1;
    for (uint64_t block = 0; block < n; block++) {
        const uint64_t heads = stated(c, "attention.head_count", block);
        const uint64_t kv_heads = stated(c, "attention.head_count_kv", block);
        if (kv_heads == 0 || heads % kv_heads == 0) continue;
        bc_rule_say(c->report, true,
                    "key %s.attention.head_count_kv: %" PRIu64
                    " does not divide attention.head_count, %" PRIu64,
                    c->arch, kv_heads, heads);
        return;
    }
}

/* The rows of token_types are counted among the keys of the tokenizer. */
static void check_token_types(const struct checker *c)
{
    static const char key[] = "tokenizer.ggml.token_type_count";
    const struct bitconv_gguf_tensor *t = bitconv_gguf_find_tensor(c->file, "token_types.weight");
    uint64_t n = 0;
    if (t != NULL && bitconv_gguf_value_u64(bitconv_gguf_find_key(c->file, key), &n) &&
        n != t->ne[1])
        bc_rule_say(c->report, true, "tensor %s: %" PRIu64 " rows, %s says %" PRIu64, t->name,
                    t->ne[1], key, n);
}

/* Divisors and sizes that no reader can work with, whatever the tensors. */
static void check_heads(const struct checker *c)
{
    static const char *const not_zero[] = {"context_length",          "embedding_length",
                                           "feed_forward_length",     "attention.head_count",
                                           "attention.head_count_kv", "attention.key_length",
                                           "attention.value_length"};
    uint64_t numbers[N_NUMBERS];
    uint64_t zero = 1;
    for (size_t i = 0; i < sizeof not_zero / sizeof not_zero[0]; i++)
        if (bitconv_gguf_value_u64(bc_arch_key(c->file, c->arch, not_zero[i]), &zero) && zero == 0)
            bc_rule_say(c->report, true, "key %s.%s is 0", c->arch, not_zero[i]);
    check_groups(c);
    read_numbers(c, 0, numbers);
    const uint64_t rotated = stated(c, "rope.dimension_count", 0);
    if (rotated % 2 != 0 || (numbers[KEY] != 0 && rotated > numbers[KEY]))
        bc_rule_say(c->report, true,
                    "key %s.rope.dimension_count: %" PRIu64
                    " is not an even number up to the head size, %" PRIu64,
                    c->arch, rotated, numbers[KEY]);
}

void bc_check_model_shapes(const struct bitconv_gguf *file, const char *arch,
                           const struct bc_rule_report *report)
{
    const struct checker c = {file, arch, report};
    check_heads(&c);
    check_token_types(&c);
    check_shapes(&c);
}

static bool has(const struct checker *c, const char *suffix, uint64_t block)
{
    char name[BLOCK_NAME_BYTES];
    if (suffix == NULL) return false;
    snprintf(name, sizeof name, "blk.%" PRIu64 ".%s", block, suffix);
    return bitconv_gguf_find_tensor(c->file, name) != NULL;
}

static void check_required_of_model(const struct checker *c)
{
    enum { MAX_NAMES = 3 };
    static const struct {
        const char *arch; /* NULL: all others */
        const char *names[MAX_NAMES];
    } rows[] = {
        {"bert", {"token_embd.weight", "token_embd_norm.weight", "position_embd.weight"}},
        {"lfm2", {"token_embd.weight", "token_embd_norm.weight"}}, /* its final norm's name */
        {NULL, {"token_embd.weight", "output_norm.weight"}},
    };
    size_t row = 0;
    while (rows[row].arch != NULL && strcmp(rows[row].arch, c->arch) != 0)
        row++;
    for (size_t i = 0; i < MAX_NAMES && rows[row].names[i] != NULL; i++)
        if (bitconv_gguf_find_tensor(c->file, rows[row].names[i]) == NULL)
            bc_rule_say(c->report, true, "%s is missing, readers of %s demand it",
                        rows[row].names[i], c->arch);
}

/* Blocks of attention, and those with a short convolution in its place, which have no groups of
 * keys and values. */
enum kind { ATTENTION = 1, CONVOLUTION = 2, ANY_KIND = ATTENTION | CONVOLUTION };

static enum kind kind_of(const struct checker *c, uint64_t block)
{
    const struct bitconv_gguf_value *list =
        bc_arch_key(c->file, c->arch, "attention.head_count_kv");
    struct bitconv_gguf_value element;
    uint64_t n = 1;
    if (list == NULL || list->type != BITCONV_GGUF_ARRAY ||
        !bitconv_gguf_array_at(list, block, &element) || !bitconv_gguf_value_u64(&element, &n))
        return ATTENTION;
    return n == 0 ? CONVOLUTION : ATTENTION;
}

/* What all the known architectures have; of two names either will do. */
static const struct demand {
    const char *names[2];
    enum kind kind;
} demands[] = {
    {{"attn_norm.weight", "attn_output_norm.weight"}, ANY_KIND},
    {{"attn_q.weight", "attn_qkv.weight"}, ATTENTION},
    {{"attn_k.weight", "attn_qkv.weight"}, ATTENTION},
    {{"attn_v.weight", "attn_qkv.weight"}, ATTENTION},
    {{"attn_output.weight", NULL}, ATTENTION},
    {{"shortconv.in_proj.weight", NULL}, CONVOLUTION},
    {{"shortconv.conv.weight", NULL}, CONVOLUTION},
    {{"shortconv.out_proj.weight", NULL}, CONVOLUTION},
    {{"ffn_up.weight", "ffn_up_exps.weight"}, ANY_KIND},
    {{"ffn_down.weight", "ffn_down_exps.weight"}, ANY_KIND},
};

static void check_required_in_block(const struct checker *c, uint64_t block)
{
    static const char *const sub_norms[] = {"attn_sub_norm.weight", "ffn_sub_norm.weight"};
    const enum kind kind = kind_of(c, block);
    for (size_t i = 0; i < sizeof demands / sizeof demands[0]; i++)
        if ((demands[i].kind & kind) != 0 && !has(c, demands[i].names[0], block) &&
            !has(c, demands[i].names[1], block))
            bc_rule_say(c->report, true, "blk.%" PRIu64 ".%s is missing, readers of %s demand it",
                        block, demands[i].names[0], c->arch);
    for (size_t i = 0; i < 2 && strncmp(c->arch, "bitnet", 6) == 0; i++)
        if (!has(c, sub_norms[i], block))
            bc_rule_say(c->report, true, "blk.%" PRIu64 ".%s is missing, readers of %s demand it",
                        block, sub_norms[i], c->arch);
}

/* The first block of each kind: the others are like it. */
static void check_required_in_blocks(const struct checker *c, uint64_t n_blocks)
{
    unsigned done = 0;
    for (uint64_t block = 0; block < n_blocks && done != ANY_KIND; block++) {
        const enum kind kind = kind_of(c, block);
        if ((done & (unsigned)kind) == 0) check_required_in_block(c, block);
        done |= (unsigned)kind;
    }
}

/* One of each kind of block tensor, first by file order, and whether blocks lack it. Names are
 * unique and blocks at most as many as tensors, so that each miss is found in one pass. How many
 * are missing. */
static size_t check_uniform(const struct checker *c, uint64_t n_blocks)
{
    struct bc_map seen[ANY_KIND + 1] = {{0}}; /* by kind of the block */
    size_t n_said = 0;
    for (size_t i = 0; i < bitconv_gguf_n_tensors(c->file) && n_said < MAX_MISSING; i++) {
        const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(c->file, i);
        uint64_t block = 0;
        const char *suffix = bc_block_name(t->name, &block);
        if (suffix == NULL || strlen(suffix) > MAX_SUFFIX || bc_scale_owner(c->file, t) != NULL)
            continue; /* a tensor of scales goes with its weight, which may be a misfit elsewhere */
        const enum kind kind = kind_of(c, block);
        if (bc_map_put(&seen[kind], suffix, strlen(suffix), i, NULL) != BC_MAP_NEW) continue;
        for (uint64_t b = 0; b < n_blocks && n_said < MAX_MISSING; b++) {
            if (kind_of(c, b) != kind || has(c, suffix, b)) continue;
            n_said++;
            bc_rule_say(c->report, true, "blk.%" PRIu64 ".%s is missing, %s is there", b, suffix,
                        t->name);
        }
    }
    bc_map_release(&seen[ATTENTION]);
    bc_map_release(&seen[CONVOLUTION]);
    return n_said;
}

void bc_check_model_tensors(const struct bitconv_gguf *file, const char *arch, uint64_t n_blocks,
                            const struct bc_rule_report *report)
{
    const struct checker c = {file, arch, report};
    if (bitconv_gguf_n_tensors(file) == 0) return; /* a vocabulary alone */
    check_required_of_model(&c);
    if (check_uniform(&c, n_blocks) == 0 && n_blocks > 0) check_required_in_blocks(&c, n_blocks);
}
