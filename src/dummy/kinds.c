/* SPDX-License-Identifier: MIT
 * Kinds of synthetic models, and published shapes. Proportions and settings are those of the models
 * that a family is known for (their config.json). */
#include "dummy/kinds.h"

#include <string.h>
#include <strings.h>

static const struct bc_dummy_kind kinds[] = {
    {.name = "bitnet",
     .class_name = "BitNetForCausalLM",
     .tied = true,
     .tokenizer = BC_DUMMY_LLAMA3,
     .vocab = 128256,
     .context = 4096,
     .ff_ratio = 2.7F,
     .head_dim = 128,
     .group = 4,
     .config = ", \"hidden_act\": \"relu2\", \"rope_theta\": 500000.0"},
    {.name = "bitnet-1bitllm",
     .class_name = "BitnetForCausalLM",
     .generation = 1,
     .tied = false,
     .tokenizer = BC_DUMMY_LLAMA2,
     .vocab = 32000,
     .context = 2048,
     .ff_ratio = 2.7F,
     .head_dim = 100,
     .group = 1,
     .config = ", \"hidden_act\": \"silu\", \"rope_theta\": 10000.0"},
    {.name = "llama",
     .class_name = "LlamaForCausalLM",
     .tokenizer = BC_DUMMY_LLAMA2,
     .vocab = 32000,
     .context = 4096,
     .ff_ratio = 2.7F,
     .head_dim = 128,
     .group = 1,
     .config = ", \"hidden_act\": \"silu\", \"rope_theta\": 10000.0"},
    {.name = "mistral",
     .class_name = "MistralForCausalLM",
     .tokenizer = BC_DUMMY_LLAMA2,
     .vocab = 32000,
     .context = 32768,
     .ff_ratio = 3.5F,
     .head_dim = 128,
     .group = 4,
     .config = ", \"hidden_act\": \"silu\", \"rope_theta\": 10000.0, \"sliding_window\": 4096"},
    {.name = "mixtral",
     .class_name = "MixtralForCausalLM",
     .tokenizer = BC_DUMMY_LLAMA2,
     .vocab = 32000,
     .context = 32768,
     .ff_ratio = 3.5F,
     .head_dim = 128,
     .group = 4,
     .n_expert = 8,
     .n_expert_used = 2,
     .config = ", \"hidden_act\": \"silu\", \"rope_theta\": 1000000.0, \"sliding_window\": null"},
    {.name = "qwen2",
     .class_name = "Qwen2ForCausalLM",
     .tied = true,
     .tokenizer = BC_DUMMY_QWEN,
     .vocab = 151936,
     .context = 32768,
     .ff_ratio = 4.0F,
     .head_dim = 128,
     .group = 6,
     .config =
         ", \"hidden_act\": \"silu\", \"rope_theta\": 1000000.0, \"use_sliding_window\": false"},
    {.name = "qwen3",
     .class_name = "Qwen3ForCausalLM",
     .tied = true,
     .tokenizer = BC_DUMMY_QWEN,
     .vocab = 151936,
     .context = 40960,
     .ff_ratio = 3.0F,
     .head_dim = 128,
     .group = 2,
     .config =
         ", \"hidden_act\": \"silu\", \"rope_theta\": 1000000.0, \"use_sliding_window\": false"},
    {.name = "qwen3-embed",
     .class_name = "Qwen3Model",
     .norm_in = true,
     .tied = true,
     .tokenizer = BC_DUMMY_QWEN,
     .vocab = 151936,
     .context = 32768,
     .ff_ratio = 3.0F,
     .head_dim = 128,
     .group = 2,
     .config =
         ", \"hidden_act\": \"silu\", \"rope_theta\": 1000000.0, \"use_sliding_window\": false",
     .pooling = "pooling_mode_lasttoken"},
    {.name = "gemma3",
     .class_name = "Gemma3ForCausalLM",
     .tied = true,
     .tokenizer = BC_DUMMY_GEMMA,
     .vocab = 262144,
     .context = 32768,
     .ff_ratio = 4.0F,
     .head_dim = 256,
     .group = 2,
     .config = ", \"hidden_activation\": \"gelu_pytorch_tanh\", \"rope_theta\": 1000000.0, "
               "\"rope_local_base_freq\": 10000.0, \"sliding_window\": 512"},
    {.name = "gemma3-embed",
     .class_name = "Gemma3TextModel",
     .norm_in = true,
     .tied = true,
     .tokenizer = BC_DUMMY_GEMMA,
     .vocab = 262144,
     .context = 2048,
     .ff_ratio = 4.0F,
     .head_dim = 256,
     .group = 2,
     .config = ", \"hidden_activation\": \"gelu_pytorch_tanh\", \"rope_theta\": 1000000.0, "
               "\"rope_local_base_freq\": 10000.0, \"sliding_window\": 512",
     .pooling = "pooling_mode_mean_tokens"},
    {.name = "phi3",
     .class_name = "Phi3ForCausalLM",
     .tokenizer = BC_DUMMY_LLAMA2,
     .vocab = 32064,
     .context = 4096,
     .ff_ratio = 2.7F,
     .head_dim = 96,
     .group = 1,
     .config = ", \"hidden_act\": \"silu\", \"rope_theta\": 10000.0, "
               "\"original_max_position_embeddings\": 4096, \"sliding_window\": 2047"},
    {.name = "bert",
     .class_name = "BertModel",
     .tied = true,
     .tokenizer = BC_DUMMY_BERT,
     .vocab = 30522,
     .context = 512,
     .ff_ratio = 4.0F,
     .head_dim = 64,
     .group = 1,
     .config = ", \"hidden_act\": \"gelu\", \"position_embedding_type\": \"absolute\"",
     .pooling = "pooling_mode_mean_tokens"},
    {.name = "lfm2",
     .class_name = "Lfm2ForCausalLM",
     .tied = true,
     .tokenizer = BC_DUMMY_LLAMA3,
     .vocab = 65536,
     .context = 128000,
     .ff_ratio = 4.0F,
     .head_dim = 64,
     .group = 2,
     .config = ", \"rope_theta\": 1000000.0, \"block_auto_adjust_ff_dim\": false, "
               "\"conv_bias\": false"},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static const struct bc_dummy_published published[] = {
    {"bitnet", "2B-4T", 30, 2560, 6912, 20, 5, 128, 128256},
    {"bitnet-1bitllm", "700M", 24, 1536, 4096, 16, 16, 96, 32002},
    {"bitnet-1bitllm", "3B", 26, 3200, 8640, 32, 32, 100, 32002},
    {"llama", "7B", 32, 4096, 11008, 32, 32, 128, 32000},
    {"llama", "8B", 32, 4096, 14336, 32, 8, 128, 128256},
    {"llama", "13B", 40, 5120, 13824, 40, 40, 128, 32000},
    {"llama", "70B", 80, 8192, 28672, 64, 8, 128, 32000},
    {"mistral", "7B", 32, 4096, 14336, 32, 8, 128, 32000},
    {"qwen3", "8B", 36, 4096, 12288, 32, 8, 128, 151936},
};

const struct bc_dummy_kind *bc_dummy_kind_at(size_t index)
{
    return index < N_KINDS ? &kinds[index] : NULL;
}

const struct bc_dummy_kind *bc_dummy_kind_find(const char *name)
{
    for (size_t i = 0; i < N_KINDS; i++)
        if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
    return NULL;
}

const struct bc_dummy_published *bc_dummy_published_find(const char *kind, const char *size)
{
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++)
        if (strcmp(published[i].kind, kind) == 0 && strcasecmp(published[i].size, size) == 0)
            return &published[i];
    return NULL;
}
