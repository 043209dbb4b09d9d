/* SPDX-License-Identifier: MIT
 * Names, headers and the life of the output files. */
#include "convert/outputs.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "io/safetensors_internal.h"

enum { ALIGNMENT = 32, MAX_FILES = 65535 /* split.count is a UINT16 */ };

/* ---- names ---- */

/* The name with everything that a file name should not hold replaced. */
static char *file_stem(const char *name, struct bc_arena *arena)
{
    char *stem = bc_arena_strdup(arena, name);
    if (stem == NULL) return NULL;
    for (char *c = stem; *c != '\0'; c++) {
        const bool control = (unsigned char)*c < 0x20 || *c == 0x7f;
        if (control || strchr("/\\:*?\"<>|", *c) != NULL) *c = '_';
    }
    if (stem[0] == '.') stem[0] = '_';
    return stem;
}

enum bitconv_status bc_outputs_path(const struct bc_setup *setup, const char *name,
                                    struct bc_arena *arena, char **out, struct bitconv_error *err)
{
    const struct bitconv_convert_options *o = setup->options;
    const char *dir = setup->dir;
    const size_t len = strlen(dir);
    const char *slash = len > 0 && dir[len - 1] == '/' ? "" : "/";
    if (o->outfile != NULL) {
        *out = bc_arena_strdup(arena, o->outfile);
    } else {
        char *stem = file_stem(name, arena);
        if (stem == NULL) return bc_fail_nomem(err, "path");
        *out = bc_arena_printf(arena, "%s%s%s-%s.gguf", dir, slash, stem,
                               o->vocab_only ? "vocab" : setup->out.name);
    }
    return *out != NULL ? BITCONV_OK : bc_fail_nomem(err, "path");
}

/* "X-00001-of-00003.gguf" for "X.gguf". */
static char *split_path(const char *path, uint32_t index, uint32_t n, struct bc_arena *arena)
{
    static const char ending[] = ".gguf";
    size_t len = strlen(path);
    if (len > strlen(ending) && strcmp(path + len - strlen(ending), ending) == 0)
        len -= strlen(ending);
    return bc_arena_printf(arena, "%.*s-%05" PRIu32 "-of-%05" PRIu32 ".gguf", (int)len, path,
                           index + 1, n);
}

/* ---- inputs ---- */

static bool is_output_name(const char *name)
{
    const size_t len = strlen(name);
    return len >= 5 && strcmp(name + len - 5, ".gguf") == 0;
}

static void add_input(struct bc_outputs *o, const char *path, uint64_t dev, uint64_t ino)
{
    struct bc_file *input = &o->inputs[o->n_inputs];
    input->path = bc_arena_strdup(&o->arena, path);
    input->dev = dev;
    input->ino = ino;
    if (input->path != NULL) o->n_inputs++;
}

/* Adds a file that is not open yet. Only its identity is kept, not the map. */
static void add_input_path(struct bc_outputs *o, const char *path)
{
    struct bc_file file;
    if (path == NULL || bc_path_kind(path) != BC_PATH_FILE ||
        bc_file_open(path, &file, NULL) != BITCONV_OK)
        return;
    add_input(o, path, file.dev, file.ino);
    bc_file_close(&file);
}

static bool is_shard(const struct bc_checkpoint *ckpt, const char *path)
{
    for (size_t i = 0; i < ckpt->n_shards; i++)
        if (strcmp(ckpt->shard_paths[i], path) == 0) return true;
    return false;
}

enum bitconv_status bc_outputs_begin(const struct bc_setup *setup, const struct bc_checkpoint *ckpt,
                                     struct bc_outputs *out, struct bitconv_error *err)
{
    char **names;
    size_t n;
    *out = (struct bc_outputs){.files = NULL};
    BC_TRY(bc_dir_list(setup->dir, &names, &n, err));
    out->inputs = bc_arena_alloc(&out->arena, n + ckpt->n_shards + 2, sizeof *out->inputs);
    for (size_t i = 0; i < n; i++) {
        char *path = bc_path_join(setup->dir, names[i]);
        /* A GGUF in the folder is the output of an earlier run. */
        if (out->inputs != NULL && path != NULL && !is_output_name(names[i]) &&
            !is_shard(ckpt, path))
            add_input_path(out, path);
        bc_free(path);
        bc_free(names[i]);
    }
    bc_free(names);
    if (out->inputs == NULL) return bc_fail_nomem(err, "list of inputs");
    for (size_t i = 0; i < ckpt->n_shards; i++) {
        const struct bc_file *file = bc_safetensors_file(ckpt->shards[i]);
        add_input(out, ckpt->shard_paths[i], file->dev, file->ino);
    }
    add_input_path(out, setup->options->chat_template);
    add_input_path(out, setup->options->kernel_config);
    return BITCONV_OK;
}

enum bitconv_status bc_outputs_begin_gguf(const struct bc_setup *setup,
                                          const struct bitconv_gguf *file, const char *config,
                                          struct bc_outputs *out, struct bitconv_error *err)
{
    const uint32_t n = file != NULL ? bitconv_gguf_n_shards(file) : 0;
    *out = (struct bc_outputs){.files = NULL};
    out->inputs = bc_arena_alloc(&out->arena, (size_t)n + 2, sizeof *out->inputs);
    if (out->inputs == NULL) return bc_fail_nomem(err, "list of inputs");
    for (uint32_t i = 0; i < n; i++)
        add_input_path(out, bitconv_gguf_shard_path(file, i));
    add_input_path(out, setup->options->kernel_config);
    add_input_path(out, config);
    return BITCONV_OK;
}

/* ---- opening ---- */

static enum bitconv_status open_file(const struct bc_setup *setup, const struct bc_outputs *o,
                                     const char *path, uint64_t size, struct bc_out **out,
                                     struct bitconv_error *err)
{
    const struct bc_file **inputs = bc_alloc_array(o->n_inputs, sizeof *inputs);
    if (inputs == NULL) return bc_fail_nomem(err, "list of inputs");
    for (size_t i = 0; i < o->n_inputs; i++)
        inputs[i] = &o->inputs[i];
    const struct bc_out_options options = {
        .force = setup->options->force, .size = size, .inputs = inputs, .n_inputs = o->n_inputs};
    const enum bitconv_status status = bc_out_open(path, &options, out, err);
    bc_free((void *)inputs);
    return status;
}

enum bitconv_status bc_outputs_probe(const struct bc_setup *setup, const struct bc_outputs *outputs,
                                     const char *path, uint64_t size, struct bitconv_error *err)
{
    struct bc_out *out = NULL;
    /* Opening a pipe and closing it again would be the end of the file for its reader. */
    if (bc_path_kind(path) == BC_PATH_OTHER) return BITCONV_OK;
    BC_TRY(open_file(setup, outputs, path, size, &out, err));
    bc_out_abort(out);
    return BITCONV_OK;
}

enum bitconv_status bc_outputs_open(const struct bc_setup *setup, struct bc_outputs *outputs,
                                    struct bitconv_error *err)
{
    for (uint32_t i = 0; i < outputs->n_files; i++) {
        struct bc_output_file *f = &outputs->files[i];
        /* The first file answers for the free space that all of them need. */
        const uint64_t size = i == 0 ? bc_outputs_size(outputs) : f->file_size;
        BC_TRY(open_file(setup, outputs, f->path, size, &f->out, err));
    }
    return BITCONV_OK;
}

bool bc_outputs_seekable(const struct bc_outputs *outputs)
{
    for (uint32_t i = 0; i < outputs->n_files; i++)
        if (!bc_out_is_file(outputs->files[i].out)) return false;
    return true;
}

/* ---- layout ---- */

/* Bytes of a tensor's entry in the header. */
static uint64_t info_size(const struct bc_plan_tensor *t)
{
    uint64_t ne[4];
    return 8 + strlen(t->weight->name) + 4 + 8 * (uint64_t)bc_plan_file_shape(t, ne) + 4 + 8;
}

/* The keys that llama.cpp expects in every file of a set. */
static void set_split_keys(struct bitconv_gguf_writer *w, uint32_t index, uint32_t n,
                           size_t n_tensors)
{
    uint8_t bytes[4];
    bc_put_u16(bytes, (uint16_t)index);
    bitconv_gguf_set_scalar(w, "split.no", BITCONV_GGUF_UINT16, bytes);
    bc_put_u16(bytes, (uint16_t)n);
    bitconv_gguf_set_scalar(w, "split.count", BITCONV_GGUF_UINT16, bytes);
    bc_put_u32(bytes, (uint32_t)n_tensors);
    bitconv_gguf_set_scalar(w, "split.tensors.count", BITCONV_GGUF_INT32, bytes);
}

/* Header bytes of a writer without tensors. */
static enum bitconv_status metadata_size(struct bitconv_gguf_writer *w, uint64_t *out,
                                         struct bitconv_error *err)
{
    const uint8_t *header;
    uint64_t file_size;
    return bitconv_gguf_writer_plan(w, &header, out, &file_size, err);
}

/* Fills in places[].file: a new file where the next tensor would make the current one too large
 * (but every file has a tensor). Sizes are those of whole files, header included. */
static uint32_t divide(const struct bc_plan *plan, uint64_t max_size, const uint64_t meta[2],
                       struct bc_place *places)
{
    uint32_t file = 0;
    uint64_t header = meta[0], data = 0;
    bool empty = true;
    for (size_t i = 0; i < plan->n_tensors; i++) {
        const struct bc_plan_tensor *t = &plan->tensors[i];
        const uint64_t size = bc_round_up(t->size, ALIGNMENT);
        const uint64_t info = info_size(t);
        const uint64_t with = bc_round_up(header + info, ALIGNMENT) + data + size;
        if (!empty && max_size > 0 && with > max_size) {
            file++;
            header = meta[1];
            data = 0;
        }
        header += info;
        data += size;
        empty = false;
        places[i].file = file;
    }
    return file + 1;
}

static enum bitconv_status make_writers(struct bc_outputs *o, const struct bc_plan *plan,
                                        struct bitconv_error *err)
{
    for (uint32_t i = 0; i < o->n_files; i++) {
        struct bc_output_file *f = &o->files[i];
        if (f->writer == NULL) f->writer = bitconv_gguf_writer_new();
        if (f->writer == NULL) return bc_fail_nomem(err, "GGUF header");
        if (o->n_files > 1) set_split_keys(f->writer, i, o->n_files, plan->n_tensors);
    }
    for (size_t i = 0; i < plan->n_tensors; i++) {
        const struct bc_plan_tensor *t = &plan->tensors[i];
        uint64_t ne[4];
        const uint32_t n_dims = bc_plan_file_shape(t, ne);
        bitconv_gguf_add_tensor(o->files[o->places[i].file].writer, t->weight->name,
                                t->type.type_id, n_dims, ne, t->size);
    }
    return BITCONV_OK;
}

static enum bitconv_status plan_header(struct bc_output_file *f, struct bitconv_error *err)
{
    return bitconv_gguf_writer_plan(f->writer, &f->header, &f->header_size, &f->file_size, err);
}

static enum bitconv_status plan_headers(struct bc_outputs *o, const struct bc_plan *plan,
                                        struct bitconv_error *err)
{
    size_t index = 0; /* within its file */
    for (uint32_t i = 0; i < o->n_files; i++)
        BC_TRY(plan_header(&o->files[i], err));
    for (size_t i = 0; i < plan->n_tensors; i++) {
        struct bc_place *p = &o->places[i];
        if (i > 0 && p->file != o->places[i - 1].file) index = 0;
        const struct bc_output_file *f = &o->files[p->file];
        p->offset = f->header_size + bitconv_gguf_writer_tensor_offset(f->writer, index++);
    }
    return BITCONV_OK;
}

/* How many files there will be, and which tensor goes where. The split keys are set while the
 * metadata is measured; a set of one is a plain file without them. */
static enum bitconv_status count_files(const struct bc_plan *plan, uint64_t max_size,
                                       struct bitconv_gguf_writer *writer, struct bc_place *places,
                                       uint32_t *out, struct bitconv_error *err)
{
    uint64_t meta[2] = {0, 0};
    if (max_size > 0) {
        struct bitconv_gguf_writer *other = bitconv_gguf_writer_new();
        if (other == NULL) return bc_fail_nomem(err, "GGUF header");
        set_split_keys(other, 0, 1, plan->n_tensors);
        set_split_keys(writer, 0, 1, plan->n_tensors);
        enum bitconv_status status = metadata_size(writer, &meta[0], err);
        if (status == BITCONV_OK) status = metadata_size(other, &meta[1], err);
        bitconv_gguf_writer_free(other);
        BC_TRY(status);
    }
    const uint32_t n = divide(plan, max_size, meta, places);
    if (n == 1) {
        bitconv_gguf_unset(writer, "split.no");
        bitconv_gguf_unset(writer, "split.count");
        bitconv_gguf_unset(writer, "split.tensors.count");
    }
    *out = n;
    return BITCONV_OK;
}

static void warn_oversize(const struct bc_outputs *o, uint64_t max_size,
                          const struct bitconv_sink *sink)
{
    for (uint32_t i = 0; max_size > 0 && i < o->n_files; i++)
        if (o->files[i].file_size > max_size)
            bc_say(sink, BITCONV_WARNING,
                   "%s: %" PRIu64 " bytes, more than the %" PRIu64
                   " of --split-max-size: one tensor "
                   "and the header cannot be divided",
                   o->files[i].path, o->files[i].file_size, max_size);
}

enum bitconv_status bc_outputs_layout(const struct bc_setup *setup, const struct bc_plan *plan,
                                      struct bitconv_gguf_writer *writer, const char *path,
                                      const struct bitconv_sink *sink, struct bc_outputs *out,
                                      struct bitconv_error *err)
{
    const uint64_t max_size = setup->options->split_max_size;
    uint32_t n = 1;
    out->places = bc_arena_alloc(&out->arena, plan->n_tensors, sizeof *out->places);
    enum bitconv_status status = out->places == NULL
                                     ? bc_fail_nomem(err, "layout of the output")
                                     : count_files(plan, max_size, writer, out->places, &n, err);
    if (status == BITCONV_OK && n > MAX_FILES)
        status = bc_fail(err, BITCONV_E_ARG,
                         "--split-max-size %" PRIu64 ": gives %" PRIu32 " files, at most %d are "
                         "possible",
                         max_size, n, MAX_FILES);
    if (status == BITCONV_OK) {
        out->files = bc_arena_alloc(&out->arena, n, sizeof *out->files);
        if (out->files == NULL) status = bc_fail_nomem(err, "layout of the output");
    }
    if (status != BITCONV_OK) {
        bitconv_gguf_writer_free(writer);
        return status;
    }
    out->n_files = n;
    out->files[0].writer = writer;
    for (uint32_t i = 0; i < n; i++) {
        out->files[i].path =
            n > 1 ? split_path(path, i, n, &out->arena) : bc_arena_strdup(&out->arena, path);
        if (out->files[i].path == NULL) return bc_fail_nomem(err, "path");
    }
    BC_TRY(make_writers(out, plan, err));
    BC_TRY(plan_headers(out, plan, err));
    warn_oversize(out, max_size, sink);
    return BITCONV_OK;
}

/* ---- writing ---- */

enum bitconv_status bc_outputs_headers(struct bc_outputs *outputs, struct bitconv_error *err)
{
    for (uint32_t i = 0; i < outputs->n_files; i++) {
        const struct bc_output_file *f = &outputs->files[i];
        BC_TRY(bc_out_write(f->out, f->header, (size_t)f->header_size, err));
    }
    return BITCONV_OK;
}

enum bitconv_status bc_outputs_update(struct bc_outputs *outputs, bool rewrite,
                                      struct bitconv_error *err)
{
    struct bc_output_file *f = &outputs->files[0];
    const uint64_t before = f->header_size;
    BC_TRY(plan_header(f, err));
    if (f->header_size != before)
        return bc_fail(err, BITCONV_E_BUG,
                       "%s: the header grew from %" PRIu64 " to %" PRIu64 " bytes", f->path, before,
                       f->header_size);
    if (!rewrite) return BITCONV_OK;
    return bc_out_pwrite(f->out, 0, f->header, (size_t)f->header_size, err);
}

enum bitconv_status bc_outputs_commit(struct bc_outputs *outputs, struct bitconv_error *err)
{
    for (uint32_t i = 0; i < outputs->n_files; i++) {
        struct bc_output_file *f = &outputs->files[i];
        BC_TRY(bc_pad_to(f->out, f->file_size, err));
        BC_TRY(bc_out_sync(f->out, err));
    }
    for (uint32_t i = 0; i < outputs->n_files; i++) {
        struct bc_out *out = outputs->files[i].out;
        outputs->files[i].out = NULL; /* commit frees it whether or not it works */
        BC_TRY(bc_out_commit(out, err));
    }
    return BITCONV_OK;
}

uint64_t bc_outputs_size(const struct bc_outputs *outputs)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < outputs->n_files; i++)
        size += outputs->files[i].file_size;
    return size;
}

uint64_t bc_outputs_headers_size(const struct bc_outputs *outputs)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < outputs->n_files; i++)
        size += outputs->files[i].header_size;
    return size;
}

void bc_outputs_release(struct bc_outputs *outputs)
{
    for (uint32_t i = 0; i < outputs->n_files; i++) {
        bc_out_abort(outputs->files[i].out);
        bitconv_gguf_writer_free(outputs->files[i].writer);
    }
    bc_arena_release(&outputs->arena);
    *outputs = (struct bc_outputs){.files = NULL};
}
