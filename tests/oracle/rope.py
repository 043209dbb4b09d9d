#!/usr/bin/env python3
"""RoPE under every scaling: frequencies and the factor of cos and sin, from a checkpoint and from the file that it becomes, equal those
that transformers computes for the same config, and so do the logits of whole models. Skipped where transformers or torch are absent.

usage: rope.py BITCONV; rope_dump and forward_dump are in BITCONV_BUILD_DIR. The checkpoints are those of fixtures/models with other settings.
"""
import array
import importlib
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

for package in ("torch", "transformers"):
    if importlib.util.find_spec(package) is None:
        print(f"skipped: no package {package}")
        sys.exit(77)

import torch
import transformers
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
models = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "models"
programs = pathlib.Path(os.environ.get("BITCONV_BUILD_DIR", "."))
bitconv = sys.argv[1]
TOLERANCE = 1e-6  # relative: a few roundings of float32
failures = 0

rising = [1 + i / 8 for i in range(16)]
LLAMA3 = {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
YARN = {"rope_type": "yarn", "original_max_position_embeddings": 1024}
PHI3 = {"type": "longrope", "short_factor": rising, "long_factor": [2 * x for x in rising]}
# fixture -> changes of its config; None: the key goes.
CASES = {
    "llama-158": [
        {"rope_scaling": None},
        {"rope_scaling": None, "rope_theta": None},
        {"rope_scaling": None, "rope_theta": 10000.0, "head_dim": 32},
        {"rope_scaling": {"rope_type": "default"}},
        {"rope_scaling": {"type": "linear", "factor": 4.0}},
        {"rope_scaling": {"rope_type": "linear", "factor": 2.5}},
        {"rope_scaling": {**LLAMA3, "factor": 8.0}},
        {"rope_scaling": {**LLAMA3, "factor": 32.0}},
        {"rope_scaling": {**LLAMA3, "factor": 8.0, "original_max_position_embeddings": 64}},
        {"rope_scaling": {**LLAMA3, "factor": 16.0, "low_freq_factor": 0.5, "high_freq_factor": 32.0}, "rope_theta": 10000.0},
        {"rope_scaling": None, "rope_theta": None, "rope_parameters": {**LLAMA3, "factor": 8.0, "rope_theta": 500000.0}},
    ],
    "qwen2": [
        {"rope_theta": None},
        {"rope_scaling": {**YARN, "factor": 4.0}},
        {"rope_scaling": {**YARN, "type": "yarn", "factor": 4.0}},
        {"rope_scaling": {**YARN, "factor": 1.0}},
        {"rope_scaling": {**YARN, "factor": 4.0, "attention_factor": 0.75}},
        {"rope_scaling": {**YARN, "factor": 4.0, "beta_fast": 16.0}},
        {"rope_scaling": {**YARN, "factor": 4.0, "beta_fast": 64, "beta_slow": 2}},
        {"rope_scaling": {"rope_type": "yarn", "factor": 2.0}},
        {"rope_scaling": {**YARN, "factor": 40.0, "original_max_position_embeddings": 8}},
        {"rope_scaling": {**YARN, "factor": 4.0, "original_max_position_embeddings": 1 << 20}, "rope_theta": 10000.0},
        {"rope_scaling": None, "rope_theta": None, "rope_parameters": {**YARN, "factor": 4.0, "rope_theta": 1000000.0}},
    ],
    "qwen3-embed": [{"rope_theta": None}, {"rope_scaling": {**YARN, "factor": 4.0}}, {"rope_scaling": {"rope_type": "linear", "factor": 3.0}}],
    "mixtral": [{"rope_theta": None}, {"rope_scaling": {"rope_type": "linear", "factor": 3.0}}],
    "bitnet": [{}, {"rope_theta": None}, {"rope_scaling": {**LLAMA3, "factor": 8.0}}, {"rope_scaling": {**YARN, "factor": 8.0}}],
    "lfm2": [{}, {"rope_theta": None}],
    "gemma3-embed": [{}, {"rope_theta": None, "rope_local_base_freq": None}, {"rope_scaling": {"rope_type": "linear", "factor": 8.0}}],
    "phi3": [
        {},
        {"rope_scaling": {**PHI3}},
        {"rope_scaling": {**PHI3, "factor": 4.0}},
        {"rope_scaling": {**PHI3, "attention_factor": 1.5}},
        {"rope_scaling": {**PHI3}, "max_position_embeddings": 1024},
        {"rope_scaling": {**PHI3, "short_factor": rising[:12], "long_factor": rising[4:]}, "partial_rotary_factor": 0.75},
        {"rope_scaling": None, "rope_theta": None, "partial_rotary_factor": 0.5},
        {"rope_scaling": None, "original_max_position_embeddings": 4096},
    ],
}
# Whole models of plain weights; longrope on both sides of its original context.
LOGITS = [
    ("qwen2", {"rope_scaling": {**YARN, "factor": 4.0, "original_max_position_embeddings": 64}}),
    ("qwen2", {"rope_scaling": {**YARN, "factor": 4.0, "attention_factor": 0.75}}),
    ("qwen2", {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}),
    ("phi3", {"pad_token_id": 0}),
    ("phi3", {"pad_token_id": 0, "original_max_position_embeddings": 16}),
]
LOGITS_TOLERANCE = 2e-5  # of the largest


def changed(fixture, changes, folder):
    model = folder / "model"
    shutil.copytree(models / fixture, model)
    config = json.loads((model / "config.json").read_text())
    config.update(changes)
    (model / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not None}))
    return model


def wanted(model):
    """As the model's own class computes them: name -> (frequencies, magnitude)."""
    config = transformers.AutoConfig.from_pretrained(model)
    module = importlib.import_module(type(config).__module__.replace(".configuration_", ".modeling_"))
    rotary = next(c for name, c in vars(module).items() if name.endswith("RotaryEmbedding"))(config)
    if hasattr(rotary, "full_attention_inv_freq"):
        return {"plain": (rotary.full_attention_inv_freq.tolist(), rotary.full_attention_attention_scaling),
                "local": (rotary.sliding_attention_inv_freq.tolist(), rotary.sliding_attention_attention_scaling)}
    result = {"plain": (rotary.inv_freq.tolist(), rotary.attention_scaling)}
    if rotary.rope_type == "longrope":
        beyond = config.rope_parameters["original_max_position_embeddings"] + 1
        frequencies, magnitude = ROPE_INIT_FUNCTIONS["longrope"](config, "cpu", seq_len=beyond)
        result["long"] = (frequencies.tolist(), magnitude)
    return result


def difference(got, want):
    if got.keys() != want.keys():
        return float("inf")
    pairs = [(g, w) for name, (frequencies, magnitude) in want.items()
             for g, w in zip([*got[name]["frequencies"], got[name]["magnitude"]], [*frequencies, magnitude], strict=True)]
    return max(abs(g / w - 1) for g, w in pairs)


def check(fixture, changes, folder):
    global failures
    model, file = changed(fixture, changes, folder), folder / "out.gguf"
    want = wanted(model)
    convert = [bitconv, "convert", model, "--outtype", "f16", "--outfile", file, "--no-progress"]
    worst = float("inf")
    try:
        subprocess.run(convert, check=True, capture_output=True)
        got = [json.loads(subprocess.run([programs / "rope_dump", path], check=True, capture_output=True).stdout) for path in (model, file)]
        worst = max(difference(g, want) for g in got)
    except subprocess.CalledProcessError as problem:
        print(problem.stderr.decode()[-400:])
    failures += not worst <= TOLERANCE
    print("ok  " if worst <= TOLERANCE else "FAIL", fixture, json.dumps(changes)[:150], f"{worst:.1e}")


def check_logits(fixture, changes, folder):
    global failures
    model = changed(fixture, changes, folder)
    ids = [5, 9, 20, 33, 7, 250, 101] * 8
    reference = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).eval()
    with torch.no_grad():
        want = reference(torch.tensor([ids])).logits[0, -1].tolist()
    command = [programs / "forward_dump", model, "float", "stored", folder / "out", str(len(ids)), ",".join(map(str, ids))]
    subprocess.run(command, check=True)
    got = array.array("f", (folder / "out.logits").read_bytes())
    worst = max(abs(g - w) for g, w in zip(got, want, strict=True)) / max(map(abs, want))
    failures += not worst <= LOGITS_TOLERANCE
    print("ok  " if worst <= LOGITS_TOLERANCE else "FAIL", fixture, "logits", json.dumps(changes)[:150], f"{worst:.1e}")


for fixture, changes in LOGITS:
    with tempfile.TemporaryDirectory() as folder:
        check_logits(fixture, changes, pathlib.Path(folder))
for fixture, all_changes in CASES.items():
    for changes in all_changes:
        with tempfile.TemporaryDirectory() as folder:
            check(fixture, changes, pathlib.Path(folder))
print(f"{failures} failed")
sys.exit(1 if failures else 0)
