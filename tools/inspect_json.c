/* SPDX-License-Identifier: MIT
 * `bitconv inspect --json`. Every member is always there; what was not asked for, or does not
 * apply, is null. */
#include "inspect_view.h"

#include <string.h>

enum { ARRAY_SHOWN = 64 };

void inspect_json_scalar(struct bc_jw *w, const struct bitconv_gguf_value *v)
{
    const char *text = NULL;
    size_t len = 0;
    uint64_t u = 0;
    int64_t i = 0;
    double d = 0;
    bool b = false;
    if (bitconv_gguf_value_string(v, &text, &len))
        bc_jw_string_n(w, text, len);
    else if (bitconv_gguf_value_bool(v, &b))
        bc_jw_bool(w, b);
    else if (bitconv_gguf_value_f64(v, &d) && v->type == BITCONV_GGUF_FLOAT32)
        bc_jw_f32(w, (float)d);
    else if (bitconv_gguf_value_f64(v, &d))
        bc_jw_f64(w, d);
    else if (bitconv_gguf_value_u64(v, &u))
        bc_jw_u64(w, u);
    else if (bitconv_gguf_value_i64(v, &i))
        bc_jw_i64(w, i);
    else
        bc_jw_null(w);
}

static void write_array(struct bc_jw *w, const struct bitconv_gguf_value *v, uint64_t n)
{
    uint64_t pos = 0;
    bc_jw_begin_array(w);
    for (uint64_t i = 0; i < n; i++) {
        const char *text = NULL;
        size_t len = 0;
        struct bitconv_gguf_value element;
        if (v->elem != BITCONV_GGUF_STRING && bitconv_gguf_array_at(v, i, &element))
            inspect_json_scalar(w, &element);
        else if (bitconv_gguf_array_next_string(v, &pos, &text, &len))
            bc_jw_string_n(w, text, len);
    }
    bc_jw_end_array(w);
}

static void write_metadata(struct bc_jw *w, const struct inspect_view *view)
{
    bc_jw_key(w, "metadata");
    bc_jw_begin_object(w);
    for (size_t i = 0; i < view->it->n_keys; i++) {
        const struct bitconv_inspected_key *key = view->keys[i];
        const struct bitconv_gguf_value *v = &key->value;
        bc_jw_key(w, key->name);
        bc_jw_begin_object(w);
        bc_jw_key_string(w, "type", key->type);
        if (v->type == BITCONV_GGUF_ARRAY) {
            const bool cut = v->count > ARRAY_SHOWN && !view->full;
            bc_jw_key_u64(w, "n", v->count);
            bc_jw_key(w, "value");
            write_array(w, v, cut ? ARRAY_SHOWN : v->count);
        } else {
            bc_jw_key(w, "value");
            inspect_json_scalar(w, v);
        }
        bc_jw_end_object(w);
    }
    bc_jw_end_object(w);
}

static void write_model(struct bc_jw *w, const struct bitconv_model_summary *m)
{
    bc_jw_key(w, "model");
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "architecture", m->architecture);
    bc_jw_key_string(w, "name", m->name);
    bc_jw_key_count(w, "hidden_size", m->hidden_size);
    bc_jw_key_count(w, "intermediate_size", m->intermediate_size);
    bc_jw_key_count(w, "layers", m->layers);
    bc_jw_key_count(w, "heads", m->heads);
    bc_jw_key_count(w, "kv_heads", m->kv_heads);
    bc_jw_key_count(w, "head_dim", m->head_dim);
    bc_jw_key_count(w, "vocab_size", m->vocab_size);
    bc_jw_key_count(w, "context_length", m->context_length);
    bc_jw_key_known_f64(w, "rope_theta", m->rope_theta != 0, m->rope_theta);
    bc_jw_key_string(w, "rope_scaling", m->rope_scaling);
    bc_jw_key_string(w, "quantization", m->quantization);
    bc_jw_key_string(w, "hidden_act", m->hidden_act);
    bc_jw_key_string(w, "pooling", m->pooling);
    bc_jw_key_count(w, "experts", m->experts);
    bc_jw_key_count(w, "experts_used", m->experts_used);
    bc_jw_key_count(w, "sliding_window", m->sliding_window);
    bc_jw_end_object(w);
}

static void write_gguf(struct bc_jw *w, const struct inspect_view *view)
{
    const struct bitconv_inspection *it = view->it;
    bc_jw_key(w, "gguf");
    if (it->container != BITCONV_CONTAINER_GGUF) {
        bc_jw_null(w);
        return;
    }
    bc_jw_begin_object(w);
    bc_jw_key_u64(w, "version", it->version);
    bc_jw_key_u64(w, "alignment", it->alignment);
    bc_jw_key_string(w, "endian", "little");
    bc_jw_key_string(w, "dialect", it->dialect);
    bc_jw_key_string(w, "dialect_evidence", it->dialect_evidence);
    bc_jw_key_u64(w, "n_files", it->n_files);
    bc_jw_end_object(w);
}

/* {PACK: bytes or null where the pack cannot hold the tensor}. */
static void write_sizes(struct bc_jw *w, const struct bitconv_tensor_stats *s)
{
    bc_jw_key(w, "sizes");
    bc_jw_begin_object(w);
    for (size_t i = 0; i < s->n_sizes; i++) {
        bc_jw_key_known_u64(w, s->sizes[i].pack, s->sizes[i].bytes != 0, s->sizes[i].bytes);
    }
    bc_jw_end_object(w);
}

static void write_stats(struct bc_jw *w, const struct bitconv_tensor_stats *s)
{
    bc_jw_key(w, "stats");
    if (s->kind == BITCONV_STATS_NONE) {
        bc_jw_null(w);
        return;
    }
    bc_jw_begin_object(w);
    if (s->kind == BITCONV_STATS_TERNARY) {
        bc_jw_key_u64(w, "minus", s->minus);
        bc_jw_key_u64(w, "zero", s->zero);
        bc_jw_key_u64(w, "plus", s->plus);
        bc_jw_key_u64(w, "illegal", s->illegal);
        bc_jw_key_f64(w, "entropy", s->entropy);
        bc_jw_key_f64(w, "entropy_bound", s->entropy_bound);
        write_sizes(w, s);
        bc_jw_key(w, "one_code");
        bc_jw_bool(w, s->one_code);
    } else {
        bc_jw_key_u64(w, "zero", s->zero);
        bc_jw_key_u64(w, "nonfinite", s->nonfinite);
        bc_jw_key_f64(w, "min", s->min);
        bc_jw_key_f64(w, "max", s->max);
        bc_jw_key_f64(w, "mean", s->mean);
        bc_jw_key_f64(w, "stddev", s->stddev);
        bc_jw_key_u64(w, "outliers", s->outliers);
    }
    bc_jw_end_object(w);
}

static void write_tensor(struct bc_jw *w, const struct inspect_view *view,
                         const struct bitconv_inspected_tensor *t)
{
    const struct bitconv_tensor_stats *s = &t->stats;
    bc_jw_begin_object(w);
    bc_jw_key(w, "name");
    bc_jw_string_n(w, t->name, t->name_len);
    bc_jw_key_string(w, "type", t->type);
    bc_jw_key(w, "type_id");
    if (t->type_id >= 0)
        bc_jw_i64(w, t->type_id);
    else
        bc_jw_null(w);
    bc_jw_key_u64s(w, "shape", t->ne, t->n_dims);
    bc_jw_key(w, "offset");
    if (view->diffable)
        bc_jw_null(w);
    else
        bc_jw_u64(w, t->offset);
    bc_jw_key_u64(w, "bytes", t->size);
    bc_jw_key_f64(w, "bits_per_weight", t->bits_per_weight);
    bc_jw_key_string(w, "pack", t->pack);
    bc_jw_key_known_f32(w, "scale", s->kind == BITCONV_STATS_TERNARY, s->scale);
    bc_jw_key_known_f64(w, "zeros", s->kind != BITCONV_STATS_NONE, s->zeros);
    bc_jw_key_string(w, "fingerprint", t->fingerprint[0] != '\0' ? t->fingerprint : NULL);
    bc_jw_key_string(w, "xxh3", t->xxh3[0] != '\0' ? t->xxh3 : NULL);
    if (view->stats) write_stats(w, s);
    bc_jw_end_object(w);
}

static void write_values(struct bc_jw *w, const struct bitconv_inspection *it)
{
    const struct bitconv_inspected_values *values = it->values;
    const struct bitconv_inspected_tensor *t = &it->tensors[values->tensor];
    bc_jw_key(w, "values");
    bc_jw_begin_object(w);
    bc_jw_key(w, "name");
    bc_jw_string_n(w, t->name, t->name_len);
    bc_jw_key_u64(w, "n", values->n);
    bc_jw_key_string(w, "scale_tensor", values->scale_tensor);
    bc_jw_key(w, "values");
    bc_jw_begin_array(w);
    for (uint64_t i = 0; i < values->n; i++) {
        if (values->integers != NULL && values->is_unsigned)
            bc_jw_u64(w, (uint64_t)values->integers[i]);
        else if (values->integers != NULL)
            bc_jw_i64(w, values->integers[i]);
        else if (strcmp(t->type, "F64") == 0)
            bc_jw_f64(w, values->reals[i]);
        else
            bc_jw_f32(w, (float)values->reals[i]);
    }
    bc_jw_end_array(w);
    bc_jw_end_object(w);
}

void inspect_json(const struct inspect_view *view, struct bc_buf *out)
{
    const struct bitconv_inspection *it = view->it;
    struct bc_jw w = {.buf = out, .first = true};
    bc_jw_begin_object(&w);
    bc_jw_key_string(&w, "file", view->diffable ? NULL : it->file);
    bc_jw_key_string(&w, "container", bitconv_container_name(it->container));
    write_gguf(&w, view);
    write_model(&w, &it->model);
    write_metadata(&w, view);
    bc_jw_key(&w, "tensors");
    bc_jw_begin_array(&w);
    for (size_t i = 0; i < it->n_tensors; i++)
        write_tensor(&w, view, view->table[i]);
    bc_jw_end_array(&w);
    bc_jw_key_string(&w, "fingerprint", it->fingerprint[0] != '\0' ? it->fingerprint : NULL);
    if (it->values != NULL) write_values(&w, it);
    bc_jw_key_strings(&w, "warnings", it->warnings, it->n_warnings);
    bc_jw_end_object(&w);
    bc_buf_putc(out, '\n');
}
