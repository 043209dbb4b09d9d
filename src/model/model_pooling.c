/* SPDX-License-Identifier: MIT
 * How an embedding model makes one vector of its tokens: sentence-transformers' modules. */
#include <string.h>

#include "model/model_internal.h"

enum { POOLING_MEAN = 1, POOLING_CLS = 2, POOLING_LAST = 3 };

const char *bc_pooling_name(int pooling)
{
    static const char *const names[] = {"none", "mean", "cls", "last"};
    if (pooling < 0 || pooling >= (int)(sizeof names / sizeof *names)) return NULL;
    return names[pooling];
}

/* The flags of a Pooling module that GGUF can say, in the order in which the reference converters
 * look at them. */
static const struct {
    const char *flag; /* old form: a bool of this name */
    const char *mode; /* new form: pooling_mode is this string */
    int pooling;
} modes[] = {{"pooling_mode_mean_tokens", "mean", POOLING_MEAN},
             {"pooling_mode_cls_token", "cls", POOLING_CLS},
             {"pooling_mode_lasttoken", "lasttoken", POOLING_LAST}};

/* The name of a pooling mode that is switched on and that no GGUF can say, or NULL. */
static const char *unsupported_mode(const struct bc_json *pooling)
{
    for (const struct bc_json *node = bc_json_first(pooling); node != NULL;
         node = bc_json_next(node)) {
        const char *key = bc_json_key(node);
        bool on = false;
        bool known = false;
        if (key == NULL || strncmp(key, "pooling_mode_", strlen("pooling_mode_")) != 0) continue;
        if (!bc_json_bool(node, &on) || !on) continue;
        for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
            known = known || strcmp(key, modes[i].flag) == 0;
        if (!known) return key;
    }
    return NULL;
}

/* Modules that compute something after pooling and that are not carried. Normalisation is an
 * option of the program that embeds. */
static void warn_modules(struct bc_loading *load)
{
    for (const struct bc_json *m = bc_json_first(load->ckpt->modules); m != NULL;
         m = bc_json_next(m)) {
        const char *type = bc_json_string(bc_json_get(m, "type"));
        const char *last = type != NULL ? strrchr(type, '.') : NULL;
        last = last != NULL ? last + 1 : type;
        if (last == NULL || strcmp(last, "Transformer") == 0 || strcmp(last, "Pooling") == 0 ||
            strcmp(last, "Normalize") == 0)
            continue;
        bc_say(load->sink, BITCONV_WARNING,
               "%s/modules.json: module %s is not carried: embeddings end before it",
               load->ckpt->dir, type);
    }
}

/* Old form: flags. *count: how many of the known ones are on. */
static int by_flags(const struct bc_json *config, size_t *count)
{
    int pooling = POOLING_MEAN;
    *count = 0;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        bool on = false;
        if (!bc_json_bool(bc_json_get(config, modes[i].flag), &on) || !on) continue;
        if ((*count)++ == 0) pooling = modes[i].pooling;
    }
    return pooling;
}

void bc_model_read_pooling(struct bc_loading *load)
{
    const struct bc_json *config = load->ckpt->pooling;
    const char *mode = bc_json_string(bc_json_get(config, "pooling_mode"));
    int *pooling = &load->model->hp.pooling;
    *pooling = -1;
    if (!load->model->embedding_model) return;
    warn_modules(load);
    size_t n_on = 0;
    *pooling = by_flags(config, &n_on);
    for (size_t i = 0; mode != NULL && i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(mode, modes[i].mode) != 0) continue;
        *pooling = modes[i].pooling;
        return;
    }
    const char *bad = mode != NULL ? mode : unsupported_mode(config);
    if (bad != NULL && n_on == 0)
        bc_finding(&load->findings, BITCONV_E_UNSUPPORTED,
                   "%s: pooling: \"%s\" cannot be said in a GGUF (mean, cls and lasttoken can)",
                   load->ckpt->dir, bad);
    else if (bad != NULL || n_on > 1)
        bc_say(load->sink, BITCONV_WARNING,
               "%s: pooling: several modes are on, a GGUF holds one: taking %s", load->ckpt->dir,
               bc_pooling_name(*pooling));
}
