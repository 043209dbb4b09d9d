#!/usr/bin/env bash
# Odd usage: what is mistyped, missing, empty, "-", out of range or the wrong kind of thing is refused in one line
# that says what was wanted; nothing is overwritten that is an input or of another kind.
source "$BITCONV_SOURCE_DIR/tests/cli/lib.inc"
bitconv() { "$BITCONV_BIN" "$@"; }
cd "$scratch"
bitconv convert "$models/bitnet" --outtype i2_s -o m.gguf -q
mkdir folder
touch empty
printf 'the cat\nand the dog\r\n\nlast' >lines
refused() { # refused TEXT COMMAND...: exit 2, one line that holds TEXT
    local text=$1
    shift
    expect 2 bitconv "$@"
    one_line
    says "$text"
    [ ! -s out ] || fail "a refusal prints results: $*"
}

# Mistyped words: the nearest one, and none where none is near.
refused "unknown command 'conver': did you mean convert?" conver x
refused "unknown command 'frobnicate' (try" frobnicate
refused "unknown command 'inspct': did you mean inspect?" help inspct
refused "unknown option '--outtyp': did you mean --outtype?" convert x --outtyp i2_s
refused "unknown option '--jsno': did you mean --json?" inspect m.gguf --jsno
refused "unknown option '--zzz' (try" inspect m.gguf --zzz
refused "unknown option '-y' (try" inspect m.gguf -y
refused "did you mean i2_s?" convert "$models/bitnet" --outtype i2s
refused "did you mean tq1_0?" repack m.gguf --outtype tq1-0 -o x.gguf
refused "did you mean bitcos?" convert "$models/bitnet" --outtype auto --auto-packs bitcso -o x.gguf
refused "did you mean llama.cpp?" convert "$models/bitnet" --outtype f16 --target llama-cpp -o x.gguf
refused "did you mean llama?" dummy --arch lama --size 1M -o x
refused "did you mean i2_s?" bench --pack i2s
refused "did you mean blk.0.attn_q.weight?" inspect m.gguf --tensor blk.0.atn_q.weight
expect 2 bitconv convert "$models/bitnet" --outtype q5_k_m
! grep -q "did you mean" err || fail "q5_k_m is near to nothing"

# Missing and empty values; the name of an option is no value unless it is said to be one.
refused "--outtype needs a value (T)" convert x --outtype
refused "--outtype needs a value (T)" convert x --outtype --json
refused "--threads needs a value (N)" inspect m.gguf --threads
refused "--outfile: the name is empty" convert "$models/bitnet" --outtype i2_s -o ""
refused "empty path" inspect ""
refused "empty path" convert "" --outtype i2_s
refused "empty path" verify m.gguf --source ""
expect 0 bitconv tokenize m.gguf "--" --ids
expect 0 bitconv generate m.gguf --prompt=--json -n 1
expect 0 bitconv repack m.gguf --outtype t5 -o=equal.gguf
[ -s equal.gguf ] || fail "-o=FILE"
refused "--quiet takes no value ('v')" inspect m.gguf -q=v
refused "unknown option '-qx'" inspect m.gguf -qx
refused "--outfile needs a value" convert "$models/bitnet" --outtype i2_s -fo
expect 0 bitconv repack m.gguf --outtype t5 -qfoequal.gguf
[ -s "$scratch/out" ] && fail "-qfoFILE is not quiet"
refused "no command given" --threads 2
refused "no command given" -q

# Numbers.
for number in -1 1.5 x "" 1000001; do
    refused "not a whole number from 0 to 1000000" inspect m.gguf --threads "$number"
done
expect 0 bitconv inspect m.gguf --threads 0
refused "did you mean i2_s?" convert "$models/bitnet" --outtype I2_S
refused "from 1 to 1000000" sparse calibrate m.gguf -p a -o x.gguf --rank 0
refused "from 1 to 1000000" dummy --arch bitnet --layers 0 --hidden 64 -o x
refused "from 1 to 1000000" bench --pack i2_s -r 0
refused "is not a size" bench --pack i2_s --rows 0
refused "is not a size" convert "$models/bitnet" --outtype i2_s -o x.gguf --split-max-size 0
refused "is not a size" inspect m.gguf --tensor blk.0.attn_q.weight --head 0
refused "--temp" generate m.gguf -p a --temp -1

# Things of the wrong kind, or too many of them.
refused "is a folder, a file was expected" repack folder --outtype t5 -o x.gguf
refused "is a file, a checkpoint folder" convert m.gguf --outtype i2_s -o x.gguf
refused "is a file, a checkpoint folder" verify m.gguf --source m.gguf
refused "holds no config.json" inspect folder
refused "is empty" inspect empty
refused "is a folder, a file was expected" tokenize m.gguf --file folder
refused "2 given" inspect m.gguf m.gguf
refused "2 given" convert "$models/bitnet" "$models/bitnet" --outtype i2_s
refused "--report" convert "$models/bitnet" --outtype i2_s --check --report x.html
if [ "$(id -u)" = 0 ]; then
    cp m.gguf secret.gguf
    chmod 000 secret.gguf
    chmod 755 .
    cp "$BITCONV_BIN" tool
    for command in inspect verify "repack --outtype t5 -o /dev/null" bench "export -o x"; do
        # shellcheck disable=SC2086
        expect 2 setpriv --reuid 65534 --regid 65534 --clear-groups ./tool $command secret.gguf
        one_line
        says "ermission denied"
    done
    rm -f secret.gguf tool
fi

# "-": text is read from standard input, and nothing is written to a file of that name.
for command in "tokenize m.gguf --ids" "embed m.gguf" "generate m.gguf -n 3"; do
    # shellcheck disable=SC2086
    expect 0 bitconv $command --file lines
    mv out wanted
    # shellcheck disable=SC2086
    bitconv $command --file - <lines >got || fail "$command --file -"
    cmp -s got wanted || fail "$command --file -: another result than from the file"
    # shellcheck disable=SC2086
    cat lines | bitconv $command --file /dev/stdin >got || fail "$command: a pipe"
    cmp -s got wanted || fail "$command: another result from a pipe"
done
expect 0 bitconv sparse calibrate m.gguf --prompts lines -o by_file.gguf
bitconv sparse calibrate m.gguf --prompts - -o by_stdin.gguf <lines >got || fail "sparse --prompts -"
cmp -s by_file.gguf by_stdin.gguf || fail "sparse --prompts -: another predictor"
refused "standard input: no texts" sparse calibrate m.gguf --prompts - -o x.gguf
refused "cannot both be standard input" sparse calibrate m.gguf --prompts - --eval - -o x.gguf
printf 'no JSON\n' | bitconv tokenize m.gguf --file - --escaped >got 2>err && fail "bad JSON from standard input"
says "standard input: text 1"
# Lines are answered as they come, not when the input ends.
mkfifo questions
bitconv tokenize m.gguf --ids --file questions >answers &
reader=$!
exec 3>questions
printf 'the cat\n' >&3
for _ in $(seq 100); do [ ! -s answers ] || break; sleep 0.1; done
exec 3>&-
wait $reader || fail "reading from a FIFO"
[ "$(wc -l <answers)" = 1 ] || fail "a line of a FIFO had no answer"
for command in "tokenize m.gguf --file" "sparse calibrate m.gguf -o x.gguf --prompts"; do
    for input in - questions; do
        # shellcheck disable=SC2086
        expect 130 timeout --preserve-status -s INT 1 bash -c "exec '$BITCONV_BIN' $command $input < <(sleep 3)"
        says interrupted
    done
done
for command in "convert $models/bitnet --outtype i2_s -o" "repack m.gguf --outtype t5 -o" "export m.gguf -o" "inspect m.gguf --report" \
    "verify m.gguf --report" "verify m.gguf --manifest" "dummy --arch bitnet --size 1M -o" "sparse calibrate m.gguf -p a -o" \
    "codegen --shapes 64x64 -o" "convert $models/bitnet --outtype i2_s -o x.gguf --report"; do
    # shellcheck disable=SC2086
    refused "'-' would be standard output" $command -
done
[ ! -e - ] && [ ! -e x.gguf ] || fail "something was written by a refused command"

# No input is overwritten, and no file of another kind by a report or a manifest.
cp m.gguf kept.gguf
cp -r "$models/bitnet" checkpoint
refused "is the same file as the input" repack m.gguf --outtype t5 -o m.gguf --force
refused "is the same file as the input" sparse calibrate m.gguf -p a -o m.gguf --force
refused "is the same file as the input" sparse calibrate m.gguf --prompts lines -o lines --force
refused "is the same file as the input" sparse calibrate checkpoint -p a -o checkpoint/model.safetensors --force
refused "is the same file as the input" codegen --model m.gguf --pack tl1 --header m.gguf --force
refused "is the same file as the input" codegen --model checkpoint --pack tl1 --header checkpoint/config.json --force
refused "is no HTML page" inspect m.gguf --report m.gguf --force
refused "is no manifest" verify m.gguf --manifest m.gguf --force
cmp -s m.gguf kept.gguf || fail "the model was changed"
diff -r checkpoint "$models/bitnet" >/dev/null || fail "the checkpoint was changed"
refused "the same file for the report" convert "$models/bitnet" --outtype i2_s -o both --report ./both --force
[ ! -e both ] || fail "both was written"
# the name that convert finds for itself is known only afterwards
cp -r "$models/bitnet" named
chmod -R u+w named
made=$(bitconv convert named --outtype i2_s --json --quiet | sed -n 's/^  "output": "\(.*\)",$/\1/p')
rm "$made"
expect 2 bitconv convert named --outtype i2_s --report "$made" --force
says "is no HTML page"
expect 0 bitconv verify "$made"

# Where something cannot be written is said before the work.
refused "folder nowhere cannot be opened" convert "$models/bitnet" --outtype i2_s -o y.gguf --report nowhere/r.html
[ ! -e y.gguf ] || fail "the work was done before the report was refused"
refused "folder nowhere cannot be opened" verify m.gguf --manifest nowhere/m.json
refused "is a folder" verify m.gguf --manifest folder
refused "folder nowhere cannot be opened" sparse calibrate m.gguf -p a -o nowhere/p.gguf

# --check: a document for "no" as well, with every reason; few lines for people.
"$BITCONV_BIN" dummy --arch bert --layers 3 --hidden 64 --ffn 96 --vocab 600 -o misfits -q
expect 1 bitconv convert misfits --outtype tq1_0 --check --json
python3 - out err <<'PY' || fail "--check --json: no"
import json, sys
j = json.load(open(sys.argv[1]))
assert j["source"] == "misfits" and j["outtype"] == "tq1_0" and j["ok"] is False and j["warnings"] == []
assert len(j["reasons"]) == 18 and all("misfit: TQ1_0" in r for r in j["reasons"]) and len(set(j["reasons"])) == 18
lines = open(sys.argv[2]).read().splitlines()
assert len(lines) == 7 and lines[5] == "bitconv: and 13 more (--verbose shows all)" and "18 tensors" in lines[6], lines
PY
expect 2 bitconv convert misfits --outtype tq1_0 -o x.gguf --verbose
[ "$(grep -c '^bitconv: blk' err)" = 18 ] || fail "--verbose does not show all"
"$BITCONV_BIN" dummy --arch bert --layers 1 --hidden 64 --ffn 96 --vocab 600 -o six -q
expect 1 bitconv convert six --outtype tq1_0 --check
[ "$(grep -c '^bitconv: blk' err)" = 6 ] && ! grep -q "more (" err || fail "a line stands for one finding"
expect 0 bitconv convert misfits --outtype f16 --check --json --quiet
python3 -c 'import json; j = json.load(open("out")); assert j["ok"] is True and j["reasons"] == [] and j["tensors"] and "output" not in j' || fail "--check --json: yes"
echo '{"architectures": ["NoSuchModel"]}' >misfits/config.json
expect 1 bitconv convert misfits --outtype f16 --check --json
python3 -c 'import json; j = json.load(open("out")); assert len(j["reasons"]) == 1 and "NoSuchModel" in j["reasons"][0]' || fail "one reason"
refused "cannot be opened as a folder" convert nowhere --outtype f16 --check --json

# Half a document is none; --quiet leaves the JSON, and else the exit status.
refused "does not fit" generate m.gguf -c 4 -p a -p "the cat and the dog and the cat" -n 1 --json
expect 0 bitconv verify m.gguf --quiet
[ ! -s out ] && [ ! -s err ] || fail "verify --quiet says something"
expect 1 bitconv verify m.gguf --source "$models/bitnet-master" --quiet
one_line
for command in "verify m.gguf" "diff m.gguf kept.gguf" "inspect m.gguf" "tokenize $models/bitnet --check-hash"; do
    # shellcheck disable=SC2086
    expect 0 bitconv $command --json --quiet
    python3 -m json.tool out >/dev/null || fail "no JSON: $command"
done
for wrong in "verify m.gguf --source $models/bitnet-master" "diff $models/bitnet $models/bitnet-master"; do
    # shellcheck disable=SC2086
    expect 1 bitconv $wrong --json
    python3 -m json.tool out >/dev/null || fail "no JSON for a difference: $wrong"
done

# Names in JSON: "file" is the model's path, "files" a list, counts begin with n_.
expect 0 bitconv generate m.gguf -p a -n 1 --json
python3 -c 'import json; assert json.load(open("out"))["file"] == "m.gguf"' || fail "generate: file"
expect 0 bitconv embed m.gguf -p a --json
python3 -c 'import json; assert json.load(open("out"))["file"] == "m.gguf"' || fail "embed: file"
expect 0 bitconv inspect m.gguf --json
python3 -c 'import json; assert json.load(open("out"))["gguf"]["n_files"] == 1' || fail "inspect: n_files"
expect 0 bitconv repack m.gguf --outtype t5 -o t5.gguf --json
python3 -c 'import json; assert json.load(open("out"))["n_files"] == 1' || fail "repack: n_files"
expect 0 bitconv tokenize m.gguf a --json
python3 -c 'import json; j = json.load(open("out")); assert j["vocab_size"] == 320 and "model" not in j' || fail "tokenize: vocab_size"

# What a float type rounds is told, and is what the values differ by.
bitconv convert "$models/bitnet-master" --outtype i2_s -o master.gguf -q
for outtype in f16 bf16 q8_0 f32; do
    expect 0 bitconv repack master.gguf --outtype $outtype -o float.gguf --force --json
    mv out report.json
    [ "$outtype" = f32 ] && [ ! -s err ] || grep -q "weights of 14 out of 14 ternary tensors stored as floats were rounded" err ||
        fail "$outtype: the rounding is not told"
    "$BITCONV_BIN" diff master.gguf float.gguf --json >diff.json 2>/dev/null || true
    python3 - <<'PY' || fail "$outtype: another loss than what is told"
import json
told = {t["name"]: t["scale_error"] for t in json.load(open("report.json"))["tensors"] if t["how"]}
found = {t["name"]: (t["max_difference"] or 0) / t["largest"] for t in json.load(open("diff.json"))["tensors"] if t["name"] in told and t["largest"]}
assert len(told) == 14
for name, error in told.items():
    measured = found.get(name, 0)
    assert abs(measured - error) < 1e-3 * error + 1e-9, (name, measured, error)
PY
done

finish
