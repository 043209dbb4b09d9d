/* SPDX-License-Identifier: MIT
 * Chat templates: where they are kept, and the keys that GGUF has for them. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/utf8.h"
#include "model/checkpoint.h"
#include "model/tokenizer_special.h"

/* Collects the names of named templates while their texts are written. */
struct templates {
    const struct bitconv_sink *sink;
    struct bitconv_gguf_writer *w;
    struct bc_buf names; /* array payload */
    uint64_t n_names;
};

/* Names become part of a key: letters and digits stay, everything else is an underscore (gguf-py).
 */
static void put_template(struct templates *t, const char *name, const char *text, size_t len)
{
    if (len == 0 || name[0] == '\0') return;
    if (strcmp(name, "default") == 0) {
        bitconv_gguf_set_string_n(t->w, "tokenizer.chat_template", text, len);
        return;
    }
    char key[128] = "tokenizer.chat_template.";
    size_t n = strlen(key);
    const size_t start = n;
    for (; *name != '\0' && n + 1 < sizeof key; name++) {
        const bool plain = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
                           (*name >= '0' && *name <= '9');
        key[n++] = plain ? *name : '_';
    }
    key[n] = '\0';
    if (!bitconv_gguf_writer_has(t->w, key)) {
        bc_buf_u64(&t->names, n - start);
        bc_buf_append(&t->names, key + start, n - start);
        t->n_names++;
    }
    bitconv_gguf_set_string_n(t->w, key, text, len);
}

/* A string, or [{"name", "template"}, ...]; anything else is left out with a warning. False when
 * there is no template. */
static bool put_json(struct templates *t, const struct bc_json *node, const char *from)
{
    const char *const text = bc_json_string(node);
    if (text != NULL) {
        put_template(t, "default", text, strlen(text));
        return text[0] != '\0';
    }
    bool any = false;
    bool bad = node != NULL && !bc_json_is(node, BC_JSON_NULL) && !bc_json_is(node, BC_JSON_ARRAY);
    for (const struct bc_json *entry = bc_json_first(node);
         bc_json_is(node, BC_JSON_ARRAY) && entry != NULL; entry = bc_json_next(entry)) {
        const char *const name = bc_json_string(bc_json_get(entry, "name"));
        const char *const body = bc_json_string(bc_json_get(entry, "template"));
        if (name == NULL || body == NULL) {
            bad = true;
            continue;
        }
        put_template(t, name, body, strlen(body));
        any = true;
    }
    if (bad)
        bc_say(t->sink, BITCONV_WARNING,
               "%s: chat_template: neither a text nor a list of {\"name\", \"template\"}, not "
               "carried (--chat-template FILE gives one)",
               from);
    return any;
}

/* One template file; *found tells whether it is there. */
static enum bitconv_status put_file(struct templates *t, const char *dir, const char *file,
                                    const char *name, bool *found, struct bitconv_error *err)
{
    struct bc_buf text = {0};
    enum bitconv_status status = bc_tokenizer_text(dir, file, &text, found, err);
    if (status == BITCONV_OK && *found) {
        if (bc_utf8_valid(bc_buf_str(&text), text.size))
            put_template(t, name, bc_buf_str(&text), text.size);
        else
            status = bc_fail(err, BITCONV_E_CORRUPT, "%s/%s: not UTF-8", dir, file);
    }
    bc_buf_release(&text);
    return status;
}

/* additional_chat_templates/NAME.jinja, in the order of their names. */
static enum bitconv_status put_folder(struct templates *t, const char *dir,
                                      struct bitconv_error *err)
{
    static const char suffix[] = ".jinja";
    char *const folder = bc_path_join(dir, "additional_chat_templates");
    if (folder == NULL) return bc_fail_nomem(err, "chat templates");
    char **names = NULL;
    size_t n_names = 0;
    enum bitconv_status status = BITCONV_OK;
    if (bc_path_kind(folder) == BC_PATH_DIR) status = bc_dir_list(folder, &names, &n_names, err);
    for (size_t i = 0; i < n_names; i++) {
        const size_t len = strlen(names[i]);
        char name[128];
        bool found;
        if (status == BITCONV_OK && len > strlen(suffix) && len < sizeof name &&
            strcmp(names[i] + len - strlen(suffix), suffix) == 0) {
            snprintf(name, sizeof name, "%.*s", (int)(len - strlen(suffix)), names[i]);
            status = put_file(t, folder, names[i], name, &found, err);
        }
        bc_free(names[i]);
    }
    bc_free(names);
    bc_free(folder);
    return status;
}

static enum bitconv_status put_all(struct templates *t, const struct bc_tokenizer_files *files,
                                   struct bitconv_error *err)
{
    bool found = false;
    BC_TRY(put_file(t, files->dir, "chat_template.jinja", "default", &found, err));
    BC_TRY(put_folder(t, files->dir, err));
    if (found || t->n_names > 0) return BITCONV_OK;
    struct bc_json *json = NULL;
    BC_TRY(bc_checkpoint_object(files->dir, "chat_template.json", &json, err));
    found = put_json(t, bc_json_get(json, "chat_template"), "chat_template.json");
    bc_json_free(json);
    if (!found) put_json(t, bc_json_get(files->config, "chat_template"), "tokenizer_config.json");
    return BITCONV_OK;
}

enum bitconv_status bc_chat_template_write(const struct bc_tokenizer_files *files,
                                           const char *given, const struct bitconv_sink *sink,
                                           struct bitconv_gguf_writer *w, struct bitconv_error *err)
{
    struct templates t = {.sink = sink, .w = w};
    enum bitconv_status status = BITCONV_OK;
    if (given != NULL)
        put_template(&t, "default", given, strlen(given));
    else
        status = put_all(&t, files, err);
    if (status == BITCONV_OK && t.names.failed) status = bc_fail_nomem(err, "chat templates");
    if (status == BITCONV_OK && t.n_names > 0)
        bitconv_gguf_set_array(w, "tokenizer.chat_templates", BITCONV_GGUF_STRING, t.n_names,
                               t.names.data, t.names.size);
    bc_buf_release(&t.names);
    return status;
}
