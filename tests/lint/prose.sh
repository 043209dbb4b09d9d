#!/usr/bin/env bash
# No words that mark unfinished work in the sources, an SPDX line and a purpose in each, nothing too long, no
# document named that is not here.
set -euo pipefail
cd "$BITCONV_SOURCE_DIR"
bad=0
if git ls-files -co --exclude-standard 'src/*.[ch]' 'formats/*.[ch]' 'tools/*' 'include/*.h' |
    xargs grep -nIwiE 'TODO|FIXME|XXX|HACK'; then
    echo "finish it or describe it in an issue"
    bad=1
fi
for file in $(git ls-files -co --exclude-standard '*.[ch]'); do
    head -n 1 "$file" | grep -q 'SPDX-License-Identifier: MIT' || { echo "$file: no SPDX line"; bad=1; }
    sed -n 2p "$file" | grep -q '^ \* .' || { echo "$file: no line of purpose under the SPDX line"; bad=1; }
    lines=$(wc -l <"$file")
    case "$file" in tests/*) limit=1200 ;; *) limit=700 ;; esac
    [ "$lines" -le "$limit" ] || { echo "$file: $lines lines, more than $limit"; bad=1; }
done
# Comments send the reader only to documents that are here (NAME.md: any pack's).
for document in $(git ls-files -co --exclude-standard '*.[ch]' | xargs grep -ohP '(?<![%\w])\w+\.md\b' | sort -u); do
    [ "$document" = NAME.md ] || [ -n "$(git ls-files -co --exclude-standard "$document" "*/$document")" ] ||
        { echo "$document: comments name it, but there is none"; bad=1; }
done
exit $bad
