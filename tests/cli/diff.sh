#!/usr/bin/env bash
# diff from outside: exit status, widths, JSON, one changed byte found and named.
source "$BITCONV_SOURCE_DIR/tests/cli/lib.inc"
diff_models() { "$BITCONV_BIN" diff "$@"; }
cd "$scratch"
for type in i2_s f32 f16; do
    "$BITCONV_BIN" convert "$models/bitnet" --outtype $type --outfile $type.gguf >/dev/null 2>&1
done

# One model in several types.
for other in i2_s f32 f16; do
    expect 0 diff_models i2_s.gguf $other.gguf
    prints "24 the same"
    prints "equal"
    [ ! -s err ] || fail "stderr is not empty"
done
expect 1 diff_models i2_s.gguf f32.gguf --strict
one_line
prints "i2_s and F32: the same by value"

# Another model.
"$BITCONV_BIN" convert "$models/bitnet" --outtype i2_s --outfile named.gguf --name Other \
    --meta bitnet-b1.58.context_length=u32:77 >/dev/null 2>&1
expect 1 diff_models i2_s.gguf named.gguf
one_line
says "1 key differs"
prints "bitnet-b1.58.context_length"
prints "about the file, not the model"
awk 'length($0) > 80 { bad = 1 } END { exit bad }' out || fail "wider than 80 columns"
expect 1 diff_models i2_s.gguf named.gguf --quiet
[ ! -s out ] || fail "--quiet prints"

# One byte of the last tensor's data.
python3 - <<'PY'
data = bytearray(open("i2_s.gguf", "rb").read())
data[-40] ^= 1 # in front of the padding of the last tensor
open("bent.gguf", "wb").write(data)
PY
"$BITCONV_BIN" inspect i2_s.gguf --json >i.json
last=$(python3 -c 'import json; print(json.load(open("i.json"))["tensors"][-1]["name"])')
expect 1 diff_models i2_s.gguf bent.gguf --threads 3
says "1 tensor differs"
prints "$last"
expect 1 diff_models i2_s.gguf bent.gguf --json
python3 - "$last" <<'PY' || fail "the JSON of diff is not as promised"
import json, sys
j = json.load(open("out"))
assert j["a"] == "i2_s.gguf" and j["b"] == "bent.gguf" and j["equal"] is False
assert j["different_tensors"] == 1 and j["different_keys"] == 0 and j["metadata"] == []
changed = [t for t in j["tensors"] if t["verdict"] != "same"]
assert [t["name"] for t in changed] == sys.argv[1:], changed
assert changed[0]["by"] == "value" and changed[0]["different"] == 1 and changed[0]["max_difference"] > 0
assert sum(t["by"] == "fingerprint" and t["fingerprint_a"] == t["fingerprint_b"] is not None for t in j["tensors"]) >= 13
PY

# Checkpoints.
expect 0 diff_models "$models/bitnet" "$models/bitnet"
expect 1 diff_models "$models/bitnet" "$models/llama-158"
one_line
prints "tensors that differ"
awk 'length($0) > 80 { bad = 1 } END { exit bad }' <(tail -n +3 out) || fail "wider than 80 columns"

# What cannot be done.
expect 2 diff_models i2_s.gguf "$models/bitnet"
one_line
says "verify FILE --source DIR"
expect 2 diff_models i2_s.gguf absent.gguf
one_line
expect 2 diff_models i2_s.gguf
one_line
finish
