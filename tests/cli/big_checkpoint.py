#!/usr/bin/env python3
"""Grows the embedding of a fixture checkpoint to ROWS rows of zeros, as a sparse file.

usage: big_checkpoint.py FIXTURE OUT_DIR ROWS. For tests that need a conversion that takes a while.
"""
import json
import os
import shutil
import struct
import sys


def main():
    source, out, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
    shutil.copytree(source, out)
    path = os.path.join(out, "model.safetensors")
    with open(path, "rb") as f:
        data = f.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    body = data[8 + size:]
    big = next(name for name in header if name.endswith("embed_tokens.weight"))
    width = {"F32": 4, "F16": 2, "BF16": 2}[header[big]["dtype"]]
    small, offset = {}, 0
    pieces = []
    for name, info in header.items():
        if name in (big, "__metadata__"):
            continue
        begin, end = info["data_offsets"]
        pieces.append(body[begin:end])
        small[name] = {**info, "data_offsets": [offset, offset + end - begin]}
        offset += end - begin
    cols = header[big]["shape"][1]
    total = rows * cols * width
    small[big] = {"dtype": header[big]["dtype"], "shape": [rows, cols],
                  "data_offsets": [offset, offset + total]}
    text = json.dumps(small).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(pieces))
        f.truncate(8 + len(text) + offset + total)
    config = json.load(open(os.path.join(out, "config.json")))
    config["vocab_size"] = rows
    json.dump(config, open(os.path.join(out, "config.json"), "w"))


main()
