/* SPDX-License-Identifier: MIT
 * A synthetic model straight to GGUF: convert's own pipeline over tensors that are made up instead of
 * read. */
#ifndef BC_DUMMY_DUMMY_GGUF_H
#define BC_DUMMY_DUMMY_GGUF_H

#include "dummy/tensors.h"
#include "dummy/texts.h"

/* The model as the checkpoint whose tensors are listed in `tensors` (form PACKED) and whose small files
 * are `texts`. `name` is the folder's. Options as in bitconv_dummy; a dry run plans everything but
 * makes no values: sizes of payload packs are then those of the expected number of zeros. The caller
 * releases *out with bitconv_conversion_free. */
enum bitconv_status bc_dummy_gguf(const struct bitconv_dummy_options *options, const char *name,
                                  const struct bc_dummy_tensors *tensors,
                                  const struct bc_dummy_texts *texts,
                                  const struct bitconv_sink *sink, struct bitconv_conversion **out,
                                  struct bitconv_error *err);

#endif
