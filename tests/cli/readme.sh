#!/usr/bin/env bash
# Every "$ command" of README.md works as written, in its order, from the root of the sources.
source "$BITCONV_SOURCE_DIR/tests/cli/lib.inc"
mkdir "$scratch/bin" "$scratch/home"
ln -s "$BITCONV_BIN" "$scratch/bin/bitconv"
ln -s "$BITCONV_SOURCE_DIR/fixtures" "$scratch/home/fixtures"
cd "$scratch/home"
count=0
while IFS= read -r line; do
    count=$((count + 1))
    PATH="$scratch/bin:$PATH" expect 0 bash -c "$line"
done < <(sed -n '/^```console/,/^```$/s/^\$ //p' "$BITCONV_SOURCE_DIR/README.md")
[ "$count" -ge 10 ] || fail "only $count commands found"
finish
