/* SPDX-License-Identifier: MIT
 * tokenizer.model: the fields of a SentencePiece ModelProto that say what the metadata say (wire
 * format: protobuf.dev/programming-guides/encoding; field numbers: google/sentencepiece,
 * src/sentencepiece_model.proto). */
#include <string.h>

#include "export/export_vocab.h"
#include "model/sentencepiece.h"

enum { TYPE_BPE = 2 };

static void put_varint(struct bc_buf *out, uint64_t value)
{
    while (value >= 0x80) {
        bc_buf_u8(out, (uint8_t)(value | 0x80));
        value >>= 7;
    }
    bc_buf_u8(out, (uint8_t)value);
}

static void put_number(struct bc_buf *out, uint32_t field, uint64_t value)
{
    put_varint(out, (uint64_t)field << 3 | BC_WIRE_VARINT);
    put_varint(out, value);
}

static void put_bytes(struct bc_buf *out, uint32_t field, const void *data, size_t size)
{
    put_varint(out, (uint64_t)field << 3 | BC_WIRE_BYTES);
    put_varint(out, size);
    bc_buf_append(out, data, size);
}

static void put_message(struct bc_buf *out, uint32_t field, const struct bc_buf *message)
{
    out->failed = out->failed || message->failed;
    put_bytes(out, field, message->data, message->size);
}

static void put_piece(struct bc_buf *out, const struct bc_export_token *t, struct bc_buf *scratch)
{
    /* converters read user-defined pieces as normal ones and declare them beside the model */
    const uint64_t type = t->type == BC_TOKEN_USER_DEFINED ? BC_TOKEN_NORMAL : t->type;
    bc_buf_clear(scratch);
    put_bytes(scratch, BC_SPM_PIECE_TEXT, t->text, t->len);
    put_varint(scratch, BC_SPM_PIECE_SCORE << 3 | BC_WIRE_32);
    bc_buf_f32(scratch, t->score);
    if (type != BC_TOKEN_NORMAL) put_number(scratch, BC_SPM_PIECE_TYPE, type);
    put_message(out, BC_SPM_PIECES, scratch);
}

/* -1 is a negative int32: ten bytes of varint. */
static void put_id(struct bc_buf *out, const struct bc_export_vocab *v, uint32_t field,
                   enum bc_special kind)
{
    const int64_t id = v->e->specials.id[kind];
    put_number(out, field, (uint64_t)(id >= 0 && id < (int64_t)v->n_pieces ? id : -1));
}

static void put_trainer(struct bc_buf *out, const struct bc_export_vocab *v, struct bc_buf *scratch)
{
    bool has_bytes = false;
    for (uint32_t id = 0; id < v->n_pieces; id++)
        has_bytes = has_bytes || v->tokens[id].type == BC_TOKEN_BYTE;
    bc_buf_clear(scratch);
    put_number(scratch, BC_SPM_TRAINER_TYPE, TYPE_BPE);
    put_number(scratch, BC_SPM_TRAINER_VOCAB_SIZE, v->n_pieces);
    if (has_bytes) put_number(scratch, BC_SPM_TRAINER_BYTE_FALLBACK, 1);
    put_id(scratch, v, BC_SPM_TRAINER_UNK, BC_SPECIAL_UNK);
    put_id(scratch, v, BC_SPM_TRAINER_BOS, BC_SPECIAL_BOS);
    put_id(scratch, v, BC_SPM_TRAINER_EOS, BC_SPECIAL_EOS);
    put_id(scratch, v, BC_SPM_TRAINER_PAD, BC_SPECIAL_PAD);
    put_message(out, BC_SPM_TRAINER, scratch);
}

static void put_normalizer(struct bc_buf *out, const struct bc_export_vocab *v,
                           struct bc_buf *scratch)
{
    const struct bitconv_gguf_value *map =
        bitconv_gguf_find_key(v->e->file, "tokenizer.ggml.precompiled_charsmap");
    const struct bitconv_gguf_value *extra =
        bitconv_gguf_find_key(v->e->file, "tokenizer.ggml.remove_extra_whitespaces");
    const bool mapped = map != NULL && map->type == BITCONV_GGUF_ARRAY &&
                        (map->elem == BITCONV_GGUF_UINT8 || map->elem == BITCONV_GGUF_INT8);
    bool remove = false;
    (void)bitconv_gguf_value_bool(extra, &remove);
    bc_buf_clear(scratch);
    put_bytes(scratch, BC_SPM_NORMALIZER_NAME, mapped ? "nmt_nfkc" : "identity", 8);
    if (mapped) put_bytes(scratch, BC_SPM_NORMALIZER_CHARSMAP, map->data, (size_t)map->size);
    put_number(scratch, BC_SPM_NORMALIZER_DUMMY_PREFIX, v->space_prefix);
    put_number(scratch, BC_SPM_NORMALIZER_EXTRA_SPACES, remove);
    put_message(out, BC_SPM_NORMALIZER, scratch);
}

void bc_export_spm(const struct bc_export_vocab *v, struct bc_buf *out)
{
    struct bc_buf scratch = {0};
    for (uint32_t id = 0; id < v->n_pieces; id++)
        put_piece(out, &v->tokens[id], &scratch);
    put_trainer(out, v, &scratch);
    put_normalizer(out, v, &scratch);
    bc_buf_release(&scratch);
}
