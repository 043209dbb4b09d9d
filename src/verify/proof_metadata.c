/* SPDX-License-Identifier: MIT
 * The metadata proof: the keys that the architecture's readers demand are there and agree with the
 * tensors. */
#include "verify/metadata_rules.h"
#include "verify/proofs.h"

struct context {
    struct bc_verifier *v;
    struct bitconv_proof *proof;
};

static void report(void *user, bool is_error, const char *text)
{
    const struct context *c = user;
    if (is_error)
        bc_problem(c->v, c->proof, bc_subject(c->v, text), "%s", text);
    else
        bc_say(c->v->sink, BITCONV_WARNING, "%s", text);
}

enum bitconv_status bc_prove_metadata(struct bc_verifier *v, struct bitconv_proof *proof,
                                      struct bitconv_error *err)
{
    struct context context = {v, proof};
    const struct bc_rule_report rules = {report, &context};
    (void)err;
    bc_check_model_metadata(v->container.gguf, &rules);
    proof->checked = v->result->n_tensors;
    if (bc_gguf_is_model(v->container.gguf))
        bc_conclude(v, proof,
                    "%zu keys: the architecture's keys, sizes and vocabulary agree with "
                    "the tensors",
                    bitconv_gguf_n_keys(v->container.gguf));
    else if (proof->verdict == BITCONV_PASSED)
        bc_not_run(v, proof, "loose tensors: no embedding and no block count");
    else
        bc_conclude(v, proof, "%s", "");
    return BITCONV_OK;
}
