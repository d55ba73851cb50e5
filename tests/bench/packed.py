# SPDX-License-Identifier: Apache-2.0
"""Packed sources: how fast each form is decoded, beside copying the decoded bytes; xfp inspect of many headers, and of
a large GGUF; and xfp convert of packed models, beside the same models unpacked to 16 bits.

What is compared are the two of a round, one right after the other, by processor time as well, since machines are busy
with other things. Both are in the page cache, and nothing of an earlier conversion is there.
"""
import importlib.util
import json
import os
import statistics
import sys

import gguf_write
from common import HERE, count, note, processor, settle, table, timed

TESTS = os.path.join(HERE, "..")
sys.path.insert(0, TESTS)


def load(name):
    """Import a script whose file name is not a module name."""
    spec = importlib.util.spec_from_file_location(name, os.path.join(TESTS, name + ".py"))
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- models ------------------------------------------------------------------------------------------


def attention(m, p, hidden, pack):
    for name in ("input_layernorm", "post_attention_layernorm"):
        m.both(p + name + ".weight", hidden, one=True)
    for name, *shape in (("q", hidden, hidden), ("k", hidden // 2, hidden), ("v", hidden // 2, hidden),
                         ("o", hidden, hidden)):
        pack(m, p + f"self_attn.{name}_proj.weight", *shape)


def model(made, hidden, layers, experts, quantization, pack):
    """Llama or, with experts, Qwen3 in its published form; `pack(m, name, rows, cols)` makes its projections."""
    inner = hidden * 3 if not experts else hidden
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}
    if experts:
        config = {"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "num_experts": experts,
                  "num_experts_per_tok": 2, "moe_intermediate_size": inner, "head_dim": hidden // 4}
    m = made.Model({**config, "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": 4,
                    "num_key_value_heads": 2, "intermediate_size": inner, "vocab_size": 256}, quantization)
    m.both("model.embed_tokens.weight", 256, hidden)
    for layer in range(layers):
        p = f"model.layers.{layer}."
        attention(m, p, hidden, pack)
        for mlp in [f"mlp.experts.{e}." for e in range(experts)] or ["mlp."]:
            for name, *shape in (("gate", inner, hidden), ("up", inner, hidden), ("down", hidden, inner)):
                pack(m, p + mlp + f"{name}_proj.weight", *shape)
        if experts:
            m.both(p + "mlp.gate.weight", experts, hidden)
    m.both("model.norm.weight", hidden, one=True)
    m.both("lm_head.weight", 256, hidden)
    return m


def gpt_oss(made, hidden, layers, experts):
    m = made.Model({"model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], "hidden_size": hidden,
                    "num_hidden_layers": layers, "num_attention_heads": 4, "num_key_value_heads": 2,
                    "head_dim": hidden // 4, "intermediate_size": hidden, "num_local_experts": experts,
                    "num_experts_per_tok": 2, "vocab_size": 256}, {"quant_method": "mxfp4"})
    m.both("model.embed_tokens.weight", 256, hidden)
    for layer in range(layers):
        p = f"model.layers.{layer}."
        attention(m, p, hidden, made.Model.both)
        m.both(p + "mlp.router.weight", experts, hidden)
        m.mxfp4(p + "mlp.experts.gate_up_proj", experts, 2 * hidden, hidden)
        m.mxfp4(p + "mlp.experts.down_proj", experts, hidden, hidden)
    m.both("model.norm.weight", hidden, one=True)
    m.both("lm_head.weight", 256, hidden)
    return m


def forms(made):
    """By format name: quantization_config, and the function that packs a projection."""
    grouped, compressed = made.grouped, made.packed_compressed
    fp8 = {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]}
    rows = {"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0, "modules_to_not_convert": ["lm_head"]}

    def by(function):
        return lambda m, name, *shape: m.grouped(name, *function(made.weights(name, *shape)))

    def awq(version, function):
        return ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": version},
                by(lambda w: function(w, 128)))

    def gptq(bits, act):
        def pack(w):
            made_order = made.np.random.default_rng(w.shape[1]).permutation(w.shape[1]) if act else None
            return grouped.gptq(w, bits, 128, True, made_order, act)

        return ({"quant_method": "gptq", "bits": bits, "group_size": 128, "desc_act": act, "sym": False,
                 "checkpoint_format": "gptq"}, by(pack))

    def integers(m, name, *shape):
        compressed.integers(m, name, *shape, size=128)

    return {
        "FP8, blocks of 128": (fp8, lambda m, name, *shape: m.fp8(name, *shape, dtype="BF16")),
        "FP8, rows": (rows, lambda m, name, *shape: m.fp8(name, *shape, blocks=(1, 0), scale="weight_scale")),
        "int4, groups of 128": (compressed.compressed("pack-quantized", compressed.group(4, size=128)), integers),
        "NVFP4": (compressed.compressed("nvfp4-pack-quantized", compressed.group(4, "float", "tensor_group", 16)),
                  lambda m, name, *shape: compressed.nvfp4(m, name, *shape, True)),
        "AWQ gemm": awq("gemm", grouped.awq_gemm),
        "AWQ gemv": awq("gemv", grouped.awq_gemv),
        "AWQ gemv_fast": awq("gemv_fast", grouped.awq_gemv_fast),
        "GPTQ, 4 bits": gptq(4, False),
        "GPTQ, 4 bits, act-order": gptq(4, True),
        "GPTQ, 3 bits": gptq(3, False),
        "EXL2, 4 bits": ({"quant_method": "exl2", "version": "0.2.4", "bits": 4.0, "head_bits": 6},
                         lambda m, name, *shape: m.grouped(
                             name, *made.packed_exl2.exl2(made.weights(name, *shape), name))),
    }


def models(made, quick):
    """Format name -> function that makes the model, packed and plain."""
    hidden, layers, experts = (128, 1, 2) if quick else (1024, 2, 8)
    found = forms(made)
    for name, (quantization, pack) in found.items():
        yield name, lambda q=quantization, p=pack: model(made, hidden, layers, 0, q, p)
    quantization, pack = found["FP8, blocks of 128"]
    yield f"FP8, {experts} experts", lambda: model(made, hidden, 1, experts, quantization, pack)
    yield f"MXFP4, {experts} experts", lambda: gpt_oss(made, hidden, 1, experts)
    other, packs = found["GPTQ, 4 bits, act-order"]
    yield f"GPTQ, act-order, {experts} experts", lambda: model(made, hidden, 1, experts, other, packs)


# ---- measurements -------------------------------------------------------------------------------------


def decoding(bench, options):
    rounds, rows, cols = ("1", "1024", "1024") if bench.quick else (str(2 * options.rounds + 1), "4096", "4096")
    _, out = timed([bench.tool("decode"), rounds, rows, cols])
    result = {}
    for line in out.splitlines():
        name, decode, copy, ratio = line.split("\t")
        result[name] = {"seconds": float(decode), "copying": float(copy), "ratio": float(ratio),
                        "rows": int(rows) / float(decode), "rate": int(rows) * int(cols) / float(decode)}
    return {"cols": int(cols), "forms": result}


def headers(bench, options):
    """Inspect a model of 94 files with headers only."""
    sparse = load("make-sparse-checkpoint")
    bench.remove("sparse")
    sparse.qwen3_moe(bench.path("sparse"), {**sparse.QWEN3_MOE["235b-fp8"], **({"layers": 2} if bench.quick else {})})
    timings = []
    for _ in range(2 * options.rounds + 1):
        bench.remove("work")
        timings.append(timed(["xfp-inspect", "--work", bench.path("work"), bench.path("sparse")])[0])
    with open(bench.path("sparse/model.safetensors.index.json"), encoding="utf-8") as file:
        tensors = len(json.load(file)["weight_map"])
    files = len([name for name in os.listdir(bench.path("sparse")) if name.endswith(".safetensors")])
    bench.remove("sparse", "work")
    return {"tensors": tensors, "files": files, "seconds": {of: statistics.median(getattr(t, of) for t in timings)
                                                            for of in ("wall", "cpu")}}


def one_header(bench, options):
    """Inspect a GGUF file with its vocabulary."""
    path = bench.path("sparse.gguf")
    tensors = gguf_write.write_header(path, *((2, 2048) if bench.quick else ()))
    size = os.path.getsize(path)
    timings = [timed(["xfp-inspect", path])[0] for _ in range(2 * options.rounds + 1)]
    bench.remove("sparse.gguf")
    return {"tensors": tensors, "bytes": size, "seconds": {of: statistics.median(getattr(t, of) for t in timings)
                                                           for of in ("wall", "cpu")}}


class Source:
    """The attributes of a model that Bench.convert needs."""

    def __init__(self, path):
        self.path, self.file = path, os.path.join(path, "model.safetensors")


def converting(bench, options):
    made, result = load("make-packed-checkpoint"), {}
    for name, make in models(made, bench.quick):
        bench.remove("packed", "plain")
        m = make()
        made.write(bench.path("packed"), m.packed, {**m.config, "quantization_config": m.quantization}, 1)
        made.write(bench.path("plain"), m.plain, m.config, 1)
        took = {"packed": [], "plain": []}
        for _ in range(options.rounds):
            for which, timings in took.items():
                source = Source(bench.path(which))
                bench.fresh()
                settle(source.file)
                timings.append(bench.convert(source, options.jobs).timing)
        ratio = {of: statistics.median(getattr(a, of) / getattr(b, of) for a, b in zip(took["packed"], took["plain"]))
                 for of in ("wall", "cpu")}
        result[name] = {"bytes": os.path.getsize(bench.path("plain/model.safetensors")), "ratio": ratio,
                        "seconds": {which: {of: statistics.median(getattr(t, of) for t in timings)
                                            for of in ("wall", "cpu")} for which, timings in took.items()}}
        note(f"{name}: {ratio['cpu']:.2f} by processor time, {ratio['wall']:.2f} elapsed")
    bench.remove("packed", "plain")
    return result


def show(result, rounds):
    found = result["decoding"]
    print(f"{processor()}: decoding rows of {found['cols']} columns, one thread, processor time\n")
    print(table(["", "k rows/s", "M weights/s", "of copying"],
                [[name, f"{form['rows'] / 1e3:.0f}", f"{form['rate'] / 1e6:.0f}", f"1 / {form['ratio']:.1f}"]
                 for name, form in found["forms"].items()]))
    many = result["headers"]
    print(f"\n{processor()}: headers of {many['tensors']} tensors in {many['files']} files of FP8, `xfp inspect`: "
          f"{many['seconds']['wall']:.2f} s, {many['seconds']['cpu']:.2f} s of CPU; at most 0.5")
    one = result["header"]
    print(f"\n{processor()}: {one['tensors']} tensors and a tokenizer in a GGUF of {one['bytes'] / 1e9:.1f} GB, "
          f"`xfp inspect`: {one['seconds']['wall']:.2f} s, {one['seconds']['cpu']:.2f} s of CPU; at most 0.3")
    print(f"\n{processor()}: `xfp convert` of packed models by the same in 16 bits, at most 1.3; medians of {rounds} "
          "rounds\n")
    print(table(["", "bytes in 16 bits", "elapsed", "CPU seconds", "by elapsed", "by CPU"],
                [[name, count(run["bytes"]), *(f"{run['seconds']['packed'][of]:.2f} / {run['seconds']['plain'][of]:.2f}"
                                               for of in ("wall", "cpu")),
                  f"{run['ratio']['wall']:.2f}", f"{run['ratio']['cpu']:.2f}"]
                 for name, run in result["converting"].items()]))


def run(bench, options):
    result = {"decoding": decoding(bench, options), "headers": headers(bench, options),
              "header": one_header(bench, options), "converting": converting(bench, options)}
    show(result, options.rounds)
    return result
