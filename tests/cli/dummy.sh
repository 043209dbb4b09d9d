#!/usr/bin/env bash
# `dummy` from outside: folders and GGUFs of one model, what is refused, and that nothing is left behind.
source "$BITCONV_SOURCE_DIR/tests/cli/lib.inc"
export TMPDIR=$scratch/tmp
mkdir "$TMPDIR" "$scratch/w"
cd "$scratch/w"

# One model in all forms: the same trits, so the same fingerprint.
for form in "" --packed --baked; do
    expect 0 "$BITCONV_BIN" dummy --arch bitnet --layers 2 --hidden 256 --vocab 600 --name m $form -o "m$form" --json
    expect 0 "$BITCONV_BIN" convert "m$form" --outtype i2_s --outfile c.gguf --force --json
    grep -o '"fingerprint": "[0-9a-f]*"' "$scratch/out" | sort >"$scratch/fingerprints$form"
    expect 0 "$BITCONV_BIN" verify c.gguf --source "m$form"
done
cmp -s "$scratch/fingerprints--packed" "$scratch/fingerprints--baked" || fail "packed and baked differ"
[ -s "$scratch/fingerprints--packed" ] || fail "no fingerprints"

# Straight to GGUF: the bytes of the conversion, and no trace of the small files in between.
expect 0 "$BITCONV_BIN" dummy --arch bitnet --layers 2 --hidden 256 --vocab 600 --outtype bitcos -o m--packed.gguf
prints "parameters"
expect 0 "$BITCONV_BIN" convert m--packed --outtype bitcos --outfile c.gguf --force
cmp -s m--packed.gguf c.gguf || fail "the GGUF is not that of the folder"
no_litter "$TMPDIR"

# What is there stays, unless --force says otherwise and it is one of ours.
expect 2 "$BITCONV_BIN" dummy --arch bitnet --size 1M -o m
one_line
expect 2 "$BITCONV_BIN" dummy --arch bitnet --size 1M --outtype i2_s -o m--packed.gguf
one_line
expect 0 "$BITCONV_BIN" dummy --arch llama --size 1M -o m --force --shards 2
expect 0 "$BITCONV_BIN" inspect m
[ ! -e m/model.safetensors ] && [ -e m/model-00002-of-00002.safetensors ] || fail "the old folder is still there"
touch m/mine
expect 2 "$BITCONV_BIN" dummy --arch llama --size 1M -o m --force
says "mine"
no_litter . m m--packed m--baked m--packed.gguf c.gguf

# A dry run writes nothing and shows what would be there.
expect 0 "$BITCONV_BIN" dummy --arch bitnet --size 2B-4T --outtype i2_s -o x.gguf --dry-run
prints "2 412 820 480"
prints "\"intermediate_size\": 6912"
prints "blk.29.ffn_down.weight"
expect 0 "$BITCONV_BIN" dummy --arch mixtral --size 100B -o x --dry-run --json
prints '"experts": 8'
no_litter . m m--packed m--baked m--packed.gguf c.gguf
no_litter "$TMPDIR"

# More than the disk holds is noticed before anything is written.
expect 2 "$BITCONV_BIN" dummy --arch llama --size 1000B --packed -o x
one_line
says "space"
expect 2 "$BITCONV_BIN" dummy --arch llama --size 1000B --outtype i2_s -o x.gguf
one_line
says "space"
no_litter . m m--packed m--baked m--packed.gguf c.gguf

# Usage.
expect 2 "$BITCONV_BIN" dummy --size 1M -o x
says "--arch"
expect 2 "$BITCONV_BIN" dummy --arch bitnet --size 1M
says "-o PATH"
expect 2 "$BITCONV_BIN" dummy --arch bitnet --size 1M -o x --seed -1
says "--seed"
expect 2 "$BITCONV_BIN" dummy --arch bitnet --size 1M -o x --zeros lots
says "--zeros"
expect 2 "$BITCONV_BIN" dummy --arch bitnet --size 1M -o x.gguf --outtype i2_s --baked
says "--baked"
expect 2 "$BITCONV_BIN" dummy --arch bitnet --size 1M -o x.gguf --outtype q9
says "q9"
finish
