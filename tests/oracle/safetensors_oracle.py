#!/usr/bin/env python3
"""Mutated safetensors files: bitconv accepts what the reference implementation accepts, but for the rules
in which formats/safetensors.md (section 7) says that it is stricter.

usage: safetensors_oracle.py BITCONV. Deterministic: every run tries the same files.
"""
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

try:
    from safetensors import deserialize
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

BITCONV = sys.argv[1]
CASES = 400
SIZES = {"BOOL": 1, "U8": 1, "I8": 1, "F8_E5M2": 1, "F8_E4M3": 1, "F8_E8M0": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2,
         "I32": 4, "U32": 4, "F32": 4, "F64": 8, "I64": 8, "U64": 8}
FOREIGN = {"F4", "F6_E2M3", "F6_E3M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "C64"}
rng = random.Random(20240607)


def reference_accepts(data):
    try:
        deserialize(data)
        return True
    except Exception:  # the binding's error classes differ between versions
        return False


class Duplicate(Exception):
    pass


def no_duplicates(pairs):
    if len({key for key, _ in pairs}) < len(pairs):
        raise Duplicate
    return dict(pairs)


def stricter_rule(data):
    """The rule of section 7 that a file accepted by the reference breaks, or None."""
    size = struct.unpack("<Q", data[:8])[0]
    text = data[8:8 + size].decode()
    if not text.startswith("{"):
        return "2.2"
    try:
        header = json.loads(text, object_pairs_hook=no_duplicates)
    except Duplicate:
        return "3.3"
    outside_strings = re.sub(r'"(\\.|[^"\\])*"', '""', text)
    if re.search(r"[-.]|[0-9][eE]", outside_strings):
        return "3.5"
    strings = [json.loads(s) for s in re.findall(r'"(?:\\.|[^"\\])*"', text)]
    if any("\0" in s for s in strings):
        return "3.4"
    for name, info in header.items():
        if name == "__metadata__":
            continue
        if not isinstance(info, dict):
            return "4, array"
        if info["dtype"] in FOREIGN:
            return "4, dtype"
        if any(x >= 2**53 for x in info["shape"] + info["data_offsets"]):
            return "4, 2^53"
    return None


def valid_entries():
    """(name, dtype, shape, begin, end) of a few tensors that tile their data, and its size."""
    entries, at = [], 0
    for name in rng.sample(["a", "b", "model.layers.0.w", "\u00e9", "", "x y", '"'], rng.randint(0, 5)):
        dtype = rng.choice(sorted(SIZES))
        shape = [rng.randint(0, 4) for _ in range(rng.choice([0, 1, 1, 2, 2, 2, 3, 9]))]
        size = SIZES[dtype]
        for dim in shape:
            size *= dim
        entries.append([name, dtype, shape, at, at + size])
        at += size
    rng.shuffle(entries)
    return entries, at


def text_of(entries):
    members = []
    if rng.random() < 0.3:
        members.append('"__metadata__":' + rng.choice(['{}', '{"format":"pt"}', '{"a":"1.5e-3","b":""}', 'null']))
    for name, dtype, shape, begin, end in entries:
        fields = ['"dtype":%s' % json.dumps(dtype), '"shape":%s' % json.dumps(shape), '"data_offsets":[%s,%s]' % (begin, end)]
        rng.shuffle(fields)
        members.append("%s:{%s}" % (json.dumps(name, ensure_ascii=rng.random() < 0.5), ",".join(fields)))
    rng.shuffle(members)
    return "{" + ",".join(members) + "}"


def mutate_entries(entries):
    """Changes that keep the text well-formed: to sizes, offsets, types."""
    if not entries:
        return
    e = rng.choice(entries)
    kind = rng.randrange(8)
    if kind == 0:
        e[1] = rng.choice(sorted(SIZES) + sorted(FOREIGN) + ["f32", "Q4", ""])
    elif kind == 1 and e[2]:
        e[2][rng.randrange(len(e[2]))] = rng.choice([0, 1, 7, 2**32, 2**53 - 1, 2**53 + 1, 2**64 - 1, 2**64, -1, 1.0, None, "1", [1]])
    elif kind == 2:
        e[2].append(rng.choice([0, 1, 2, 2**62]))
    elif kind == 3:
        e[3] = rng.choice([e[3] + 1, e[4], 0, -1, "1", 2**63, "%d.0" % e[3]])
    elif kind == 4:
        e[4] = rng.choice([e[4] + 1, e[3], 2**64 - 1, "%d,%d" % (e[4], e[4]), "null", "%de0" % e[4]])
    elif kind == 5:
        e[3], e[4] = e[4], e[3]
    elif kind == 6:
        entries.append([e[0], e[1], list(e[2]), e[3], e[4]])
    else:
        entries.remove(e)


def mutate_text(text):
    """Changes to the bytes of the header."""
    kind = rng.randrange(13)
    at = rng.randrange(len(text) + 1)
    if kind == 0:
        return text[:at] + text[at + 1:]
    if kind == 1:
        return text[:at] + bytes([rng.choice(b'{}[]",:0 \\\t\n\0\xff')]) + text[at:]
    if kind == 2:
        return text + rng.choice([b" ", b"    ", b"\n", b"\t", b"\0", b"x", b"{}"])
    if kind == 3:
        return rng.choice([b" ", b"\n", b"\xef\xbb\xbf"]) + text
    if kind == 4 and text:
        at = rng.randrange(len(text))
        return text[:at] + bytes([text[at] ^ 1 << rng.randrange(8)]) + text[at + 1:]
    if kind == 5:
        return text.replace(b'"shape"', rng.choice([b'"Shape"', b'"shape" ', b'"\\u0073hape"', b'"shape":[1],"shape"']), 1)
    if kind == 6:
        extra = rng.choice([b'"x":1', b'"x":{"y":[null,true]}', b'"x":-1.5', b'"x":"-1.5"', b'"x":1,"x":2', b'"x":' + b"[" * 140 + b"]" * 140])
        return text.replace(b'"dtype"', extra + b',"dtype"', 1)
    if kind == 7:
        return text.replace(b"{", b'{"__metadata__":' + rng.choice([b"{}", b"[]", b"1", b'{"a":1}', b'{"a":"b","a":"c"}', b'{"a":null}']) + b",", 1).replace(b",}", b"}")
    if kind == 8:
        return text.replace(b":{", b":[{", 1).replace(b"}", b"}]", 1)
    if kind == 9:
        return text.replace(b'"a"', rng.choice([b'"\\u0061"', b'"\\u0000"', b'"\\ud800"', b'"\\ud83d\\ude00"', b'"a\\/"', b'"\\x"']), 1)
    if kind == 10:
        match = re.search(rb'\{"dtype":("\w*"),"shape":(\[[0-9, ]*\]),"data_offsets":(\[[0-9,]*\])\}', text)
        return text if match is None else text[:match.start()] + b"[" + b",".join(match.groups()) + b"]" + text[match.end():]
    if kind == 11:
        return text.replace(b"[", b"[ ").replace(b",", b" ,\n")
    return text


def make_case():
    entries, data_size = valid_entries()
    steps = rng.choice([0, 1, 1, 1, 2])
    for _ in range(steps):
        if rng.random() < 0.5:
            mutate_entries(entries)
    text = text_of(entries).encode()
    if steps and rng.random() < 0.5:
        text = mutate_text(text)
    length = len(text)
    if steps and rng.random() < 0.1:
        length = rng.choice([length - 1, length + 1, 0, 1, 2, 2**64 - 1, 2**63 - 1, 2**32])
    if steps and rng.random() < 0.1:
        data_size = max(0, data_size + rng.choice([-1, 1, 8]))
    return struct.pack("<Q", length % 2**64) + text + bytes(rng.randrange(256) for _ in range(data_size))


def main():
    counts = {"both accept": 0, "both refuse": 0, "stricter": 0}
    failures = 0
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "case.safetensors")
        for number in range(CASES):
            data = make_case()
            with open(path, "wb") as file:
                file.write(data)
            run = subprocess.run([BITCONV, "inspect", path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60)
            if run.returncode not in (0, 2):
                failures += 1
                print("FAIL: case %d: exit %d: %r %r" % (number, run.returncode, data, run.stderr[-300:]))
                continue
            reference = reference_accepts(data)
            rule = stricter_rule(data) if reference else None
            ours = run.returncode == 0
            if ours != (reference and rule is None):
                failures += 1
                print("FAIL: case %d: reference %s, stricter rule %s, bitconv %s: %r %s" %
                      (number, reference, rule, ours, data[:600], run.stderr.decode(errors="replace")))
            elif rule is not None:
                counts["stricter"] += 1
            else:
                counts["both accept" if ours else "both refuse"] += 1
    print(", ".join("%s: %d" % item for item in counts.items()))
    if min(counts.values()) < CASES // 40:
        failures += 1
        print("FAIL: the cases are too one-sided to prove anything")
    sys.exit(1 if failures else 0)


main()
