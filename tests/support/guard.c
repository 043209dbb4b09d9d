/* SPDX-License-Identifier: MIT
 * mmap without access rights, then rights for all but the first and the last page. */
#include "support/guard.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

bool guard_open(struct guard *g, size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    g->room = (size / page + 1) * page;
    g->map_size = g->room + 2 * page;
    const int zeros = open("/dev/zero", O_RDWR);
    if (zeros < 0) return false;
    void *const map = mmap(NULL, g->map_size, PROT_NONE, MAP_PRIVATE, zeros, 0);
    close(zeros);
    if (map == MAP_FAILED) return false;
    g->map = map;
    g->start = g->map + page;
    if (mprotect(g->start, g->room, PROT_READ | PROT_WRITE) == 0) return true;
    guard_close(g);
    return false;
}

void guard_close(struct guard *g)
{
    munmap(g->map, g->map_size);
}

uint8_t *guard_end(const struct guard *g, size_t size)
{
    return g->start + g->room - size;
}
