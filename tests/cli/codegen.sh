#!/usr/bin/env bash
# codegen from outside: what it writes, that convert takes it, and what it refuses and why.
source "$BITCONV_SOURCE_DIR/tests/cli/lib.inc"
codegen() { "$BITCONV_BIN" codegen "$@"; }
mkdir "$scratch/work"
cd "$scratch/work"
mkdir out again

# Configurations as bitnet.cpp's generators write them, for the published models.
expect 0 codegen --shapes 3200x8640,3200x3200 --pack tl1 --BM 160,320 --BK 64,128 --bm 32,64 -o out
no_litter out kernel_config-tl1.ini bitconv_tl_kernels.h
cat >wanted.ini <<'INI'
[Kernels_0]
m = 3200
k = 8640
bm = 160
bk = 64
bmm = 32

[Kernels_1]
m = 3200
k = 3200
bm = 320
bk = 128
bmm = 64

INI
cmp wanted.ini out/kernel_config-tl1.ini || fail "the configuration is not as expected"

# The same bytes from the built-in tiles, from the configuration itself, and with shapes twice.
expect 0 codegen --shapes 3200x8640,3200x3200,3200x8640 --pack tl1 -o again/
prints "published"
cmp again/bitconv_tl_kernels.h out/bitconv_tl_kernels.h || fail "built-in tiles give another header"
expect 0 codegen --kernel-config wanted.ini --pack tl1 -o again --force --json
cmp again/bitconv_tl_kernels.h out/bitconv_tl_kernels.h || fail "the configuration gives another header"
cmp again/kernel_config-tl1.ini wanted.ini || fail "the configuration is not reproduced"
python3 - "$scratch/out" <<'PY' || fail "the JSON is not as promised"
import json, sys
report = json.load(open(sys.argv[1]))
assert report["files"] == ["again/kernel_config-tl1.ini", "again/bitconv_tl_kernels.h"], report
assert report["kernels"][0] == {"pack": "tl1", "m": 3200, "k": 8640, "BM": 160, "BK": 64, "bm": 32, "tile": "file",
                                "bytes": 3200 * 8640 // 4 + 32, "tensors": 0, "first": None}, report
assert report["warnings"] == []
PY

# The reference's own files are reproduced byte for byte.
for file in "${BITCONV_SHARED:-}"/golden/*/kernel_config-tl[12].ini; do
    [ -e "$file" ] || continue
    pack=${file##*-}
    expect 0 codegen --kernel-config "$file" --pack "${pack%.ini}" --ini golden.ini --force
    cmp golden.ini "$file" || fail "$file is not reproduced"
done

# Existing files stay unless told otherwise; nothing half-written appears.
expect 2 codegen --shapes 64x64 --pack tl1 -o out
one_line
cmp wanted.ini out/kernel_config-tl1.ini || fail "a refused call changed a file"
rm out/kernel_config-tl1.ini
expect 2 codegen --shapes 64x64 --pack tl1 -o out
no_litter out bitconv_tl_kernels.h

# A folder that is not there is made, with all its files or not at all.
expect 0 codegen --shapes 64x64 --pack tl1 -o made/
no_litter made bitconv_tl_kernels.h kernel_config-tl1.ini
prints "wrote made/kernel_config-tl1.ini"
expect 2 codegen --shapes 3x5 --pack tl1 -o unmade
[ ! -e unmade ] || fail "a folder was made for nothing"
expect 2 codegen --shapes 64x64 --pack tl1 -o nowhere/made
says "folder nowhere cannot be opened"
expect 2 bash -c "ulimit -f 1; '$BITCONV_BIN' codegen --shapes 64x64 --pack tl1 -o full"
[ ! -e full ] && [ -z "$(ls -A | grep partial)" ] || fail "a full disk leaves a folder"

# Text may go to standard output; nothing else does then.
expect 0 codegen --shapes 64x64 --pack tl1 --ini - --json
cmp -s "$scratch/out" made/kernel_config-tl1.ini || fail "--ini -: other bytes"
[ ! -e - ] || fail "a file called -"
expect 0 codegen --shapes 64x64 --pack tl1 --ini only.ini
expect 0 codegen --shapes 64x512 --header only.h
grep -q 'bitconv_tl1_gemv' only.h && grep -q 'bitconv_tl2_gemv' only.h || fail "only.h lacks a pack"
no_litter out bitconv_tl_kernels.h

# A model's own shapes: convert takes the configuration, and a header for the file has its tiles.
expect 0 codegen --model "$models/bitnet" --pack tl1 --BM 64,32 --BK 32,64 --bm 32,32 --ini model.ini
prints "given"
expect 0 "$BITCONV_BIN" convert "$models/bitnet" --outtype tl1 --kernel-config model.ini --outfile model.gguf
expect 0 codegen --model model.gguf --pack tl1 --ini stated.ini --json
grep -q '"tile": "stated"' "$scratch/out" || fail "the tiles that the file states were not taken"
[ ! -s "$scratch/err" ] || fail "a warning about a file that states its tiles"
expect 0 "$BITCONV_BIN" convert "$models/bitnet" --outtype tl1 --kernel-config model.ini --plain --outfile plain.gguf
expect 0 codegen --model plain.gguf --pack tl1 --ini unstated.ini
says "does not state the tile of its TL1 tensors of 128 x 128"
expect 0 codegen --model plain.gguf --pack tl1 --kernel-config model.ini --ini told.ini
[ ! -s "$scratch/err" ] || fail "a warning in spite of --kernel-config"
python3 - <<'PY' || fail "the file's tiles are not those of the configuration"
read = lambda path: sorted(open(path).read().replace("[Kernels_1]", "[Kernels_0]").split("[Kernels_0]"))
assert read("model.ini") == read("stated.ini"), (read("model.ini"), read("stated.ini"))
PY
expect 0 "$BITCONV_BIN" convert "$models/bitnet" --outtype f32 --outfile floats.gguf
expect 0 codegen --model floats.gguf --pack tl1 --ini floats.ini
expect 0 codegen --model "$models/bitnet" --pack tl1 --ini largest.ini
cmp <(sort floats.ini) <(sort largest.ini) || fail "GGUF and checkpoint have other shapes"
expect 0 "$BITCONV_BIN" convert "$models/bitnet" --outtype tl1 --outfile largest.gguf
expect 0 "$BITCONV_BIN" verify largest.gguf --kernel-config largest.ini
# TL2 with K below 256, which only a configuration allows.
expect 0 codegen --model "$models/bitnet" --pack tl2 --BM 64,64 --BK 96,96 --bm 32,32 --ini tl2.ini
expect 0 "$BITCONV_BIN" convert "$models/bitnet" --outtype tl2 --kernel-config tl2.ini --outfile tl2.gguf

# What does not fit, and why. Every shape is named.
refuses() {
    local text=$1
    shift
    expect 2 codegen --header refused.h "$@"
    says "$text"
    [ ! -e refused.h ] || fail "written in spite of: $text"
}
refuses "M % BM is not 0: M = 330 rows, BM = 64" --shapes 256x256,330x256 --pack tl1 --BM 64,64 --BK 64,64 --bm 32,32
refuses "K % BK is not 0: K = 250 columns" --shapes 64x250 --pack tl1 --BM 64 --BK 64 --bm 32
refuses "bm = 64, it must be 32" --shapes 64x512 --pack tl2 --BM 64 --BK 96 --bm 64
refuses "a tail of 40" --shapes 128x1000 --pack tl2 --BM 64 --BK 96 --bm 32
refuses "fewer than 256" --shapes 128x128 --pack tl2
refuses "no multiple of 32" --shapes 100x256 --pack both
refuses "the most whose sums fit 32 bits" --shapes 32x16777216 --pack tl1
refuses "not stacks of 3" --model "$models/mixtral" --pack tl1
refuses "2 shapes that do not fit" --shapes 128x128,33x512 --pack tl2
says "128 x 128: TL2: K = 128"
says "33 x 512: TL2: no BM fits"
expect 0 codegen --shapes 128x128,64x512 --pack tl2 --skip-misfits --header skipped.h
says "128 x 128: left out"
grep -q 64x512 skipped.h && ! grep -q 128x128 skipped.h || fail "--skip-misfits"
refuses "no shape fits" --shapes 128x128 --pack tl2 --skip-misfits

# Usage.
refuses "--BM, --BK and --bm have 1 numbers, --shapes has 2" --shapes 64x64,64x128 --BM 64 --BK 64 --bm 32
refuses "--bm has 1 numbers, --BM has 2" --shapes 64x64,64x128 --BM 64,64 --BK 64,64 --bm 32
refuses "--bm is missing" --shapes 64x64 --BM 64 --BK 64
refuses "1 tiles (BM, BK, bm) for 2 shapes of the model" --model "$models/bitnet" --pack tl1 --BM 64 --BK 64 --bm 32
refuses "two tiles for 64 x 64" --shapes 64x64,64x64 --pack tl1 --BM 64,32 --BK 64,64 --bm 32,32
for list in "" 64 64x 64x0 x64 64x64x64 64x64, -1x64 99999999999x64 64X64 "64x64 "; do
    refuses "is no list of ROWSxCOLUMNS" --shapes "$list"
done
refuses "is no list of numbers" --shapes 64x64 --BM 64x --BK 64 --bm 32
refuses "tl1, tl2 or both was expected" --shapes 64x64 --pack tl3
refuses "nothing to make kernels for"
refuses "both a model and shapes" --shapes 64x64 --model "$models/bitnet"
refuses "tiles were given as well" --shapes 64x64 --BM 64 --BK 64 --bm 32 --kernel-config wanted.ini
refuses "one pack" --shapes 64x512 --ini both.ini
refuses "one or the other was expected" --shapes 64x512 --pack tl1 -o out
refuses "no arguments were expected" 64x64
refuses "cannot be opened" --model nowhere.gguf
refuses "the same file" --shapes 64x64 --pack tl1 --ini refused.h
refuses "the same file" --shapes 64x64 --pack tl1 --ini ./refused.h
finish
