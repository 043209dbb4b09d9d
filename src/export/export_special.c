/* SPDX-License-Identifier: MIT
 * Special tokens: which file of the checkpoint names which, so that converting again meets them in
 * the order of the GGUF. */
#include <string.h>

#include "export/exporter.h"

/* The place of a kind within a file that names several. In front of the end of a text that a
 * template gives, what the files call eos_token is the chat's end of turn. */
static int slot(const struct bc_export_specials *s, enum bc_special kind)
{
    return kind == BC_SPECIAL_EOT && s->end_known ? (int)BC_SPECIAL_EOS : (int)kind;
}

/* The kind whose key that is; BC_N_SPECIALS when it is none. */
static enum bc_special kind_of(const char *key)
{
    for (int kind = 0; kind < BC_N_SPECIALS; kind++) {
        const char *name = bc_special_name((enum bc_special)kind)->gguf;
        if (name != NULL && strcmp(name, key) == 0) return (enum bc_special)kind;
    }
    return BC_N_SPECIALS;
}

static int flag(const struct bc_exporter *e, const char *key)
{
    bool value = false;
    return bitconv_gguf_value_bool(bitconv_gguf_find_key(e->file, key), &value) ? value : -1;
}

static enum bitconv_status read_id(struct bc_exporter *e, const struct bitconv_gguf_key *key,
                                   enum bc_special kind, struct bitconv_error *err)
{
    uint64_t id = 0;
    if (!bitconv_gguf_value_u64(&key->value, &id) || id >= e->hp.n_vocab)
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "%s: %s: wanted an id below the %u rows of the embedding", e->path,
                       key->name, (unsigned)e->hp.n_vocab);
    e->specials.id[kind] = (int64_t)id;
    return BITCONV_OK;
}

static enum bitconv_status read_eog(struct bc_exporter *e, struct bitconv_error *err)
{
    static const char key[] = "tokenizer.ggml.eog_token_ids";
    const struct bitconv_gguf_value *v = bitconv_gguf_find_key(e->file, key);
    if (v == NULL) return BITCONV_OK;
    for (uint64_t i = 0; v->type == BITCONV_GGUF_ARRAY && i < v->count; i++) {
        struct bitconv_gguf_value element;
        uint64_t id = 0;
        if (!bitconv_gguf_array_at(v, i, &element) || !bitconv_gguf_value_u64(&element, &id) ||
            id >= e->hp.n_vocab)
            return bc_fail(err, BITCONV_E_CORRUPT,
                           "%s: %s: wanted ids below the %u rows of the embedding", e->path, key,
                           (unsigned)e->hp.n_vocab);
    }
    if (v->type != BITCONV_GGUF_ARRAY)
        return bc_fail(err, BITCONV_E_CORRUPT, "%s: %s: wanted an array", e->path, key);
    e->specials.eog = v;
    return BITCONV_OK;
}

/* Each id goes to the earliest file that keeps the order: within a file kinds ascend. */
static void place(struct bc_export_specials *s, const enum bc_special *order, size_t n)
{
    /* the end that a template gives comes before all files */
    const size_t first = s->end_known ? 1 : 0;
    int file = BC_SAYS_CONFIG;
    for (size_t i = 0; i < n; i++) {
        if (i > first && slot(s, order[i]) < slot(s, order[i - 1]) && file < BC_SAYS_MODEL) file++;
        s->from[order[i]] = (enum bc_export_says)file;
    }
}

enum bitconv_status bc_export_find_specials(struct bc_exporter *e, struct bitconv_error *err)
{
    struct bc_export_specials *s = &e->specials;
    enum bc_special order[BC_N_SPECIALS];
    size_t n = 0;
    for (int kind = 0; kind < BC_N_SPECIALS; kind++)
        s->id[kind] = -1;
    for (size_t i = 0; i < bitconv_gguf_n_keys(e->file); i++) {
        const struct bitconv_gguf_key *key = bitconv_gguf_key_at(e->file, i);
        const enum bc_special kind = kind_of(key->name);
        if (kind == BC_N_SPECIALS || s->id[kind] >= 0) continue;
        BC_TRY(read_id(e, key, kind, err));
        order[n++] = kind;
    }
    s->bos = flag(e, "tokenizer.ggml.add_bos_token");
    s->eos = flag(e, "tokenizer.ggml.add_eos_token");
    s->sep = flag(e, "tokenizer.ggml.add_sep_token");
    s->end_known = s->eos == 1 && n > 0 && order[0] == BC_SPECIAL_EOS;
    place(s, order, n);
    return read_eog(e, err);
}
