/* SPDX-License-Identifier: MIT
 * `bitconv convert`: checkpoint folder -> GGUF. */
#include <stdio.h>
#include <string.h>

#include "bitconv/convert.h"
#include "cmd.h"
#include "convert_print.h"
#include "report.h"

struct settings {
    struct bitconv_convert_options options;
    struct option_list meta;
    const char *allow_nonfinite, *report;
    bool check;
};

#define AT(member)     offsetof(struct settings, member)
#define OPTION(member) offsetof(struct settings, options.member)

static const struct option_row options[] = {
    {"outtype", 0, OPTION_STRING, OPTION(outtype), "T",
     "type of the linear weights: f32 f16 bf16\nq8_0 i2_s i2_s_64 tl1 tl2 bitcos t5 tq1_0\n"
     "tq2_0 q2_0 q1_0, or auto"},
    {"auto-packs", 0, OPTION_STRING, OPTION(auto_packs), "LIST",
     "outtype auto: the smallest of these for each\ntensor (default: bitcos,t5)"},
    {"outfile", 'o', OPTION_OUTPUT, OPTION(outfile), "FILE", "output (default: DIR/NAME-T.gguf)"},
    {"force", 'f', OPTION_FLAG, OPTION(force), NULL, "replace an existing output"},
    {"dry-run", 'n', OPTION_FLAG, OPTION(dry_run), NULL,
     "everything but writing: tensors, sizes, memory"},
    {"check", 0, OPTION_FLAG, AT(check), NULL,
     "only say whether it can be converted and\nwhy not (exit 0 or 1)"},
    {"target", 0, OPTION_STRING, OPTION(target), "T", "whose conventions: auto, bitnet, llama.cpp"},
    {"dialect", 0, OPTION_STRING, OPTION(dialect), "D",
     "type ids: bitnet (default), bitnet-rebased"},
    {"quant", 0, OPTION_STRING, OPTION(quant), "MODE",
     "auto: what the model's runtime computes;\nabsmean: force it; baked: keep magnitudes;\nblock: "
     "each block by its largest magnitude\n(tq1_0 tq2_0 q2_0 q1_0, any weights)"},
    {"on-misfit", 0, OPTION_STRING, OPTION(on_misfit), "T",
     "fail (default), or the float type of tensors\nthat do not fit the pack"},
    {"embd-type", 0, OPTION_STRING, OPTION(embd_type), "T",
     "type of token_embd: f32 f16 bf16 q8_0"},
    {"output-type", 0, OPTION_STRING, OPTION(output_type), "T",
     "type of output: f32 f16 bf16 q8_0"},
    {"i2s-layout", 0, OPTION_STRING, OPTION(i2s_layout), "N",
     "values in a block of I2_S: 128 (default),\n64 (ARM builds)"},
    {"kernel-config", 0, OPTION_STRING, OPTION(kernel_config), "FILE",
     "tiles of tl1 and tl2 by shape (INI; default:\nthe published ones, else the largest)"},
    {"scale-tensor", 0, OPTION_FLAG, OPTION(scale_tensor), NULL,
     "tq1_0 tq2_0 q2_0 q1_0: the exact scale in a\ntensor NAME.scale, 1.0 in the blocks"},
    {"scale-convention", 0, OPTION_STRING, OPTION(scale_convention), "C",
     "how weight_scale is meant: auto, multiply,\ndivide"},
    {"quantize", 0, OPTION_STRING, OPTION(quantize_regex), "REGEX",
     "pack these tensors too (HF or GGUF names)"},
    {"keep", 0, OPTION_STRING, OPTION(keep_regex), "REGEX", "leave these tensors float"},
    {"allow-nonfinite", 0, OPTION_STRING, AT(allow_nonfinite), "zero",
     "store NaN and Inf as 0 instead of refusing"},
    {"vocab-only", 0, OPTION_FLAG, OPTION(vocab_only), NULL, "metadata and tokenizer, no tensors"},
    {"trim-vocab", 0, OPTION_FLAG, OPTION(trim_vocab), NULL,
     "cut the vocabulary at the embedding's rows"},
    {"pre", 0, OPTION_STRING, OPTION(pre), "NAME", "pre-tokenizer, when not recognised"},
    {"chat-template", 0, OPTION_STRING, OPTION(chat_template), "FILE", "Jinja template to store"},
    {"name", 0, OPTION_STRING, OPTION(name), "NAME", "general.name"},
    {"arch-name", 0, OPTION_STRING, OPTION(arch_name), "NAME",
     "general.architecture where readers differ"},
    {"meta", 0, OPTION_LIST, AT(meta), "KEY=TYPE:V",
     "set a metadata key; types u8 i8 u16 i16 u32\ni32 u64 i64 f32 f64 bool str (repeatable)"},
    {"plain", 0, OPTION_FLAG, OPTION(plain), NULL, "leave out bitconv.* metadata"},
    {"report", 0, OPTION_OUTPUT, AT(report), "FILE",
     "write a page for the browser: zeros, bits,\nscales, sizes as pictures (HTML with SVG)"},
    {"split-max-size", 0, OPTION_SIZE, OPTION(split_max_size), "SIZE",
     "write NAME-00001-of-0000N.gguf files of at\nmost SIZE (2G, 512M)"},
    {NULL, 0, OPTION_FLAG, 0, NULL, NULL},
};

static int write_report(struct ui *ui, const struct settings *s, const struct bitconv_conversion *c)
{
    struct report report;
    report_from_conversion(c, ui, &report);
    return report_write(ui, s->report, s->options.force, &report);
}

static int print_checked(struct ui *ui, const char *dir, const char *outtype,
                         const struct bitconv_conversion *c)
{
    struct bc_buf out = {0};
    if (ui->globals->json) return convert_print_check(ui, dir, outtype, c, NULL);
    if (ui->globals->quiet) return 0;
    ui_cell(&out, dir, 0, false);
    bc_buf_printf(&out, ": can be converted to %s\n", c->outtype);
    return ui_finish(ui, &out);
}

/* --check: a rehearsal that looks at nothing but the model. */
static int check(struct ui *ui, const char *dir, const struct bitconv_convert_options *settings)
{
    struct bitconv_convert_options o = *settings;
    struct bitconv_conversion *c = NULL;
    struct bitconv_error err = {0};
    o.dry_run = true;
    o.outfile = "/dev/null";
    o.split_max_size = 0;
    const enum bitconv_status status = bitconv_convert(dir, &o, &ui->sink, &c, &err);
    if (status == BITCONV_OK) {
        const int printed = print_checked(ui, dir, o.outtype, c);
        bitconv_conversion_free(c);
        return printed;
    }
    const int code = ui_fail(ui, &err);
    const bool about_model =
        status == BITCONV_E_UNSUPPORTED || status == BITCONV_E_CORRUPT || status == BITCONV_E_LIMIT;
    if (!about_model) return code;
    const int printed = ui->globals->json ? convert_print_check(ui, dir, o.outtype, NULL, &err) : 0;
    return printed != 0 ? printed : 1;
}

static int run(struct ui *ui, const struct globals *globals, const void *settings,
               const char *const *args, size_t n_args)
{
    struct settings s = *(const struct settings *)settings;
    struct bitconv_conversion *c = NULL;
    struct bitconv_error err = {0};
    if (n_args != 1)
        return ui_usage(ui, "convert", "one checkpoint folder was expected, %zu given", n_args);
    if (s.allow_nonfinite != NULL && strcmp(s.allow_nonfinite, "zero") != 0)
        return ui_usage(ui, "convert", "--allow-nonfinite: '%s' is not zero", s.allow_nonfinite);
    if (s.check && s.report != NULL)
        return ui_usage(ui, "convert", "--report: with --check there is nothing to report on");
    s.options.allow_nonfinite_zero = s.allow_nonfinite != NULL;
    s.options.meta = s.meta.items;
    s.options.n_meta = s.meta.n;
    s.options.n_threads = globals->threads;
    s.options.cpu = globals->cpu;
    if (s.report != NULL &&
        report_check_target(ui, s.report, s.options.outfile, s.options.force) != 0)
        return 2;
    if (s.check) return check(ui, args[0], &s.options);
    if (bitconv_convert(args[0], &s.options, &ui->sink, &c, &err) != BITCONV_OK)
        return ui_fail(ui, &err);
    int status = convert_print(ui, c, s.options.outfile, s.options.dry_run);
    if (status == 0 && s.report != NULL) status = write_report(ui, &s, c);
    bitconv_conversion_free(c);
    return status;
}

const struct command command_convert = {
    .name = "convert",
    .summary = "convert a Hugging Face checkpoint folder to a GGUF file",
    .usage = "convert DIR --outtype T [-o FILE] [options]",
    .examples = "  bitconv convert bitnet-2b4t --outtype i2_s\n"
                "  bitconv convert bitnet-2b4t --outtype i2_s -o out.gguf --verbose\n"
                "  bitconv convert qwen3-embed --outtype f16 --dry-run\n"
                "  bitconv convert llama-ternary --outtype tq2_0 --scale-tensor\n"
                "  bitconv convert falcon-e --outtype i2_s --check\n"
                "  bitconv convert bitnet-3b --outtype tl2 --kernel-config kernel_config.ini\n"
                "  bitconv convert bitnet-3b --outtype i2_s --on-misfit f16 \\\n"
                "          --split-max-size 2G --meta general.author=str:me\n",
    .options = options,
    .settings_size = sizeof(struct settings),
    .run = run,
};
