#!/usr/bin/env bash
# verify --forward from outside: every family in every type and pack, the options, JSON, the page.
source "$BITCONV_SOURCE_DIR/tests/cli/lib.inc"
bitconv() { "$BITCONV_BIN" "$@"; }
file=$scratch/model.gguf

# A proof of the last verify has that verdict.
verdict() { grep -qE "^  $1 +$2" "$scratch/out" || { fail "$1 is not '$2':"; cat "$scratch/out"; }; }

# tells TEXT: the report holds TEXT, however it is wrapped.
tells() { tr -s ' \n' ' ' <"$scratch/out" | grep -qF -- "$1" || { fail "the report lacks '$1':"; cat "$scratch/out"; }; }

# What a file computes is what its checkpoint computes, whatever it is stored as. Tensors that do not fit a pack are stored
# as floats; models of which none fits have no such file (unit.verify_forward has wider ones).
packs=$(bitconv formats --packs --json | python3 -c 'import json, sys; print(*(f["name"] for f in json.load(sys.stdin)["formats"]))')
[ "$(wc -w <<<"$packs")" -ge 10 ] || fail "no list of packs: $packs"
n=0
for family in $(ls "$models"); do
    for type in f32 f16 bf16 q8_0 $packs "tq2_0 --scale-tensor" "q2_0 --scale-tensor"; do
        for quant in auto absmean; do # not every fixture is ternary
            refusal=$(bitconv convert "$models/$family" --outtype $type --quant "$quant" --on-misfit f16 --outfile "$file" --force 2>&1 >/dev/null) && break
            quant=none
        done
        if [ "$quant" = none ]; then
            grep -q "would be" <<<"$refusal" || fail "$family as $type: $refusal"
            continue
        fi
        expect 0 bitconv verify "$file" --source "$models/$family" --quant "$quant" --forward
        verdict forward passed
        tells "equal to the checkpoint's bit for bit"
        n=$((n + 1))
    done
done
[ "$n" -ge 120 ] || fail "only $n files were made"

# The report: wrapped, every proof with its verdict; without a checkpoint the file alone.
bitconv convert "$models/bitnet" --outtype i2_s --outfile "$file" --force >/dev/null
expect 0 bitconv verify "$file"
for proof in forward kernels unquantized; do verdict $proof "not run"; done
prints "no --forward given"
expect 0 bitconv verify "$file" --forward --prompt "Hello, world"
verdict forward passed
verdict kernels passed
verdict unquantized "not run"
tells "of the prompt, float and int8"
python3 -c 'import sys; sys.exit(any(len(l.rstrip("\n")) > 80 for l in list(open(sys.argv[1], encoding="utf-8"))[1:]))' \
    "$scratch/out" || fail "the report is wider than 80 columns"
expect 0 bitconv verify "$file" --source "$models/bitnet" --forward --tokens 1,2,300
tells "3 tokens given"

# JSON has the distance as numbers.
expect 0 bitconv convert "$models/gemma3-embed" --outtype i2_s --outfile "$scratch/gemma.gguf"
expect 0 bitconv verify "$scratch/gemma.gguf" --source "$models/gemma3-embed" --forward --tolerance 0.5 --json
python3 - "$scratch/out" <<'PY' || fail "the JSON is not as promised"
import json, sys
j = json.load(open(sys.argv[1]))
proofs = {p["name"]: p for p in j["proofs"]}
assert all(proofs[n]["ok"] is True and proofs[n]["checked"] > 0 for n in ("forward", "kernels", "unquantized"))
d = j["distance"]
assert d["of"] == "embedding" and 0.01 < d["max_difference"] < 0.5 and 0.5 < d["cosine"] < 0.999
assert d["divergence"] is None and d["same_top1"] is None and d["tokens"] > 4
PY
expect 1 bitconv verify "$scratch/gemma.gguf" --source "$models/gemma3-embed" --forward --tolerance 1e-3
one_line
says "unquantized"
expect 0 bitconv verify "$file" --json
python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["distance"] is None' "$scratch/out" || fail "a distance was not measured"

# The page has the proofs.
expect 0 bitconv verify "$file" --source "$models/bitnet" --forward --report "$scratch/page.html"
grep -q "bit for bit" "$scratch/page.html" || fail "the page lacks the forward proof"

# Another model is exit 1, and the first difference is named; one that cannot be run as well.
expect 1 bitconv verify "$file" --source "$models/bitnet-master" --forward --json
python3 - "$scratch/out" <<'PY' || fail "another checkpoint computes the same"
import json, sys
proof = next(p for p in json.load(open(sys.argv[1]))["proofs"] if p["name"] == "forward")
assert proof["ok"] is False and "values differ" in proof["detail"], proof
PY

# Usage.
for wrong in "--prompt x" "--tokens 1" "--tolerance 1" "--forward --tolerance 1" "--forward --prompt x --tokens 1" \
    "--forward --tokens 1,,2" "--forward --tokens 1,x" "--forward --tokens -1" "--forward --tokens 99999999999" "--forward --tokens 320"; do
    expect 2 bitconv verify "$file" $wrong
    one_line
done
for wrong in -1 x nan inf ""; do
    expect 2 bitconv verify "$file" --source "$models/bitnet" --forward --tolerance "$wrong"
    one_line
done
expect 0 bitconv verify "$file" --forward --prompt "" # what the tokenizer puts around every text
tells "1 token of the prompt"
finish
