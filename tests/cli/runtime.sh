#!/usr/bin/env bash
# embed, generate and bench FILE from outside: all families, formats for programs, streaming, refusals.
source "$BITCONV_SOURCE_DIR/tests/cli/lib.inc"
causal="bitnet bitnet-1bitllm bitnet-master gemma3-embed llama-158 llama-ternary mixtral qwen3-embed qwen2 phi3 lfm2"
cd "$scratch"

same() { cmp -s "$1" "$2" || fail "$1 and $2 differ: $3"; }

# Every family gives the same from the folder and from an F32 file, on any number of threads, by any instruction set.
for model in $causal bert; do
    "$BITCONV_BIN" convert "$models/$model" --outtype f32 --outfile "$model.gguf" -q
    expect 0 "$BITCONV_BIN" embed "$model.gguf" -p "the cat" "and the dog" --embd-output-format array --mode float
    mv out first
    expect 0 "$BITCONV_BIN" embed "$model.gguf" -t 3 --cpu scalar "the cat" "and the dog" --embd-output-format array --mode float
    same first out "embeddings of $model by another instruction set"
    expect 0 "$BITCONV_BIN" embed "$models/$model" "the cat" "and the dog" --embd-output-format array --mode float
    same first out "embeddings of $model from the folder"
    [ "$model" != bert ] || continue
    expect 0 "$BITCONV_BIN" generate "$model.gguf" -p "the cat" -n 6 -c 32 --json
    mv out first
    expect 0 "$BITCONV_BIN" generate "$model.gguf" -p "the cat" -n 6 -c 32 --json --cpu scalar -t 1
    same first out "text of $model by another instruction set"
    expect 0 "$BITCONV_BIN" generate "$model.gguf" -p "the cat" -n 6 -c 32 --temp 0.9 --top-k 20 --top-p 0.9 --seed 5 --json
    mv out first
    expect 0 "$BITCONV_BIN" generate "$model.gguf" -p "the cat" -n 6 -c 32 --temp 0.9 --top-k 20 --top-p 0.9 --seed 5 --json -t 3
    same first out "drawn text of $model on other threads"
done
for more in "" --logits; do
    # shellcheck disable=SC2086
    expect 2 "$BITCONV_BIN" generate bert.gguf -p "the cat" $more
    says "attends in both directions"
    one_line
done

# Embeddings: what the formats hold, norms, poolings.
expect 0 "$BITCONV_BIN" embed "$models/qwen3-embed" -p "the cat" "and the dog" "the cat"
awk 'length($0) > 80 { print; bad = 1 } END { exit bad }' out || fail "wider than 80 columns"
prints "cosine similarity"
for n in -1 0 1 2 3; do
    for pooling in none mean cls last; do
        "$BITCONV_BIN" embed qwen3-embed.gguf -p "the cat" "and the dog" --pooling $pooling --embd-normalize $n \
            --embd-output-format json+ >"$pooling.$n"
    done
done
"$BITCONV_BIN" embed qwen3-embed.gguf -p "the cat" "and the dog" --json >details
"$BITCONV_BIN" embed qwen3-embed.gguf -p "the cat" "and the dog" --embd-output-format array >array
printf 'the cat\nand the dog\n\n"\n' >lines
printf '"the cat"\n"and the dog"\n""\n"\\""' >escaped
expect 0 "$BITCONV_BIN" embed qwen3-embed.gguf --file lines
mv out lines.out
expect 0 "$BITCONV_BIN" embed qwen3-embed.gguf --file escaped --escaped
same out lines.out "lines as they are and as JSON strings"
python3 - <<'PY' || fail "embeddings are not as promised"
import json, math
def close(a, b, tolerance=1e-5):
    return len(a) == len(b) and all(abs(x - y) <= tolerance * max(1, abs(y)) for x, y in zip(a, b))
raw = {p: [d["embedding"] for d in json.load(open(f"{p}.-1"))["data"]] for p in ("none", "mean", "cls", "last")}
ids = [d["ids"] for d in json.load(open("details"))["data"]]
tokens = raw["none"][:len(ids[0])], raw["none"][len(ids[0]):]
assert [len(t) for t in tokens] == [len(i) for i in ids]
for i in 0, 1:
    assert raw["cls"][i] == tokens[i][0] and raw["last"][i] == tokens[i][-1]
    assert close(raw["mean"][i], [sum(c) / len(c) for c in zip(*tokens[i])])
norms = {1: lambda v: sum(map(abs, v)), 2: lambda v: math.sqrt(sum(x * x for x in v)), 3: lambda v: sum(abs(x) ** 3 for x in v) ** (1 / 3)}
for p, rows in raw.items():
    for n, norm in norms.items():
        for got, row in zip(json.load(open(f"{p}.{n}"))["data"], rows):
            assert close(got["embedding"], [x / norm(row) for x in row])
    for got, row in zip(json.load(open(f"{p}.0"))["data"], rows):
        assert all(isinstance(x, int) for x in got["embedding"]) and max(map(abs, got["embedding"])) == 32760
        assert close(got["embedding"], [round(x / max(map(abs, row)) * 32760) for x in row], 1)
a, b = raw["last"]
matrix = json.load(open("last.2"))["cosineSimilarity"]
cosine = sum(x * y for x, y in zip(a, b)) / norms[2](a) / norms[2](b)
assert abs(matrix[0][1] - cosine) < 1e-5 and matrix[0][1] == matrix[1][0] and matrix[0][0] == 1
details = json.load(open("details"))
assert details["object"] == "list" and details["pooling"] == "last" and details["normalize"] == 2
assert [d["index"] for d in details["data"]] == [0, 1] and details["data"][1]["text"] == "and the dog"
assert json.load(open("array")) == [d["embedding"] for d in details["data"]]
lines = [json.loads(line) for line in open("lines.out")]
assert [line["text"] for line in lines] == ["the cat", "and the dog", "", '"'] and lines[3]["index"] == 3
assert [line.get("embedding") for line in lines[:2]] == [d["embedding"] for d in details["data"]]
PY

# High norms come close to the largest magnitude; none leaves the range of numbers.
expect 0 "$BITCONV_BIN" embed qwen3-embed.gguf -p "the cat" --embd-normalize 1000 --embd-output-format array
python3 -c 'import json; m = max(map(abs, json.load(open("out"))[0])); assert 0.99 < m < 1.001, m' || fail "the 1000-norm is lost"

# Lines end as on any system; the line of a string that is none is named.
printf 'the cat\r\nand the dog\r\n\r\n"' >dos
expect 0 "$BITCONV_BIN" embed qwen3-embed.gguf --file dos
same out lines.out "lines with carriage returns"
printf '"a"\n"b\\u0000"\n' >nul
expect 2 "$BITCONV_BIN" generate "$models/bitnet" --file nul --escaped -n 1
says "nul: text 2"

# int8 is what stands without --mode; ternary weights show the difference.
"$BITCONV_BIN" convert "$models/bitnet" --outtype i2_s --outfile i2_s.gguf -q
for mode in "" "--mode int8" "--mode float"; do
    # shellcheck disable=SC2086
    "$BITCONV_BIN" embed i2_s.gguf -p "the cat" $mode --embd-output-format array >"mode${mode##* }"
done
same mode modeint8 "int8 is the default"
cmp -s modeint8 modefloat && fail "int8 and float give the same"

# Text: batches equal single prompts, ids equal texts, logits begin with the token that is chosen.
printf 'the cat\nand the dog\n' >prompts
expect 0 "$BITCONV_BIN" generate i2_s.gguf --file prompts -n 5 --ignore-eos
mv out batch
expect 0 "$BITCONV_BIN" generate i2_s.gguf -p "the cat" -p "and the dog" -n 5 --ignore-eos --json
mv out single
expect 0 "$BITCONV_BIN" tokenize i2_s.gguf "the cat" --ids
ids=$(cat out)
expect 0 "$BITCONV_BIN" generate i2_s.gguf --tokens "$ids" -n 5 --ignore-eos --json
mv out by_ids
expect 0 "$BITCONV_BIN" generate i2_s.gguf -p "the cat" --logits --json
mv out logits
expect 0 "$BITCONV_BIN" generate i2_s.gguf -p "the cat" --logits --top-k 3
[ "$(wc -l <out)" = 4 ] || fail "--logits --top-k 3 has not three rows"
mv out table
"$BITCONV_BIN" generate i2_s.gguf -p "the cat" -n 5 --ignore-eos >text
python3 - <<'PY' || fail "texts are not as promised"
import json
batch = [json.loads(line) for line in open("batch")]
single = json.load(open("single"))
assert single["results"] == batch and single["family"] == "bitnet" and single["mode"] == "int8"
assert [r["index"] for r in batch] == [0, 1] and all(len(r["tokens"]) == 5 and r["stop"] == "length" for r in batch)
by_ids = json.load(open("by_ids"))["results"][0]
assert by_ids["tokens"] == batch[0]["tokens"] and by_ids["generated"] == batch[0]["generated"]
logits = json.load(open("logits"))["results"][0]
assert logits["top"][0]["id"] == batch[0]["tokens"][0] and len(logits["top"]) == 10
assert [c["logit"] for c in logits["top"]] == sorted(logits["logits"], reverse=True)[:10]
assert all(logits["logits"][c["id"]] == c["logit"] for c in logits["top"])
assert 0 < sum(c["probability"] for c in logits["top"]) < 1
assert [int(line.split()[0]) for line in open("table").readlines()[1:]] == [c["id"] for c in logits["top"][:3]]
assert open("text", "rb").read().decode("utf-8", "replace") == batch[0]["generated"] + "\n"
PY

# Text as it comes is the text that JSON has, but for what is no character.
python3 - "$BITCONV_BIN" <<'PY' || fail "streamed text is another one"
import json, subprocess, sys
command = [sys.argv[1], "generate", "i2_s.gguf", "-p", "caf\u00e9 \u20ac", "-n", "60", "--ignore-eos", "--temp", "3"]
whole = 0
for seed in range(6):
    stream = subprocess.run(command + ["--seed", str(seed)], capture_output=True, check=True).stdout
    once = json.loads(subprocess.run(command + ["--seed", str(seed), "--json"], capture_output=True, check=True).stdout)
    same = [text.replace("\ufffd", "") for text in (stream.decode("utf-8", "replace"), once["results"][0]["generated"] + "\n")]
    assert same[0] == same[1]
    whole += len(stream)
assert whole > 60
PY

# No tokens are none; numbers that are not are told what they may be.
expect 0 "$BITCONV_BIN" generate i2_s.gguf -p "the cat" -n 0 --json
prints '"tokens": []'
for number in -1 1000001 99999999999999999999 x ''; do
    expect 2 "$BITCONV_BIN" generate i2_s.gguf -p "the cat" "--n-predict=$number"
    says "is not a whole number from 0 to 1000000"
    one_line
done
expect 2 "$BITCONV_BIN" generate i2_s.gguf -p "the cat" --seed 2G
says "is not a whole number from 0 to 2^64 - 1"

# What is not finite has no results.
python3 - <<'PY'
import struct
data = bytearray(open("bitnet.gguf", "rb").read())
data[-128 * 4:] = struct.pack("<f", float("nan")) * 128
open("nan.gguf", "wb").write(data)
PY
for command in "embed" "generate" "generate --logits"; do
    # shellcheck disable=SC2086
    expect 2 "$BITCONV_BIN" $command nan.gguf -p "the cat"
    says "NaN, the first result that is not finite"
    one_line
done

# The end: of the text, of the context.
python3 - "$BITCONV_BIN" <<'PY' || fail "the end of the text is missed"
import json, subprocess, sys
def tokens(*more):
    run = subprocess.run([sys.argv[1], "generate", "i2_s.gguf", "-p", "the cat", "--json", *more], capture_output=True, check=True)
    return json.loads(run.stdout)["results"][0], run.stderr.decode()
eos = int(json.loads(subprocess.run([sys.argv[1], "inspect", "i2_s.gguf", "--json"], capture_output=True).stdout)
          ["metadata"]["tokenizer.ggml.eos_token_id"]["value"])
found = 0
for seed in range(200):
    more = ("-n", "20", "--temp", "2", "--seed", str(seed))
    free, _ = tokens(*more, "--ignore-eos")
    if eos not in free["tokens"]:
        continue
    ended, _ = tokens(*more)
    at = free["tokens"].index(eos)
    assert ended["tokens"] == free["tokens"][:at] and ended["stop"] == "stop"
    found += 1
    if found == 2:
        break
assert found > 0
full, said = tokens("-n", "100", "-c", "16", "--ignore-eos")
assert full["stop"] == "context" and full["n_prompt"] + len(full["tokens"]) == 17 and "context of 16 tokens is full" in said
PY

# A text that cannot be run does not stop a batch.
printf 'the cat\n%s\nand the dog\n' "$(printf 'the cat %.0s' {1..40})" >long
expect 2 "$BITCONV_BIN" generate i2_s.gguf --file long -n 2 -c 16
[ "$(wc -l <out)" = 3 ] || fail "a batch of three texts has not three lines"
prints 'does not fit into a context of 16'
expect 2 "$BITCONV_BIN" embed i2_s.gguf --file long -c 16
[ "$(grep -c '"embedding"' out)" = 2 ] || fail "two of three texts fit"
expect 2 "$BITCONV_BIN" embed i2_s.gguf -c 16 -p "$(sed -n 2p long)"
one_line
says "-c gives more"

# bench.
expect 0 "$BITCONV_BIN" bench i2_s.gguf "$models/bert" -p 4,8 -n 2 -t 1,2 -r 2
prints "| i2_s.gguf"
prints "read bandwidth"
expect 0 "$BITCONV_BIN" bench i2_s.gguf "$models/bert" -p 4,8 -n 2 -t 1,2 -r 2 --json
mv out bench.json
expect 0 "$BITCONV_BIN" bench i2_s.gguf -p 0 -n 2 -t 1 -r 1 --mode float --output csv
mv out bench.csv
python3 - <<'PY' || fail "the numbers of bench are not as promised"
import csv, json
bench = json.load(open("bench.json"))
assert [b["threads"] for b in bench["read_bandwidth"]] == [1, 2] and bench["repetitions"] == 2
tests = [(r["threads"], r["file"].split("/")[-1], r["test"], r["n_tokens"]) for r in bench["rates"]]
assert tests == [(t, m, k, n) for t in (1, 2) for m, k, n in (
    ("i2_s.gguf", "prompt", 4), ("i2_s.gguf", "prompt", 8), ("i2_s.gguf", "generation", 2), ("bert", "prompt", 4), ("bert", "prompt", 8))]
for r in bench["rates"]:
    rate = r["tokens_per_second"]
    assert 0 < rate["mean"] <= rate["best"] and rate["deviation"] >= 0
    if r["test"] == "generation":
        bound = bench["read_bandwidth"][r["threads"] - 1]["bytes_per_second"]["mean"] / r["weight_bytes"]
        assert abs(r["bound_share"] - rate["mean"] / bound) < 1e-6 * r["bound_share"]
    else:
        assert r["bound_share"] is None
rows = list(csv.DictReader(open("bench.csv")))
assert len(rows) == 1 and rows[0]["test"] == "generation" and rows[0]["mode"] == "float" and float(rows[0]["tokens_per_s"]) > 0
PY

# Refusals: one line each, and nothing on standard output.
refused() {
    local text=$1
    shift
    expect 2 "$BITCONV_BIN" "$@"
    one_line
    says "$text"
    [ ! -s "$scratch/out" ] || fail "output of a refusal: $*"
}
for command in embed generate; do
    refused "a GGUF or a folder was expected" $command
    refused "nothing to run" $command i2_s.gguf
    refused "only one of -p, --file and --tokens" $command i2_s.gguf -p a --tokens 1
    refused "--escaped says" $command i2_s.gguf -p a --escaped
    refused "is not a list of ids" $command i2_s.gguf --tokens 1,x
    refused "is not a list of ids" $command i2_s.gguf --tokens ""
    refused "999999999" $command i2_s.gguf --tokens 999999999
    refused "wanted float or int8" $command i2_s.gguf -p a --mode fp4
    refused "--cpu: " $command i2_s.gguf -p a --cpu mmx
    refused "context of 1000000 tokens" $command i2_s.gguf -p a -c 1000000
    refused "no-such.gguf" $command no-such.gguf -p a
    refused "no-such.txt" $command i2_s.gguf --file no-such.txt
    printf '{"a": 1}\n' >bad
    refused "line 1 is not a JSON string" $command i2_s.gguf --file bad --escaped
    head -c 3000 i2_s.gguf >cut.gguf
    refused "cut.gguf" $command cut.gguf -p a
done
refused "--pooling" embed i2_s.gguf -p a --pooling max
for n in -2 1.5 two 1001 nan ""; do refused "--embd-normalize" embed i2_s.gguf -p a --embd-normalize "$n"; done
refused "array, json or json+" embed i2_s.gguf -p a --embd-output-format xml
for t in -1 hot nan inf ""; do refused "--temp" generate i2_s.gguf -p a --temp "$t"; done
for p in 0 1.1 -0.5 x; do refused "--top-p" generate i2_s.gguf -p a --temp 1 --top-p "$p"; done
refused "--seed" generate i2_s.gguf -p a --seed -1
refused "--n-predict" generate i2_s.gguf -p a -n many
refused "a GGUF, a folder or --pack" bench
for p in , 1,,2 1,x 99999999 ""; do refused "numbers of tokens" bench i2_s.gguf -p "$p"; done
refused "numbers of threads" bench i2_s.gguf -t 1,no
refused "context" bench i2_s.gguf -p 1000000
refused "one number of threads" bench --pack -t 1,2
refused "at most" bench i2_s.gguf -t 5000
refused "md, csv or json" bench i2_s.gguf --output xml
finish
