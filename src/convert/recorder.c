/* SPDX-License-Identifier: MIT
 * Records messages and replays them. */
#include "convert/recorder.h"

static void record(void *user, enum bitconv_severity severity, const char *text)
{
    struct bc_recorder *r = user;
    void *items = r->items;
    char *copy = bc_arena_strdup(&r->arena, text);
    if (copy == NULL || !bc_grow(&items, &r->cap, r->n, sizeof *r->items)) return;
    r->items = items;
    r->items[r->n++] = (struct bc_recorded){severity, copy};
}

struct bitconv_sink bc_recorder_sink(struct bc_recorder *r)
{
    return (struct bitconv_sink){.message = record, .user = r};
}

void bc_recorder_replay(struct bc_recorder *r, const struct bitconv_sink *sink)
{
    for (size_t i = 0; i < r->n; i++)
        bc_say(sink, r->items[i].severity, "%s", r->items[i].text);
    bc_free(r->items);
    bc_arena_release(&r->arena);
    *r = (struct bc_recorder){.items = NULL};
}
