/* SPDX-License-Identifier: MIT
 * The numbers of the fields of a SentencePiece model that are read or written here
 * (google/sentencepiece, sentencepiece_model.proto), and the wire types of protocol buffers. */
#ifndef BC_MODEL_SENTENCEPIECE_H
#define BC_MODEL_SENTENCEPIECE_H

enum bc_wire { BC_WIRE_VARINT = 0, BC_WIRE_64 = 1, BC_WIRE_BYTES = 2, BC_WIRE_32 = 5 };

/* ModelProto */
enum { BC_SPM_PIECES = 1, BC_SPM_TRAINER = 2, BC_SPM_NORMALIZER = 3 };
/* SentencePiece */
enum { BC_SPM_PIECE_TEXT = 1, BC_SPM_PIECE_SCORE = 2, BC_SPM_PIECE_TYPE = 3 };
/* TrainerSpec */
enum {
    BC_SPM_TRAINER_TYPE = 3,
    BC_SPM_TRAINER_VOCAB_SIZE = 4,
    BC_SPM_TRAINER_SUFFIX = 24,
    BC_SPM_TRAINER_BYTE_FALLBACK = 35,
    BC_SPM_TRAINER_UNK = 40,
    BC_SPM_TRAINER_BOS = 41,
    BC_SPM_TRAINER_EOS = 42,
    BC_SPM_TRAINER_PAD = 43
};
/* NormalizerSpec */
enum {
    BC_SPM_NORMALIZER_NAME = 1,
    BC_SPM_NORMALIZER_CHARSMAP = 2,
    BC_SPM_NORMALIZER_DUMMY_PREFIX = 3,
    BC_SPM_NORMALIZER_EXTRA_SPACES = 4,
    BC_SPM_NORMALIZER_ESCAPE = 5
};

#endif
