/* SPDX-License-Identifier: MIT
 * Naming what a file really is that is not what its name says. */
#include "base/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

struct magic {
    const char *bytes;
    size_t len;
    const char *what;
};

static const struct magic magics[] = {
    {"GGUF", 4, "a GGUF file"},
    {"FUGG", 4, "a byte-swapped GGUF file"},
    {"lmgg", 4, "a GGML file, older than GGUF"},
    {"fmgg", 4, "a GGML file, older than GGUF"},
    {"tjgg", 4, "a GGML file, older than GGUF"},
    {"\x1f\x8b", 2, "a gzip file"},
    {"\x28\xb5\x2f\xfd", 4, "a zstd file"},
    {"\xfd"
     "7zXZ\0",
     6, "an xz file"},
    {"BZh", 3, "a bzip2 file"},
    {"7z\xbc\xaf\x27\x1c", 6, "a 7z archive"},
    {"\x89HDF\r\n\x1a\n", 8, "an HDF5 file (Keras weights?)"},
    {"%PDF-", 5, "a PDF document"},
    {"\x7f"
     "ELF",
     4, "a program or a library (ELF)"},
};

static bool starts_with(const uint8_t *data, uint64_t size, const char *prefix)
{
    const size_t len = strlen(prefix);
    return size >= len && memcmp(data, prefix, len) == 0;
}

/* The same without regard to the case of ASCII letters; `prefix` in lower case. */
static bool starts_with_nocase(const uint8_t *data, uint64_t size, const char *prefix)
{
    for (size_t i = 0; prefix[i] != '\0'; i++) {
        if (i >= size) return false;
        const uint8_t c = data[i] >= 'A' && data[i] <= 'Z' ? (uint8_t)(data[i] + 32) : data[i];
        if (c != (uint8_t)prefix[i]) return false;
    }
    return true;
}

/* The number on the "size" line of a Git LFS pointer. */
static bool lfs_real_size(const uint8_t *data, uint64_t size, uint64_t *out)
{
    static const char label[] = "\nsize ";
    const uint64_t stop = size < 1024 ? size : 1024; /* pointers are smaller, by their spec */
    for (uint64_t i = 0; i < stop; i++) {
        if (!starts_with(data + i, stop - i, label)) continue;
        uint64_t v = 0;
        uint64_t k = i + sizeof label - 1;
        const uint64_t first = k;
        for (; k < stop && data[k] >= '0' && data[k] <= '9'; k++) {
            if (!bc_mul_u64(v, 10, &v) || !bc_add_u64(v, data[k] - '0', &v)) return false;
        }
        *out = v;
        return k > first;
    }
    return false;
}

static const char *guess_lfs(const uint8_t *data, uint64_t size, char *buf, size_t buf_size)
{
    uint64_t real_size;
    if (!starts_with(data, size, "version https://git-lfs")) return NULL;
    if (lfs_real_size(data, size, &real_size))
        (void)snprintf(buf, buf_size,
                       "a Git LFS pointer (%" PRIu64 " bytes; real size %" PRIu64
                       "): run `git lfs pull`",
                       size, real_size);
    else
        (void)snprintf(buf, buf_size, "a Git LFS pointer (%" PRIu64 " bytes): run `git lfs pull`",
                       size);
    return buf;
}

static const char *guess_text(const uint8_t *data, uint64_t size)
{
    uint64_t i = starts_with(data, size, "\xef\xbb\xbf") ? 3 : 0;
    while (i < size && (data[i] == ' ' || (data[i] >= '\t' && data[i] <= '\r')))
        i++;
    if (i == size) return "nothing but blanks";
    data += i;
    size -= i;
    if (starts_with_nocase(data, size, "<!doctype html") ||
        starts_with_nocase(data, size, "<html") || starts_with_nocase(data, size, "<head"))
        return "an HTML page (a web page was saved in place of the file)";
    if (starts_with(data, size, "<?xml")) return "an XML document (an error message of a server?)";
    if (data[0] == '{' || data[0] == '[') return "a JSON text";
    return NULL;
}

/* PyTorch's zip files keep their pickle as the first member, "NAME/data.pkl". */
static const char *guess_zip(const uint8_t *data, uint64_t size)
{
    static const char member[] = "/data.pkl";
    if (!starts_with(data, size, "PK\x03\x04")) return NULL;
    const uint64_t stop = size < 512 ? size : 512;
    for (uint64_t i = 30; i < stop; i++) {
        if (starts_with(data + i, stop - i, member)) return "a PyTorch zip checkpoint";
    }
    return "a zip archive";
}

static const char *guess_binary(const uint8_t *data, uint64_t size)
{
    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++) {
        if (size >= magics[i].len && memcmp(data, magics[i].bytes, magics[i].len) == 0)
            return magics[i].what;
    }
    if (size >= 262 && memcmp(data + 257, "ustar", 5) == 0) return "a tar archive";
    /* The first opcode of pickle protocols 2 to 5 names the protocol. */
    if (size >= 3 && data[0] == 0x80 && data[1] >= 2 && data[1] <= 5)
        return "a PyTorch pickle checkpoint";
    if (size >= 10 && data[8] == '{' && bc_get_u64(data) >= 2 && bc_get_u64(data) <= size - 8)
        return "a safetensors file";
    const uint64_t stop = size < 4096 ? size : 4096;
    for (uint64_t i = 0; i < stop; i++) {
        if (data[i] != 0) return NULL;
    }
    return "a run of zero bytes (an unfinished download?)";
}

const char *bc_file_guess(const uint8_t *data, uint64_t size, char *buf, size_t buf_size)
{
    if (size == 0) return "empty";
    const char *guess = guess_lfs(data, size, buf, buf_size);
    if (guess == NULL) guess = guess_zip(data, size);
    if (guess == NULL) guess = guess_binary(data, size);
    if (guess == NULL) guess = guess_text(data, size);
    return guess;
}
