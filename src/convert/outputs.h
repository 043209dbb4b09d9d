/* SPDX-License-Identifier: MIT
 * The file or files of a conversion: names, which tensors go where, headers, and their appearing
 * all together or not at all. */
#ifndef BC_CONVERT_OUTPUTS_H
#define BC_CONVERT_OUTPUTS_H

#include "base/file.h"
#include "bitconv/gguf.h"
#include "convert/plan.h"
#include "convert/stream.h"

struct bc_output_file {
    char *path;                         /* arena */
    struct bitconv_gguf_writer *writer; /* owned */
    const uint8_t *header;              /* the writer's */
    uint64_t header_size;
    uint64_t file_size;
    struct bc_out *out; /* NULL until opened */
};

struct bc_outputs {
    struct bc_output_file *files; /* file 0 has all metadata */
    uint32_t n_files;
    struct bc_place *places; /* one per tensor of the plan */
    struct bc_file *inputs;  /* identities of files that must not be overwritten; no maps */
    size_t n_inputs;
    struct bc_arena arena; /* owns files, places and inputs */
};

/* The output path: --outfile, else DIR/NAME-T.gguf with `name` made fit for a file name. Arena. */
enum bitconv_status bc_outputs_path(const struct bc_setup *setup, const char *name,
                                    struct bc_arena *arena, char **out, struct bitconv_error *err);

/* Finds out what the inputs are (the checkpoint's own files, the chat template,
 * the kernel configuration): writing to one of
 * them is refused later. First call on a zero-initialised *out; release in any case. */
enum bitconv_status bc_outputs_begin(const struct bc_setup *setup, const struct bc_checkpoint *ckpt,
                                     struct bc_outputs *out, struct bitconv_error *err);

/* The same for a conversion of a GGUF: the inputs are the files of its set (`file` NULL: none), the
 * kernel configuration and `config` (another one, or NULL). */
enum bitconv_status bc_outputs_begin_gguf(const struct bc_setup *setup,
                                          const struct bitconv_gguf *file, const char *config,
                                          struct bc_outputs *out, struct bitconv_error *err);

/* Whether `path` could be written: fails as opening it would (it exists, is an input, its folder is
 * read-only, `size` bytes do not fit). Leaves nothing behind. Devices and pipes are left alone. */
enum bitconv_status bc_outputs_probe(const struct bc_setup *setup, const struct bc_outputs *outputs,
                                     const char *path, uint64_t size, struct bitconv_error *err);

/* Divides the plan's tensors into files of at most --split-max-size and plans all headers. `writer`
 * holds the metadata and belongs to *out from now on (also on failure). */
enum bitconv_status bc_outputs_layout(const struct bc_setup *setup, const struct bc_plan *plan,
                                      struct bitconv_gguf_writer *writer, const char *path,
                                      const struct bitconv_sink *sink, struct bc_outputs *out,
                                      struct bitconv_error *err);

/* Whether headers can be written again later: false for devices and pipes. */
bool bc_outputs_seekable(const struct bc_outputs *outputs);
/* Opens all files. */
enum bitconv_status bc_outputs_open(const struct bc_setup *setup, struct bc_outputs *outputs,
                                    struct bitconv_error *err);
/* Writes all headers as planned. */
enum bitconv_status bc_outputs_headers(struct bc_outputs *outputs, struct bitconv_error *err);
/* Plans file 0 again after its metadata changed (same size, BUG otherwise); writes the header again
 * when `rewrite`. */
enum bitconv_status bc_outputs_update(struct bc_outputs *outputs, bool rewrite,
                                      struct bitconv_error *err);
/* Pads, syncs all files, then gives them their names. */
enum bitconv_status bc_outputs_commit(struct bc_outputs *outputs, struct bitconv_error *err);
uint64_t bc_outputs_size(const struct bc_outputs *outputs);         /* bytes of all files */
uint64_t bc_outputs_headers_size(const struct bc_outputs *outputs); /* of which headers */
/* Drops what was not committed and frees everything. */
void bc_outputs_release(struct bc_outputs *outputs);

#endif
