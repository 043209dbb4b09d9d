/* SPDX-License-Identifier: MIT
 * Loading text files that may be gzip-compressed (RFC 1952), through zlib. */
#define ZLIB_CONST /* makes zlib's input pointer const, as it is used */
#include "base/text.h"

#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "base/json.h"

enum {
    GZIP_WINDOW_BITS = 15 + 16, /* zlib: largest window, and a gzip header is expected */
    MAX_DEFLATE_RATIO = 1032,   /* the most that deflate can gain (zlib's technical notes) */
    INFLATE_STEP = 128 * 1024
};
/* The largest JSON text of a checkpoint is a tokenizer of some 40 MB; deflate alone would let two
 * megabytes become two gigabytes. */
static const uint64_t max_inflated_size = UINT64_C(256) << 20;

bool bc_text_is_gzip(const uint8_t *data, uint64_t size)
{
    return size >= 2 && data[0] == 0x1f && data[1] == 0x8b;
}

/* zlib's allocations go through the same door as all others. */
static void *zlib_alloc(void *opaque, unsigned n, unsigned size)
{
    (void)opaque;
    return bc_alloc_array(n, size);
}

static void zlib_free(void *opaque, void *p)
{
    (void)opaque;
    bc_free(p);
}

struct inflation {
    z_stream stream;
    const struct bc_file *file;
    uint64_t fed; /* bytes of the file given to zlib so far */
    uint64_t limit;
    uint64_t n_out;
    struct bc_buf *buf;
    uint8_t *step; /* INFLATE_STEP bytes */
};

/* zlib counts in unsigned ints, so a large file is fed in pieces. */
static void feed(struct inflation *z)
{
    const uint64_t left = z->file->size - z->fed;
    if (z->stream.avail_in > 0 || left == 0) return;
    z->stream.avail_in = (uInt)(left < (1u << 30) ? left : 1u << 30);
    z->stream.next_in = z->file->data + z->fed;
    z->fed += z->stream.avail_in;
}

static uint64_t position(const struct inflation *z)
{
    return z->fed - z->stream.avail_in;
}

/* One gzip member, from its header to its checked trailer. */
static enum bitconv_status inflate_member(struct inflation *z, struct bitconv_error *err)
{
    const char *const path = z->file->path;
    for (;;) {
        feed(z);
        z->stream.next_out = z->step;
        z->stream.avail_out = INFLATE_STEP;
        const int result = inflate(&z->stream, Z_NO_FLUSH);
        const size_t n = INFLATE_STEP - z->stream.avail_out;
        z->n_out += n;
        if (z->n_out > z->limit)
            return bc_fail_at(err, BITCONV_E_LIMIT, position(z),
                              "%s: inflates to more than the %" PRIu64
                              " bytes that are allowed: unpack it (gunzip) if it is meant so",
                              path, z->limit);
        bc_buf_append(z->buf, z->step, n);
        if (result == Z_MEM_ERROR || z->buf->failed) return bc_fail_nomem(err, "inflated text");
        if (result == Z_STREAM_END) return BITCONV_OK;
        if (result == Z_BUF_ERROR || (result == Z_OK && n == 0 && position(z) == z->file->size))
            return bc_fail_at(err, BITCONV_E_CORRUPT, position(z),
                              "%s: the gzip data ends early: the file is cut off", path);
        if (result != Z_OK)
            return bc_fail_at(err, BITCONV_E_CORRUPT, position(z), "%s: damaged gzip data (%s)",
                              path, z->stream.msg != NULL ? z->stream.msg : "unknown reason");
    }
}

static enum bitconv_status inflate_members(struct inflation *z, struct bitconv_error *err)
{
    for (;;) {
        BC_TRY(inflate_member(z, err));
        const uint64_t pos = position(z);
        if (pos == z->file->size) return BITCONV_OK;
        if (!bc_text_is_gzip(z->file->data + pos, z->file->size - pos))
            return bc_fail_at(err, BITCONV_E_CORRUPT, pos,
                              "%s: %" PRIu64 " bytes behind the gzip data that are no gzip data",
                              z->file->path, z->file->size - pos);
        if (inflateReset(&z->stream) != Z_OK)
            return bc_fail(err, BITCONV_E_BUG, "%s: zlib cannot be reset", z->file->path);
    }
}

enum bitconv_status bc_text_inflate(const struct bc_file *file, struct bc_buf *buf,
                                    struct bitconv_error *err)
{
    struct inflation z = {.file = file, .buf = buf};
    z.limit = file->size < max_inflated_size / MAX_DEFLATE_RATIO ? file->size * MAX_DEFLATE_RATIO
                                                                 : max_inflated_size;
    z.stream.zalloc = zlib_alloc;
    z.stream.zfree = zlib_free;
    z.step = bc_alloc_array(INFLATE_STEP, 1);
    if (z.step == NULL) return bc_fail_nomem(err, "inflation");
    enum bitconv_status status;
    if (inflateInit2(&z.stream, GZIP_WINDOW_BITS) == Z_OK) {
        status = inflate_members(&z, err);
        (void)inflateEnd(&z.stream);
    } else {
        status = bc_fail_nomem(err, "inflation");
    }
    bc_free(z.step);
    return status;
}

enum bitconv_status bc_text_load(const char *path, struct bc_buf *buf, struct bitconv_error *err)
{
    struct bc_file file;
    BC_TRY(bc_file_open(path, &file, err));
    enum bitconv_status status = BITCONV_OK;
    if (bc_text_is_gzip(file.data, file.size)) {
        status = bc_text_inflate(&file, buf, err);
    } else {
        bc_buf_append(buf, file.data, (size_t)file.size);
        if (buf->failed) status = bc_fail_nomem(err, path);
    }
    bc_file_close(&file);
    return status;
}
