/* SPDX-License-Identifier: MIT
 * Synthetic tokenizers: complete, so that any text can be encoded and decoded, and of any asked
 * size. They know all bytes (or all printable characters), and as many "words" of two, three and four
 * letters as there is room for. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "dummy/texts.h"

enum { N_LETTERS = 26, N_PAIRS = N_LETTERS * N_LETTERS, TOKEN = 16, MAX_SPECIALS = 8 };

/* A kind of tokenizer as data. Texts in JSON have $0, $1, ... where the id of a special token goes. */
struct tokenizer {
    const char *specials[MAX_SPECIALS]; /* at the end of byte-level vocabularies, else in front */
    int bos, eos, pad;                  /* indices of specials; -1: none */
    bool byte_level;                    /* else SentencePiece's <0x00> to <0xFF> and characters */
    bool ignore_merges;
    const char *blank; /* what stands for the blank in tokens */
    const char *normalizer, *pre_tokenizer, *post_processor, *decoder;
    const char *config; /* tokenizer_config.json */
};

#define SPLIT_HEAD                                                                                 \
    "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": {\"Regex\": " \
    "\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|"
#define SPLIT_TAIL                                                                                 \
    "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"}, "    \
    "\"behavior\": \"Isolated\", \"invert\": false}, {\"type\": \"ByteLevel\", "                   \
    "\"add_prefix_space\": false, \"trim_offsets\": false, \"use_regex\": false}]}"

/* A template that puts `token` in front of the text, or behind it. */
#define SPECIAL(token) "{\"SpecialToken\": {\"id\": \"" token "\", \"type_id\": 0}}"
#define TEXT           "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}"
#define SECOND         "{\"Sequence\": {\"id\": \"B\", \"type_id\": 1}}"
#define IDS(token, ref)                                                                            \
    "\"" token "\": {\"id\": \"" token "\", \"ids\": [" ref "], \"tokens\": [\"" token "\"]}"
#define TEMPLATE(single, pair, ids)                                                                \
    "{\"type\": \"TemplateProcessing\", \"single\": [" single "], \"pair\": [" pair                \
    "], \"special_tokens\": {" ids "}}"

static const char byte_decoder[] = "{\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
                                   "\"trim_offsets\": true, \"use_regex\": true}";

static const struct tokenizer tokenizers[] = {
    [BC_DUMMY_LLAMA3] = {.specials = {"<|begin_of_text|>", "<|end_of_text|>"},
                         .bos = 0,
                         .eos = 1,
                         .pad = -1,
                         .byte_level = true,
                         .ignore_merges = true,
                         .blank = "\xc4\xa0",
                         .normalizer = "null",
                         .pre_tokenizer = SPLIT_HEAD "\\\\p{N}{1,3}" SPLIT_TAIL,
                         .post_processor =
                             TEMPLATE(SPECIAL("<|begin_of_text|>") ", " TEXT,
                                      SPECIAL("<|begin_of_text|>") ", " TEXT ", " SECOND,
                                      IDS("<|begin_of_text|>", "$0")),
                         .decoder = byte_decoder,
                         .config = "{\n  \"bos_token\": \"<|begin_of_text|>\",\n"
                                   "  \"eos_token\": \"<|end_of_text|>\",\n"
                                   "  \"tokenizer_class\": \"PreTrainedTokenizerFast\"\n}\n"},
    [BC_DUMMY_QWEN] = {.specials = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"},
                       .bos = -1,
                       .eos = 2,
                       .pad = 0,
                       .byte_level = true,
                       .blank = "\xc4\xa0",
                       .normalizer = "{\"type\": \"NFC\"}",
                       .pre_tokenizer = SPLIT_HEAD "\\\\p{N}" SPLIT_TAIL,
                       .post_processor = "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
                                         "\"trim_offsets\": false, \"use_regex\": false}",
                       .decoder = byte_decoder,
                       .config = "{\n  \"add_bos_token\": false,\n  \"bos_token\": null,\n"
                                 "  \"eos_token\": \"<|im_end|>\",\n"
                                 "  \"pad_token\": \"<|endoftext|>\",\n"
                                 "  \"tokenizer_class\": \"Qwen2Tokenizer\"\n}\n"},
    [BC_DUMMY_LLAMA2] =
        {.specials = {"<unk>", "<s>", "</s>"},
         .bos = 1,
         .eos = 2,
         .pad = -1,
         .blank = "\xe2\x96\x81",
         .normalizer = "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Prepend\", "
                       "\"prepend\": \"\xe2\x96\x81\"}, {\"type\": \"Replace\", \"pattern\": "
                       "{\"String\": \" \"}, \"content\": \"\xe2\x96\x81\"}]}",
         .pre_tokenizer = "null",
         .post_processor = TEMPLATE(SPECIAL("<s>") ", " TEXT, SPECIAL("<s>") ", " TEXT ", " SECOND,
                                    IDS("<s>", "$1")),
         .decoder = "{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Replace\", \"pattern\": "
                    "{\"String\": \"\xe2\x96\x81\"}, \"content\": \" \"}, {\"type\": "
                    "\"ByteFallback\"}, {\"type\": \"Fuse\"}, {\"type\": \"Strip\", \"content\": "
                    "\" \", \"start\": 1, \"stop\": 0}]}",
         .config = "{\n  \"add_bos_token\": true,\n  \"add_eos_token\": false,\n"
                   "  \"bos_token\": \"<s>\",\n  \"eos_token\": \"</s>\",\n"
                   "  \"unk_token\": \"<unk>\",\n  \"tokenizer_class\": \"LlamaTokenizer\"\n}\n"},
    [BC_DUMMY_GEMMA] =
        {.specials = {"<pad>", "<eos>", "<bos>", "<unk>"},
         .bos = 2,
         .eos = 1,
         .pad = 0,
         .blank = "\xe2\x96\x81",
         .normalizer = "{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": "
                       "\"\xe2\x96\x81\"}",
         .pre_tokenizer = "{\"type\": \"Split\", \"pattern\": {\"String\": \" \"}, \"behavior\": "
                          "\"MergedWithPrevious\", \"invert\": false}",
         .post_processor = TEMPLATE(SPECIAL("<bos>") ", " TEXT,
                                    SPECIAL("<bos>") ", " TEXT ", " SECOND, IDS("<bos>", "$2")),
         .decoder = "{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Replace\", \"pattern\": "
                    "{\"String\": \"\xe2\x96\x81\"}, \"content\": \" \"}, {\"type\": "
                    "\"ByteFallback\"}, {\"type\": \"Fuse\"}]}",
         .config = "{\n  \"add_bos_token\": true,\n  \"add_eos_token\": false,\n"
                   "  \"bos_token\": \"<bos>\",\n  \"eos_token\": \"<eos>\",\n"
                   "  \"pad_token\": \"<pad>\",\n  \"unk_token\": \"<unk>\",\n"
                   "  \"tokenizer_class\": \"GemmaTokenizer\"\n}\n"},
    [BC_DUMMY_BERT] =
        {.specials = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"},
         .bos = -1,
         .eos = -1,
         .pad = 0,
         .normalizer = "{\"type\": \"BertNormalizer\", \"clean_text\": true, "
                       "\"handle_chinese_chars\": true, \"strip_accents\": null, \"lowercase\": "
                       "true}",
         .pre_tokenizer = "{\"type\": \"BertPreTokenizer\"}",
         .post_processor = TEMPLATE(SPECIAL("[CLS]") ", " TEXT ", " SPECIAL("[SEP]"),
                                    SPECIAL("[CLS]") ", " TEXT ", " SPECIAL(
                                        "[SEP]") ", " SECOND ", " SPECIAL("[SEP]"),
                                    IDS("[CLS]", "$2") ", " IDS("[SEP]", "$3")),
         .decoder = "{\"type\": \"WordPiece\", \"prefix\": \"##\", \"cleanup\": true}",
         .config = "{\n  \"cls_token\": \"[CLS]\",\n  \"do_lower_case\": true,\n"
                   "  \"mask_token\": \"[MASK]\",\n  \"pad_token\": \"[PAD]\",\n"
                   "  \"sep_token\": \"[SEP]\",\n  \"tokenizer_class\": \"BertTokenizer\",\n"
                   "  \"unk_token\": \"[UNK]\"\n}\n"},
};

static uint32_t n_specials(const struct tokenizer *t)
{
    uint32_t n = 0;
    while (n < MAX_SPECIALS && t->specials[n] != NULL)
        n++;
    return n;
}

/* Id of the first special token. */
static uint32_t first_special(const struct tokenizer *t, uint32_t n_vocab)
{
    return t->byte_level ? n_vocab - n_specials(t) : 0;
}

struct bc_dummy_ids bc_dummy_tokenizer_ids(enum bc_dummy_tokenizer kind, uint32_t n_vocab)
{
    const struct tokenizer *t = &tokenizers[kind];
    const int64_t first = first_special(t, n_vocab);
    return (struct bc_dummy_ids){.bos = t->bos < 0 ? -1 : first + t->bos,
                                 .eos = t->eos < 0 ? -1 : first + t->eos,
                                 .pad = t->pad < 0 ? -1 : first + t->pad};
}

/* ---- words ---- */

/* Word `i` and the two parts that it is merged from: pairs of letters, then a pair and a letter, then
 * two pairs. With a blank the first symbol may be that: it is then the first "letter". */
struct word {
    char left[TOKEN], right[TOKEN];
};

static void put_first(uint32_t symbol, const char *blank, char *out)
{
    if (blank != NULL && symbol == 0)
        (void)snprintf(out, TOKEN, "%s", blank);
    else
        (void)snprintf(out, TOKEN, "%c", (char)('a' + symbol - (blank != NULL)));
}

static void put_pair(uint32_t pair, const char *blank, char *out)
{
    put_first(pair / N_LETTERS, blank, out);
    const size_t len = strlen(out);
    out[len] = (char)('a' + pair % N_LETTERS);
    out[len + 1] = '\0';
}

static void word_at(uint32_t i, const char *blank, struct word *out)
{
    const uint32_t n_first = N_LETTERS + (blank != NULL);
    const uint32_t n_pairs = n_first * N_LETTERS;
    if (i < n_pairs) {
        put_first(i / N_LETTERS, blank, out->left);
        put_first(i % N_LETTERS, NULL, out->right);
    } else if ((i -= n_pairs) < n_pairs * N_LETTERS) {
        put_pair(i / N_LETTERS, blank, out->left);
        put_first(i % N_LETTERS, NULL, out->right);
    } else {
        i -= n_pairs * N_LETTERS;
        put_pair(i / N_PAIRS, blank, out->left);
        put_pair(i % N_PAIRS, NULL, out->right);
    }
}

/* ---- tokenizer.json ---- */

/* Raw JSON as the value of a key, $N replaced by the id of special token N. */
static void raw_member(struct bc_jw *w, const char *key, const char *json, uint32_t first)
{
    bc_jw_key(w, key);
    for (; *json != '\0'; json++) {
        if (*json == '$' && json[1] >= '0' && json[1] <= '9')
            bc_buf_printf(w->buf, "%" PRIu32, first + (uint32_t)(*++json - '0'));
        else
            bc_buf_putc(w->buf, *json);
    }
    w->after_key = false;
    w->first = false;
}

static void put_added_tokens(struct bc_jw *w, const struct tokenizer *t, uint32_t first)
{
    bc_jw_key(w, "added_tokens");
    bc_jw_begin_array(w);
    for (uint32_t i = 0; i < n_specials(t); i++) {
        bc_jw_begin_object(w);
        bc_jw_key_u64(w, "id", first + i);
        bc_jw_key_string(w, "content", t->specials[i]);
        bc_jw_key_bool(w, "single_word", false);
        bc_jw_key_bool(w, "lstrip", false);
        bc_jw_key_bool(w, "rstrip", false);
        bc_jw_key_bool(w, "normalized", false);
        bc_jw_key_bool(w, "special", true);
        bc_jw_end_object(w);
    }
    bc_jw_end_array(w);
}

/* The vocabulary as it grows: an object of tokenizer.json, or the lines of vocab.txt. */
struct vocab {
    struct bc_jw *w;
    struct bc_buf *lines;
    uint32_t n;
};

static void add(struct vocab *v, const char *token)
{
    if (v->lines != NULL) bc_buf_printf(v->lines, "%s\n", token);
    if (v->w != NULL) bc_jw_key_u64(v->w, token, v->n);
    v->n++;
}

/* The printable stand-ins of all bytes in byte-level BPE (GPT-2, Radford et al. 2019): printable
 * Latin-1 bytes stand for themselves, the others for U+0100, U+0101, ... in order. */
static void add_bytes(struct vocab *v)
{
    uint32_t next = 0x100;
    for (uint32_t b = 0; b < 256; b++) {
        const bool plain = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        char symbol[TOKEN] = {0};
        bc_utf8_encode(plain ? b : next++, symbol);
        add(v, symbol);
    }
}

/* SentencePiece's byte tokens, the blank, and the printable characters. */
static void add_pieces(struct vocab *v, const char *blank)
{
    char token[TOKEN];
    for (unsigned b = 0; b < 256; b++) {
        (void)snprintf(token, sizeof token, "<0x%02X>", b);
        add(v, token);
    }
    add(v, blank);
    for (char c = '!'; c <= '~'; c++) {
        (void)snprintf(token, sizeof token, "%c", c);
        add(v, token);
    }
}

static void put_bpe(struct bc_jw *w, const struct tokenizer *t, uint32_t n_vocab)
{
    struct vocab v = {.w = w};
    struct word word;
    char token[2 * TOKEN];
    bc_jw_key(w, "vocab");
    bc_jw_begin_object(w);
    for (uint32_t i = 0; !t->byte_level && i < n_specials(t); i++)
        add(&v, t->specials[i]);
    if (t->byte_level)
        add_bytes(&v);
    else
        add_pieces(&v, t->blank);
    const uint32_t n_words = n_vocab - v.n - (t->byte_level ? n_specials(t) : 0);
    for (uint32_t i = 0; i < n_words; i++) {
        word_at(i, t->blank, &word);
        (void)snprintf(token, sizeof token, "%s%s", word.left, word.right);
        add(&v, token);
    }
    bc_jw_end_object(w);
    bc_jw_key(w, "merges");
    bc_jw_begin_array(w);
    for (uint32_t i = 0; i < n_words; i++) {
        word_at(i, t->blank, &word);
        (void)snprintf(token, sizeof token, "%s %s", word.left, word.right);
        bc_jw_string(w, token);
    }
    bc_jw_end_array(w);
}

/* WordPiece: characters and words, each at the start of a word and ("##") within one. */
static void add_wordpiece(struct vocab *v, const struct tokenizer *t, uint32_t n_vocab)
{
    static const char *const marks[] = {"", "##"};
    struct word word;
    char token[2 * TOKEN + 2];
    for (uint32_t i = 0; i < n_specials(t); i++)
        add(v, t->specials[i]);
    for (size_t m = 0; m < 2; m++) {
        for (char c = '!'; c <= '~'; c++) {
            if (c >= 'A' && c <= 'Z') continue; /* text is lower-cased */
            (void)snprintf(token, sizeof token, "%s%c", marks[m], c);
            add(v, token);
        }
    }
    for (uint32_t i = 0; v->n < n_vocab; i++) {
        word_at(i / 2, NULL, &word);
        (void)snprintf(token, sizeof token, "%s%s%s", marks[i % 2], word.left, word.right);
        add(v, token);
    }
}

static void put_wordpiece(struct bc_jw *w, const struct tokenizer *t, uint32_t n_vocab)
{
    struct vocab v = {.w = w};
    bc_jw_key_string(w, "unk_token", t->specials[1]);
    bc_jw_key_string(w, "continuing_subword_prefix", "##");
    bc_jw_key_u64(w, "max_input_chars_per_word", 100);
    bc_jw_key(w, "vocab");
    bc_jw_begin_object(w);
    add_wordpiece(&v, t, n_vocab);
    bc_jw_end_object(w);
}

static void put_model(struct bc_jw *w, const struct tokenizer *t, bool wordpiece, uint32_t n_vocab)
{
    bc_jw_key(w, "model");
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "type", wordpiece ? "WordPiece" : "BPE");
    if (wordpiece) {
        put_wordpiece(w, t, n_vocab);
    } else {
        bc_jw_key_string(w, "unk_token", t->byte_level ? NULL : "<unk>");
        bc_jw_key_bool(w, "fuse_unk", !t->byte_level);
        bc_jw_key_bool(w, "byte_fallback", !t->byte_level);
        bc_jw_key_bool(w, "ignore_merges", t->ignore_merges);
        put_bpe(w, t, n_vocab);
    }
    bc_jw_end_object(w);
}

void bc_dummy_tokenizer(enum bc_dummy_tokenizer kind, uint32_t n_vocab,
                        struct bc_dummy_texts *texts)
{
    const struct tokenizer *t = &tokenizers[kind];
    const bool wordpiece = kind == BC_DUMMY_BERT;
    const uint32_t first = first_special(t, n_vocab);
    struct bc_buf *text = bc_dummy_text_add(texts, "tokenizer.json");
    struct bc_jw w = {.buf = text, .first = true};
    bc_jw_begin_object(&w);
    bc_jw_key_string(&w, "version", "1.0");
    put_added_tokens(&w, t, first);
    raw_member(&w, "normalizer", t->normalizer, first);
    raw_member(&w, "pre_tokenizer", t->pre_tokenizer, first);
    raw_member(&w, "post_processor", t->post_processor, first);
    raw_member(&w, "decoder", t->decoder, first);
    put_model(&w, t, wordpiece, n_vocab);
    bc_jw_end_object(&w);
    bc_buf_putc(text, '\n');
    bc_buf_puts(bc_dummy_text_add(texts, "tokenizer_config.json"), t->config);
    if (!wordpiece) return;
    struct vocab lines = {.lines = bc_dummy_text_add(texts, "vocab.txt")};
    add_wordpiece(&lines, t, n_vocab);
}
