"""Models of `transformers` under `torch.compile`: `python -m bench.torch_transformers [--device cuda]`.

Models of random weights, drawn from a small config, called with several sizes, 1 among them, forward and
backward. For each model and backend: the time of the first pass over all sizes, compiles included, and of a
later one, in turns with eager's; how far outputs (and gradients, where it is trained) are from eager's; how
often a compiler ran, and the operators that stay torch's. Each backend starts from an empty cache, in a
process of its own. transformers isn't a dependency: a folder that has it goes into PYTHONPATH.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SIZES = (16, 5, 1, 33, 8, 2, 24)
PASSES = 5
MISSING = (
    "transformers isn't installed: pip install transformers, or install it into a folder with pip's "
    "--target and put that into PYTHONPATH"
)


@dataclass(frozen=True)
class Model:
    """`name` of the class and of its config, numbers for the config, and the inputs of a size."""

    name: str
    config: str
    numbers: Callable[[bool], dict[str, Any]]
    inputs: Callable[[int, Any], dict[str, Any]]
    trained: bool = False


def _tokens(n: int, config: Any) -> dict[str, Any]:
    import torch

    return {"input_ids": torch.randint(0, config.vocab_size, (2, n)), "use_cache": False}


def _padded(n: int, config: Any) -> dict[str, Any]:
    """One of the two sequences is padded."""
    import torch

    mask = torch.ones(2, n, dtype=torch.int64)
    mask[1, (n + 1) // 2 :] = 0
    return {"input_ids": torch.randint(0, config.vocab_size, (2, n)), "attention_mask": mask}


def _pair(n: int, config: Any) -> dict[str, Any]:
    import torch

    words = torch.randint(0, config.vocab_size, (2, 12))
    answers = torch.randint(0, config.vocab_size, (2, n))
    return {"input_ids": words, "decoder_input_ids": answers, "use_cache": False}


def _images(n: int, config: Any) -> dict[str, Any]:
    import torch

    return {"pixel_values": torch.randn(n, 3, getattr(config, "image_size", 32), 32)}


def _sound(n: int, config: Any) -> dict[str, Any]:
    import torch

    frames = torch.randn(2, config.num_mel_bins, 2 * config.max_source_positions)
    words = torch.randint(0, config.vocab_size, (2, n))
    return {"input_features": frames, "decoder_input_ids": words, "use_cache": False}


def _decoder(large: bool) -> dict[str, Any]:
    wide = 1024 if large else 64
    return {
        "vocab_size": 1000, "hidden_size": wide, "intermediate_size": 2 * wide, "num_hidden_layers": 2,
        "num_attention_heads": 8, "num_key_value_heads": 4, "max_position_embeddings": 128,
    }  # fmt: skip


def _bert(large: bool) -> dict[str, Any]:
    taken = _decoder(large)
    del taken["num_key_value_heads"]
    return taken


def _vit(large: bool) -> dict[str, Any]:
    taken = _bert(large)
    del taken["vocab_size"], taken["max_position_embeddings"]
    return {**taken, "image_size": 32, "patch_size": 8}


def _gpt2(large: bool) -> dict[str, Any]:
    return {
        "vocab_size": 1000, "n_embd": 1024 if large else 64, "n_layer": 2, "n_head": 8, "n_positions": 128,
    }  # fmt: skip


def _t5(large: bool) -> dict[str, Any]:
    wide = 1024 if large else 64
    return {
        "vocab_size": 1000, "d_model": wide, "d_kv": wide // 8, "d_ff": 2 * wide, "num_layers": 2,
        "num_heads": 8, "feed_forward_proj": "gated-gelu",
    }  # fmt: skip


def _whisper(large: bool) -> dict[str, Any]:
    wide = 512 if large else 64
    return {
        "vocab_size": 1000, "d_model": wide, "encoder_layers": 2, "decoder_layers": 2,
        "encoder_attention_heads": 8, "decoder_attention_heads": 8, "encoder_ffn_dim": 2 * wide,
        "decoder_ffn_dim": 2 * wide, "max_source_positions": 32, "max_target_positions": 64,
        "num_mel_bins": 16, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
        "decoder_start_token_id": 1, "suppress_tokens": None, "begin_suppress_tokens": None,
    }  # fmt: skip


def _resnet(large: bool) -> dict[str, Any]:
    wide = 64 if large else 8
    return {
        "embedding_size": wide, "hidden_sizes": [wide, 2 * wide], "depths": [1, 1], "layer_type": "basic",
    }  # fmt: skip


MODELS = {
    "llama": Model("LlamaForCausalLM", "LlamaConfig", _decoder, _tokens, trained=True),
    "gpt2": Model("GPT2LMHeadModel", "GPT2Config", _gpt2, _tokens, trained=True),
    "bert": Model("BertModel", "BertConfig", _bert, _padded, trained=True),
    "vit": Model("ViTModel", "ViTConfig", _vit, _images, trained=True),
    "t5": Model("T5ForConditionalGeneration", "T5Config", _t5, _pair),
    "qwen2": Model("Qwen2ForCausalLM", "Qwen2Config", _decoder, _tokens),
    "mistral": Model("MistralForCausalLM", "MistralConfig", _decoder, _tokens),
    "gemma2": Model("Gemma2ForCausalLM", "Gemma2Config", lambda large: {**_decoder(large), "head_dim": 16},
                    _tokens),
    "whisper": Model("WhisperModel", "WhisperConfig", _whisper, _sound),
    "resnet": Model("ResNetModel", "ResNetConfig", _resnet, _images, trained=True),
}  # fmt: skip


def build(name: str, device: str, dtype: str, attention: str) -> tuple[Any, dict[int, dict[str, Any]]]:
    """The model and its inputs by size."""
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    row = MODELS[name]
    torch.manual_seed(0)
    config = getattr(transformers, row.config)(**row.numbers(device == "cuda"))
    if attention != "default":
        config._attn_implementation = attention  # versions 4 and 5 both read it
    number = getattr(torch, dtype)
    # Without dropout: results are to be compared.
    model = getattr(transformers, row.name)(config).to(device=device, dtype=number).eval()

    def moved(x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x
        return x.to(device, number) if x.is_floating_point() else x.to(device)

    drawn = {n: {key: moved(x) for key, x in row.inputs(n, config).items()} for n in SIZES}
    return model, drawn


def tensors(output: Any) -> list[Any]:
    """The floats of a model's output."""
    import torch
    from torch.utils._pytree import tree_leaves

    return [x for x in tree_leaves(output) if isinstance(x, torch.Tensor) and x.is_floating_point()]


def step(model: Any, call: Any, inputs: dict[str, Any], trained: bool) -> tuple[list[Any], list[Any]]:
    """The outputs, and the gradients of the parameters."""
    import torch

    if not trained:
        with torch.no_grad():
            return tensors(call(**inputs)), []
    model.zero_grad(set_to_none=True)
    made = tensors(call(**inputs))
    (made[0].float() ** 2).mean().backward()
    # torch.compile gives zeros where eager torch has no gradient.
    return made, [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]


def distance(ours: list[Any], theirs: list[Any]) -> float:
    """The largest difference of any element, beside the largest element of that tensor, or a thousandth of
    that of all: gradients that are 0 but for rounding have no digit in common."""
    import torch

    assert len(ours) == len(theirs), f"{len(ours)} tensors instead of {len(theirs)}"
    assert all(bool(torch.isfinite(y).all()) for y in theirs), "eager's result isn't finite"
    tops = [float(y.double().abs().max()) if y.numel() else 0.0 for y in theirs]
    least = 1e-3 * max(tops, default=0.0) or 1.0
    worst = 0.0
    for x, y, top in zip(ours, theirs, tops, strict=True):
        assert x.shape == y.shape, f"{tuple(x.shape)} instead of {tuple(y.shape)}"
        if y.numel():
            off = float((x.double() - y.double()).abs().max()) / max(top, least)
            worst = max(worst, off if off == off else float("inf"))
    return worst


def run(name: str, backend: str, args: argparse.Namespace) -> dict[str, Any]:
    """One model under one backend."""
    import torch

    model, inputs = build(name, args.device, args.dtype, args.attention)
    trained = MODELS[name].trained and not args.forward
    programs: list[Any] = []
    used: Any = backend
    if backend == "pyarray":
        from pyarray.torch.backend import observing_backend

        used = observing_backend(programs.append)
    call = torch.compile(model, backend=used, dynamic=True)

    def timed() -> float:
        if args.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    def a_pass(function: Any) -> float:
        start = timed()
        for n in SIZES:
            step(model, function, inputs[n], trained)
        return timed() - start

    a_pass(model)
    first, compiled = a_pass(call), 0
    passes = [(a_pass(call), a_pass(model)) for _ in range(PASSES)]
    ours, theirs = (statistics.median(times) for times in zip(*passes, strict=True))
    result: dict[str, Any] = {"first": first, "steady": ours, "eager": theirs}
    if backend == "pyarray":
        from pyarray.torch.explain import Explanation
        from pyarray.torch.fused_kernel import compiles

        compiled = compiles()
        made = Explanation(programs)
        result |= {
            "graphs": len(programs), "kernels": len(made.kernels), "share": made.eager_fraction,
            "stay": Counter(made.eager).most_common(),
        }  # fmt: skip
    off = [0.0, 0.0]
    for n in SIZES:
        wanted, results = (step(model, f, inputs[n], trained) for f in (model, call))
        off = [max(worst, distance(x, y)) for worst, x, y in zip(off, results, wanted, strict=True)]
    return result | {"off": off, "compiles": compiled, "trained": trained}


def show(name: str, backend: str, row: dict[str, Any], nodes: bool) -> None:
    """A line for one model under one backend."""
    line = f"{name:8} {backend:8} first pass {row['first']:7.2f} s  later {1e3 * row['steady']:8.2f} ms  "
    line += f"eager {1e3 * row['eager']:8.2f} ms ({row['eager'] / row['steady']:.2f})  off {row['off'][0]:.1e}"
    line += f", gradients {row['off'][1]:.1e}" if row["trained"] else ""
    if backend == "pyarray":
        stay = sum(count for _, count in row["stay"])
        line += f"  {row['graphs']} graphs, {row['kernels']} kernels, {row['compiles']} compiles, "
        line += f"{stay} operators of torch ({row['share']:.0%})"
    print(line, flush=True)
    if nodes and backend == "pyarray":
        print("         ", ", ".join(f"{what} ({count})" for what, count in row["stay"]), flush=True)


def main() -> int:
    """Print a line for each model and backend; 1 where one of them fails."""
    parser = argparse.ArgumentParser(prog="python -m bench.torch_transformers", description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--attention", default="default", help="eager, sdpa: transformers' implementation")
    parser.add_argument("--only", default="", help="names of models, with commas between them")
    parser.add_argument("--forward", action="store_true", help="no gradients")
    parser.add_argument("--inductor", action="store_true", help="time Inductor, too")
    parser.add_argument("--nodes", action="store_true", help="the names of operators that stay torch's")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if importlib.util.find_spec("transformers") is None:
        print(MISSING, file=sys.stderr)
        return 2
    if args.one:
        name, backend = args.one
        print(json.dumps(run(name, backend, args)))
        return 0
    names = args.only.split(",") if args.only else list(MODELS)
    if unknown := [name for name in names if name not in MODELS]:
        parser.error(f"no model {', '.join(unknown)}; there are {', '.join(MODELS)}")
    failed = 0
    for name in names:
        for backend in ("pyarray", *(["inductor"] if args.inductor else [])):
            row = in_a_process(name, backend)
            if isinstance(row, str):
                print(f"{name:8} {backend:8} failed: {row}", flush=True)
                failed = 1
            else:
                show(name, backend, row, args.nodes)
    return failed


def in_a_process(name: str, backend: str) -> dict[str, Any] | str:
    """What `run` finds, or a line that says why it failed."""
    with tempfile.TemporaryDirectory() as folder:
        own = {"PYARRAY_CACHE_DIR": folder + "/p", "TORCHINDUCTOR_CACHE_DIR": folder + "/i"}
        command = [sys.executable, "-m", "bench.torch_transformers", *sys.argv[1:], "--one", name, backend]
        done = subprocess.run(command, env=os.environ | own, capture_output=True, text=True, check=False)
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    if done.returncode:
        errors = [line for line in lines if "Error" in line]
        return (errors or lines or [f"exit status {done.returncode}"])[-1]
    result: dict[str, Any] = json.loads(lines[-1])
    return result


if __name__ == "__main__":
    sys.exit(main())
