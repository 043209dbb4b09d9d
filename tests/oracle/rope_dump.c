/* SPDX-License-Identifier: MIT
 * Prints the rotations of a model as JSON: for oracle/rope.py, which compares with transformers.
 *
 * rope_dump MODEL
 * {"plain": {"magnitude": M, "frequencies": [...]}, "long": ..., "local": ...}; those that a model
 * does not have are left out. */
#include <stdio.h>

#include "engine/session.h"

static void print(const char *name, const struct bc_rotation *r, const char *before)
{
    if (r->dims == 0) return;
    printf("%s\"%s\": {\"magnitude\": %.9g, \"frequencies\": [", before, name,
           (double)r->magnitude);
    for (uint32_t i = 0; i < r->dims / 2; i++)
        printf("%s%.9g", i > 0 ? ", " : "", (double)r->frequencies[i]);
    printf("]}");
}

int main(int argc, char **argv)
{
    struct bitconv_error err = {.status = BITCONV_OK};
    struct bitconv_engine *engine = NULL;
    if (argc != 2) return 2;
    if (bitconv_engine_open(argv[1], NULL, NULL, &engine, &err) != BITCONV_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 2;
    }
    printf("{");
    print("plain", &engine->graph->rotation, "");
    print("long", &engine->graph->long_rotation, ", ");
    print("local", &engine->graph->local_rotation, ", ");
    printf("}\n");
    bitconv_engine_close(engine);
    return 0;
}
