#!/usr/bin/env bash
# fixtures/models is what the generator writes, byte for byte.
set -euo pipefail
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$BITCONV_BUILD_DIR/make_fixtures" "$out/models"
diff -r "$out/models" "$BITCONV_SOURCE_DIR/fixtures/models"
