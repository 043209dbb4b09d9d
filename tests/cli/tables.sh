#!/usr/bin/env bash
# formats and archs from outside: widths, JSON, and every pack and family in its table.
source "$BITCONV_SOURCE_DIR/tests/cli/lib.inc"

narrow() { awk 'length($0) > 80 { print; bad = 1 } END { exit bad }' "$scratch/out" || fail "$1: wider than 80 columns"; }

expect 0 "$BITCONV_BIN" formats
narrow formats
for name in i2_s i2_s_64 tl1 tl2 bitcos t5 tq1_0 tq2_0 Q4_K IQ2_XXS NVFP4 PTQ1_0; do
    prints "$name "
done
prints "Hadamard"
expect 0 "$BITCONV_BIN" formats --packs
narrow "formats --packs"
! grep -q Q4_K "$scratch/out" || fail "--packs shows other types"
expect 0 "$BITCONV_BIN" formats --json
python3 - "$scratch/out" <<'PY' || fail "the JSON of formats is not as promised"
import json, sys
formats = {f["name"]: f for f in json.load(open(sys.argv[1]))["formats"]}
assert formats["i2_s"]["type_id"] == 36 and formats["i2_s"]["ternary"] and formats["i2_s"]["convert"]
assert formats["q4_k"] == {"name": "q4_k", "title": None, "type": "Q4_K", "type_id": 12, "type_id_rebased": None,
                           "dialects": "all", "kind": "blocks", "ternary": False, "block": 256, "block_bytes": 144,
                           "bits_per_weight": 4.5, "convert": False, "values": True, "refusal": None}
assert not formats["q4_2"]["values"] and formats["q4_2"]["bits_per_weight"] is None
PY

expect 0 "$BITCONV_BIN" archs
narrow archs
# Every family that README.md lists is there, with its classes.
sed -n '/^| family/,/^$/p' "$BITCONV_SOURCE_DIR/README.md" | grep -o '`[A-Za-z0-9]*`' | tr -d '`' | grep -E '(LM|Model)$' |
    while read -r class; do grep -q "$class" "$scratch/out" || echo "$class"; done >"$scratch/missing"
[ ! -s "$scratch/missing" ] || fail "archs lacks $(cat "$scratch/missing")"
expect 0 "$BITCONV_BIN" archs --json
python3 - "$scratch/out" <<'PY' || fail "the JSON of archs is not as promised"
import json, sys
archs = {a["name"]: a for a in json.load(open(sys.argv[1]))["archs"]}
assert {c["name"] for c in archs["qwen3"]["classes"]} >= {"Qwen3Model", "Qwen3ForCausalLM"}
assert [c["backbone"] for c in archs["qwen3"]["classes"] if c["name"] == "Qwen3Model"] == [True]
assert archs["bitnet"]["ternary_class"] and archs["gemma3"]["norm_plus_one"]
assert archs["bert"]["encoder"] and archs["lfm2"]["conv_layers"] and archs["phi3"]["longrope"]
assert not archs["qwen2"]["encoder"] and not archs["llama"]["conv_layers"]
PY
expect 2 "$BITCONV_BIN" formats x
one_line
expect 2 "$BITCONV_BIN" archs x
one_line
finish
