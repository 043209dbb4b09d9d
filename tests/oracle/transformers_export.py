#!/usr/bin/env python3
"""Packed checkpoints as `bitconv export` writes them, loaded and run by transformers: the logits are those of the
original. For the bundled models the original is computed here: a model of plain float32 weights, made ternary in
Python, whose linear modules quantize their input to 8 bits; with the golden data (BITCONV_SHARED) it is what
transformers gave for the checkpoint itself. Skipped where transformers or torch are absent.

usage: transformers_export.py BITCONV
"""
import gzip
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile

for package in ("torch", "transformers", "accelerate", "safetensors", "numpy"):
    if importlib.util.find_spec(package) is None:
        print(f"skipped: no package {package}")
        sys.exit(77)

import numpy
import torch
import transformers
from safetensors.torch import load_file

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
root = pathlib.Path(__file__).resolve().parents[2]
shared = pathlib.Path(os.environ.get("BITCONV_SHARED", ""))
TOLERANCE = 2e-3  # embeddings in bfloat16 go through float16; a rounding of an activation may turn by it
masters = ("bitnet-master", "llama-158", "phi3")
cases = ("bitnet-2b4t", "bitnet-2b4t-bf16")


def run(*arguments):
    subprocess.run([sys.argv[1], *map(str, arguments)], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def exported(source, scratch):
    """The logits of what becomes of a checkpoint on its way through an I2_S file."""
    gguf, folder = scratch / (source.name + ".gguf"), scratch / (source.name + "-export")
    run("convert", source, "--outtype", "i2_s", "--outfile", gguf)
    run("export", gguf, "-o", folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    return lambda ids: model(torch.tensor([ids])).logits[0]


def quantize_input(_module, inputs):
    scale = 127 / inputs[0].abs().max(dim=-1, keepdim=True).values.clamp(min=1e-5)
    return ((inputs[0] * scale).round().clamp(-128, 127) / scale,)


def unpacked(packed):
    """Row r + k R of a matrix is bits 2k of byte row r."""
    return torch.cat([((packed >> (2 * k)) & 3).float() - 1 for k in range(4)])


def original(source):
    """The model of a checkpoint of masters or of packed weights that scales divide (linear class bitlinear)."""
    config = transformers.AutoConfig.from_pretrained(source)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    if config.pad_token_id is not None and config.pad_token_id >= config.vocab_size:
        config.pad_token_id = None
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    tensors = {}
    for file in sorted(source.glob("*.safetensors")):
        tensors.update(load_file(file))
    state = {}
    for name, module in model.named_modules():
        if not isinstance(module, torch.nn.Linear) or name == "lm_head":
            continue
        stored = tensors.pop(name + ".weight")
        if stored.dtype == torch.uint8:
            weight = unpacked(stored) / tensors.pop(name + ".weight_scale").float()
        else:
            magnitudes = stored.abs().float().unique()
            baked = len(magnitudes) <= 2 and magnitudes[0] == 0  # trits times a scale already
            scale = magnitudes[-1] if baked else stored.double().abs().mean().float().clamp(min=1e-5)
            weight = (stored.float() / scale).round().clamp(-1, 1) * scale
        state[name + ".weight"] = weight
        module.register_forward_pre_hook(quantize_input)
    state.update({name: t.float() for name, t in tensors.items()})
    absent, unknown = model.load_state_dict(state, strict=False)
    assert not unknown and set(absent) <= {"lm_head.weight"}, (absent, unknown)
    model.tie_weights()
    return lambda ids: model(torch.tensor([ids])).logits[0]


def compare(name, got, wanted):
    difference = float((got - wanted).abs().max() / wanted.abs().max())
    print(f"{name}: the largest difference of logits is {difference:.2g} of the largest")
    assert difference <= TOLERANCE, name


def bundled(scratch):
    ids = [5, 9, 20, 33, 7, 250, 101]
    for name in masters:
        source = root / "fixtures" / "models" / name
        compare(name, exported(source, scratch)(ids), original(source)(ids))


def golden(scratch):
    for name in cases:
        case = shared / "golden" / name
        if not case.is_dir():
            continue
        subprocess.run([sys.executable, str(shared / "tools" / "check_golden.py"), "stage", str(case),
                        str(scratch / name)], check=True, stdout=subprocess.DEVNULL)
        logits = exported(scratch / name / "model", scratch / name)
        for prompt in json.loads((case / "forward.json").read_text())["prompts"]:
            packed = case / (prompt["variants"]["int8"]["logits_last"]["file"] + ".gz")
            wanted = numpy.load(io.BytesIO(gzip.decompress(packed.read_bytes())))
            compare(name, logits(prompt["tokens"])[-1], torch.from_numpy(wanted.astype("float32")))


with tempfile.TemporaryDirectory() as folder, torch.no_grad():
    bundled(pathlib.Path(folder))
    golden(pathlib.Path(folder))
