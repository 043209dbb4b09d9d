#!/usr/bin/env bash
# Corners of conversions that only show from outside: misfits proved again, tokenizer files that are there but
# cannot be read, option corners.
source "$BITCONV_SOURCE_DIR/tests/cli/lib.inc"
out=$scratch/out.gguf

# What does not fit the pack is stored as floats that are as good as packed, and verify expects just that.
for type in f16 f32 bf16; do
    expect 0 "$BITCONV_BIN" convert "$models/qwen3-embed" --outtype tl2 --on-misfit $type --outfile "$out" --force
    expect 0 "$BITCONV_BIN" verify "$out" --source "$models/qwen3-embed"
done
expect 0 "$BITCONV_BIN" convert "$models/mixtral" --outtype i2_s --on-misfit f16 --outfile "$out" --force
expect 0 "$BITCONV_BIN" verify "$out" --source "$models/mixtral"

# A tokenizer file that is no object, or cannot be looked at, is not an absent one.
cp -r "$models/bitnet" "$scratch/model"
echo '[1, 2]' >"$scratch/model/tokenizer_config.json"
expect 2 "$BITCONV_BIN" convert "$scratch/model" --outtype i2_s --outfile "$out" --force
says "tokenizer_config.json"
rm "$scratch/model/tokenizer_config.json"
ln -s tokenizer_config.json "$scratch/model/tokenizer_config.json"
expect 2 "$BITCONV_BIN" convert "$scratch/model" --outtype i2_s --outfile "$out" --force
says "tokenizer_config.json"
finish
