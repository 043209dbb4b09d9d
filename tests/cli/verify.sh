#!/usr/bin/env bash
# verify from outside: exit statuses, the report, its JSON, manifests.
source "$BITCONV_SOURCE_DIR/tests/cli/lib.inc"
verify() { "$BITCONV_BIN" verify "$@"; }
model=$scratch/model.gguf
"$BITCONV_BIN" convert "$models/bitnet" --outtype i2_s --outfile "$model" >/dev/null 2>&1

# Every proof is named, those not run with the reason.
expect 0 verify "$model"
for proof in structure metadata packs fingerprints floats source source-metadata manifest; do
    grep -qE "^  $proof +(passed|not run)" "$scratch/out" || fail "no verdict of $proof"
done
prints "no --source DIR given"
[ ! -s "$scratch/err" ] || fail "a good file writes to stderr"
# The path in the first line is as long as it is.
python3 -c 'import sys; sys.exit(any(len(l.rstrip("\n")) > 80 for l in list(open(sys.argv[1], encoding="utf-8"))[1:]))' \
    "$scratch/out" || fail "the report is wider than 80 columns"
expect 0 verify "$model" --source "$models/bitnet" --verbose
grep -qE '^  source +passed' "$scratch/out" || fail "the source proof did not pass"

# JSON as in the contract.
expect 0 verify --json "$model" --source "$models/bitnet"
python3 - "$scratch/out" <<'PY' || fail "the JSON is not as promised"
import json, sys
j = json.load(open(sys.argv[1]))
assert j["ok"] is True and {"file", "ok", "proofs", "tensors", "warnings"} <= set(j), set(j)
names = {p["name"]: p for p in j["proofs"]}
assert all({"name", "ok", "detail", "checked", "skipped"} <= set(p) for p in j["proofs"])
assert names["source"]["ok"] is True and names["source"]["checked"] == 24
assert names["manifest"]["ok"] is None
packed = [t for t in j["tensors"] if t["pack"] == "i2_s"]
assert len(packed) == 14 and all(len(t["fingerprint"]) == 32 and t["scale"] > 0 for t in packed)
PY

# A difference is exit 1 with one line that names the tensor; what cannot be read is exit 2.
expect 1 verify "$model" --source "$models/bitnet-master"
one_line
says "token_embd.weight: value"
expect 1 verify --json "$model" --source "$models/bitnet-master"
python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); assert j["ok"] is False and j["problems"]' "$scratch/out" ||
    fail "the JSON of a failed verification"
expect 2 verify "$scratch/absent.gguf"
one_line
expect 2 verify "$model" --source "$scratch"
expect 2 verify
expect 2 verify "$model" "$model"
expect 2 verify "$model" --quant sometimes --source "$models/bitnet"
one_line

# Another writer may have keys of its own, but not on what is computed.
stray=bitnet-b1.58.rope.scaling.type=str:yarn
"$BITCONV_BIN" convert "$models/bitnet" --outtype i2_s --plain --meta "$stray" --outfile "$scratch/stray.gguf" >/dev/null 2>&1
expect 1 verify "$scratch/stray.gguf" --source "$models/bitnet"
one_line
says "key bitnet-b1.58.rope.scaling.type"
expect 0 verify "$scratch/stray.gguf" --source "$models/bitnet" --meta "$stray"
"$BITCONV_BIN" convert "$models/bitnet" --outtype i2_s --plain --meta tokenizer.ggml.odd=u32:1 --meta x.y=u32:1 --force --outfile "$scratch/stray.gguf" >/dev/null 2>&1
expect 0 verify "$scratch/stray.gguf" --source "$models/bitnet"
prints "key tokenizer.ggml.odd: the checkpoint does not give it"
! grep -q "x.y" "$scratch/out" || fail "a key of no reader is shown without --verbose"
# Keys of the tokenizer may be more as long as no text gets other ids.
stray=tokenizer.ggml.add_sep_token=bool:false # what other converters write where it changes nothing
"$BITCONV_BIN" convert "$models/bitnet" --outtype i2_s --plain --meta "$stray" --force --outfile "$scratch/stray.gguf" >/dev/null 2>&1
expect 0 verify "$scratch/stray.gguf" --source "$models/bitnet"
stray=tokenizer.ggml.remove_extra_whitespaces=bool:true
"$BITCONV_BIN" convert "$models/mixtral" --outtype bitcos --plain --meta "$stray" --force --outfile "$scratch/stray.gguf" >/dev/null 2>&1
expect 1 verify "$scratch/stray.gguf" --source "$models/mixtral"
prints "tokenizer.*: a text becomes"

# A proof that was asked for and is not to be had is no success.
for asked in --forward "--source $models/bitnet"; do
    # shellcheck disable=SC2086
    expect 2 verify "$models/bitnet" $asked
    says "this is a checkpoint folder"
done

# Manifests.
expect 0 verify "$model" --manifest "$scratch/manifest.json"
prints "wrote $scratch/manifest.json"
python3 -m json.tool "$scratch/manifest.json" >/dev/null || fail "the manifest is no JSON"
cp "$model" "$scratch/renamed.gguf"
expect 0 verify "$scratch/renamed.gguf" --against "$scratch/manifest.json"
expect 2 verify "$model" --manifest "$scratch/manifest.json"
says "--force"
[ ! -s "$scratch/out" ] || fail "a path that cannot be written is refused after the proofs"
expect 0 verify "$model" --manifest "$scratch/manifest.json" --force
# --force is for manifests: no other file is lost to it, least of all the verified one.
cp -r "$models/bitnet" "$scratch/checkpoint"
ln -s model.gguf "$scratch/link"
for victim in model.gguf link checkpoint/config.json checkpoint/model.safetensors; do
    cp "$scratch/$victim" "$scratch/before"
    expect 2 verify "$model" --source "$scratch/checkpoint" --manifest "$scratch/$victim" --force
    one_line
    cmp -s "$scratch/before" "$scratch/$victim" || fail "--manifest has overwritten $victim"
done
: >"$scratch/empty.json"
expect 0 verify "$model" --manifest "$scratch/empty.json" --force
printf '\xff' | dd of="$scratch/renamed.gguf" bs=1 seek=100000 conv=notrunc status=none
expect 1 verify "$scratch/renamed.gguf" --against "$scratch/manifest.json"
one_line
python3 - "$scratch/manifest.json" >"$scratch/twice.json" <<'PY'
import json, sys
j = json.load(open(sys.argv[1]))
print(json.dumps({**j, "tensors": j["tensors"] + j["tensors"][:1]}))
PY
expect 2 verify "$model" --against "$scratch/twice.json"
one_line
says "occurs twice"
expect 2 verify "$model" --against "$models/bitnet/config.json"
one_line

# A split set is one file, whichever part is given.
"$BITCONV_BIN" convert "$models/bitnet" --outtype f16 --outfile "$scratch/split.gguf" --split-max-size 60K >/dev/null 2>&1
parts=("$scratch"/split-0*)
[ "${#parts[@]}" -gt 1 ] || fail "no split set was made"
expect 0 verify "${parts[1]}" --source "$models/bitnet"
expect 0 verify "$models/llama-158" # a checkpoint folder: structure and floats
prints "not run"
# Nothing in a plain file tells the layout of ARM builds from the usual one: it is the user who says it.
expect 0 "$BITCONV_BIN" convert "$models/bitnet" --outtype i2_s --i2s-layout 64 --plain --outfile "$scratch/arm.gguf"
expect 1 "$BITCONV_BIN" verify "$scratch/arm.gguf" --source "$models/bitnet"
expect 0 "$BITCONV_BIN" verify "$scratch/arm.gguf" --source "$models/bitnet" --i2s-layout 64
expect 0 "$BITCONV_BIN" inspect "$scratch/arm.gguf" --i2s-layout 64 --tensor blk.0.attn_q.weight --json
cp "$scratch/out" "$scratch/arm.json"
expect 0 "$BITCONV_BIN" convert "$models/bitnet" --outtype i2_s --outfile "$scratch/usual.gguf"
expect 0 "$BITCONV_BIN" inspect "$scratch/usual.gguf" --tensor blk.0.attn_q.weight --json
python3 - "$scratch/arm.json" "$scratch/out" <<'PY' || fail "the two layouts decode to different values"
import json, sys
a, b = (json.load(open(p)) for p in sys.argv[1:])
assert a["values"] == b["values"] and len(str(a["values"])) > 100
PY
expect 2 "$BITCONV_BIN" verify "$scratch/arm.gguf" --i2s-layout 96
finish
