#!/usr/bin/env python3
"""The Python package gguf dequantizes our TQ1_0, TQ2_0 and Q8_0 tensors to exactly what inspect --tensor shows,
times the scale that --scale-tensor puts beside them.

usage: block_packs.py BITCONV. The checkpoints are made here, with rows of 256 and 512 values.
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from gguf import GGUFReader
    from gguf.quants import dequantize
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

BITCONV = sys.argv[1]
FIXTURE = os.path.join(os.environ["BITCONV_SOURCE_DIR"], "fixtures", "models", "llama-ternary")
HIDDEN, FF, VOCAB = 256, 512, 320
failures = 0


def check(ok, *what):
    global failures
    if not ok:
        failures += 1
        print("FAIL:", *what)


def weights(kind, rng):
    """HF name -> float32 array."""
    def linear(rows, cols):
        if kind == "gauss":
            return rng.normal(0, 0.02, (rows, cols)).astype(np.float32)
        trits = rng.integers(-1, 2, (rows, cols)).astype(np.float32)
        trits[:2] = 0  # blocks of zeros
        return trits * np.float32(0.0321)

    layer = "model.layers.0."
    return {
        "model.embed_tokens.weight": rng.normal(0, 1, (VOCAB, HIDDEN)).astype(np.float32),
        "model.norm.weight": np.ones(HIDDEN, np.float32),
        layer + "input_layernorm.weight": np.ones(HIDDEN, np.float32),
        layer + "post_attention_layernorm.weight": np.ones(HIDDEN, np.float32),
        layer + "self_attn.q_proj.weight": linear(HIDDEN, HIDDEN),
        layer + "self_attn.k_proj.weight": linear(HIDDEN // 2, HIDDEN),
        layer + "self_attn.v_proj.weight": linear(HIDDEN // 2, HIDDEN),
        layer + "self_attn.o_proj.weight": linear(HIDDEN, HIDDEN),
        layer + "mlp.gate_proj.weight": linear(FF, HIDDEN),
        layer + "mlp.up_proj.weight": linear(FF, HIDDEN),
        layer + "mlp.down_proj.weight": linear(HIDDEN, FF),
    }


def write_checkpoint(folder, tensors):
    shutil.copytree(FIXTURE, folder)
    config = json.load(open(os.path.join(folder, "config.json")))
    config.update(hidden_size=HIDDEN, intermediate_size=FF)
    config.pop("head_dim", None)
    json.dump(config, open(os.path.join(folder, "config.json"), "w"))
    header, offset = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            f.write(array.tobytes())


def shown(path, name):
    """The values of a tensor as inspect decodes them, as float32."""
    run = subprocess.run([BITCONV, "inspect", path, "--json", "--tensor", name, "--head", str(FF * HIDDEN)], capture_output=True, text=True)
    if run.returncode != 0:
        check(False, name, run.stderr.strip())
        return np.zeros(0, np.float32)
    values = json.loads(run.stdout)["values"]["values"]
    return np.array(values, np.float64).astype(np.float32)


def compare(path, wanted):
    n = 0
    tensors = GGUFReader(path).tensors
    scales = {t.name.replace(".scale", ".weight"): np.float32(t.data[0]) for t in tensors if t.name.endswith(".scale")}
    for tensor in tensors:
        if tensor.tensor_type.name != wanted:
            continue
        n += 1
        theirs = dequantize(tensor.data, tensor.tensor_type).astype(np.float32).ravel() * scales.get(tensor.name, np.float32(1))
        ours = shown(path, tensor.name)
        same = len(theirs) == len(ours) and np.array_equal(theirs, ours)
        check(same, os.path.basename(path), tensor.name, len(theirs), len(ours))
    check(n >= 7, path, n, "tensors of type", wanted)
    return len(scales)


def main():
    cases = [("ternary", "tq1_0", []), ("ternary", "tq2_0", []), ("ternary", "q8_0", []),
             ("ternary", "tq1_0", ["--scale-tensor"]), ("ternary", "tq2_0", ["--scale-tensor"]),
             ("gauss", "tq1_0", ["--quant", "block"]), ("gauss", "tq2_0", ["--quant", "block"]), ("gauss", "q8_0", [])]
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("ternary", "gauss"):
            write_checkpoint(os.path.join(folder, kind), weights(kind, np.random.default_rng(7)))
        for i, (kind, outtype, args) in enumerate(cases):
            path = os.path.join(folder, f"{i}-{kind}-{outtype}.gguf")
            command = [BITCONV, "convert", os.path.join(folder, kind), "--outtype", outtype, "-o", path, "-q", *args]
            run = subprocess.run(command, capture_output=True, text=True)
            check(run.returncode == 0, kind, outtype, args, run.stderr.strip())
            if run.returncode == 0:
                check((compare(path, outtype.upper()) >= 7) == ("--scale-tensor" in args), path, "scales beside the tensors")
    print(f"{len(cases)} files, {failures} failures")
    sys.exit(failures != 0)


main()
