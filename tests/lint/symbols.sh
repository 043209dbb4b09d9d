#!/usr/bin/env bash
# Every global symbol of the library starts with bitconv_ or bc_, the shared library exports bitconv_ only,
# the family descriptors hold data and no code, and nothing writable is global.
set -euo pipefail
cd "$BITCONV_BUILD_DIR"

bad=0
report() { [ -z "$2" ] || { echo "$1: $2"; bad=1; }; }

# __odr_asan_gen_*, __asan_*, __start_/__stop_ come from the sanitizers.
globals=$(nm -g --defined-only libbitconv.a 2>/dev/null | awk 'NF == 3 {print $3}' |
    grep -vE '^(bitconv_|bc_|__odr_asan|__asan|__sanitizer|asan\.|_?__ubsan)' | tr '\n' ' ' || true)
report "global symbols without prefix" "$globals"

exported=$(nm -D --defined-only libbitconv.so | awk '{print $3}' |
    grep -vE '^(bitconv_|__odr_asan|__asan|__sanitizer|_edata|_end|__bss_start|_init|_fini)' | sed 's/@.*//' | sort -u | tr '\n' ' ' || true)
report "exported symbols that are not bitconv_" "$exported"

# Sanitizers add functions and writable data of their own to every object.
if ! grep -q '^BITCONV_SANITIZE:[A-Z]*=ON' CMakeCache.txt; then
    code=$(find . -path '*model/archs*' -name '*.o' -exec nm --defined-only {} + | awk '$2 ~ /^[tT]$/ {print $3}' | tr '\n' ' ')
    report "functions in family descriptors" "$code"
    # Constant tables of pointers live in .data.rel.ro; anything in .data or .bss can change.
    writable=$(find . -path '*bitconv_objects*' -name '*.o' | while read -r object; do
        objdump -h "$object" | awk -v o="$object" '$2 ~ /^\.(data|bss)(\..*)?$/ && $2 !~ /rel\.ro/ && $3 !~ /^0+$/ {print o ":" $2}'
    done | tr '\n' ' ')
    report "writable globals" "$writable"
fi
exit $bad
