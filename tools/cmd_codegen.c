/* SPDX-License-Identifier: MIT
 * bitconv codegen: kernel configuration and look-up-table kernels of TL1 and TL2 for given shapes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "bitconv/codegen.h"
#include "cmd.h"
#include "view_text.h"

struct settings {
    struct bitconv_codegen_options options;
    const char *shapes, *bm_rows, *bk, *bm;
};

#define OPTION(member) offsetof(struct settings, options.member)

static const struct option_row options[] = {
    {"model", 0, OPTION_STRING, OPTION(model), "PATH",
     "shapes of the linear tensors of a checkpoint\nfolder or a GGUF"},
    {"shapes", 0, OPTION_STRING, offsetof(struct settings, shapes), "MxK,...",
     "rows x columns of the matrices"},
    {"pack", 0, OPTION_STRING, OPTION(pack), "P", "tl1, tl2 or both (default)"},
    {"BM", 0, OPTION_STRING, offsetof(struct settings, bm_rows), "N,...",
     "rows of a tile, one number a shape"},
    {"BK", 0, OPTION_STRING, offsetof(struct settings, bk), "N,...",
     "columns of a tile, one number a shape"},
    {"bm", 0, OPTION_STRING, offsetof(struct settings, bm), "N,...",
     "rows of a block in the tile, one a shape"},
    {"kernel-config", 0, OPTION_STRING, OPTION(kernel_config), "FILE",
     "tiles from a configuration (INI); alone: its\nshapes as well"},
    {"outdir", 'o', OPTION_OUTPUT, OPTION(dir), "DIR",
     "folder, made where it is missing, for\nkernel_config-tl1.ini, "
     "kernel_config-tl2.ini,\nbitconv_tl_kernels.h"},
    {"ini", 0, OPTION_PRINT, OPTION(ini), "FILE",
     "write the configuration there (one pack;\n-: standard output)"},
    {"header", 0, OPTION_PRINT, OPTION(header), "FILE",
     "write the header there (-: standard output)"},
    {"skip-misfits", 0, OPTION_FLAG, OPTION(skip_misfits), NULL,
     "leave out shapes that do not fit, do not fail"},
    {"force", 'f', OPTION_FLAG, OPTION(force), NULL, "replace existing outputs"},
    {NULL, 0, OPTION_FLAG, 0, NULL, NULL},
};

/* ---- lists ---- */

/* What the lists are parsed into. Zero-initialise; release. */
struct lists {
    struct bitconv_codegen_shape *shapes;
    uint32_t (*tiles)[3];
    size_t n_shapes, n_tiles;
};

static void lists_release(struct lists *lists)
{
    bc_free(lists->shapes);
    bc_free(lists->tiles);
}

static size_t count_items(const char *list)
{
    size_t n = 1;
    for (; *list != '\0'; list++)
        n += *list == ',';
    return n;
}

/* A decimal number from 1 to `max`, followed by `end` or the end of the list; *at moves behind. */
static bool take_number(const char **at, char end, uint64_t max, uint64_t *out)
{
    const char *p = *at;
    uint64_t value = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        value = 10 * value + (uint64_t)(*p - '0');
        if (value > max) return false;
    }
    if (value == 0 || (*p != end && !(end == ',' && *p == '\0'))) return false;
    *at = *p == '\0' ? p : p + 1;
    *out = value;
    return true;
}

/* "3200x8640,3200x3200"; 0 or the exit status. */
static int parse_shapes(struct ui *ui, const char *list, struct lists *out)
{
    const char *at = list;
    if (list == NULL) return 0;
    out->n_shapes = count_items(list);
    out->shapes = bc_alloc_array(out->n_shapes, sizeof *out->shapes);
    if (out->shapes == NULL) return ui_usage(ui, "codegen", "out of memory (shapes)");
    for (size_t i = 0; i < out->n_shapes; i++) {
        struct bitconv_codegen_shape *s = &out->shapes[i];
        if (!take_number(&at, 'x', UINT32_MAX, &s->rows) ||
            !take_number(&at, ',', UINT32_MAX, &s->cols))
            return ui_usage(ui, "codegen",
                            "--shapes: '%s' is no list of ROWSxCOLUMNS such as 3200x8640,3200x3200",
                            list);
    }
    return 0;
}

/* One of the lists of tiles, "160,320", into member `member` of each tile. */
static int parse_member(struct ui *ui, const char *name, const char *list, size_t member,
                        struct lists *out)
{
    const char *at = list;
    for (size_t i = 0; i < out->n_tiles; i++) {
        uint64_t value;
        if (!take_number(&at, ',', UINT32_MAX, &value))
            return ui_usage(ui, "codegen", "--%s: '%s' is no list of numbers such as 160,320", name,
                            list);
        out->tiles[i][member] = (uint32_t)value;
    }
    return 0;
}

static int parse_tiles(struct ui *ui, const struct settings *s, struct lists *out)
{
    static const char *const names[3] = {"BM", "BK", "bm"};
    const char *const given[3] = {s->bm_rows, s->bk, s->bm};
    if (given[0] == NULL && given[1] == NULL && given[2] == NULL) return 0;
    for (size_t i = 0; i < 3; i++)
        if (given[i] == NULL)
            return ui_usage(ui, "codegen", "--%s is missing: --BM, --BK and --bm belong together",
                            names[i]);
    out->n_tiles = count_items(given[0]);
    for (size_t i = 1; i < 3; i++)
        if (count_items(given[i]) != out->n_tiles)
            return ui_usage(ui, "codegen", "--%s has %zu numbers, --BM has %zu", names[i],
                            count_items(given[i]), out->n_tiles);
    if (out->n_shapes > 0 && out->n_tiles != out->n_shapes)
        return ui_usage(ui, "codegen", "--BM, --BK and --bm have %zu numbers, --shapes has %zu",
                        out->n_tiles, out->n_shapes);
    out->tiles = bc_alloc_array(out->n_tiles, sizeof *out->tiles);
    if (out->tiles == NULL) return ui_usage(ui, "codegen", "out of memory (tiles)");
    for (size_t i = 0; i < 3; i++) {
        const int status = parse_member(ui, names[i], given[i], i, out);
        if (status != 0) return status;
    }
    return 0;
}

/* ---- reports ---- */

/* Ends a line without blanks in front of its end. */
static void end_row(struct bc_buf *out)
{
    while (out->size > 0 && out->data[out->size - 1] == ' ')
        out->data[--out->size] = '\0';
    bc_buf_putc(out, '\n');
}

static void show_text(const struct ui *ui, const struct bitconv_codegen_result *result,
                      struct bc_buf *out)
{
    bc_buf_printf(out, "%s%-5s%9s%9s%6s%6s%4s  %-10s%8s  %s%s\n", ui_on(ui, UI_BOLD), "pack", "M",
                  "K", "BM", "BK", "bm", "tile", "tensors", "first", ui_off(ui));
    for (size_t i = 0; i < result->n_kernels; i++) {
        const struct bitconv_codegen_kernel *k = &result->kernels[i];
        bc_buf_printf(out,
                      "%-5s%9" PRIu64 "%9" PRIu64 "%6" PRIu32 "%6" PRIu32 "%4" PRIu32 "  %-10s",
                      k->pack, k->rows, k->cols, k->tile[0], k->tile[1], k->tile[2], k->source);
        if (k->n_tensors > 0) {
            bc_buf_printf(out, "%8" PRIu64 "  ", k->n_tensors);
            ui_cell(out, k->example, 19, true);
        }
        end_row(out);
    }
    for (size_t i = 0; i < result->n_files; i++) {
        bc_buf_puts(out, "wrote ");
        ui_cell(out, result->files[i], 0, false);
        bc_buf_putc(out, '\n');
    }
}

static void write_kernel(struct bc_jw *w, const struct bitconv_codegen_kernel *k)
{
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "pack", k->pack);
    bc_jw_key_u64(w, "m", k->rows);
    bc_jw_key_u64(w, "k", k->cols);
    bc_jw_key_u64(w, "BM", k->tile[0]);
    bc_jw_key_u64(w, "BK", k->tile[1]);
    bc_jw_key_u64(w, "bm", k->tile[2]);
    bc_jw_key_string(w, "tile", k->source);
    bc_jw_key_u64(w, "bytes", k->size);
    bc_jw_key_u64(w, "tensors", k->n_tensors);
    bc_jw_key_string(w, "first", k->example);
    bc_jw_end_object(w);
}

static void show_json(const struct ui *ui, const struct bitconv_codegen_result *result,
                      struct bc_buf *out)
{
    struct bc_jw w = {.buf = out, .first = true};
    bc_jw_begin_object(&w);
    bc_jw_key_strings(&w, "files", result->files, result->n_files);
    bc_jw_key(&w, "kernels");
    bc_jw_begin_array(&w);
    for (size_t i = 0; i < result->n_kernels; i++)
        write_kernel(&w, &result->kernels[i]);
    bc_jw_end_array(&w);
    bc_jw_key_strings(&w, "warnings", (const char *const *)ui->warnings.items, ui->warnings.n);
    bc_jw_end_object(&w);
    bc_buf_putc(out, '\n');
}

static int generate(struct ui *ui, const struct globals *globals,
                    const struct bitconv_codegen_options *codegen)
{
    struct bitconv_codegen_result *result = NULL;
    struct bitconv_error err = {0};
    struct bc_buf text = {0};
    if (bitconv_codegen(codegen, &ui->sink, &result, &err) != BITCONV_OK) return ui_fail(ui, &err);
    const bool taken = (codegen->ini != NULL && ui_is_stdout(codegen->ini)) ||
                       (codegen->header != NULL && ui_is_stdout(codegen->header));
    if (!taken && globals->json)
        show_json(ui, result, &text);
    else if (!taken && !globals->quiet)
        show_text(ui, result, &text);
    const int status = ui_finish(ui, &text);
    bitconv_codegen_free(result);
    return status;
}

static int run(struct ui *ui, const struct globals *globals, const void *settings,
               const char *const *args, size_t n_args)
{
    struct settings s = *(const struct settings *)settings;
    struct lists lists = {0};
    (void)args;
    if (n_args != 0)
        return ui_usage(ui, "codegen",
                        "no arguments were expected: --model PATH or --shapes MxK,...");
    int status = parse_shapes(ui, s.shapes, &lists);
    if (status == 0) status = parse_tiles(ui, &s, &lists);
    if (status == 0) {
        s.options.shapes = lists.shapes;
        s.options.n_shapes = lists.n_shapes;
        s.options.tiles = (const uint32_t(*)[3])lists.tiles;
        s.options.n_tiles = lists.n_tiles;
        status = generate(ui, globals, &s.options);
    }
    lists_release(&lists);
    return status;
}

const struct command command_codegen = {
    .name = "codegen",
    .summary = "write TL1/TL2 kernel configurations and a C header of kernels",
    .usage = "codegen (--model PATH | --shapes MxK,...) [options]",
    .examples = "  bitconv codegen --model bitnet-2b4t -o kernels\n"
                "  bitconv codegen --model model-tl1.gguf --pack tl1 --header kernels.h\n"
                "  bitconv codegen --shapes 3200x8640,3200x3200 --pack tl1 \\\n"
                "          --BM 160,320 --BK 64,128 --bm 32,64 -o kernels --force\n"
                "  bitconv codegen --kernel-config kernel_config.ini --pack tl2 \\\n"
                "          --header kernels.h --json\n"
                "  bitconv convert bitnet-2b4t --outtype tl2 \\\n"
                "          --kernel-config kernels/kernel_config-tl2.ini\n",
    .options = options,
    .settings_size = sizeof(struct settings),
    .run = run,
};
