/* SPDX-License-Identifier: MIT
 * The source-metadata proof: every key that the checkpoint gives is in the file with the same type
 * and value, and the file has no others but bitconv's own. */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "formats/format.h"
#include "io/gguf_impl.h"
#include "model/tokenizer.h"
#include "verify/metadata_rules.h"
#include "verify/source_state.h"

enum { SHOWN_BYTES = 60 };

/* general.file_type of a file of that kind; one that is not judged keeps its own. */
static uint32_t file_type_of(const struct bc_verifier *v, const struct bc_source_state *s)
{
    uint64_t stated = 0;
    (void)bitconv_gguf_value_u64(bitconv_gguf_find_key(v->container.gguf, "general.file_type"),
                                 &stated);
    switch (s->kind) {
    case BC_FILE_F32:
        return 0;
    case BC_FILE_F16:
        return bc_gguf_holds_misfits_only(v->container.gguf, stated) ? (uint32_t)stated : 1;
    case BC_FILE_BF16:
        return 32;
    case BC_FILE_Q8_0:
        return 7;
    case BC_FILE_PACK:
        /* Outtype auto: whatever each tensor got. */
        if (bitconv_gguf_find_key(v->container.gguf, "bitconv.auto") != NULL) return 1;
        for (size_t i = 0; i < v->result->n_tensors; i++) {
            const struct bc_format *f = v->tensors[i].packed.format;
            if (f == NULL) continue;
            const bool rebased =
                f->type_id_rebased != 0 &&
                bitconv_gguf_tensor_at(v->container.gguf, i)->type == f->type_id_rebased;
            return rebased ? f->type_id_rebased : f->file_type;
        }
        break;
    case BC_FILE_OTHER:
        break;
    }
    return (uint32_t)stated;
}

/* Reads back what a writer holds; the bytes belong to the writer. */
static enum bitconv_status read_back(struct bitconv_gguf_writer *w, struct bitconv_gguf **out,
                                     struct bitconv_error *err)
{
    const uint8_t *header = NULL;
    uint64_t header_size = 0;
    uint64_t file_size = 0;
    BC_TRY(bitconv_gguf_writer_plan(w, &header, &header_size, &file_size, err));
    return bc_gguf_parse(header, header_size, "the checkpoint's metadata", out, err);
}

static bool same_value(const struct bitconv_gguf_value *a, const struct bitconv_gguf_value *b)
{
    return a->type == b->type && (a->type != BITCONV_GGUF_ARRAY || a->elem == b->elem) &&
           a->count == b->count && a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

static bool starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Keys that are not the model's own, whatever the target. */
static bool is_foreign_to_model(const char *name)
{
    return starts_with(name, "tokenizer.") || starts_with(name, "bitconv.") ||
           starts_with(name, "split.");
}

enum bitconv_status bc_source_count_key_differences(const struct bc_verifier *v,
                                                    const struct bc_source_state *s,
                                                    const struct bc_model *model, size_t *out,
                                                    struct bitconv_error *err)
{
    struct bitconv_gguf_writer *w = bitconv_gguf_writer_new();
    struct bitconv_gguf *wanted = NULL;
    *out = 0;
    if (w == NULL) return bc_fail_nomem(err, "metadata");
    enum bitconv_status status = bc_model_metadata(model, "", file_type_of(v, s), w, err);
    if (status == BITCONV_OK) status = read_back(w, &wanted, err);
    for (size_t i = 0; status == BITCONV_OK && i < bitconv_gguf_n_keys(wanted); i++) {
        const struct bitconv_gguf_key *key = bitconv_gguf_key_at(wanted, i);
        const struct bitconv_gguf_value *found =
            bitconv_gguf_find_key(v->container.gguf, key->name);
        *out += found == NULL || !same_value(found, &key->value);
    }
    for (size_t i = 0; status == BITCONV_OK && i < bitconv_gguf_n_keys(v->container.gguf); i++) {
        const char *name = bitconv_gguf_key_at(v->container.gguf, i)->name;
        *out += bitconv_gguf_find_key(wanted, name) == NULL && !is_foreign_to_model(name);
    }
    bitconv_gguf_close(wanted);
    bitconv_gguf_writer_free(w);
    return status;
}

/* A value for a message: text and numbers themselves, arrays by type and length. */
static void show(struct bc_buf *buf, const struct bitconv_gguf_value *v)
{
    const char *text = NULL;
    size_t len = 0;
    uint64_t u = 0;
    int64_t i = 0;
    double d = 0;
    bool b = false;
    if (bitconv_gguf_value_string(v, &text, &len)) {
        bc_buf_putc(buf, '\'');
        bc_utf8_mask(buf, text, len, SHOWN_BYTES);
        bc_buf_putc(buf, '\'');
    } else if (v->type == BITCONV_GGUF_ARRAY) {
        bc_buf_printf(buf, "%" PRIu64 " of %s", v->count, bitconv_gguf_type_name(v->elem));
    } else if (bitconv_gguf_value_bool(v, &b)) {
        bc_buf_puts(buf, b ? "true" : "false");
    } else if (bitconv_gguf_value_f64(v, &d)) {
        bc_buf_printf(buf, "%.9g", d);
    } else if (bitconv_gguf_value_u64(v, &u)) {
        bc_buf_printf(buf, "%" PRIu64, u);
    } else if (bitconv_gguf_value_i64(v, &i)) {
        bc_buf_printf(buf, "%" PRId64, i);
    } else {
        bc_buf_puts(buf, bitconv_gguf_type_name(v->type));
    }
}

/* Index of the first element in which two arrays of one type differ. */
static uint64_t first_difference(const struct bitconv_gguf_value *a,
                                 const struct bitconv_gguf_value *b)
{
    const uint64_t n = a->count < b->count ? a->count : b->count;
    uint64_t at_a = 0;
    uint64_t at_b = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (a->elem == BITCONV_GGUF_STRING) {
            const char *s = NULL;
            const char *t = NULL;
            size_t s_len = 0;
            size_t t_len = 0;
            if (!bitconv_gguf_array_next_string(a, &at_a, &s, &s_len) ||
                !bitconv_gguf_array_next_string(b, &at_b, &t, &t_len) || s_len != t_len ||
                memcmp(s, t, s_len) != 0)
                return i;
        } else {
            struct bitconv_gguf_value x;
            struct bitconv_gguf_value y;
            if (!bitconv_gguf_array_at(a, i, &x) || !bitconv_gguf_array_at(b, i, &y) ||
                !same_value(&x, &y))
                return i;
        }
    }
    return n;
}

static void report_difference(struct bc_verifier *v, struct bitconv_proof *proof, const char *name,
                              const struct bitconv_gguf_value *found,
                              const struct bitconv_gguf_value *wanted)
{
    struct bc_buf text = {0};
    bc_buf_printf(&text, "key ");
    bc_utf8_mask(&text, name, strlen(name), 0);
    bc_buf_puts(&text, ": ");
    show(&text, found);
    bc_buf_puts(&text, ", the checkpoint gives ");
    show(&text, wanted);
    if (found->type == BITCONV_GGUF_ARRAY && wanted->type == BITCONV_GGUF_ARRAY &&
        found->elem == wanted->elem)
        bc_buf_printf(&text, "; they differ from element %" PRIu64 " on",
                      first_difference(found, wanted));
    else if (found->type != wanted->type)
        bc_buf_printf(&text, " (type %s, wanted %s)", bitconv_gguf_type_name(found->type),
                      bitconv_gguf_type_name(wanted->type));
    if (strcmp(name, "general.name") == 0)
        bc_buf_puts(&text, "; if convert was given --name, give it here too");
    bc_problem(v, proof, BC_NO_TENSOR, "%s", bc_buf_str(&text));
    bc_buf_release(&text);
}

/* --meta KEY=TYPE:VALUE: the user's word stands against the checkpoint's. */
static bool is_overridden(const struct bc_source_state *s, const char *name)
{
    const size_t len = strlen(name);
    for (size_t i = 0; i < s->conversion.n_meta; i++)
        if (strncmp(s->conversion.meta[i], name, len) == 0 && s->conversion.meta[i][len] == '=')
            return true;
    return false;
}

/* A file named after a folder that has been renamed since is still the same model. */
static bool named_after_old_folder(const struct bc_verifier *v, const char *name)
{
    const struct bitconv_gguf_value *source =
        bitconv_gguf_find_key(v->container.gguf, "bitconv.source");
    const struct bitconv_gguf_value *stated = bitconv_gguf_find_key(v->container.gguf, name);
    const char *text = NULL;
    size_t len = 0;
    if (strcmp(name, "general.name") != 0 || source == NULL || stated == NULL ||
        !same_value(source, stated) || !bitconv_gguf_value_string(source, &text, &len))
        return false;
    const char *base = v->source->checkpoint->base_name;
    return strlen(base) != len || memcmp(base, text, len) != 0;
}

static void compare_wanted(struct bc_verifier *v, struct bitconv_proof *proof,
                           const struct bitconv_gguf *wanted)
{
    for (size_t i = 0; i < bitconv_gguf_n_keys(wanted); i++) {
        const struct bitconv_gguf_key *key = bitconv_gguf_key_at(wanted, i);
        const struct bitconv_gguf_value *found =
            bitconv_gguf_find_key(v->container.gguf, key->name);
        if (is_overridden(v->source, key->name)) {
            proof->skipped++;
            continue;
        }
        proof->checked++;
        if (found == NULL)
            bc_problem(v, proof, BC_NO_TENSOR, "key %s: the checkpoint gives it, the file lacks it",
                       key->name);
        else if (same_value(found, &key->value))
            continue;
        else if (named_after_old_folder(v, key->name))
            bc_say(v->sink, BITCONV_WARNING,
                   "general.name is that of the folder at the time of conversion, which now is %s",
                   v->source->checkpoint->base_name);
        else
            report_difference(v, proof, key->name, found, &key->value);
    }
}

/* ARCH.*: what readers compute with. */
static bool is_of_graph(const struct bitconv_gguf *file, const char *name)
{
    const char *arch = NULL;
    size_t len = 0;
    return bitconv_gguf_value_string(bitconv_gguf_find_key(file, "general.architecture"), &arch,
                                     &len) &&
           len > 0 && strncmp(name, arch, len) == 0 && name[len] == '.';
}

/* Keys of the file that the checkpoint does not give. Other writers have keys of their own, but what
 * they say of the graph is the checkpoint's to say, whoever wrote it, and what they say of the
 * tokenizer must not change ids. */
static enum bitconv_status find_strays(struct bc_verifier *v, struct bitconv_proof *proof,
                                       const struct bitconv_gguf *wanted, struct bitconv_error *err)
{
    bool of_tokenizer = false;
    for (size_t i = 0; i < bitconv_gguf_n_keys(v->container.gguf); i++) {
        const char *name = bitconv_gguf_key_at(v->container.gguf, i)->name;
        if (bitconv_gguf_find_key(wanted, name) != NULL || starts_with(name, "bitconv.") ||
            starts_with(name, "split.") || is_overridden(v->source, name))
            continue;
        struct bc_buf masked = {0};
        bc_utf8_mask(&masked, name, strlen(name), 0);
        if (v->ours || is_of_graph(v->container.gguf, name))
            bc_problem(v, proof, BC_NO_TENSOR,
                       "key %s: in the file, but the checkpoint does not give it",
                       bc_buf_str(&masked));
        else
            bc_say(v->sink, starts_with(name, "tokenizer.") ? BITCONV_WARNING : BITCONV_NOTE,
                   "key %s: the checkpoint does not give it", bc_buf_str(&masked));
        bc_buf_release(&masked);
        of_tokenizer = of_tokenizer || starts_with(name, "tokenizer.");
    }
    return of_tokenizer ? bc_source_compare_ids(v, proof, wanted, err) : BITCONV_OK;
}

/* Only a hint: a folder may be renamed. */
static void compare_folder(struct bc_verifier *v)
{
    const char *text = NULL;
    size_t len = 0;
    const char *base = v->source->checkpoint->base_name;
    if (!bitconv_gguf_value_string(bitconv_gguf_find_key(v->container.gguf, "bitconv.source"),
                                   &text, &len) ||
        (strlen(base) == len && memcmp(base, text, len) == 0))
        return;
    bc_say(v->sink, BITCONV_WARNING, "bitconv.source: converted from a folder '%.*s', this is '%s'",
           (int)(len < SHOWN_BYTES ? len : SHOWN_BYTES), text, base);
}

static enum bitconv_status wanted_keys(struct bc_verifier *v, struct bitconv_gguf_writer *w,
                                       struct bitconv_error *err)
{
    struct bc_source_state *s = v->source;
    struct bc_buf template = {0};
    struct bc_tokenizer_options options = {.pre = s->conversion.pre,
                                           .trim_vocab = s->conversion.trim_vocab};
    const char *name = s->conversion.name;
    if (name == NULL) name = bc_model_name(s->model, s->checkpoint);
    if (name == NULL) return bc_fail_nomem(err, "the model's name");
    BC_TRY(bc_model_metadata(s->model, name, file_type_of(v, s), w, err));
    if (s->conversion.chat_template != NULL) {
        BC_TRY(bc_text_load(s->conversion.chat_template, &template, err));
        options.chat_template = bc_buf_str(&template);
    }
    const enum bitconv_status status =
        bc_tokenizer_metadata(s->checkpoint, s->model, &options, NULL, w, err);
    bc_buf_release(&template);
    return status;
}

static enum bitconv_status compare(struct bc_verifier *v, struct bitconv_proof *proof,
                                   struct bitconv_gguf_writer *w, struct bitconv_error *err)
{
    struct bitconv_gguf *wanted = NULL;
    struct bitconv_error refusal = {0};
    const enum bitconv_status status = wanted_keys(v, w, &refusal);
    if (status == BITCONV_E_NOMEM) return bc_fail_nomem(err, "metadata");
    if (status != BITCONV_OK) {
        /* The tensors have been compared all the same. */
        bc_problem(v, proof, BC_NO_TENSOR, "the checkpoint gives no metadata: %s", refusal.text);
        return BITCONV_OK;
    }
    BC_TRY(read_back(w, &wanted, err));
    compare_wanted(v, proof, wanted);
    const enum bitconv_status found = find_strays(v, proof, wanted, err);
    bitconv_gguf_close(wanted);
    BC_TRY(found);
    compare_folder(v);
    bc_conclude(v, proof, "%" PRIu64 " keys of the model and its tokenizer as the checkpoint gives",
                proof->checked);
    return BITCONV_OK;
}

enum bitconv_status bc_prove_source_metadata(struct bc_verifier *v, struct bitconv_proof *proof,
                                             struct bitconv_error *err)
{
    if (v->source == NULL) {
        bc_not_run(v, proof, "no --source DIR given");
        return BITCONV_OK;
    }
    struct bitconv_gguf_writer *w = bitconv_gguf_writer_new();
    if (w == NULL) return bc_fail_nomem(err, "metadata");
    const enum bitconv_status status = compare(v, proof, w, err);
    bitconv_gguf_writer_free(w);
    return status;
}
