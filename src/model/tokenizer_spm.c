/* SPDX-License-Identifier: MIT
 * tokenizer.model: the few fields of a SentencePiece ModelProto that a GGUF needs, read by a small
 * bounded protobuf reader (wire format: protobuf.dev/programming-guides/encoding; field numbers:
 * google/sentencepiece, src/sentencepiece_model.proto). */
#include <inttypes.h>

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/utf8.h"
#include "model/sentencepiece.h"
#include "model/tokenizer_load.h"

/* One field of a message. `number` holds varints and fixed32; `data`/`size` hold bytes. */
struct field {
    uint32_t id;
    enum bc_wire wire;
    uint64_t number;
    const uint8_t *data;
    uint64_t size;
};

/* At most ten bytes; more, or a cut, leaves the cursor overrun. */
static uint64_t varint(struct bc_cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const uint8_t byte = bc_cursor_u8(c);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    c->overrun = true;
    return 0;
}

/* False at the end of the message and on bad encoding (then c->overrun). */
static bool next_field(struct bc_cursor *c, struct field *f)
{
    if (c->overrun || c->pos == c->size) return false;
    const uint64_t key = varint(c);
    *f = (struct field){.id = (uint32_t)(key >> 3), .wire = (enum bc_wire)(key & 7)};
    if (key >> 3 == 0 || key >> 3 > 0x1fffffff) c->overrun = true;
    switch (f->wire) {
    case BC_WIRE_VARINT:
        f->number = varint(c);
        break;
    case BC_WIRE_64:
        f->number = bc_cursor_u64(c);
        break;
    case BC_WIRE_32:
        f->number = bc_cursor_u32(c);
        break;
    case BC_WIRE_BYTES:
        f->size = varint(c);
        f->data = bc_cursor_take(c, f->size);
        break;
    default: /* groups are not used by any version of this message */
        c->overrun = true;
    }
    return !c->overrun;
}

static bool is(const struct field *f, uint32_t id, enum bc_wire wire)
{
    return f->id == id && f->wire == wire;
}

static enum bitconv_status add_piece(const struct field *message, struct bc_vocab *vocab,
                                     struct bitconv_error *err)
{
    struct bc_cursor c = bc_cursor_make(message->data, message->size);
    struct field f;
    const char *text = NULL;
    size_t len = 0;
    float score = 0.0F;
    uint64_t type = BC_TOKEN_NORMAL;
    const uint64_t id = vocab->n_tokens;
    while (next_field(&c, &f)) {
        if (is(&f, BC_SPM_PIECE_TEXT, BC_WIRE_BYTES)) {
            text = (const char *)f.data;
            len = (size_t)f.size;
        } else if (is(&f, BC_SPM_PIECE_SCORE, BC_WIRE_32)) {
            score = bc_f32_from_bits((uint32_t)f.number);
        } else if (is(&f, BC_SPM_PIECE_TYPE, BC_WIRE_VARINT)) {
            type = f.number;
        }
    }
    if (c.overrun || text == NULL || len == 0 || !bc_utf8_valid(text, len) ||
        type < BC_TOKEN_NORMAL || type > BC_TOKEN_BYTE)
        return bc_fail(err, BITCONV_E_CORRUPT, "tokenizer.model: piece %" PRIu64 " is damaged", id);
    const char *const copy = bc_arena_strndup(&vocab->arena, text, len);
    if (copy == NULL) return bc_fail_nomem(err, "vocabulary");
    struct bc_token *token;
    BC_TRY(bc_vocab_add(vocab, "tokenizer.model", copy, len, id, &token, err));
    token->base = true;
    token->score = (double)score;
    token->user_defined = type == BC_TOKEN_USER_DEFINED;
    /* The proto's numbers are GGUF's. User-defined pieces come out as normal ones in every
     * converter that writes these files. */
    token->type = type == BC_TOKEN_USER_DEFINED ? BC_TOKEN_NORMAL : (enum bc_token_type)type;
    return BITCONV_OK;
}

static int64_t id_of(uint64_t number)
{
    return number <= BC_VOCAB_MAX_ID ? (int64_t)number : -1; /* -1 is ten bytes of varint */
}

static bool read_trainer(const struct field *message, struct bc_vocab *vocab)
{
    struct bc_cursor c = bc_cursor_make(message->data, message->size);
    struct field f;
    vocab->spm_algorithm = BC_SPM_UNIGRAM; /* the proto's default */
    while (next_field(&c, &f)) {
        if (is(&f, BC_SPM_TRAINER_TYPE, BC_WIRE_VARINT)) vocab->spm_algorithm = f.number;
        if (is(&f, BC_SPM_TRAINER_SUFFIX, BC_WIRE_VARINT))
            vocab->whitespace_is_suffix = f.number != 0;
        if (is(&f, BC_SPM_TRAINER_UNK, BC_WIRE_VARINT)) vocab->spm_unk = id_of(f.number);
        if (is(&f, BC_SPM_TRAINER_BOS, BC_WIRE_VARINT)) vocab->spm_bos = id_of(f.number);
        if (is(&f, BC_SPM_TRAINER_EOS, BC_WIRE_VARINT)) vocab->spm_eos = id_of(f.number);
        if (is(&f, BC_SPM_TRAINER_PAD, BC_WIRE_VARINT)) vocab->spm_pad = id_of(f.number);
    }
    return !c.overrun;
}

static bool read_normalizer(const struct field *message, struct bc_vocab *vocab)
{
    struct bc_cursor c = bc_cursor_make(message->data, message->size);
    struct field f;
    while (next_field(&c, &f)) {
        if (is(&f, BC_SPM_NORMALIZER_DUMMY_PREFIX, BC_WIRE_VARINT))
            vocab->space_prefix = f.number != 0;
        if (is(&f, BC_SPM_NORMALIZER_EXTRA_SPACES, BC_WIRE_VARINT))
            vocab->remove_extra_whitespaces = f.number != 0;
        if (is(&f, BC_SPM_NORMALIZER_ESCAPE, BC_WIRE_VARINT))
            vocab->escape_whitespaces = f.number != 0;
        if (is(&f, BC_SPM_NORMALIZER_CHARSMAP, BC_WIRE_BYTES)) {
            bc_buf_clear(&vocab->charsmap);
            bc_buf_append(&vocab->charsmap, f.data, (size_t)f.size);
        }
    }
    return !c.overrun;
}

static enum bitconv_status check_algorithm(uint64_t type, struct bitconv_error *err)
{
    if (type == BC_SPM_BPE) return BITCONV_OK;
    const char *const name = type == BC_SPM_UNIGRAM ? "unigram"
                             : type == BC_SPM_WORD  ? "word"
                             : type == BC_SPM_CHAR  ? "char"
                                                    : "unknown";
    return bc_fail(
        err, BITCONV_E_UNSUPPORTED,
        "tokenizer.model: SentencePiece algorithm %" PRIu64
        " (%s): tokenizer model \"llama\" of GGUF is BPE and would split text differently",
        type, name);
}

enum bitconv_status bc_read_spm(const uint8_t *data, size_t size, struct bc_vocab *vocab,
                                struct bitconv_error *err)
{
    struct bc_cursor c = bc_cursor_make(data, size);
    struct field f;
    bool ok = true;
    vocab->source = "tokenizer.model";
    vocab->model = "llama";
    vocab->has_scores = true;
    vocab->space_prefix = 1; /* defaults of the proto, as the ids below */
    vocab->remove_extra_whitespaces = true;
    vocab->spm_algorithm = BC_SPM_BPE; /* what a model without trainer_spec is taken for */
    vocab->escape_whitespaces = true;
    vocab->spm_unk = 0;
    vocab->spm_bos = 1;
    vocab->spm_eos = 2;
    uint64_t start = c.pos;
    for (; ok && next_field(&c, &f); start = c.pos) {
        if (is(&f, BC_SPM_PIECES, BC_WIRE_BYTES)) BC_TRY(add_piece(&f, vocab, err));
        if (is(&f, BC_SPM_TRAINER, BC_WIRE_BYTES)) ok = read_trainer(&f, vocab);
        if (is(&f, BC_SPM_NORMALIZER, BC_WIRE_BYTES)) ok = read_normalizer(&f, vocab);
    }
    if (!ok || c.overrun)
        return bc_fail_at(err, BITCONV_E_CORRUPT, start,
                          "tokenizer.model: not a SentencePiece model, or damaged, at byte %" PRIu64
                          " of %zu; get the file again",
                          start, size);
    if (vocab->charsmap.failed) return bc_fail_nomem(err, "charsmap");
    if (vocab->n_tokens == 0)
        return bc_fail(err, BITCONV_E_CORRUPT, "tokenizer.model: no pieces in it");
    return BITCONV_OK;
}

enum bitconv_status bc_load_spm(const uint8_t *data, size_t size, struct bc_vocab *vocab,
                                struct bitconv_error *err)
{
    BC_TRY(bc_read_spm(data, size, vocab, err));
    return check_algorithm(vocab->spm_algorithm, err);
}
