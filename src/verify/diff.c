/* SPDX-License-Identifier: MIT
 * Opens both sides of a comparison and runs its parts. */
#include "bitconv/diff.h"

#include <string.h>

#include "verify/differ.h"
#include "verify/inspector.h"

const char *bitconv_diff_verdict_name(enum bitconv_diff_verdict verdict)
{
    static const char *const names[] = {"same", "changed", "only_a", "only_b"};
    return (unsigned)verdict < BITCONV_N_DIFF_VERDICTS ? names[verdict] : "?";
}

const char *bitconv_diff_basis_name(enum bitconv_diff_basis basis)
{
    static const char *const names[] = {"none", "bytes", "fingerprint", "value"};
    return (unsigned)basis < BITCONV_N_DIFF_BASES ? names[basis] : "?";
}

/* inspect has opened, checked and listed everything; its findings are not this command's. */
static enum bitconv_status open_side(struct bc_differ *d, size_t index, struct bitconv_error *err)
{
    struct bc_diff_side *side = &d->side[index];
    const struct bitconv_inspect_options options = {.dialect = d->options->dialect,
                                                    .kernel_config = d->options->kernel_config,
                                                    .n_threads = 1,
                                                    .cpu = d->options->cpu};
    BC_TRY(bitconv_inspect(side->path, &options, d->sink, &side->it, err));
    d->data->it[index] = side->it;
    const struct bc_inspection_data *data = side->it->internal;
    side->container = &data->container;
    for (size_t i = 0; i < side->it->n_tensors; i++) {
        const struct bitconv_inspected_tensor *t = &side->it->tensors[i];
        if (bc_map_put(&side->tensors, t->name, t->name_len, i, NULL) == BC_MAP_NOMEM)
            return bc_fail_nomem(err, "the names of tensors");
    }
    if (side->container->gguf == NULL) return BITCONV_OK;
    BC_TRY(bc_stated_read(side->container->gguf, &d->data->arena, &side->stated, err));
    return bc_stated_config(&side->stated, d->options->kernel_config, NULL, err);
}

static bool is_gguf(const struct bc_diff_side *side)
{
    return side->container->gguf != NULL;
}

static enum bitconv_status compare(struct bc_differ *d, struct bitconv_error *err)
{
    bool known = false;
    BC_TRY(open_side(d, 0, err));
    BC_TRY(open_side(d, 1, err));
    if (is_gguf(&d->side[0]) != is_gguf(&d->side[1])) {
        const size_t gguf = is_gguf(&d->side[0]) ? 0 : 1;
        return bc_fail(
            err, BITCONV_E_ARG,
            "%s is a GGUF, %s is not: their tensors have other names and orders, compare "
            "a GGUF with its checkpoint by `bitconv verify FILE --source DIR`",
            d->side[gguf].path, d->side[1 - gguf].path);
    }
    d->kernels =
        d->options->cpu != NULL ? bc_kernels_named(d->options->cpu, &known) : bc_kernels_best();
    BC_TRY(bc_pool_new(d->options->n_threads, &d->pool, err));
    d->out->a = bc_arena_strdup(&d->data->arena, d->side[0].path);
    d->out->b = bc_arena_strdup(&d->data->arena, d->side[1].path);
    if (d->out->a == NULL || d->out->b == NULL) return bc_fail_nomem(err, "the comparison");
    BC_TRY(bc_diff_keys(d, err));
    BC_TRY(bc_diff_tensors(d, err));
    d->out->equal = d->out->n_different_keys == 0 && d->out->n_different_tensors == 0;
    return BITCONV_OK;
}

enum bitconv_status bitconv_diff(const char *a, const char *b,
                                 const struct bitconv_diff_options *options,
                                 const struct bitconv_sink *sink, struct bitconv_diff **out,
                                 struct bitconv_error *err)
{
    static const struct bitconv_diff_options defaults = {0};
    struct bc_differ d = {.sink = sink, .side = {{.path = a}, {.path = b}}};
    d.options = options != NULL ? options : &defaults;
    *out = NULL;
    d.out = bc_alloc_array(1, sizeof *d.out);
    d.data = bc_alloc_array(1, sizeof *d.data);
    if (d.out == NULL || d.data == NULL) {
        bc_free(d.out);
        bc_free(d.data);
        return bc_fail_nomem(err, "the comparison");
    }
    d.out->internal = d.data;
    const enum bitconv_status status = compare(&d, err);
    for (size_t i = 0; i < 2; i++) {
        bc_stated_release(&d.side[i].stated);
        bc_map_release(&d.side[i].tensors);
    }
    bc_pool_free(d.pool);
    if (status != BITCONV_OK) {
        bitconv_diff_free(d.out);
        return status;
    }
    *out = d.out;
    return BITCONV_OK;
}

void bitconv_diff_free(struct bitconv_diff *diff)
{
    if (diff == NULL) return;
    struct bc_diff_data *data = diff->internal;
    bitconv_inspection_free(data->it[0]);
    bitconv_inspection_free(data->it[1]);
    bc_arena_release(&data->arena);
    bc_free(data);
    bc_free(diff->keys);
    bc_free(diff);
}
