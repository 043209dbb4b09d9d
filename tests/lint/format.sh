#!/usr/bin/env bash
# Sources are formatted with clang-format 14 (other versions lay out differently, so they do not judge).
set -euo pipefail
cd "$BITCONV_SOURCE_DIR"
version=$(clang-format --version 2>/dev/null | sed -n 's/.*version \([0-9]*\).*/\1/p')
[ "$version" = 14 ] || { echo "skipped: needs clang-format 14, found '${version:-none}'"; exit 77; }
git ls-files -co --exclude-standard '*.[ch]' | xargs clang-format --dry-run --Werror
