/* SPDX-License-Identifier: MIT
 * Fuzz entry point: payloads of BITCOS and T5. Any bytes are refused with a reason; or they open,
 * and then every reader stays within them and agrees with the others; or they pass all checks, and
 * then packing what they hold gives these very bytes. What breaks that ends the process. */
#include <stdlib.h>
#include <string.h>

#include "formats/format.h"
#include "quant/kernels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) abort();
}

static void *block(uint64_t size)
{
    void *p = malloc((size_t)size);
    require(p != NULL);
    return p;
}

/* Reads the tensor into trits; is every weight legal? */
static bool read_all(const struct bc_format *f, const struct bc_pack_shape *shape,
                     const uint8_t *data, int8_t *trits)
{
    int8_t *other = block(shape->n);
    const bool legal = f->unpack(bc_kernels_best(), shape, data, 0, shape->n, trits);
    require(f->unpack(bc_kernels_at(0), shape, data, 0, shape->n, other) == legal);
    require(memcmp(trits, other, (size_t)shape->n) == 0);
    if (f->trits_at != NULL) f->trits_at(shape, data, 0, shape->n, other);
    require(memcmp(trits, other, (size_t)shape->n) == 0);
    require(legal == (memchr(trits, BC_TRIT_ILLEGAL, (size_t)shape->n) == NULL));
    for (uint64_t i = 0; i < shape->n; i += 1 + shape->n / 100) {
        const uint64_t row = i / shape->cols;
        require(f->trit_at(shape, data, row / shape->rows, row % shape->rows, i % shape->cols) ==
                trits[i]);
    }
    free(other);
    return legal;
}

static void require_canonical(const struct bc_format *f, const struct bc_pack_shape *shape,
                              const uint8_t *data, size_t size, const int8_t *trits)
{
    uint8_t *again = block(size);
    float *scales = block(shape->slices * sizeof *scales);
    for (uint64_t i = 0; i < shape->slices; i++)
        scales[i] = f->get_scale(shape, data, i);
    require(f->size(shape) == size);
    f->pack(bc_kernels_best(), shape, trits, 0, shape->n, again);
    f->put_scales(shape, scales, (uint32_t)shape->slices, again);
    require(memcmp(again, data, size) == 0);
    free(again);
    free(scales);
}

static void check(const struct bc_format *f, const uint8_t *data, size_t size)
{
    struct bc_pack_shape shape;
    char why[300] = "", reason[300] = "";
    const bool passes = f->check_payload(NULL, data, size, reason, sizeof reason);
    require(passes == (reason[0] == '\0'));
    if (!f->open_payload(NULL, data, size, &shape, why, sizeof why)) {
        require(!passes && why[0] != '\0');
        return;
    }
    int8_t *trits = block(shape.n);
    const bool legal = read_all(f, &shape, data, trits);
    require(legal || !passes);
    if (passes) require_canonical(f, &shape, data, size, trits);
    free(trits);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check(bc_format_find("bitcos"), data, size);
    check(bc_format_find("t5"), data, size);
    return 0;
}
