/* SPDX-License-Identifier: MIT
 * bitconv archs: the families of models that can be converted. */
#include <string.h>

#include "base/json.h"
#include "bitconv/support.h"
#include "cmd.h"
#include "view_text.h"

static const struct option_row options[] = {{NULL, 0, OPTION_FLAG, 0, NULL, NULL}};

/* ---- text ---- */

static void show_line(const char *label, const char *text, struct bc_buf *out)
{
    if (text[0] == '\0') return;
    bc_buf_printf(out, "  %-14s", label);
    view_wrap(out, text, 16, ui_columns());
    bc_buf_putc(out, '\n');
}

static void add(struct bc_buf *list, const char *text)
{
    bc_buf_printf(list, "%s%s", list->size > 0 ? ", " : "", text);
}

static void show_list(const char *label, const char *const *names, struct bc_buf *out)
{
    struct bc_buf list = {0};
    for (size_t i = 0; i < BITCONV_MAX_ARCH_NAMES && names[i] != NULL; i++)
        add(&list, names[i]);
    show_line(label, bc_buf_str(&list), out);
    bc_buf_release(&list);
}

static void show_traits(const struct bitconv_arch_info *a, struct bc_buf *out)
{
    struct bc_buf list = {0};
    if (a->ternary_class) add(&list, "linear weights are ternary by definition");
    if (a->embedding_family) add(&list, "embedding models with norms in front of projections");
    if (a->permutes_qk) add(&list, "rows of q and k permuted");
    if (a->norm_plus_one) add(&list, "norms stored with 1 added");
    if (a->sliding_window) add(&list, "sliding window");
    if (a->encoder) add(&list, "encoder: embeddings, no text");
    if (a->conv_layers) add(&list, "layers of short convolutions");
    if (a->longrope) add(&list, "longrope");
    show_line("special", bc_buf_str(&list), out);
    bc_buf_release(&list);
}

static void show_names(const struct bitconv_arch_info *a, struct bc_buf *out)
{
    const char *bitnet = a->gguf_bitnet, *stock = a->gguf_llama_cpp;
    struct bc_buf list = {0};
    if (bitnet != NULL && stock != NULL && strcmp(bitnet, stock) == 0) {
        add(&list, bitnet);
    } else {
        if (bitnet != NULL) bc_buf_printf(&list, "%s (bitnet)", bitnet);
        if (stock != NULL)
            bc_buf_printf(&list, "%s%s (llama.cpp)", list.size > 0 ? ", " : "", stock);
    }
    if (a->gguf_bidirectional != NULL)
        bc_buf_printf(&list, ", %s (llama.cpp, attending in both directions)",
                      a->gguf_bidirectional);
    show_line("architecture", bc_buf_str(&list), out);
    bc_buf_release(&list);
}

static void archs_text(const struct ui *ui, struct bc_buf *out)
{
    struct bitconv_arch_info a;
    for (size_t i = 0; bitconv_arch_info_at(i, &a); i++) {
        bc_buf_printf(out, "%s%s%s%s\n", i > 0 ? "\n" : "", ui_on(ui, UI_BOLD), a.name, ui_off(ui));
        show_list("classes", a.classes, out);
        show_names(&a, out);
        show_list("also read as", a.gguf_aliases, out);
        show_list("activation", a.activations, out);
        show_traits(&a, out);
    }
}

/* ---- JSON ---- */

static void key_list(struct bc_jw *w, const char *key, const char *const *names)
{
    bc_jw_key(w, key);
    bc_jw_begin_array(w);
    for (size_t i = 0; i < BITCONV_MAX_ARCH_NAMES && names[i] != NULL; i++)
        bc_jw_string(w, names[i]);
    bc_jw_end_array(w);
}

static void write_classes(struct bc_jw *w, const struct bitconv_arch_info *a)
{
    bc_jw_key(w, "classes");
    bc_jw_begin_array(w);
    for (size_t i = 0; i < BITCONV_MAX_ARCH_NAMES && a->classes[i] != NULL; i++) {
        bc_jw_begin_object(w);
        bc_jw_key_string(w, "name", a->classes[i]);
        bc_jw_key_string(w, "model_type", a->model_types[i]);
        bc_jw_key_bool(w, "backbone", a->backbone[i]);
        bc_jw_end_object(w);
    }
    bc_jw_end_array(w);
}

static void archs_json(struct bc_buf *out)
{
    struct bc_jw w = {.buf = out, .first = true};
    struct bitconv_arch_info a;
    bc_jw_begin_object(&w);
    bc_jw_key(&w, "archs");
    bc_jw_begin_array(&w);
    for (size_t i = 0; bitconv_arch_info_at(i, &a); i++) {
        bc_jw_begin_object(&w);
        bc_jw_key_string(&w, "name", a.name);
        write_classes(&w, &a);
        bc_jw_key_string(&w, "gguf_bitnet", a.gguf_bitnet);
        bc_jw_key_string(&w, "gguf_llama_cpp", a.gguf_llama_cpp);
        bc_jw_key_string(&w, "gguf_bidirectional", a.gguf_bidirectional);
        key_list(&w, "gguf_aliases", a.gguf_aliases);
        key_list(&w, "activations", a.activations);
        bc_jw_key_bool(&w, "ternary_class", a.ternary_class);
        bc_jw_key_bool(&w, "embedding_family", a.embedding_family);
        bc_jw_key_bool(&w, "permutes_qk", a.permutes_qk);
        bc_jw_key_bool(&w, "norm_plus_one", a.norm_plus_one);
        bc_jw_key_bool(&w, "sliding_window", a.sliding_window);
        bc_jw_key_bool(&w, "encoder", a.encoder);
        bc_jw_key_bool(&w, "conv_layers", a.conv_layers);
        bc_jw_key_bool(&w, "longrope", a.longrope);
        bc_jw_end_object(&w);
    }
    bc_jw_end_array(&w);
    bc_jw_end_object(&w);
    bc_buf_putc(out, '\n');
}

static int run(struct ui *ui, const struct globals *globals, const void *settings,
               const char *const *args, size_t n_args)
{
    struct bc_buf text = {0};
    (void)settings;
    (void)args;
    if (n_args != 0) return ui_usage(ui, "archs", "no arguments were expected");
    if (globals->json)
        archs_json(&text);
    else
        archs_text(ui, &text);
    return ui_finish(ui, &text);
}

const struct command command_archs = {
    .name = "archs",
    .summary = "list the families of models that can be converted",
    .usage = "archs [options]",
    .examples = "  bitconv archs\n"
                "  bitconv archs --json\n",
    .options = options,
    .settings_size = 0,
    .run = run,
};
