#!/usr/bin/env bash
# --report FILE of convert, inspect and verify: one self-contained page, complete and safe.
source "$BITCONV_SOURCE_DIR/tests/cli/lib.inc"
cd "$scratch"
holds() { grep -qF -- "$2" "$1" || fail "$1 lacks '$2'"; }
lacks() { ! grep -qE -- "$2" "$1" || fail "$1 holds '$2'"; }
count() { # count FILE TEXT WANTED
    local got
    got=$({ grep -oF -- "$2" "$1" || true; } | wc -l)
    [ "$got" = "$3" ] || fail "$1 has $got times '$2' instead of $3"
}

expect 0 "$BITCONV_BIN" convert "$models/bitnet" --outtype bitcos -o m.gguf --report c.html
prints "wrote c.html"
expect 0 "$BITCONV_BIN" inspect m.gguf --report i.html
prints "wrote i.html"
expect 0 "$BITCONV_BIN" inspect m.gguf --json --report j.html
python3 -m json.tool "$scratch/out" >/dev/null || fail "--json with --report is no JSON"
rm j.html
expect 0 "$BITCONV_BIN" verify m.gguf --source "$models/bitnet" --report v.html
linears=$("$BITCONV_BIN" inspect m.gguf --json | grep -c '"pack": "bitcos"')
for page in c.html i.html v.html; do
    holds "$page" '<!doctype html>'
    holds "$page" '</main></body></html>'
    # four charts; a cell of the heat map, a dot among the bits and one among the scales per tensor
    count "$page" '<svg ' 4
    count "$page" 'class="heat"' "$linears"
    count "$page" '<circle ' $((2 * linears))
    holds "$page" 'prefers-color-scheme:dark'
    holds "$page" 'name="viewport"'
    # nothing is fetched and nothing runs
    lacks "$page" '<script|<link|<img|<iframe|https?://|url\(|@import'
    lacks "$page" "$scratch"
    python3 - "$page" <<'PY' || fail "$page is not well nested"
import html.parser, sys
class Check(html.parser.HTMLParser):
    void = {"meta", "br"}
    def __init__(self):
        super().__init__()
        self.open = []
    def handle_starttag(self, tag, attributes):
        if tag not in self.void: self.open.append(tag)
    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag
check = Check()
check.feed(open(sys.argv[1], encoding="utf-8").read())
assert not check.open, check.open
PY
done
holds v.html 'every proof that was run passed'

# the numbers are those of the JSON report
fingerprint=$("$BITCONV_BIN" inspect m.gguf --hash --json | sed -n 's/^  "fingerprint": "\(.*\)".*/\1/p')
[ -n "$fingerprint" ] && holds v.html "$fingerprint"

# what is ternary nowhere has no heat map, and no false one
expect 0 "$BITCONV_BIN" inspect "$models/bitnet" --report dir.html
count dir.html 'class="heat"' 0
holds dir.html 'bytes by part of the model'

# a failed verification is reported, and is still a failure
cp m.gguf bad.gguf
printf '\377\377\377\377' | dd of=bad.gguf bs=1 seek=$(($(stat -c %s bad.gguf) - 400)) conv=notrunc 2>/dev/null
expect 1 "$BITCONV_BIN" verify bad.gguf --report bad.html
one_line
holds bad.html 'a proof failed'

# names from a file are text, not markup
expect 0 "$BITCONV_BIN" convert "$models/bitnet" --outtype f32 -o n.gguf --name '<script>alert(1)</script>&"' --quiet
expect 0 "$BITCONV_BIN" inspect n.gguf --report n.html
lacks n.html '<script'
holds n.html '&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;'

# an existing file is replaced only when asked for, and only when it is a page
expect 2 "$BITCONV_BIN" inspect m.gguf --report i.html
one_line
says 'exists already'
expect 0 "$BITCONV_BIN" inspect m.gguf --report i.html --force
expect 2 "$BITCONV_BIN" inspect m.gguf --report m.gguf --force
says 'no HTML page'
expect 0 "$BITCONV_BIN" verify m.gguf
expect 2 "$BITCONV_BIN" inspect m.gguf --report .
says 'is a folder'
expect 2 "$BITCONV_BIN" inspect m.gguf --report no/such/folder.html
one_line

# two outputs of a command are two files, however they are written: said before the work
ln -s not-yet.gguf link.gguf
mkdir sub
for other in two.gguf ./two.gguf sub/../two.gguf; do
    expect 2 "$BITCONV_BIN" convert "$models/bitnet" --outtype f32 -o two.gguf --report $other
    one_line
    says 'the same file for the report and another output'
done
expect 2 "$BITCONV_BIN" convert "$models/bitnet" --outtype f32 -o link.gguf --report not-yet.gguf --force
says 'the same file for the report and another output'
expect 2 "$BITCONV_BIN" verify m.gguf --manifest two.json --report ./two.json
says 'the same file for the report and another output'
for file in two.gguf not-yet.gguf two.json; do
    [ ! -e $file ] || fail "$file was written"
done
rm link.gguf
rmdir sub
no_litter . m.gguf n.gguf bad.gguf c.html i.html v.html dir.html bad.html n.html out err
finish
