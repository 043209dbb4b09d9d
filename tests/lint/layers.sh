#!/usr/bin/env bash
# Includes point one way: base -> io -> quant, formats -> model -> tokenizer -> convert, engine -> verify -> the tasks built
# on them -> tools. Every folder may include itself, the public headers, and the folders listed for it; header names are
# unique.
set -euo pipefail
cd "$BITCONV_SOURCE_DIR"

allowed() {
    case "$1" in
    include/bitconv) echo "bitconv" ;;
    src/base) echo "bitconv base" ;;
    src/io) echo "bitconv base io" ;;
    src/quant) echo "bitconv base quant" ;;
    formats) echo "bitconv base quant formats" ;;
    src/model) echo "bitconv base io quant formats model" ;;
    src/model/archs) echo "model" ;;
    src/tokenizer) echo "bitconv base io model tokenizer" ;;
    src/convert) echo "bitconv base io quant formats model tokenizer convert" ;;
    src/engine) echo "bitconv base io quant formats model engine" ;;
    src/verify) echo "bitconv base io quant formats model tokenizer engine verify" ;;
    src/bench) echo "bitconv base quant formats engine bench" ;;
    src/codegen) echo "bitconv base io quant formats model verify codegen" ;;
    src/dummy) echo "bitconv base io quant formats model convert dummy" ;;
    src/export) echo "bitconv base io quant formats model tokenizer verify export" ;;
    src/generate) echo "bitconv base model tokenizer engine generate" ;;
    src/repack) echo "bitconv base io quant formats model convert verify repack" ;;
    src/sparse) echo "bitconv base io quant formats model tokenizer engine sparse" ;;
    tools) echo "bitconv base tools" ;;
    *) echo "no rule for folder $1" >&2; return 1 ;;
    esac
}

bad=0
for file in $(git ls-files -co --exclude-standard 'src/*.[ch]' 'formats/*.[ch]' 'tools/*.[ch]' 'include/*.h'); do
    folder=$(dirname "$file")
    rules=$(allowed "$folder")
    for included in $(sed -n 's/^#include "\(.*\)".*/\1/p' "$file"); do
        top=${included%%/*}
        [ "$top" != "$included" ] || top=$folder # a bare name: the file's own folder
        case " $rules $folder " in
        *" $top "*) ;;
        *) echo "$file: must not include \"$included\""; bad=1 ;;
        esac
    done
done
# The independent readers share nothing with the packers but the contract.
for file in formats/*_ref.c; do
    [ -e "$file" ] || continue
    if grep -E '^#include "' "$file" | grep -vE '"(formats/format.h|base/bytes.h|formats/[a-z0-9_]*_ref.h)"'; then
        echo "$file: an independent reader may include only formats/format.h and base/bytes.h"
        bad=1
    fi
done
# One door each to the foreign libraries.
only() {
    local header=$1 home=$2 found
    found=$(git ls-files -co --exclude-standard 'src/*.[ch]' 'formats/*.[ch]' 'tools/*.[ch]' |
        xargs grep -lE "#include <(.*/)?$header>" | grep -vE "^($home)$" || true)
    [ -z "$found" ] || { echo "<$header> belongs in $home, not in: $found"; bad=1; }
}
only cJSON.h src/base/json.c
only xxhash.h src/base/digest.c
only zlib.h 'src/base/[a-z_]*.c'
only utf8proc.h src/base/unicode.c
only pcre2.h 'src/model/model_select.c|src/tokenizer/pattern.c'
names=$(git ls-files -co --exclude-standard '*.h' | xargs -n1 basename | sort | uniq -d)
[ -z "$names" ] || { echo "header names used twice: $names"; bad=1; }
exit $bad
