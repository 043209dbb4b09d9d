#!/usr/bin/env bash
# inspect from outside: sections, widths, JSON as in the contract, output that can be compared.
source "$BITCONV_SOURCE_DIR/tests/cli/lib.inc"
inspect() { "$BITCONV_BIN" inspect "$@"; }
mkdir "$scratch/a" "$scratch/b"
model=$scratch/a/model.gguf
"$BITCONV_BIN" convert "$models/bitnet" --outtype i2_s --outfile "$model" >/dev/null 2>&1

expect 0 inspect "$model" --stats --hash
for section in model metadata types "tensors (columns x rows)" "ternary tensors" numbers digests; do
    prints "$section"
done
prints "dialect bitnet"
prints "relu2"
prints "blk.1.ffn_up.weight"
# fits LINES: no line is wider than 80 columns, the first LINES (a path) apart.
fits() {
    python3 -c 'import sys; sys.exit(any(len(l.rstrip("\n")) > 80 for l in list(open(sys.argv[1], encoding="utf-8"))[int(sys.argv[2]):]))' \
        "$scratch/out" "$1" || fail "wider than 80 columns"
}
fits 1
! LC_ALL=C grep -q $'\x1b' "$scratch/out" || fail "colour without a terminal"
[ ! -s "$scratch/err" ] || fail "stderr is not empty"

# Only one section.
expect 0 inspect "$model" --tensors
! grep -q general.architecture "$scratch/out" || fail "--tensors shows metadata"
expect 0 inspect "$model" --metadata
! grep -q blk.0.attn_q "$scratch/out" || fail "--metadata shows tensors"
prints "tokenizer.ggml.tokens"
[ -n "$(head -n 1 "$scratch/out")" ] || fail "the first line is empty"

# Long texts are cut, but for --all; scales of any magnitude keep the columns.
name=$(printf 'long %.0s' {1..100})
"$BITCONV_BIN" convert "$models/qwen3-embed" --outtype i2_s --outfile "$scratch/a/long.gguf" --name "$name" >/dev/null 2>&1
expect 0 inspect "$scratch/a/long.gguf" --stats
fits 1
expect 0 inspect "$scratch/a/long.gguf" --all
prints "$name"

# The same content elsewhere is the same text.
cp "$model" "$scratch/b/other.gguf"
expect 0 inspect "$model" --diffable --stats --hash
cp "$scratch/out" "$scratch/first"
expect 0 inspect "$scratch/b/other.gguf" --diffable --stats --hash --threads 3
cmp -s "$scratch/out" "$scratch/first" || fail "--diffable differs"
! grep -q "$scratch" "$scratch/first" || fail "--diffable shows a path"

# Values.
expect 0 inspect "$model" --tensor blk.0.attn_q.weight --head 5
prints "5 of 16384 values"
fits 0
expect 2 inspect "$model" --tensor nothing
one_line
expect 2 inspect "$model" --head 5
expect 2 inspect "$scratch/absent"
one_line
expect 2 inspect

# JSON as in the contract, for each container.
for what in "$model" "$models/bitnet/model.safetensors" "$models/llama-158"; do
    expect 0 inspect "$what" --json --stats --hash
    python3 - "$scratch/out" "$what" <<'PY' || fail "the JSON of $what is not as promised"
import json, sys
j = json.load(open(sys.argv[1]))
assert j["file"] == sys.argv[2]
assert {"file", "container", "gguf", "model", "metadata", "tensors", "warnings"} <= set(j)
assert {"architecture", "hidden_size", "intermediate_size", "layers", "heads", "kv_heads", "head_dim", "vocab_size",
        "context_length", "rope_theta", "rope_scaling", "quantization"} <= set(j["model"])
assert all({"type", "value"} <= set(v) for v in j["metadata"].values())
for t in j["tensors"]:
    assert {"name", "type", "type_id", "shape", "offset", "bytes", "bits_per_weight", "pack", "scale", "zeros",
            "fingerprint", "xxh3"} <= set(t)
    assert len(t["xxh3"]) == 32
if sys.argv[2].endswith(".gguf"):
    assert j["container"] == "gguf" and j["gguf"]["dialect"] == "bitnet" and j["gguf"]["endian"] == "little"
    assert j["metadata"]["tokenizer.ggml.tokens"]["n"] == 320 and len(j["metadata"]["tokenizer.ggml.tokens"]["value"]) == 64
    packed = [t for t in j["tensors"] if t["pack"]]
    assert len(packed) == 14 and all(t["type_id"] == 36 and 0.3 < t["zeros"] < 0.5 and len(t["fingerprint"]) == 32 for t in packed)
    assert [t["shape"] for t in j["tensors"] if t["name"] == "token_embd.weight"] == [[128, 320]]
elif sys.argv[2].endswith(".safetensors"):
    assert j["container"] == "safetensors" and j["gguf"] is None
else:
    assert j["container"] == "checkpoint" and j["model"]["layers"] >= 1 and j["metadata"]["hidden_size"]["value"] == 128
PY
done
expect 0 inspect "$model" --json
python3 -c 'import json, sys; assert all(t["zeros"] is t["xxh3"] is t["scale"] is None for t in json.load(open(sys.argv[1]))["tensors"])' \
    "$scratch/out" || fail "statistics without --stats"

# Any part of a split set shows the set.
"$BITCONV_BIN" convert "$models/bitnet" --outtype f16 --outfile "$scratch/split.gguf" --split-max-size 60K >/dev/null 2>&1
parts=("$scratch"/split-0*)
expect 0 inspect "${parts[1]}"
tr '\n' ' ' <"$scratch/out" >"$scratch/joined"
grep -qF "in ${#parts[@]} files" "$scratch/joined" || fail "the number of files is not shown"
fits 1
finish
