/* SPDX-License-Identifier: MIT
 * Runs a model and writes raw float32: for oracle/forward.py, which compares with golden results.
 *
 * forward_dump MODEL float|int8 runtime|stored|ternary PREFIX N_CTX IDS [pool]
 * writes PREFIX.pre, PREFIX.post (hidden states in front of and behind the final norm), PREFIX.logits
 * (last token), PREFIX.raw and PREFIX.l2 (pooled by the given pooling; before and after L2). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bitconv/engine.h"

enum { MAX_TOKENS = 4096 };

static void say(void *user, enum bitconv_severity severity, const char *text)
{
    (void)user;
    if (severity != BITCONV_NOTE) fprintf(stderr, "%s\n", text);
}

static size_t read_tokens(const char *text, int32_t *out)
{
    size_t n = 0;
    char *end;
    while (*text != '\0' && n < MAX_TOKENS) {
        out[n++] = (int32_t)strtol(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
    return n;
}

static void write_floats(const char *prefix, const char *suffix, const float *values, size_t n)
{
    char path[4096];
    snprintf(path, sizeof path, "%s.%s", prefix, suffix);
    FILE *f = fopen(path, "wb");
    if (f == NULL || fwrite(values, sizeof *values, n, f) != n || fclose(f) != 0) {
        fprintf(stderr, "%s: could not be written\n", path);
        exit(2);
    }
}

static enum bitconv_status dump(struct bitconv_session *s, const struct bitconv_engine_info *info,
                                const int32_t *tokens, size_t n, const char *prefix, int pooling,
                                struct bitconv_error *err)
{
    struct bitconv_run run = {
        .want_hidden = true, .want_pre_norm = true, .want_logits = BITCONV_LOGITS_LAST};
    enum bitconv_status status = bitconv_session_run(s, tokens, n, &run, err);
    if (status != BITCONV_OK) return status;
    write_floats(prefix, "pre", run.pre_norm, n * info->n_embd);
    write_floats(prefix, "post", run.hidden, n * info->n_embd);
    write_floats(prefix, "logits", run.logits, info->n_vocab);
    if (pooling < 0) return BITCONV_OK;
    float *pooled = malloc(info->n_embd * sizeof *pooled);
    status = bitconv_session_embed(s, tokens, n, pooling, -1, pooled, err);
    if (status == BITCONV_OK) write_floats(prefix, "raw", pooled, info->n_embd);
    if (status == BITCONV_OK) status = bitconv_session_embed(s, tokens, n, pooling, 2, pooled, err);
    if (status == BITCONV_OK) write_floats(prefix, "l2", pooled, info->n_embd);
    free(pooled);
    return status;
}

int main(int argc, char **argv)
{
    static int32_t tokens[MAX_TOKENS];
    const struct bitconv_sink sink = {.message = say};
    struct bitconv_error err = {.status = BITCONV_OK};
    struct bitconv_engine *engine = NULL;
    struct bitconv_session *session = NULL;
    struct bitconv_engine_info info;
    if (argc < 7) return 2;
    const struct bitconv_engine_options options = {.mode = argv[2],
                                                   .n_ctx = (uint32_t)strtoul(argv[5], NULL, 10),
                                                   .check = true,
                                                   .as_stored = strcmp(argv[3], "stored") == 0,
                                                   .as_ternary = strcmp(argv[3], "ternary") == 0};
    const size_t n = read_tokens(argv[6], tokens);
    enum bitconv_status status = bitconv_engine_open(argv[1], &options, &sink, &engine, &err);
    if (status == BITCONV_OK) status = bitconv_session_new(engine, &session, &err);
    if (status == BITCONV_OK) {
        bitconv_engine_info(engine, &info);
        const int pooling = argc > 7 ? atoi(argv[7]) : -1;
        status = dump(session, &info, tokens, n, argv[4], pooling, &err);
    }
    bitconv_session_free(session);
    bitconv_engine_close(engine);
    if (status != BITCONV_OK) fprintf(stderr, "%s\n", err.text);
    return status == BITCONV_OK ? 0 : 2;
}
