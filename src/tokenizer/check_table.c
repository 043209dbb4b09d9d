/* SPDX-License-Identifier: MIT
 * The test texts by whose ids Python converters recognise a tokenizer, and the hashes they know.
 * Facts of those programs: the texts from BitNet's convert-hf-to-gguf-bitnet.py (which has
 * llama.cpp's) and convert-bitnet-embedding-to-gguf.py (six quotes where the other has four); the
 * hashes from their lists and from llama.cpp's conversion/base.py, those whose name stands for a
 * splitting that bitconv knows. Where that list has a hash twice, the last entry counts. */
#include "tokenizer/check_table.h"

const char *const bc_check_texts[BITCONV_N_CHECK_TEXTS] = {
    [BITCONV_CHECK_UPSTREAM] =
        "\n \n\n \n\n\n \t \t\t \t\n  \n   \n    \n     \n\360\237\232\200 (normal) \360\237"
        "\230\266\342\200\215\360\237\214\253\357\270\217 (multiple emojis concatenated) \342"
        "\234\205 \360\237\246\231\360\237\246\231 3 33 333 3333 33333 333333 3333333 33333333 "
        "3.3 3..3 3...3 \341\236\200\341\236\266\341\236\223\341\237\213\341\236\217\341\237"
        "\202\341\236\226\341\236\267\341\236\237\341\237\201\341\236\237\341\236\242\341\236"
        "\266\341\236\205\360\237\230\201 \?\346\210\221\346\203\263\345\234\250apple\345\267"
        "\245\344\275\2341314151\345\244\251\357\275\236 ------======= \320\275\320\265\321\211"
        "\320\276 \320\275\320\260 \320\221\321\212\320\273\320\263\320\260\321\200\321\201\320"
        "\272\320\270 ''''''```````\"\"\"\"......!!!!!!\?\?\?\?\?\? I've been 'told he's there,"
        " 'RE you sure\? 'M not sure I'll make it, 'D you like some tea\? We'Ve a'lL",
    [BITCONV_CHECK_EMBEDDING] =
        "\n \n\n \n\n\n \t \t\t \t\n  \n   \n    \n     \n\360\237\232\200 (normal) \360\237"
        "\230\266\342\200\215\360\237\214\253\357\270\217 (multiple emojis concatenated) \342"
        "\234\205 \360\237\246\231\360\237\246\231 3 33 333 3333 33333 333333 3333333 33333333 "
        "3.3 3..3 3...3 \341\236\200\341\236\266\341\236\223\341\237\213\341\236\217\341\237"
        "\202\341\236\226\341\236\267\341\236\237\341\237\201\341\236\237\341\236\242\341\236"
        "\266\341\236\205\360\237\230\201 \?\346\210\221\346\203\263\345\234\250apple\345\267"
        "\245\344\275\2341314151\345\244\251\357\275\236 ------======= \320\275\320\265\321\211"
        "\320\276 \320\275\320\260 \320\221\321\212\320\273\320\263\320\260\321\200\321\201\320"
        "\272\320\270 ''''''```````\"\"\"\"\"\"......!!!!!!\?\?\?\?\?\? I've been 'told he's th"
        "ere, 'RE you sure\? 'M not sure I'll make it, 'D you like some tea\? We'Ve a'lL",
};

const struct bc_check_row bc_check_rows[] = {
    {BITCONV_CHECK_UPSTREAM, "0ef9807a4087ebef797fc749390439009c3b9eda9ad1a097abbe738f486c01e5",
     "llama-bpe"},
    {BITCONV_CHECK_UPSTREAM, "9d032fcbd5501f4a38150912590928bfb36091efb5df11b8e2124b0390e3fb1e",
     "falcon3"},
    {BITCONV_CHECK_UPSTREAM, "0e9433cbbb161f89e264eb32e8e64bfe69e834973ffca5d41d3948a604a3e2a3",
     "pixtral"},
    {BITCONV_CHECK_UPSTREAM, "169bf0296a13c4d9b7672313f749eb36501d931022de052aad6e36f2bf34dd51",
     "lfm2"},
    {BITCONV_CHECK_UPSTREAM, "c136ed14d01c2745d4f60a9596ae66800e2b61fa45643e72436041855ad4089d",
     "smaug-bpe"},
    {BITCONV_CHECK_UPSTREAM, "a8594e3edff7c29c003940395316294b2c623e09894deebbc65f33f1515df79e",
     "dbrx"},
    {BITCONV_CHECK_UPSTREAM, "e636dc30a262dcc0d8c323492e32ae2b70728f4df7dfe9737d9f920a282b8aea",
     "qwen2"},
    {BITCONV_CHECK_UPSTREAM, "d4540891389ea895b53b399da6ac824becc30f2fba0e9ddbb98f92e55ca0e97c",
     "qwen2"},
    {BITCONV_CHECK_UPSTREAM, "d4c8f286ea6b520b3d495c4455483cfa2302c0cfcd4be05d781b6a8a0a7cdaf1",
     "megrez"},
    {BITCONV_CHECK_UPSTREAM, "b3f499bb4255f8ca19fccd664443283318f2fd2414d5e0b040fbdd0cc195d6c5",
     "deepseek-r1-qwen"},
    {BITCONV_CHECK_UPSTREAM, "d30d75d9059f1aa2c19359de71047b3ae408c70875e8a3ccf8c5fba56c9d8af4",
     "qwen35"},
    {BITCONV_CHECK_UPSTREAM, "3ce83efda5659b07b1ad37ca97ca5797ea4285d9b9ab0dc679e4a720c9da7454",
     "gpt-2"},
    {BITCONV_CHECK_UPSTREAM, "fcace8b9cac38ce847670c970cd5892031a753a1ef381abd1d9af00f713da085",
     "phi-2"},
    {BITCONV_CHECK_UPSTREAM, "8b5a93ed704057481f240da0be7e7dca721d7f8f4755263b6807227a2cbeae65",
     "roberta-bpe"},
    {BITCONV_CHECK_UPSTREAM, "b6dc8df998e1cfbdc4eac8243701a65afe638679230920b50d6f17d81c098166",
     "olmo"},
    {BITCONV_CHECK_UPSTREAM, "35d91631860c815f952d711435f48d356ebac988362536bed955d43bfa436e34",
     "starcoder"},
    {BITCONV_CHECK_UPSTREAM, "6221ad2852e85ce96f791f476e0b390cf9b474c9e3d1362f53a24a06dc8220ff",
     "refact"},
    {BITCONV_CHECK_UPSTREAM, "855059429035d75a914d1eda9f10a876752e281a054a7a3d421ef0533e5b6249",
     "smollm"},
    {BITCONV_CHECK_UPSTREAM, "7b3e7548e4308f52a76e8229e4e6cc831195d0d1df43aed21ac6c93da05fec5f",
     "codeshell"},
    {BITCONV_CHECK_UPSTREAM, "9c2227e4dd922002fb81bde4fc02b0483ca4f12911410dee2255e4987644e3f8",
     "command-r"},
    {BITCONV_CHECK_UPSTREAM, "8aeee3860c56296a157a1fe2fad249ec40aa59b1bb5709f4ade11c4e6fe652ed",
     "falcon"},
    {BITCONV_CHECK_UPSTREAM, "049ecf7629871e3041641907f3de7c733e4dbfdc736f57d882ba0b0845599754",
     "deepseek-llm"},
    {BITCONV_CHECK_UPSTREAM, "347715f544604f9118bb75ed199f68779f423cabb20db6de6f31b908d04d7821",
     "deepseek-coder"},
    {BITCONV_CHECK_UPSTREAM, "877081d19cf6996e2c4ff0e1236341e9b7bde288f5311a56a937f0afbbb3aeb5",
     "deepseek-v3"},
    {BITCONV_CHECK_UPSTREAM, "63b97e4253352e6f357cc59ea5b583e3a680eaeaf2632188c2b952de2588485e",
     "tekken"},
    {BITCONV_CHECK_UPSTREAM, "ccc2ef013c104be7bae2965776d611e1d7a8a2a9c547dd93a682c9a9fc80352e",
     "gpt-4o"},
    {BITCONV_CHECK_UPSTREAM, "d353350c764d8c3b39c763113960e4fb4919bea5fbf208a0e3b22e8469dc7406",
     "llama4"},
    {BITCONV_CHECK_UPSTREAM, "3c30d3ad1d6b64202cd222813e7736c2db6e1bd6d67197090fc1211fbc612ae7",
     "bloom"},
    {BITCONV_CHECK_UPSTREAM, "d5f1dd6f980fec569fb218a81a7658ac45fc56b38c5a0adeb1c232fbe04ef5ec",
     "seed-coder"},
    {BITCONV_CHECK_UPSTREAM, "96a5f08be6259352137b512d4157e333e21df7edd3fcd152990608735a65b224",
     "bailingmoe"},
    {BITCONV_CHECK_UPSTREAM, "171aeeedd6fb548d418a7461d053f11b6f1f1fc9b387bd66640d28a4b9f5c643",
     "jina-v2-es"},
    {BITCONV_CHECK_UPSTREAM, "27949a2493fc4a9f53f5b9b029c82689cfbe5d3a1929bb25e043089e28466de6",
     "jina-v2-de"},
    {BITCONV_CHECK_UPSTREAM, "0876d13b50744004aa9aeae05e7b0647eac9d801b5ba4668afc01e709c15e19f",
     "jina-v2-en"},
    {BITCONV_CHECK_EMBEDDING, "855d9fb74bb0b28ce2305e9cd037ff6d8c798f18d19381ddfc14bea3dc9c002f",
     "qwen2"},
};
const size_t bc_check_n_rows = sizeof bc_check_rows / sizeof bc_check_rows[0];
