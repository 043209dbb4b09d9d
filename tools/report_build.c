/* SPDX-License-Identifier: MIT
 * The results of inspect, convert and verify as the one form that the page shows. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "report.h"

/* Adds "label: value" to the head of the page (further ones than fit are left out). */
BC_PRINTF(3, 4)
static void add_fact(struct report *report, const char *label, const char *fmt, ...)
{
    const size_t room = sizeof report->facts / sizeof report->facts[0];
    va_list ap;
    if (report->n_facts == room) return;
    struct report_fact *fact = &report->facts[report->n_facts++];
    fact->label = label;
    va_start(ap, fmt);
    vsnprintf(fact->value, sizeof fact->value, fmt, ap);
    va_end(ap);
}

/* Parts of a model by what their GGUF names hold; the first that fits. */
static const char *group_of(const char *name)
{
    static const struct {
        const char *piece, *group;
    } rows[] = {
        {"_norm", "norms"},           {"token_embd", "embedding"}, {"position_embd", "embedding"},
        {"token_types", "embedding"}, {"attn", "attention"},       {"shortconv", "convolution"},
        {"ffn", "feed-forward"},      {"output", "output"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strstr(name, rows[i].piece) != NULL) return rows[i].group;
    return "other";
}

/* "blk.12.attn_q.weight" -> 12, "attn_q". */
static void split_name(const char *name, struct report_tensor *t)
{
    const char *rest = name;
    char *end;
    t->group = group_of(name);
    if (strncmp(name, "blk.", 4) == 0 && name[4] >= '0' && name[4] <= '9') {
        const unsigned long layer = strtoul(name + 4, &end, 10);
        t->has_layer = *end == '.' && layer < 100000;
        if (t->has_layer) {
            t->layer = (uint32_t)layer;
            rest = end + 1;
        }
    }
    const char *suffix = strstr(rest, ".weight");
    const size_t len = suffix != NULL ? (size_t)(suffix - rest) : strlen(rest);
    snprintf(t->projection, sizeof t->projection, "%.*s", (int)(len < 39 ? len : 39), rest);
}

static bool make_tensors(struct report *report, size_t n)
{
    report->tensors = bc_alloc_array(n, sizeof *report->tensors);
    report->n_tensors = n;
    return report->tensors != NULL;
}

static void size_facts(struct report *report)
{
    uint64_t parameters = 0, bytes = 0;
    for (size_t i = 0; i < report->n_tensors; i++) {
        parameters += report->tensors[i].parameters;
        bytes += report->tensors[i].bytes;
    }
    struct bc_buf text = {0};
    ui_count(&text, parameters);
    add_fact(report, "parameters", "%s", bc_buf_str(&text));
    bc_buf_clear(&text);
    ui_bytes(&text, bytes);
    add_fact(report, "tensors", "%zu, %s", report->n_tensors, bc_buf_str(&text));
    bc_buf_release(&text);
    if (parameters > 0)
        add_fact(report, "bits per weight", "%.3f", 8.0 * (double)bytes / (double)parameters);
}

static void model_facts(struct report *report, const struct bitconv_model_summary *m)
{
    if (m->name != NULL) add_fact(report, "model", "%s", m->name);
    if (m->architecture != NULL) add_fact(report, "architecture", "%s", m->architecture);
    if (m->layers > 0)
        add_fact(report, "layers", "%" PRIu64 " of width %" PRIu64, m->layers, m->hidden_size);
    if (m->heads > 0)
        add_fact(report, "heads", "%" PRIu64 ", %" PRIu64 " of keys and values", m->heads,
                 m->kv_heads);
    if (m->vocab_size > 0) add_fact(report, "vocabulary", "%" PRIu64, m->vocab_size);
    if (m->context_length > 0) add_fact(report, "context", "%" PRIu64, m->context_length);
}

void report_from_inspection(const struct bitconv_inspection *it, struct report *out)
{
    *out = (struct report){.command = "inspect", .file = bc_path_base(it->file), .verdict = -1};
    out->warnings = it->warnings;
    out->n_warnings = it->n_warnings;
    if (!make_tensors(out, it->n_tensors)) return;
    for (size_t i = 0; i < it->n_tensors; i++) {
        const struct bitconv_inspected_tensor *from = &it->tensors[i];
        struct report_tensor *t = &out->tensors[i];
        const bool ternary = from->stats.kind == BITCONV_STATS_TERNARY;
        *t = (struct report_tensor){.name = from->name,
                                    .type = from->type,
                                    .pack = from->pack,
                                    .n_dims = from->n_dims,
                                    .parameters = from->n_elements,
                                    .bytes = from->size,
                                    .zeros = ternary ? from->stats.zeros : -1,
                                    .scale = ternary ? from->stats.scale : 0};
        memcpy(t->ne, from->ne, sizeof t->ne);
        split_name(from->name, t);
    }
    add_fact(out, "container", "%s", bitconv_container_name(it->container));
    if (it->dialect != NULL) add_fact(out, "dialect", "%s", it->dialect);
    model_facts(out, &it->model);
    size_facts(out);
    if (it->fingerprint[0] != '\0') add_fact(out, "fingerprint", "%s", it->fingerprint);
}

void report_from_conversion(const struct bitconv_conversion *c, const struct ui *ui,
                            struct report *out)
{
    *out = (struct report){.command = "convert", .file = bc_path_base(c->output), .verdict = -1};
    out->warnings = (const char *const *)ui->warnings.items;
    out->n_warnings = ui->warnings.n;
    if (!make_tensors(out, c->n_tensors)) return;
    for (size_t i = 0; i < c->n_tensors; i++) {
        const struct bitconv_converted_tensor *from = &c->tensors[i];
        struct report_tensor *t = &out->tensors[i];
        *t = (struct report_tensor){.name = from->name,
                                    .type = from->type,
                                    .pack = from->pack,
                                    .note = from->how,
                                    .n_dims = from->n_dims,
                                    .parameters = from->parameters,
                                    .bytes = from->size,
                                    .zeros = from->zeros,
                                    .scale = from->zeros >= 0 ? from->scale : 0};
        memcpy(t->ne, from->ne, sizeof t->ne);
        split_name(from->name, t);
    }
    add_fact(out, "type", "%s", c->outtype);
    add_fact(out, "target", "%s", c->target);
    add_fact(out, "architecture", "%s", c->architecture);
    size_facts(out);
    if (c->fingerprint[0] != '\0') add_fact(out, "fingerprint", "%s", c->fingerprint);
}

void report_from_verification(const struct verify_view *view, struct report *out)
{
    const struct bitconv_verification *v = view->it;
    *out = (struct report){
        .command = "verify", .file = bc_path_base(view->file), .verdict = v->ok ? 1 : 0};
    out->proofs = v->proofs;
    out->n_proofs = v->n_proofs;
    out->warnings = (const char *const *)view->warnings.items;
    out->n_warnings = view->warnings.n;
    if (!make_tensors(out, v->n_tensors)) return;
    for (size_t i = 0; i < v->n_tensors; i++) {
        const struct bitconv_verified_tensor *from = &v->tensors[i];
        struct report_tensor *t = &out->tensors[i];
        *t = (struct report_tensor){.name = from->name,
                                    .type = from->type,
                                    .pack = from->pack,
                                    .note = from->problem,
                                    .n_dims = from->n_dims,
                                    .parameters = from->parameters,
                                    .bytes = from->size,
                                    .zeros = from->pack != NULL ? from->zeros : -1,
                                    .scale = from->pack != NULL ? from->scale : 0,
                                    .bad = !from->ok};
        memcpy(t->ne, from->ne, sizeof t->ne);
        split_name(from->name, t);
    }
    size_facts(out);
    if (v->fingerprint[0] != '\0') add_fact(out, "fingerprint", "%s", v->fingerprint);
}

/* Neither a model nor anything else may get lost to a mistyped name. */
static bool is_page(const char *path)
{
    struct bc_file file;
    if (bc_file_open(path, &file, NULL) != BITCONV_OK) return false;
    const size_t len = sizeof REPORT_DOCTYPE - 1;
    const bool page = file.size >= len && memcmp(file.data, REPORT_DOCTYPE, len) == 0;
    bc_file_close(&file);
    return page;
}

int report_check_target(struct ui *ui, const char *path, const char *other, bool force)
{
    struct bitconv_error err = {0};
    const enum bc_path_kind kind = bc_path_kind(path);
    if (kind == BC_PATH_DIR)
        bc_fail(&err, BITCONV_E_ARG, "%s: is a folder: name the file of the report", path);
    else if (other != NULL && bc_out_same(path, other))
        bc_fail(&err, BITCONV_E_ARG,
                "%s: the same file for the report and another output: name two", path);
    else if (kind == BC_PATH_FILE && !force)
        bc_fail(&err, BITCONV_E_ARG, "%s: exists already: use --force to replace it", path);
    else if (kind == BC_PATH_FILE && !is_page(path))
        bc_fail(&err, BITCONV_E_ARG, "%s: is no HTML page: a report replaces nothing else", path);
    else
        bc_out_probe(path, &(struct bc_out_options){.force = force}, &err);
    return err.status == BITCONV_OK ? 0 : ui_fail(ui, &err);
}

int report_write(struct ui *ui, const char *path, bool force, struct report *report)
{
    struct bitconv_error err = {0};
    struct bc_buf page = {0};
    /* The command may have written it meanwhile. */
    const int refused = report_check_target(ui, path, NULL, force);
    if (refused == 0 && report->tensors != NULL) report_html(report, &page);
    if (refused == 0 && (report->tensors == NULL || page.failed))
        bc_fail_nomem(&err, "the report");
    else if (refused == 0)
        bc_file_write(path, page.data, page.size, force, &err);
    bc_buf_release(&page);
    bc_free(report->tensors);
    report->tensors = NULL;
    if (refused != 0) return refused;
    if (err.status != BITCONV_OK) return ui_fail(ui, &err);
    ui_wrote(ui, path);
    return 0;
}
