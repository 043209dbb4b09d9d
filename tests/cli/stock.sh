#!/usr/bin/env bash
# The stock families from outside: every output type is proven by verify, both vocabularies of BERT say the same, what a
# changed checkpoint or file does is found, and what is not supported is refused by name.
. "$BITCONV_SOURCE_DIR/tests/cli/lib.inc"

for family in qwen2 phi3 bert lfm2; do
    types="f32 f16 bf16 q8_0"
    [ $family = bert ] || types="$types i2_s t5" # the others hold one magnitude per tensor
    for type in $types; do
        expect 0 "$BITCONV_BIN" convert "$models/$family" --outtype "$type" --outfile "$scratch/$family-$type.gguf"
        expect 0 "$BITCONV_BIN" verify "$scratch/$family-$type.gguf" --source "$models/$family"
    done
    expect 0 "$BITCONV_BIN" inspect "$models/$family"
    prints "$family"
done

# The file of one checkpoint is not that of another.
expect 1 "$BITCONV_BIN" verify "$scratch/lfm2-f16.gguf" --source "$models/qwen2"

# A folder of a family under another config.
changed() { # FAMILY PYTHON: $scratch/model is a copy whose config PYTHON has changed (as c)
    rm -rf "$scratch/model"
    cp -r "$models/$1" "$scratch/model"
    python3 - "$scratch/model/config.json" "$2" <<'PY'
import json, sys
c = json.load(open(sys.argv[1]))
exec(sys.argv[2])
json.dump(c, open(sys.argv[1], "w"))
PY
}
differs() { # FAMILY PYTHON KEY: verify names KEY of the file of the unchanged checkpoint
    changed "$1" "$2"
    expect 1 "$BITCONV_BIN" verify "$scratch/$1-f16.gguf" --source "$scratch/model"
    prints "$3"
}
differs qwen2 'c["rope_theta"] = 10000.0' qwen2.rope.freq_base
differs phi3 'c["original_max_position_embeddings"] = 2048' phi3.rope.scaling.attn_factor
differs phi3 'c["rope_scaling"]["long_factor"][3] = 9.0' rope_factors_long.weight
differs phi3 'c["sliding_window"] = 2047' phi3.attention.sliding_window
differs bert 'c["layer_norm_eps"] = 1e-5' bert.attention.layer_norm_epsilon
differs lfm2 'c["norm_eps"] = 1e-6' lfm2.attention.layer_norm_rms_epsilon

refused() { # FAMILY PYTHON TEXT
    changed "$1" "$2"
    expect 2 "$BITCONV_BIN" convert "$scratch/model" --outtype f16 --outfile "$scratch/refused.gguf"
    says "$3"
    [ ! -e "$scratch/refused.gguf" ] || fail "an output for a refused checkpoint"
}
refused bert 'c["architectures"] = ["XLMRobertaModel"]' '"XLMRobertaModel" is not supported'
refused bert 'c["architectures"] = ["BertForSequenceClassification"]' 'is not supported'
refused bert 'c["position_embedding_type"] = "relative_key_query"' 'supports only "absolute"'
refused lfm2 'c["layer_types"] = ["full_attention", "conv"]' 'by the config layer 0 is one of attention'
refused phi3 'c["partial_rotary_factor"] = 0.5' 'wanted a list of 8 numbers'
refused qwen2 'c["rope_scaling"] = {"type": "longrope", "long_factor": [], "short_factor": []}' '"longrope" is not supported'

# BERT from its vocab.txt alone: the same tokenizer.
cp -r "$models/bert" "$scratch/lines"
rm "$scratch/lines/tokenizer.json" "$scratch/lines/tokenizer_config.json"
expect 0 "$BITCONV_BIN" convert "$scratch/lines" --outtype f16 --outfile "$scratch/lines.gguf" --name bert
expect 0 "$BITCONV_BIN" diff "$scratch/bert-f16.gguf" "$scratch/lines.gguf"
finish
