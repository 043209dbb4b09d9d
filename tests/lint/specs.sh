#!/usr/bin/env bash
# Every pack in formats/registry.c has its spec, its packer and its independent reader; every container
# its spec; and formats/README.md names them all.
set -euo pipefail
cd "$BITCONV_SOURCE_DIR/formats"

bad=0
packs=$(grep -o '&bc_format_[a-z0-9_]*' registry.c | sed 's/&bc_format_//')
[ -n "$packs" ] || { echo "no rows found in registry.c"; exit 1; }
for pack in $packs; do
    stem=${pack%_64}
    for file in "$pack.md" "$stem.c" "${stem}_ref.c"; do
        [ -e "$file" ] || { echo "$pack: formats/$file is missing"; bad=1; }
    done
done
for spec in *.md; do
    [ "$spec" = README.md ] || grep -q "$spec" README.md || { echo "formats/README.md does not name $spec"; bad=1; }
done
exit $bad
