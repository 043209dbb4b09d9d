#!/usr/bin/env bash
# sparse from outside: calibrate and run over the fixtures, reports, outputs that must not be touched, usage.
source "$BITCONV_SOURCE_DIR/tests/cli/lib.inc"
p=$scratch/p.gguf
grep . "$BITCONV_SOURCE_DIR/LICENSE" | cut -c 1-60 | head -n 10 >"$scratch/lines"
grep . "$BITCONV_SOURCE_DIR/LICENSE" | cut -c 1-60 | tail -n 3 >"$scratch/eval"

for model in bitnet bitnet-1bitllm qwen3-embed gemma3-embed llama-158 qwen2 phi3 lfm2; do
    expect 0 "$BITCONV_BIN" convert "$models/$model" --outtype i2_s --on-misfit f16 -o "$scratch/$model.gguf" --quiet
    expect 0 "$BITCONV_BIN" sparse calibrate "$scratch/$model.gguf" --prompts "$scratch/lines" --eval "$scratch/eval" \
        --rank 16 --share 0.5 -o "$p" --force
    prints "held-out texts"
    prints "ratio"
    awk 'length($0) > 80 { print; bad = 1 } END { exit bad }' "$scratch/out" || fail "$model: wider than 80 columns"
    expect 0 "$BITCONV_BIN" verify "$p"
    expect 0 "$BITCONV_BIN" inspect "$p"
    prints "sparse-ffn"
    expect 0 "$BITCONV_BIN" sparse run "$scratch/$model.gguf" --predictor "$p" -p "Hello, world" -n 4 --json --mode int8
    cp "$scratch/out" "$scratch/half"
    # All neurons: no difference at all.
    expect 0 "$BITCONV_BIN" sparse run "$scratch/$model.gguf" --predictor "$p" -p "Hello, world" -n 4 --json --share 1
    python3 - "$scratch/half" "$scratch/out" "$model" <<'PY' || fail "$model: the JSON of sparse run is not as promised"
import json, sys
half, one = (json.load(open(f)) for f in sys.argv[1:3])
embeds = sys.argv[3].endswith("-embed")
assert one["quality"]["hidden_error"] == 0 and one["quality"]["total"]["output_error"] == 0
assert one["top_k"] == one["intermediate_size"] and half["top_k"] * 2 == one["top_k"]
assert half["quality"]["hidden_error"] > 0 and half["quality"]["total"]["sparsity"] == 0.5
assert half["mode"] == "int8" and one["mode"] == "float"
assert 0 < half["quality"]["total"]["recall"] <= 1 and len(half["quality"]["by_layer"]) == half["layers"]
for d in (half, one):
    assert d["speed"]["n_tokens"] > 0 and d["speed"]["ratio"] > 0
    assert (d["embedding"] is not None) == embeds and (d["text"] is None) == embeds
    assert (d["quality"]["logits_error"] is None) == embeds
    assert embeds or 1 <= len(d["tokens"]) <= 4
if embeds:
    assert abs(sum(x * x for x in one["embedding"]) - 1) < 1e-5
PY
done

# The file does not depend on threads or memory; the report of calibrate.
expect 0 "$BITCONV_BIN" sparse calibrate "$models/bitnet" --prompts "$scratch/lines" -o "$scratch/a.gguf" --threads 1 --json
python3 - "$scratch/out" <<'PY' || fail "the JSON of sparse calibrate is not as promised"
import json, sys
d = json.load(open(sys.argv[1]))
assert d["rank"] == 32 and d["top_k"] == 39 and d["rule"] == "top_k" and d["held_out"] is None
assert d["samples"] == d["calibration"]["n_tokens"] > 100
total = d["calibration"]["total"]
assert 0.4 < total["recall"] < 1 and total["mass"] > total["recall"] and 0 < total["explained"] < 1
PY
expect 0 "$BITCONV_BIN" sparse calibrate "$models/bitnet" --prompts "$scratch/lines" -o "$scratch/b.gguf" --threads 3 --memory 1200K
cmp -s "$scratch/a.gguf" "$scratch/b.gguf" || fail "threads or memory change the predictor"
expect 0 "$BITCONV_BIN" sparse calibrate "$models/bitnet" --tokens 1,2,3,4 --threshold 0.5 --f32 -o "$scratch/c.gguf"
prints "scores from 0.5 on"

# Refusals: one clear line each, and nothing is written.
expect 2 "$BITCONV_BIN" sparse calibrate "$models/bitnet" --tokens 1,2 -o "$scratch/a.gguf"
one_line
cmp -s "$scratch/a.gguf" "$scratch/b.gguf" || fail "an old output was touched"
mkdir "$scratch/empty"
for model in mixtral bert; do
    expect 2 "$BITCONV_BIN" sparse calibrate "$models/$model" --tokens 1,2 -o "$scratch/empty/x.gguf"
    one_line
    says "predictors are for dense gated blocks"
done
for options in "--share 0" "--share 1.5" "--share x" "--top-k 1000" "--rank 4096" "--threshold nan" "--ridge -1" \
    "--memory 1K" "--share 0.5 --top-k 3" "--mode int4" "--eval /nonexistent" "--prompts $scratch/empty"; do
    # shellcheck disable=SC2086
    expect 2 "$BITCONV_BIN" sparse calibrate "$models/bitnet" --tokens 1,2 $options -o "$scratch/empty/x.gguf"
    one_line
done
for tokens in "" "1,,2" "1;2" "-1" "320" "4294967295"; do
    expect 2 "$BITCONV_BIN" sparse calibrate "$models/bitnet" --tokens "$tokens" -o "$scratch/empty/x.gguf"
    one_line
done
no_litter "$scratch/empty"
expect 2 "$BITCONV_BIN" sparse run "$scratch/llama-158.gguf" --predictor "$scratch/a.gguf" -p x
one_line
says "not for models of the family"
expect 2 "$BITCONV_BIN" sparse run "$models/bitnet" --predictor "$scratch/bitnet.gguf" -p x
one_line
says "no predictor"
expect 2 "$BITCONV_BIN" sparse run "$models/bitnet" -p x
says "--predictor"
expect 2 "$BITCONV_BIN" sparse run "$models/bitnet" --predictor "$scratch/a.gguf"
expect 2 "$BITCONV_BIN" sparse train "$models/bitnet"
says "calibrate or run"
finish
