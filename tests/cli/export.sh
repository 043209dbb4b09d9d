#!/usr/bin/env bash
# export from outside: converting an export again gives the same file, for every bundled model and every type;
# no litter after refusals and signals; hostile metadata refused in one line.
source "$BITCONV_SOURCE_DIR/tests/cli/lib.inc"
cd "$scratch"

# convert -> export -> convert, the folder under the same name: the same bytes. $1 model, $2 type, then options of export.
round_trip() {
    local model=$1 type=$2
    shift 2
    rm -rf trip && mkdir trip
    "$BITCONV_BIN" convert "$models/$model" --outtype "$type" --outfile trip/a.gguf >log 2>&1 || return 1
    expect 0 "$BITCONV_BIN" export trip/a.gguf -o "trip/$model" "$@"
    expect 0 "$BITCONV_BIN" convert "trip/$model" --outtype "$type" --outfile trip/b.gguf
    cmp -s trip/a.gguf trip/b.gguf || {
        fail "$model $type: not the same file"
        "$BITCONV_BIN" diff trip/a.gguf trip/b.gguf --strict
    }
}
n=0
for model in $(ls "$models"); do
    case $model in bert) types="f32 f16 bf16" ;; *) types="i2_s tl1 bitcos t5 q2_0 f32 f16 bf16" ;; esac
    for type in $types; do
        round_trip "$model" $type && n=$((n + 1)) # what does not fit a pack (tl1 of mixtral) is passed over
    done
    round_trip "$model" q8_0 --dtype f32 && n=$((n + 1))
done
[ "$n" -ge 90 ] || fail "only $n round trips were possible"

# The same with more options of convert: exact scales beside blocks, tensors that do not fit the pack, and some left out.
with_options() { # model, options of convert
    local model=$1
    shift
    rm -rf trip && mkdir trip
    expect 0 "$BITCONV_BIN" convert "$models/$model" "$@" --outfile trip/a.gguf
    expect 0 "$BITCONV_BIN" export trip/a.gguf -o "trip/$model"
    expect 0 "$BITCONV_BIN" convert "trip/$model" "$@" --outfile trip/b.gguf
    cmp trip/a.gguf trip/b.gguf || fail "$model $*: not the same file"
}
for model in mixtral phi3 lfm2 bitnet-master; do
    with_options $model --outtype q2_0 --scale-tensor
done
with_options qwen3-embed --outtype tq2_0 --on-misfit f32
with_options qwen3-embed --outtype tq1_0 --scale-tensor --on-misfit f16
with_options mixtral --outtype i2_s --on-misfit f16
with_options llama-158 --outtype bitcos --keep 'blk.0.attn_v'
with_options bitnet --outtype i2_s --embd-type q8_0

# The configs of the families with rules of their own.
for model in phi3 lfm2; do
    "$BITCONV_BIN" convert "$models/$model" --outtype i2_s --outfile $model.gguf >log 2>&1
    expect 0 "$BITCONV_BIN" export $model.gguf -o out-$model
done
python3 - <<'PY' || fail "configs of phi3 and lfm2"
import json, os, struct
phi3, lfm2 = (json.load(open(f"out-{m}/config.json")) for m in ("phi3", "lfm2"))
source = json.load(open(os.environ["BITCONV_SOURCE_DIR"] + "/fixtures/models/phi3/config.json"))
assert phi3["rope_scaling"] == source["rope_scaling"], phi3["rope_scaling"]
assert phi3["original_max_position_embeddings"] == 1024 and phi3["pad_token_id"] is None
assert lfm2["layer_types"] == ["conv", "full_attention"] and lfm2["conv_L_cache"] == 3
assert lfm2["block_ff_dim"] == 128 and lfm2["block_auto_adjust_ff_dim"] is False and "hidden_act" not in lfm2
data = open("out-lfm2/model.safetensors", "rb").read()
header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
assert header["model.layers.0.conv.conv.weight"]["shape"] == [128, 1, 3]
types = {t["dtype"] for n, t in header.items() if n != "__metadata__"}
assert types == {"F32", "U8"}, types # one type of floats
PY

# Floats of a packed file: the values are those of the pack.
"$BITCONV_BIN" convert "$models/bitnet" --outtype i2_s --outfile i2_s.gguf >log 2>&1
for dtype in f32 f16 bf16; do
    expect 0 "$BITCONV_BIN" export i2_s.gguf -o "floats-$dtype" --dtype $dtype
done
"$BITCONV_BIN" convert floats-f32 --outtype i2_s --outfile again.gguf >log 2>&1
expect 0 "$BITCONV_BIN" diff i2_s.gguf again.gguf

# Shards.
mkdir sharded
expect 0 "$BITCONV_BIN" export i2_s.gguf -o sharded/bitnet --max-shard-size 32K
[ "$(ls sharded/bitnet/model-*-of-*.safetensors | wc -l)" -gt 2 ] || fail "no shards"
expect 0 "$BITCONV_BIN" convert sharded/bitnet --outtype i2_s --outfile sharded.gguf
cmp i2_s.gguf sharded.gguf || fail "sharded: not the same file"

# What is written.
expect 0 "$BITCONV_BIN" export i2_s.gguf -o json/ --json
python3 - <<'PY' || fail "the JSON of export is not as promised"
import json
j = json.load(open("out"))
assert j["class"] == "BitNetForCausalLM" and j["dtype"] == "packed" and j["n_shards"] == 1
assert {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"} <= set(j["files"])
packed = [t for t in j["tensors"] if t["dtype"] == "U8"]
scales = [t for t in j["tensors"] if t["name"].endswith(".weight_scale")]
assert len(packed) == len(scales) == 14 and all(t["dtype"] == "F32" and t["shape"] == [1] for t in scales)
q = json.load(open("json/config.json"))["quantization_config"]
assert q["quant_method"] == "bitnet" and q["linear_class"] == "autobitlinear" and q["quantization_mode"] == "offline"
PY
expect 0 "$BITCONV_BIN" export i2_s.gguf -o text --tensors
awk 'length($0) > 80 { bad = 1 } END { exit bad }' out || fail "wider than 80 columns"

# Folders that are there.
expect 2 "$BITCONV_BIN" export i2_s.gguf -o text
one_line
says "--force"
expect 0 "$BITCONV_BIN" export i2_s.gguf -o text --force
echo mine >text/notes.txt
expect 2 "$BITCONV_BIN" export i2_s.gguf -o text --force
one_line
says "notes.txt"
[ "$(cat text/notes.txt)" = mine ] || fail "a foreign file is gone"
mkdir empty
expect 0 "$BITCONV_BIN" export i2_s.gguf -o empty
expect 2 "$BITCONV_BIN" export i2_s.gguf -o absent/folder
one_line
expect 2 "$BITCONV_BIN" export i2_s.gguf -o i2_s.gguf
one_line

# What cannot be done, and leaves nothing behind.
mkdir box
"$BITCONV_BIN" convert "$models/llama-ternary" --outtype q8_0 --outfile q8_0.gguf >log 2>&1
refused() { # words that the message has; then the command
    local words=$1
    shift
    expect 2 "$BITCONV_BIN" export "$@"
    says "$words"
    [ -z "$(ls -A box)" ] || { fail "left behind: $(ls -A box)"; rm -rf box && mkdir box; }
}
refused "no ternary pack" q8_0.gguf -o box/x
refused "packed" q8_0.gguf -o box/x --dtype packed
refused "dtype" q8_0.gguf -o box/x --dtype f8
refused "checkpoint" "$models/bitnet" -o box/x
refused "absent.gguf" absent.gguf -o box/x
expect 2 "$BITCONV_BIN" export i2_s.gguf
one_line

# Hostile metadata and tensors: one thing wrong in each file.
python3 - <<'PY'
import struct

data = open("i2_s.gguf", "rb").read()

def change(name, old, new, count=1):
    assert data.count(old) >= 1 and len(old) == len(new), (name, data.count(old))
    open(f"bad-{name}.gguf", "wb").write(data.replace(old, new, count))

def key(name):
    return struct.pack("<Q", len(name)) + name.encode()

def value(name, kind, payload, new_payload):
    change(name.replace(".", "_"), key(name) + struct.pack("<I", kind) + payload,
           key(name) + struct.pack("<I", kind) + new_payload)

u32 = lambda n: struct.pack("<I", n)
value("bitnet-b1.58.block_count", 4, u32(2), u32(3))
fewer = key("bitnet-b1.58.block_count") + u32(4)
change("fewer_blocks", fewer + u32(2), fewer + u32(1))
value("bitnet-b1.58.attention.head_count", 4, u32(4), u32(5))
value("bitnet-b1.58.embedding_length", 4, u32(128), u32(256))
value("bitnet-b1.58.feed_forward_length", 4, u32(128), u32(0))
value("tokenizer.ggml.bos_token_id", 4, u32(276), u32(99999))
change("arch", b"\x0c\0\0\0\0\0\0\0bitnet-b1.58", b"\x0c\0\0\0\0\0\0\0bitnet-b9.99")
change("name", b"blk.1.attn_q.weight", b"blk.1.attn_z.weight", 9)
change("model", key("tokenizer.ggml.model") + struct.pack("<IQ", 8, 4) + b"gpt2",
       key("tokenizer.ggml.model") + struct.pack("<IQ", 8, 4) + b"gpt9")
change("pre", struct.pack("<Q", 9) + b"llama-bpe", struct.pack("<Q", 9) + b"llama-xyz")
types = data.index(key("tokenizer.ggml.token_type")) + len(key("tokenizer.ggml.token_type"))
open("bad-types.gguf", "wb").write(data[:types + 16] + u32(77) + data[types + 20:])
open("bad-types_kind.gguf", "wb").write(data[:types + 4] + u32(6) + data[types + 8:])
tokens = data.index(key("tokenizer.ggml.tokens")) + len(key("tokenizer.ggml.tokens")) + 16
open("bad-utf8.gguf", "wb").write(data[:tokens + 8] + b"\xff" + data[tokens + 9:])
second = data[tokens + 9 + 8:tokens + 9 + 9]
open("bad-twice.gguf", "wb").write(data[:tokens + 8] + second + data[tokens + 9:])
PY
for bad in bad-*.gguf; do
    refused "" "$bad" -o box/x
done
[ "$(ls bad-*.gguf | wc -l)" -ge 13 ] || fail "hostile files are missing"

# An illegal scale and an illegal code.
"$BITCONV_BIN" inspect i2_s.gguf --json >i.json
python3 - <<'PY'
import json, struct
data = bytearray(open("i2_s.gguf", "rb").read())
tensors = json.load(open("i.json"))["tensors"]
last = max(tensors, key=lambda t: t["offset"])
start = len(data) - (last["offset"] + (last["bytes"] + 31) // 32 * 32) # of the data section
t = next(t for t in tensors if t["pack"] == "i2_s")
n = 1
for d in t["shape"]: n *= d
at = start + t["offset"]
scale = at + n // 4
old = data[scale:scale + 4]
data[scale:scale + 4] = struct.pack("<f", float("nan"))
open("nan.gguf", "wb").write(data)
data[scale:scale + 4] = old
data[at] = 0xff
open("code.gguf", "wb").write(data)
PY
refused "scale" nan.gguf -o box/x
refused "code" code.gguf -o box/x

# Longrope without its lists, with one that is no divisor; a convolution in a layer of attention.
python3 - <<'PY'
phi3, lfm2 = open("phi3.gguf", "rb").read(), open("lfm2.gguf", "rb").read()
import struct
open("long-gone.gguf", "wb").write(phi3.replace(b"rope_factors_long", b"rope_factors_lung"))
one_and_more = struct.pack("<3f", 1.0, 1.25, 1.5)
assert phi3.count(one_and_more) == 1
open("long-zero.gguf", "wb").write(phi3.replace(one_and_more, struct.pack("<3f", 1.0, 0.0, 1.5)))
open("conv-there.gguf", "wb").write(lfm2.replace(b"blk.0.shortconv.conv", b"blk.1.shortconv.conv"))
PY
refused "rope_factors_long.weight: missing" long-gone.gguf -o box/x
refused "rope_factors_long.weight: value 1 is 0" long-zero.gguf -o box/x
refused "" conv-there.gguf -o box/x

# Where the folder may be: a slash behind the name, a full disk, no access, the file's own name.
expect 0 "$BITCONV_BIN" export i2_s.gguf -o box/x///
[ -s box/x/config.json ] || fail "a slash behind the name"
rm -rf box/x
(ulimit -f 64; trap '' XFSZ; expect 2 "$BITCONV_BIN" export i2_s.gguf -o box/x) || fail "a file that is too large"
[ -z "$(ls -A box)" ] || fail "a full disk leaves $(ls -A box)"
mkdir source && cp i2_s.gguf source/
expect 2 "$BITCONV_BIN" export source/i2_s.gguf -o source --force
[ -s source/i2_s.gguf ] || fail "the source is gone"
if [ "$(id -u)" != 0 ]; then
    cp i2_s.gguf unreadable.gguf && chmod 0 unreadable.gguf
    refused "unreadable.gguf" unreadable.gguf -o box/x
fi

# Signals in the middle: nothing is left, an old folder stays as it was.
python3 "$BITCONV_SOURCE_DIR/tests/cli/big_checkpoint.py" "$models/llama-ternary" big 400000
"$BITCONV_BIN" convert big --outtype f16 --outfile big.gguf >log 2>&1
for case in KILL:137 INT:130 TERM:143; do
    caught=0
    for delay in 0.02 0.05 0.1 0.2 0.4; do
        "$BITCONV_BIN" export big.gguf -o box/x >log 2>&1 &
        pid=$!
        sleep $delay
        kill -s "${case%:*}" $pid 2>/dev/null || true
        status=0
        wait $pid || status=$?
        [ "$status" != 0 ] || { rm -rf box/x; continue; }
        [ "$status" = "${case#*:}" ] || fail "SIG${case%:*}: exit $status"
        caught=$((caught + 1))
        [ ! -e box/x ] || fail "SIG${case%:*}: half a folder"
        # SIGKILL cannot be helped; the next export for the same name clears up.
        [ "${case%:*}" = KILL ] || [ -z "$(ls -A box)" ] || fail "SIG${case%:*} leaves $(ls -A box)"
    done
    [ "$caught" -gt 0 ] || fail "SIG${case%:*} never came in time"
    expect 0 "$BITCONV_BIN" export i2_s.gguf -o box/x
    [ "$(ls -A box)" = x ] || fail "a killed run's folder is still there: $(ls -A box)"
    rm -rf box/x
done
finish
