#!/usr/bin/env bash
# repack from outside: all pairs of packs over the fixtures, tables, JSON, outputs that must not be touched, pipes.
source "$BITCONV_SOURCE_DIR/tests/cli/lib.inc"
out=$scratch/out.gguf

# Converting to A and repacking to B is converting to B.
plain="i2_s i2_s_64 tl1 bitcos t5"
blocks="tq1_0 tq2_0 q2_0"
flag() { case $1 in *q?_0) echo --scale-tensor ;; esac; }
for model in bitnet llama-158 qwen3-embed mixtral; do
    mkdir "$scratch/$model"
    for pack in $plain $blocks; do
        # shellcheck disable=SC2046
        "$BITCONV_BIN" convert "$models/$model" --outtype "$pack" $(flag "$pack") --target bitnet --quiet \
            -o "$scratch/$model/$pack.gguf" 2>/dev/null || true
    done
    n=0
    for from in "$scratch/$model"/*.gguf; do
        for to in "$scratch/$model"/*.gguf; do
            pack=$(basename "$to" .gguf)
            # shellcheck disable=SC2046
            expect 0 "$BITCONV_BIN" repack "$from" --outtype "$pack" $(flag "$pack") -o "$out" --force --quiet
            cmp -s "$out" "$to" || fail "$model: $(basename "$from") to $pack differs from converting"
            n=$((n + 1))
        done
    done
    [ "$n" -ge 9 ] || fail "$model: only $n pairs"
done

# auto: the table, the JSON, and verify.
expect 0 "$BITCONV_BIN" repack "$scratch/bitnet/i2_s.gguf" --outtype auto -o "$out" --force
prints "entropy bound"
awk 'length($0) > 80 { print; bad = 1 } END { exit bad }' "$scratch/out" || fail "auto: wider than 80 columns"
expect 0 "$BITCONV_BIN" verify "$out" --source "$models/bitnet"
expect 0 "$BITCONV_BIN" repack "$scratch/bitnet/i2_s.gguf" --outtype auto -o "$out" --force --json
python3 - "$scratch/out" <<'PY' || fail "the JSON of repack is not as promised"
import json, math, sys
d = json.load(open(sys.argv[1]))
assert d["outtype"] == "auto" and d["target"] is None
packed = [t for t in d["tensors"] if t["pack"]]
assert len(packed) == 14
for t in packed:
    z = t["zeros"]
    assert t["pack"] in ("bitcos", "t5") and t["how"] == "i2_s" and t["relative_error"] == 0
    assert abs(t["entropy_bound"] + z * math.log2(z) + (1 - z) * math.log2((1 - z) / 2)) < 1e-9
PY

# inspect --stats: sizes of each pack, those of files that are really written.
expect 0 "$BITCONV_BIN" inspect "$scratch/bitnet/t5.gguf" --stats --tensors
prints "sizes in other packs"
awk 'length($0) > 80 { print; bad = 1 } END { exit bad }' "$scratch/out" || fail "stats: wider than 80 columns"
expect 0 "$BITCONV_BIN" inspect "$scratch/bitnet/t5.gguf" --stats --json
cp "$scratch/out" "$scratch/stats"
for pack in $plain q2_0; do
    expect 0 "$BITCONV_BIN" repack "$scratch/bitnet/t5.gguf" --outtype $pack -o "$out" --dry-run --force --json
    python3 - "$scratch/stats" "$scratch/out" $pack <<'PY' || fail "inspect --stats: size in $pack"
import json, sys
sizes = {t["name"]: t["stats"]["sizes"][sys.argv[3]] for t in json.load(open(sys.argv[1]))["tensors"] if t["pack"]}
assert sizes == {t["name"]: t["bytes"] for t in json.load(open(sys.argv[2]))["tensors"] if t["pack"]}
PY
done

# Outputs: an old one stays, the input is never overwritten, a dry run leaves nothing, a pipe gets the same bytes.
echo old >"$scratch/old.gguf"
expect 2 "$BITCONV_BIN" repack "$scratch/bitnet/t5.gguf" --outtype i2_s -o "$scratch/old.gguf"
one_line
[ "$(cat "$scratch/old.gguf")" = old ] || fail "an old output was touched"
cp "$scratch/bitnet/t5.gguf" "$scratch/in.gguf"
expect 2 "$BITCONV_BIN" repack "$scratch/in.gguf" --outtype i2_s -o "$scratch/in.gguf" --force
one_line
cmp -s "$scratch/in.gguf" "$scratch/bitnet/t5.gguf" || fail "the input was touched"
mkdir "$scratch/empty"
expect 0 "$BITCONV_BIN" repack "$scratch/in.gguf" --outtype i2_s -o "$scratch/empty/x.gguf" --dry-run
no_litter "$scratch/empty"
"$BITCONV_BIN" repack "$scratch/in.gguf" --outtype i2_s -o /dev/stdout --quiet | cat >"$scratch/piped"
cmp -s "$scratch/piped" "$scratch/bitnet/i2_s.gguf" || fail "a pipe gets other bytes"
expect 0 "$BITCONV_BIN" repack "$scratch/in.gguf" --outtype i2_s -o "$scratch/one" --threads 1 --cpu scalar
cmp -s "$scratch/one" "$scratch/bitnet/i2_s.gguf" || fail "one thread gives other bytes"

# Usage.
expect 2 "$BITCONV_BIN" repack "$scratch/in.gguf" --outtype i2_s
one_line
says "-o FILE"
expect 2 "$BITCONV_BIN" repack "$scratch/in.gguf" -o "$out"
one_line
expect 2 "$BITCONV_BIN" repack "$models/bitnet" --outtype i2_s -o "$out" --force
one_line
expect 2 "$BITCONV_BIN" repack "$models/bitnet/model.safetensors" --outtype i2_s -o "$out" --force
one_line
# Only q2_0's blocks divide these rows; what does not fit is said for every tensor.
expect 2 "$BITCONV_BIN" repack "$scratch/in.gguf" --outtype tq1_0 -o "$scratch/none.gguf"
says "blk.0.ffn_down.weight: misfit"
expect 0 "$BITCONV_BIN" repack "$scratch/qwen3-embed/t5.gguf" --outtype q2_0 -o "$out" --force
says "rounded to float16"
finish
