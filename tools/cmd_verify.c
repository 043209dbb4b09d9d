/* SPDX-License-Identifier: MIT
 * bitconv verify: the proofs that a file is sound and holds what its checkpoint says. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "id_list.h"
#include "report.h"
#include "verify_view.h"

struct settings {
    const char *source, *against, *manifest, *dialect, *kernel_config, *i2s_layout, *report;
    const char *prompt, *tokens, *tolerance;
    bool lenient, force, forward;
    /* As in convert, for files that were not written with the defaults. */
    const char *target, *name, *pre, *chat_template, *quant, *scale_convention, *embd_type,
        *output_type, *quantize, *keep, *nonfinite;
    bool trim_vocab;
    struct option_list meta;
};

/* What the options of --forward come to. */
struct forwarding {
    int32_t *tokens; /* owned */
    size_t n_tokens;
    double tolerance;
};

#define AT(member) offsetof(struct settings, member)
static const struct option_row options[] = {
    {"source", 0, OPTION_STRING, AT(source), "DIR",
     "compare with this checkpoint: trits, scales,\nvalues, names, metadata"},
    {"forward", 0, OPTION_FLAG, AT(forward), NULL,
     "run the model too: with --source, what the file\ncomputes equals the checkpoint's, bit for "
     "bit"},
    {"prompt", 0, OPTION_STRING, AT(prompt), "TEXT",
     "with --forward: the text that is run, by the\nfile's own tokenizer (default: a sentence)"},
    {"tokens", 0, OPTION_STRING, AT(tokens), "1,2,3", "likewise: token ids"},
    {"tolerance", 0, OPTION_STRING, AT(tolerance), "X",
     "with --forward, --source: how far results may\nbe from those of the checkpoint as stored\n"
     "(largest absolute difference; default: any)"},
    {"manifest", 0, OPTION_OUTPUT, AT(manifest), "FILE", "write what was found as JSON, if ok"},
    {"against", 0, OPTION_STRING, AT(against), "FILE", "compare with a manifest"},
    {"lenient", 0, OPTION_FLAG, AT(lenient), NULL, "I2_S code 3 counts as 0, with a warning"},
    {"dialect", 0, OPTION_STRING, AT(dialect), "D",
     "read type ids as upstream, bitnet,\nbitnet-rebased or prism"},
    {"kernel-config", 0, OPTION_STRING, AT(kernel_config), "FILE",
     "tiles of TL1 and TL2 tensors that do not\nstate theirs (INI)"},
    {"i2s-layout", 0, OPTION_STRING, AT(i2s_layout), "128|64",
     "layout of I2_S tensors that do not state\ntheirs (64: ARM builds of bitnet.cpp)"},
    {"report", 0, OPTION_OUTPUT, AT(report), "FILE",
     "write a page for the browser: the proofs, and\nzeros, bits, scales, sizes as pictures "
     "(HTML)"},
    {"force", 'f', OPTION_FLAG, AT(force), NULL,
     "let --manifest replace a manifest, --report\na page"},
    {"target", 0, OPTION_STRING, AT(target), "T",
     "with --source, what convert was told:\nbitnet or llama.cpp (default: found out)"},
    {"name", 0, OPTION_STRING, AT(name), "NAME", "likewise: general.name"},
    {"pre", 0, OPTION_STRING, AT(pre), "NAME", "likewise: pre-tokenizer"},
    {"chat-template", 0, OPTION_STRING, AT(chat_template), "FILE", "likewise: chat template"},
    {"meta", 0, OPTION_LIST, AT(meta), "KEY=T:VALUE", "likewise: keys not to compare"},
    {"quant", 0, OPTION_STRING, AT(quant), "HOW", "likewise: auto, absmean, baked, block"},
    {"scale-convention", 0, OPTION_STRING, AT(scale_convention), "C",
     "likewise: auto, multiply, divide"},
    {"embd-type", 0, OPTION_STRING, AT(embd_type), "T", "likewise: type of token_embd"},
    {"output-type", 0, OPTION_STRING, AT(output_type), "T", "likewise: type of output"},
    {"quantize", 0, OPTION_STRING, AT(quantize), "REGEX", "likewise: tensors packed as well"},
    {"keep", 0, OPTION_STRING, AT(keep), "REGEX", "likewise: tensors left float"},
    {"allow-nonfinite", 0, OPTION_STRING, AT(nonfinite), "zero", "likewise: NaN and Inf read as 0"},
    {"trim-vocab", 0, OPTION_FLAG, AT(trim_vocab), NULL, "likewise: vocabulary cut at the rows"},
    {NULL, 0, OPTION_FLAG, 0, NULL, NULL},
};
#undef AT

/* Where the library's messages go: they are part of the report on standard output, not a stream. */
struct collector {
    struct verify_view *view;
    struct ui *ui;
};

static void on_message(void *user, enum bitconv_severity severity, const char *text)
{
    const struct collector *c = user;
    struct text_list *list = &c->view->notes;
    if (severity == BITCONV_FINDING) list = &c->view->problems;
    if (severity == BITCONV_WARNING) list = &c->view->warnings;
    text_list_add(list, text);
}

static void on_progress(void *user, const char *what, uint64_t done, uint64_t total)
{
    const struct collector *c = user;
    if (c->ui->sink.progress != NULL) c->ui->sink.progress(c->ui->sink.user, what, done, total);
}

static int unreadable(struct ui *ui, const struct verify_view *view,
                      const struct bitconv_error *err)
{
    for (size_t i = 0; i < view->problems.n; i++)
        ui->sink.message(ui->sink.user, BITCONV_FINDING, view->problems.items[i]);
    return ui_fail(ui, err);
}

/* The one line on standard error that says what failed first. */
static int fail_line(struct ui *ui, const struct verify_view *view)
{
    struct bitconv_error err = {.status = BITCONV_E_MISMATCH};
    for (size_t i = 0; i < view->it->n_proofs && err.text[0] == '\0'; i++) {
        const struct bitconv_proof *proof = &view->it->proofs[i];
        if (proof->verdict == BITCONV_FAILED)
            snprintf(err.text, sizeof err.text, "%s: %s: %s", view->file, proof->name,
                     proof->detail);
    }
    return ui_fail(ui, &err);
}

static int write_report(struct ui *ui, const struct settings *s, const struct verify_view *view)
{
    struct report report;
    report_from_verification(view, &report);
    return report_write(ui, s->report, s->force, &report);
}

static int report(struct ui *ui, const struct globals *globals, const struct settings *s,
                  const struct verify_view *view)
{
    struct bitconv_error err = {0};
    struct bc_buf text = {0};
    if (globals->json)
        verify_json(view, &text);
    else if (!globals->quiet)
        verify_text(view, &text);
    int status = ui_finish(ui, &text);
    if (status == 0 && s->report != NULL) status = write_report(ui, s, view);
    if (status != 0) return status;
    if (!view->it->ok) return fail_line(ui, view);
    if (s->manifest == NULL) return 0;
    if (bitconv_manifest_write(view->it, s->manifest, s->force, &err) != BITCONV_OK)
        return ui_fail(ui, &err);
    ui_wrote(ui, s->manifest);
    return 0;
}

static struct bitconv_convert_options conversion(const struct settings *s)
{
    const struct bitconv_convert_options told = {
        .target = s->target,
        .name = s->name,
        .pre = s->pre,
        .chat_template = s->chat_template,
        .quant = s->quant,
        .scale_convention = s->scale_convention,
        .embd_type = s->embd_type,
        .output_type = s->output_type,
        .quantize_regex = s->quantize,
        .keep_regex = s->keep,
        .meta = s->meta.items,
        .n_meta = s->meta.n,
        .trim_vocab = s->trim_vocab,
        .allow_nonfinite_zero = s->nonfinite != NULL,
    };
    return told;
}

/* The ids of --tokens, which the caller frees. */
static enum bitconv_status parse_tokens(const char *text, struct forwarding *out,
                                        struct bitconv_error *err)
{
    struct bitconv_ids ids = {0};
    enum bitconv_status status = id_list_parse("--tokens", text, &ids, err);
    if (status == BITCONV_OK) out->tokens = bc_alloc_array(ids.n, sizeof *out->tokens);
    if (status == BITCONV_OK && out->tokens == NULL) status = bc_fail_nomem(err, "token ids");
    for (size_t i = 0; status == BITCONV_OK && i < ids.n; i++)
        out->tokens[out->n_tokens++] = (int32_t)ids.ids[i];
    bitconv_ids_release(&ids);
    return status;
}

static int verify(struct ui *ui, const struct globals *globals, const struct settings *s,
                  const char *file, const struct forwarding *forwarding)
{
    const struct bitconv_convert_options converted = conversion(s);
    const struct bitconv_verify_options verify_options = {
        .source = s->source,
        .against = s->against,
        .dialect = s->dialect,
        .kernel_config = s->kernel_config,
        .i2s_layout = s->i2s_layout,
        .lenient = s->lenient,
        .n_threads = globals->threads,
        .cpu = globals->cpu,
        .conversion = &converted,
        .forward = s->forward,
        .prompt = s->prompt,
        .tokens = forwarding->tokens,
        .n_tokens = forwarding->n_tokens,
        .has_tolerance = s->tolerance != NULL,
        .tolerance = forwarding->tolerance,
    };
    struct verify_view view = {.ui = ui, .file = file};
    struct collector collector = {&view, ui};
    const struct bitconv_sink sink = {on_message, on_progress, &collector, ui->sink.cancel};
    struct bitconv_verification *result = NULL;
    struct bitconv_error err = {0};
    int status;
    if (s->manifest != NULL &&
        bitconv_manifest_check_target(s->manifest, s->force, &err) != BITCONV_OK)
        return ui_fail(ui, &err);
    if (s->report != NULL && report_check_target(ui, s->report, s->manifest, s->force) != 0)
        return 2;
    if (bitconv_verify(file, &verify_options, &sink, &result, &err) != BITCONV_OK) {
        status = unreadable(ui, &view, &err);
    } else {
        view.it = result;
        status = report(ui, globals, s, &view);
    }
    bitconv_verification_free(result);
    text_list_release(&view.problems);
    text_list_release(&view.warnings);
    text_list_release(&view.notes);
    return status;
}

/* The options of --forward; 0, or 2 after saying what is wrong with them. */
static int parse_forwarding(struct ui *ui, const struct settings *s, struct forwarding *out)
{
    const char *alone = s->prompt != NULL      ? "--prompt"
                        : s->tokens != NULL    ? "--tokens"
                        : s->tolerance != NULL ? "--tolerance"
                                               : NULL;
    struct bitconv_error err = {0};
    char *end = NULL;
    if (!s->forward && alone != NULL)
        return ui_usage(ui, "verify", "%s: only with --forward", alone);
    if (s->prompt != NULL && s->tokens != NULL)
        return ui_usage(ui, "verify", "--prompt and --tokens: only one of them");
    if (s->tolerance != NULL && s->source == NULL)
        return ui_usage(ui, "verify", "--tolerance: only with --source");
    if (s->tolerance != NULL) {
        out->tolerance = strtod(s->tolerance, &end);
        if (end == s->tolerance || *end != '\0' || !isfinite(out->tolerance) || out->tolerance < 0)
            return ui_usage(ui, "verify",
                            "--tolerance: '%s' is not a finite number that is not negative",
                            s->tolerance);
    }
    if (s->tokens != NULL && parse_tokens(s->tokens, out, &err) != BITCONV_OK)
        return ui_fail(ui, &err);
    return 0;
}

static int run(struct ui *ui, const struct globals *globals, const void *settings,
               const char *const *args, size_t n_args)
{
    const struct settings *s = settings;
    if (n_args != 1) return ui_usage(ui, "verify", "one file was expected, %zu given", n_args);
    if (s->nonfinite != NULL && strcmp(s->nonfinite, "zero") != 0)
        return ui_usage(ui, "verify", "--allow-nonfinite: '%s' is not: zero", s->nonfinite);
    struct forwarding forwarding = {.tokens = NULL};
    int status = parse_forwarding(ui, s, &forwarding);
    if (status == 0) status = verify(ui, globals, s, args[0], &forwarding);
    bc_free(forwarding.tokens);
    return status;
}

const struct command command_verify = {
    .name = "verify",
    .summary = "prove that a file is sound, and the same model as its checkpoint",
    .usage = "verify FILE [--source DIR] [options]",
    .examples = "  bitconv verify model.gguf\n"
                "  bitconv verify model.gguf --source checkpoint/\n"
                "  bitconv verify model.gguf --source checkpoint/ --forward\n"
                "  bitconv verify model.gguf --forward --prompt \"Hello, world\"\n"
                "  bitconv verify model.gguf --manifest model.json\n"
                "  bitconv verify copy.gguf --against model.json\n"
                "  bitconv verify model.safetensors --json\n",
    .options = options,
    .settings_size = sizeof(struct settings),
    .run = run,
};
