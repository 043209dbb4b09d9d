/* SPDX-License-Identifier: MIT
 * Collects the metadata of the output. */
#include "convert/metadata.h"

#include "base/json.h"
#include "convert/meta_override.h"
#include "model/tokenizer.h"
#include "tokenizer/check_splitting.h"

static enum bitconv_status tokenizer_keys(struct bc_metadata *m, const struct bitconv_sink *sink)
{
    const struct bitconv_convert_options *o = m->setup->options;
    struct bc_tokenizer_options options = {
        .pre = o->pre, .trim_vocab = o->trim_vocab, .check = &bc_check_splitting};
    struct bc_buf template = {NULL, 0, 0, false};
    enum bitconv_status status = BITCONV_OK;
    if (o->chat_template != NULL) {
        status = bc_text_load(o->chat_template, &template, &m->err);
        options.chat_template = bc_buf_str(&template);
    }
    if (status == BITCONV_OK)
        status = bc_tokenizer_metadata(m->ckpt, m->model, &options, sink, m->writer, &m->err);
    bc_buf_release(&template);
    return status;
}

static enum bitconv_status set_keys(struct bc_metadata *m, const struct bitconv_sink *sink)
{
    const struct bitconv_convert_options *o = m->setup->options;
    BC_TRY(bc_model_metadata(m->model, m->name, m->setup->out.file_type, m->writer, &m->err));
    BC_TRY(tokenizer_keys(m, sink));
    return bc_meta_override(o->meta, o->n_meta, sink, m->writer, &m->err);
}

static void run(void *ctx)
{
    struct bc_metadata *m = ctx;
    const struct bitconv_sink sink = bc_recorder_sink(&m->messages);
    m->status = set_keys(m, &sink);
    if (m->status != BITCONV_OK) atomic_store(&m->failed, true);
}

enum bitconv_status bc_metadata_start(struct bc_metadata *m, const struct bc_setup *setup,
                                      const struct bc_checkpoint *ckpt,
                                      const struct bc_model *model, const char *name, bool wait,
                                      struct bitconv_error *err)
{
    m->setup = setup;
    m->ckpt = ckpt;
    m->model = model;
    m->name = name;
    m->writer = bitconv_gguf_writer_new();
    if (m->writer == NULL) return bc_fail_nomem(err, "GGUF header");
    if (wait) {
        run(m);
        return BITCONV_OK;
    }
    const enum bitconv_status status = bc_task_start(run, m, &m->task, err);
    if (status != BITCONV_OK) bitconv_gguf_writer_free(m->writer);
    return status;
}

enum bitconv_status bc_metadata_finish(struct bc_metadata *m, const struct bitconv_sink *sink,
                                       struct bitconv_gguf_writer **writer,
                                       struct bitconv_error *err)
{
    bc_task_join(m->task);
    bc_recorder_replay(&m->messages, sink);
    *writer = m->writer;
    if (m->status == BITCONV_OK) return BITCONV_OK;
    bitconv_gguf_writer_free(m->writer);
    *writer = NULL;
    if (err != NULL && err->status == BITCONV_OK) *err = m->err;
    return m->status;
}
