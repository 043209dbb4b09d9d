/* SPDX-License-Identifier: MIT
 * Text of a growing list of ids. How a token reads may depend on those before it (blanks, bytes of
 * one character), so a window that begins some tokens earlier is decoded, and what it said before is
 * left out. The window moves on when it ends with whole characters. */
#include "generate/text_stream.h"

#include <string.h>

#include "base/utf8.h"

size_t bc_incomplete_tail(const char *text, size_t len)
{
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        const uint8_t byte = (uint8_t)text[len - back];
        if (byte < 0x80) return 0;
        if (byte < 0xc0) continue; /* a continuation: look further back */
        const size_t wanted = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
        return byte < 0xf5 && byte > 0xc1 && back < wanted ? back : 0;
    }
    return 0;
}

static enum bitconv_status decode(struct bc_text_stream *s, const uint32_t *ids, size_t n,
                                  struct bitconv_error *err)
{
    return bitconv_tokenizer_decode(s->tok, ids + s->from, n - s->from, s->skip_special, &s->text,
                                    err);
}

enum bitconv_status bc_text_stream_start(struct bc_text_stream *s, const uint32_t *ids, size_t n,
                                         struct bitconv_error *err)
{
    s->from = 0;
    BC_TRY(decode(s, ids, n, err));
    s->done = s->text.size;
    return BITCONV_OK;
}

/* The next window begins with the last token alone, where that gives text: then it is a token with
 * something before it, whatever else follows. */
static enum bitconv_status move_window(struct bc_text_stream *s, const uint32_t *ids, size_t n,
                                       struct bitconv_error *err)
{
    struct bitconv_text last = {0};
    const enum bitconv_status status =
        bitconv_tokenizer_decode(s->tok, ids + n - 1, 1, s->skip_special, &last, err);
    if (status == BITCONV_OK && last.size > 0 && bc_utf8_valid(last.data, last.size)) {
        s->from = n - 1;
        s->done = last.size;
    }
    bitconv_text_release(&last);
    return status;
}

enum bitconv_status bc_text_stream_next(struct bc_text_stream *s, const uint32_t *ids, size_t n,
                                        bool last, const char **text, size_t *len,
                                        struct bitconv_error *err)
{
    BC_TRY(decode(s, ids, n, err));
    const size_t tail = last ? 0 : bc_incomplete_tail(s->text.data, s->text.size);
    const size_t complete = s->text.size - tail;
    *text = s->text.data + (s->done < complete ? s->done : complete);
    *len = s->done < complete ? complete - s->done : 0;
    if (s->done < complete) s->done = complete;
    return tail == 0 && n > 0 ? move_window(s, ids, n, err) : BITCONV_OK;
}

void bc_text_stream_release(struct bc_text_stream *s)
{
    bitconv_text_release(&s->text);
}
