#!/usr/bin/env bash
# Every command in the overview has a --help with usage, options and examples, in at most 80 columns, and
# README.md names the command.
set -euo pipefail
bad=0
commands=$("$BITCONV_BIN" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
[ -n "$commands" ] || { echo "no commands in the overview"; exit 1; }
for command in $commands; do
    help=$("$BITCONV_BIN" "$command" --help)
    for part in "usage: bitconv $command" "options:" "general:" "examples:"; do
        [ "$part $command" = "options: archs" ] && continue # which has none of its own
        grep -q "$part" <<<"$help" || { echo "$command --help: no '$part'"; bad=1; }
    done
    [ "$help" = "$("$BITCONV_BIN" help "$command")" ] || { echo "help $command differs from $command --help"; bad=1; }
    wide=$(awk 'length($0) > 80' <<<"$help")
    [ -z "$wide" ] || { echo "$command --help: wider than 80 columns: $wide"; bad=1; }
    grep -q "bitconv $command" "$BITCONV_SOURCE_DIR/README.md" || { echo "README.md does not show $command"; bad=1; }
done
exit $bad
