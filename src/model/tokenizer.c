/* SPDX-License-Identifier: MIT
 * Tokenizer files of a checkpoint -> the tokenizer.* keys of a GGUF: which files, in which order.
 */
#include "model/tokenizer.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "model/tokenizer_load.h"
#include "model/tokenizer_pre.h"
#include "model/tokenizer_special.h"

/* Everything one conversion of a tokenizer holds. */
struct job {
    const struct bc_checkpoint *ckpt;
    const struct bc_model *model;
    const struct bc_tokenizer_options *options;
    const struct bc_tokenizer_rules *rules;
    const struct bitconv_sink *sink;
    struct bc_tokenizer_files files;
    struct bc_json *vocab_json; /* vocab.json: the vocabulary borrows its keys */
    struct bc_vocab vocab;
    struct bc_specials specials;
    struct bc_affixes affixes;
    void *check_state; /* of options->check, begun */
};

static enum bitconv_status load_spm(struct job *job, bool *found, struct bitconv_error *err)
{
    struct bc_buf data = {0};
    enum bitconv_status status =
        bc_tokenizer_text(job->ckpt->dir, "tokenizer.model", &data, found, err);
    if (status == BITCONV_OK && *found) {
        status = bc_load_spm(data.data, data.size, &job->vocab, err);
        job->vocab.pre = "default";
    }
    bc_buf_release(&data);
    return status;
}

/* merges.txt beside a tokenizer.json should hold the same list. */
static enum bitconv_status check_merges_txt(struct job *job, struct bitconv_error *err)
{
    struct bc_buf text = {0};
    bool found;
    const enum bitconv_status status =
        bc_tokenizer_text(job->ckpt->dir, "merges.txt", &text, &found, err);
    if (status == BITCONV_OK && found) bc_compare_merges(&job->vocab, &text, job->sink);
    bc_buf_release(&text);
    return status;
}

static enum bitconv_status load_tokenizer_json(struct job *job, struct bitconv_error *err)
{
    const char *const type = bc_json_string(bc_json_path(job->files.tokenizer, "model.type"));
    if (type != NULL && strcmp(type, "WordPiece") == 0)
        return bc_load_wordpiece(&job->files, &job->vocab, err);
    BC_TRY(bc_load_bpe(&job->files, job->sink, &job->vocab, err));
    if (job->vocab.has_merges) BC_TRY(check_merges_txt(job, err));
    return bc_pre_recognise(job->files.tokenizer, job->options->pre, job->sink, &job->vocab, err);
}

/* vocab.json + merges.txt: how text is split is in the code of the tokenizer's class. */
static enum bitconv_status load_pair(struct job *job, bool *found, struct bitconv_error *err)
{
    struct bc_buf merges = {0};
    BC_TRY(bc_checkpoint_object(job->ckpt->dir, "vocab.json", &job->vocab_json, err));
    *found = job->vocab_json != NULL;
    if (!*found) return BITCONV_OK;
    bool have_merges;
    enum bitconv_status status =
        bc_tokenizer_text(job->ckpt->dir, "merges.txt", &merges, &have_merges, err);
    if (status == BITCONV_OK && !have_merges)
        status =
            bc_fail(err, BITCONV_E_CORRUPT,
                    "%s: vocab.json without merges.txt (and no tokenizer.json)", job->ckpt->dir);
    if (status == BITCONV_OK)
        status = bc_load_bpe_files(job->vocab_json, &merges, job->sink, &job->vocab, err);
    bc_buf_release(&merges);
    BC_TRY(status);
    job->vocab.pre = bc_pre_of_class(job->files.config);
    if (job->vocab.pre == NULL && job->options->pre == NULL)
        return bc_fail(err, BITCONV_E_UNSUPPORTED,
                       "%s: vocab.json and merges.txt do not say how text is split and the "
                       "tokenizer_class is not a known one: say it with --pre NAME",
                       job->ckpt->dir);
    return BITCONV_OK;
}

static enum bitconv_status load_lines(struct job *job, bool *found, struct bitconv_error *err)
{
    struct bc_buf text = {0};
    enum bitconv_status status = bc_tokenizer_text(job->ckpt->dir, "vocab.txt", &text, found, err);
    if (status == BITCONV_OK && *found)
        status = bc_load_vocab_txt(&job->files, &text, &job->vocab, err);
    bc_buf_release(&text);
    return status;
}

/* The first of the known files that is there. */
static enum bitconv_status load_any(struct job *job, struct bitconv_error *err)
{
    bool found = false;
    if (job->rules->spm_first) BC_TRY(load_spm(job, &found, err));
    if (found) return BITCONV_OK;
    if (job->files.tokenizer != NULL) return load_tokenizer_json(job, err);
    if (!job->rules->spm_first) BC_TRY(load_spm(job, &found, err));
    if (!found) BC_TRY(load_pair(job, &found, err));
    if (!found) BC_TRY(load_lines(job, &found, err));
    if (found) return BITCONV_OK;
    return bc_fail(err, BITCONV_E_CORRUPT,
                   "%s: no tokenizer: none of tokenizer.json, tokenizer.model, vocab.json with "
                   "merges.txt, vocab.txt is there",
                   job->ckpt->dir);
}

static enum bitconv_status load_vocab(struct job *job, struct bitconv_error *err)
{
    struct bc_vocab *const vocab = &job->vocab;
    vocab->space_prefix = vocab->lowercase = vocab->strip_accents = -1;
    vocab->spm_bos = vocab->spm_eos = vocab->spm_unk = vocab->spm_pad = -1;
    BC_TRY(load_any(job, err));
    if (job->options->pre != NULL) vocab->pre = job->options->pre;
    if (vocab->pre == NULL) vocab->pre = "default"; /* WordPiece: readers do not look at it */
    if (job->rules->no_space_prefix) vocab->space_prefix = 0;
    return bc_declare_added(&job->files, job->rules, job->sink, vocab, err);
}

/* Pooled Qwen models read their vector off the end of the text, which must be there (the BitNet
 * embedding guide: 151643, Qwen's <|endoftext|>). NULL when the vocabulary has neither. */
static const struct bc_token *pooled_end(const struct bc_vocab *vocab)
{
    static const char text[] = "<|endoftext|>";
    const struct bc_token *const token = bc_vocab_at(vocab, 151643);
    return token != NULL ? token : bc_vocab_find(vocab, text, strlen(text));
}

/* How text is prepared before it is split. */
static void write_normalizer(const struct bc_vocab *vocab, struct bitconv_gguf_writer *w)
{
    if (vocab->space_prefix >= 0 && strcmp(vocab->model, "llama") == 0)
        bitconv_gguf_set_bool(w, "tokenizer.ggml.add_space_prefix", vocab->space_prefix != 0);
    if (vocab->remove_extra_whitespaces)
        bitconv_gguf_set_bool(w, "tokenizer.ggml.remove_extra_whitespaces", true);
    if (vocab->charsmap.size > 0)
        bitconv_gguf_set_array(w, "tokenizer.ggml.precompiled_charsmap", BITCONV_GGUF_UINT8,
                               vocab->charsmap.size, vocab->charsmap.data, vocab->charsmap.size);
    if (vocab->lowercase >= 0)
        bitconv_gguf_set_bool(w, "tokenizer.ggml.normalizer.lowercase", vocab->lowercase != 0);
    if (vocab->strip_accents >= 0)
        bitconv_gguf_set_bool(w, "tokenizer.ggml.normalizer.strip_accents",
                              vocab->strip_accents != 0);
}

/* Texts are looked up here, so it comes before any rewriting of them. */
static enum bitconv_status find_specials(struct job *job, struct bitconv_error *err)
{
    const bool pooled = job->rules->pooled_eos && job->model->embedding_model;
    const struct bc_token *end = pooled ? pooled_end(&job->vocab) : NULL;
    const char *const from = end != NULL ? "the pooled model's rule" : "tokenizer.json";
    if (end == NULL) end = bc_affixes_end(&job->files, &job->vocab);
    BC_TRY(bc_specials_find(job->ckpt, &job->files, &job->vocab, end, from, job->sink,
                            &job->specials, err));
    bc_affixes_find(&job->files, &job->vocab, job->sink, &job->specials, &job->affixes);
    if (pooled) job->affixes.eos = 1;
    return BITCONV_OK;
}

static enum bitconv_status run(struct job *job, struct bitconv_gguf_writer *w,
                               struct bitconv_error *err)
{
    const uint32_t n_rows = job->model->hp.n_vocab;
    if (n_rows == 0 || n_rows - 1 > BC_VOCAB_MAX_ID)
        return bc_fail(err, BITCONV_E_LIMIT, "vocab_size %" PRIu32 " is not between 1 and %u",
                       n_rows, BC_VOCAB_MAX_ID + 1);
    BC_TRY(bc_tokenizer_files_open(job->ckpt->dir, &job->files, err));
    if (job->options->check != NULL && job->files.tokenizer != NULL)
        job->check_state = job->options->check->begin(&job->files);
    BC_TRY(load_vocab(job, err));
    BC_TRY(bc_vocab_fit(&job->vocab, n_rows, job->options->trim_vocab, job->sink, err));
    BC_TRY(find_specials(job, err));
    if (job->model->hp.n_token_types != 0)
        bitconv_gguf_set_u32(w, "tokenizer.ggml.token_type_count", job->model->hp.n_token_types);
    if (strcmp(job->vocab.model, "bert") == 0) BC_TRY(bc_wordpiece_rewrite(&job->vocab, err));
    BC_TRY(bc_vocab_write(&job->vocab, n_rows, job->rules, w, err));
    BC_TRY(bc_specials_write(&job->specials, &job->affixes, n_rows, job->sink, w, err));
    write_normalizer(&job->vocab, w);
    return bc_chat_template_write(&job->files, job->options->chat_template, job->sink, w, err);
}

enum bitconv_status bc_tokenizer_metadata(const struct bc_checkpoint *ckpt,
                                          const struct bc_model *model,
                                          const struct bc_tokenizer_options *options,
                                          const struct bitconv_sink *sink,
                                          struct bitconv_gguf_writer *w, struct bitconv_error *err)
{
    struct job job = {
        .ckpt = ckpt,
        .model = model,
        .options = options,
        .rules = bc_tokenizer_rules(model->arch->traits.tokenizer, model->target),
        .sink = sink,
    };
    const enum bitconv_status status = run(&job, w, err);
    if (job.check_state != NULL)
        options->check->end(job.check_state, status == BITCONV_OK ? job.vocab.pre : NULL, sink);
    bc_specials_release(&job.specials);
    bc_vocab_release(&job.vocab);
    bc_json_free(job.vocab_json);
    bc_tokenizer_files_close(&job.files);
    return status;
}
