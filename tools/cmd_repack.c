/* SPDX-License-Identifier: MIT
 * `bitconv repack`: the ternary tensors of a GGUF in another pack. */
#include <stdio.h>
#include <string.h>

#include "bitconv/repack.h"
#include "cmd.h"
#include "convert_print.h"

#define AT(member) offsetof(struct bitconv_repack_options, member)

static const struct option_row options[] = {
    {"outtype", 0, OPTION_STRING, AT(outtype), "T",
     "pack of the ternary tensors: i2_s i2_s_64\ntl1 tl2 bitcos t5 tq1_0 tq2_0 q2_0 q1_0,\nauto, "
     "or f32 f16 bf16 q8_0"},
    {"outfile", 'o', OPTION_OUTPUT, AT(outfile), "FILE", "output (required)"},
    {"auto-packs", 0, OPTION_STRING, AT(auto_packs), "LIST",
     "outtype auto: the smallest of these for each\ntensor (default: bitcos,t5)"},
    {"force", 'f', OPTION_FLAG, AT(force), NULL, "replace an existing output"},
    {"dry-run", 'n', OPTION_FLAG, AT(dry_run), NULL,
     "everything but writing: tensors, sizes, memory"},
    {"dialect", 0, OPTION_STRING, AT(dialect), "D",
     "type ids of the output: bitnet (default),\nbitnet-rebased"},
    {"on-misfit", 0, OPTION_STRING, AT(on_misfit), "T",
     "fail (default), or the float type of tensors\nthat do not fit the pack"},
    {"scale-tensor", 0, OPTION_FLAG, AT(scale_tensor), NULL,
     "tq1_0 tq2_0 q2_0 q1_0: the exact scale in a\ntensor NAME.scale, 1.0 in the blocks"},
    {"i2s-layout", 0, OPTION_STRING, AT(i2s_layout), "128|64",
     "I2_S layout of the output; with another\nouttype as --input-i2s-layout"},
    {"kernel-config", 0, OPTION_STRING, AT(kernel_config), "FILE",
     "tiles of tl1 and tl2 by shape (INI)"},
    {"input-i2s-layout", 0, OPTION_STRING, AT(input_i2s_layout), "N",
     "128 (default) or 64, of I2_S tensors of the\ninput that do not state theirs"},
    {"input-kernel-config", 0, OPTION_STRING, AT(input_kernel_config), "F",
     "tiles of tensors of the input that do not\nstate theirs (default: --kernel-config)"},
    {"input-dialect", 0, OPTION_STRING, AT(input_dialect), "D",
     "read type ids as upstream, bitnet,\nbitnet-rebased or prism"},
    {"plain", 0, OPTION_FLAG, AT(plain), NULL, "leave out bitconv.* metadata"},
    {"split-max-size", 0, OPTION_SIZE, AT(split_max_size), "SIZE",
     "write NAME-00001-of-0000N.gguf files of at\nmost SIZE (2G, 512M)"},
    {NULL, 0, OPTION_FLAG, 0, NULL, NULL},
};

static int run(struct ui *ui, const struct globals *globals, const void *settings,
               const char *const *args, size_t n_args)
{
    struct bitconv_repack_options o = *(const struct bitconv_repack_options *)settings;
    struct bitconv_conversion *c = NULL;
    struct bitconv_error err = {0};
    if (n_args != 1) return ui_usage(ui, "repack", "one GGUF was expected, %zu given", n_args);
    if (o.outtype == NULL) return ui_usage(ui, "repack", "--outtype is missing");
    if (o.outfile == NULL) return ui_usage(ui, "repack", "-o FILE is missing");
    o.n_threads = globals->threads;
    o.cpu = globals->cpu;
    if (bitconv_repack(args[0], &o, &ui->sink, &c, &err) != BITCONV_OK) return ui_fail(ui, &err);
    const int status = convert_print(ui, c, o.outfile, o.dry_run);
    bitconv_conversion_free(c);
    return status;
}

const struct command command_repack = {
    .name = "repack",
    .summary = "write the ternary tensors of a GGUF in another pack, without loss",
    .usage = "repack IN.gguf --outtype T -o OUT.gguf [options]",
    .examples = "  bitconv repack model-i2_s.gguf --outtype bitcos -o model-bitcos.gguf\n"
                "  bitconv repack model.gguf --outtype auto -o small.gguf\n"
                "  bitconv repack arm.gguf --input-i2s-layout 64 --outtype i2_s \\\n"
                "          -o x86.gguf\n"
                "  bitconv repack model-tl2.gguf --kernel-config kernel_config.ini \\\n"
                "          --outtype i2_s -o model-i2_s.gguf\n"
                "  bitconv repack ternary-f16.gguf --outtype t5 -o ternary-t5.gguf --dry-run\n",
    .options = options,
    .settings_size = sizeof(struct bitconv_repack_options),
    .run = run,
};
