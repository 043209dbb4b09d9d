#!/usr/bin/env bash
# Where output cannot go: a full disk, /dev/full, a limited file size, a read-only folder, an existing file,
# an input. Each is refused in one line with the old output intact and no litter.
source "$BITCONV_SOURCE_DIR/tests/cli/lib.inc"

mkdir "$scratch/dir"
out=$scratch/dir/model.gguf
convert() { "$BITCONV_BIN" convert "$models/bitnet" --outtype i2_s "$@"; }

# An existing file is kept without --force, replaced with it.
echo "old content" >"$out"
expect 2 convert --outfile "$out"
one_line
says "--force"
[ "$(cat "$out")" = "old content" ] || fail "the existing file was touched"
expect 0 convert --outfile "$out" --force
no_litter "$scratch/dir" model.gguf
cp "$out" "$scratch/good.gguf"

# A reader that has seen enough is no news: nothing is said, but it is not done either. A full device is.
python3 - "$BITCONV_BIN" "$scratch/good.gguf" <<'PY' || fail "a closed pipe is not passed over in silence"
import os, subprocess, sys
bitconv, model = sys.argv[1:]
for arguments in (["archs"], ["inspect", model], ["inspect", model, "--json"]):
    reading, writing = os.pipe()
    os.close(reading)
    run = subprocess.run([bitconv, *arguments], stdout=writing, stderr=subprocess.PIPE)
    assert run.returncode == 2 and run.stderr == b"", (arguments, run.returncode, run.stderr)
    os.close(writing)

# Nor is more computed than is read: the input has no end.
for arguments in (["tokenize", model], ["embed", model], ["generate", model, "-n", "2"]):
    lines = subprocess.Popen(["yes", "hello"], stdout=subprocess.PIPE)
    run = subprocess.Popen([bitconv, *arguments, "--file", "-"], stdin=lines.stdout, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)
    lines.stdout.close()
    assert run.stdout.readline().startswith(b"{"), arguments
    run.stdout.close()
    assert run.wait(timeout=60) == 2 and run.stderr.read() == b"", arguments
    lines.wait()
PY

# Same input, same bytes, whatever the number of threads.
for threads in 1 2 3 8; do
    expect 0 convert --outfile "$out" --force --threads "$threads"
    cmp -s "$out" "$scratch/good.gguf" || fail "--threads $threads gives other bytes"
done

# A limited address space: fewer threads than asked for, not a failure (sanitizers need far more of it).
if ! grep -q '^BITCONV_SANITIZE:[A-Z]*=ON' "$BITCONV_BUILD_DIR/CMakeCache.txt"; then
    expect 0 bash -c "ulimit -v 200000; '$BITCONV_BIN' convert '$models/bitnet' --outtype i2_s --outfile '$out' --force --threads 64"
    cmp -s "$out" "$scratch/good.gguf" || fail "a limited address space gives other bytes"
fi

expect 2 convert --outfile /dev/full
says "/dev/full"
expect 0 convert --outfile /dev/null

# ulimit -f counts kilobytes.
echo "old content" >"$out"
expect 2 bash -c "ulimit -f 20; '$BITCONV_BIN' convert '$models/bitnet' --outtype i2_s --outfile '$out' --force"
[ "$(cat "$out")" = "old content" ] || fail "ulimit -f: the old output is gone"
no_litter "$scratch/dir" model.gguf

# A folder that is not there, a folder as output, an input as output.
expect 2 convert --outfile "$scratch/absent/model.gguf"
one_line
says "$scratch/absent"
expect 2 convert --outfile "$scratch/dir"
one_line
cp -r "$models/bitnet" "$scratch/model"
cp "$scratch/model/model.safetensors" "$scratch/kept"
expect 2 "$BITCONV_BIN" convert "$scratch/model" --outtype i2_s --outfile "$scratch/model/model.safetensors" --force
says "model.safetensors"
cmp -s "$scratch/model/model.safetensors" "$scratch/kept" || fail "the input was overwritten"
ln "$scratch/model/model.safetensors" "$scratch/dir/hard.gguf"
expect 2 "$BITCONV_BIN" convert "$scratch/model" --outtype i2_s --outfile "$scratch/dir/hard.gguf" --force
cmp -s "$scratch/model/model.safetensors" "$scratch/kept" || fail "the input was overwritten through a link"
rm "$scratch/dir/hard.gguf"

# A read-only folder (root may write anywhere, so another user tries).
mkdir "$scratch/readonly"
echo "old content" >"$scratch/readonly/model.gguf"
chmod 0555 "$scratch/readonly"
chmod 0755 "$scratch"
if [ "$(id -u)" = 0 ]; then
    cp "$BITCONV_BIN" "$scratch/bitconv"
    cp -r "$models/bitnet" "$scratch/readable"
    chmod -R a+rX "$scratch/readable" "$scratch/bitconv"
    expect 2 setpriv --reuid 65534 --regid 65534 --clear-groups "$scratch/bitconv" convert "$scratch/readable" \
        --outtype i2_s --outfile "$scratch/readonly/model.gguf" --force
else
    expect 2 convert --outfile "$scratch/readonly/model.gguf" --force
fi
says "ermission denied"
[ "$(cat "$scratch/readonly/model.gguf")" = "old content" ] || fail "read-only folder: the old output is gone"
no_litter "$scratch/readonly" model.gguf

# A disk that is really full. The size is known beforehand, so it is refused before a byte is written; a
# disk that fills up later (stolen by another writer) fails in the middle.
mkdir "$scratch/disk"
if mount -t tmpfs -o size=64k bitconv-test "$scratch/disk" 2>/dev/null; then
    echo "old content" >"$scratch/disk/model.gguf"
    expect 2 convert --outfile "$scratch/disk/model.gguf" --force
    one_line
    says "space"
    [ "$(cat "$scratch/disk/model.gguf")" = "old content" ] || fail "full disk: the old output is gone"
    no_litter "$scratch/disk" model.gguf
    umount "$scratch/disk"
else
    echo "no right to mount: the full disk was not tried"
fi
finish
