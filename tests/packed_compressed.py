# SPDX-License-Identifier: Apache-2.0
"""Forms of compressed-tensors and modelopt for make-packed-checkpoint.py, and their defects."""
import json

import numpy as np

# Set by forms(): functions of make-packed-checkpoint.py for all forms.
base = None

LINEAR = {"targets": ["Linear"], "input_activations": None, "output_activations": None}


def compressed(fmt, *weights, **more):
    """A quantization_config in the format of llm-compressor."""
    groups = {f"group_{i}": {**LINEAR, **w} for i, w in enumerate(weights)}
    return {"config_groups": groups, "format": fmt, "global_compression_ratio": None, "ignore": ["lm_head"],
            "kv_cache_scheme": None, "quant_method": "compressed-tensors", "quantization_status": "compressed", **more}


def group(bits, kind="int", strategy="group", size=None, symmetric=True, block=None, fmt=None):
    weights = {"actorder": None, "block_structure": block, "dynamic": False, "group_size": size, "num_bits": bits,
               "observer": "minmax", "observer_kwargs": {}, "strategy": strategy, "symmetric": symmetric, "type": kind}
    return {"weights": weights, **({"format": fmt} if fmt else {})}


def in_dtype(values, dtype):
    """Scales in the stored type, and as f32."""
    if dtype == "F32":
        return values.astype("<f4"), values.astype("<f4")
    if dtype == "F16":
        stored = values.astype("<f2")
        return stored, stored.astype("<f4")
    stored = base.bf16(values)
    return stored, (stored.astype("<u4") << 16).view("<f4")


def words(codes, bits, dense):
    """Unsigned codes [rows, n] in 32-bit words, the lowest bits first."""
    rows, n = codes.shape
    each = 32 // bits
    count = -(-n * bits // 32) if dense else -(-n // each)
    out = np.zeros((rows, count + 1), np.uint64)
    for i in range(n):
        at = i * bits if dense else i // each * 32 + i % each * bits
        value = codes[:, i].astype(np.uint64) << np.uint64(at % 32)
        out[:, at // 32] |= value & np.uint64(0xFFFFFFFF)
        out[:, at // 32 + 1] |= value >> np.uint64(32)
    return out[:, :count].astype("<u4")


def integers(m, name, rows, cols, bits=4, size=None, block=None, zeros=False, dense=True, dtype="BF16", shuffled=False,
             packed=True, shape_dtype="I64"):
    """`size`: columns of a group, None: the whole row; `block`: rows and columns of a block, (0, 0): the whole
    matrix."""
    stem = name.removesuffix(".weight")
    w = base.weights(name, rows, cols)
    up, across = (1, size or cols) if block is None else (block[0] or rows, block[1] or cols)
    order = np.arange(cols) // across
    if shuffled:
        order = np.random.default_rng(rows + cols).permutation(order)
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    grid = (-(-rows // up), -(-cols // across))
    least, most = np.zeros(grid, np.float32), np.zeros(grid, np.float32)
    for r in range(grid[0]):
        for c in range(grid[1]):
            part = w[r * up:(r + 1) * up, order == c]
            least[r, c], most[r, c] = min(part.min(), 0), max(part.max(), 0)
    if zeros:
        scale = (most - least) / np.float32(high - low)
    else:
        scale = np.maximum(most, -least) / np.float32(max(high, 1))
    stored, scale = in_dtype(scale, dtype)
    zero = np.clip(np.round(low - least / scale), low, high).astype(np.int64) if zeros else np.zeros(grid, np.int64)
    every, shift = scale[np.arange(rows) // up][:, order], zero[np.arange(rows) // up][:, order]
    codes = np.clip(np.round(w / every) + shift, low, high).astype(np.int64)
    m.plain[name] = as_plain((codes - shift).astype(np.float32) * every, dtype)
    if packed:
        data = words(codes - low, bits, dense)
        m.packed[stem + ".weight_packed"] = base.Tensor("I32", data.shape, data)
        numbers = np.array([rows, cols], "<i8" if shape_dtype == "I64" else "<i4")
        m.packed[stem + ".weight_shape"] = base.Tensor(shape_dtype, [2], numbers)
    else:
        m.packed[name] = base.Tensor("I8", [rows, cols], codes.astype(np.int8))
    m.packed[stem + ".weight_scale"] = base.Tensor(dtype, [1] if grid == (1, 1) and block else grid, stored)
    if zeros and packed and up == 1:
        data = words((zero - low).T, bits, dense).T
        m.packed[stem + ".weight_zero_point"] = base.Tensor("I32", data.shape, data)
    elif zeros:
        m.packed[stem + ".weight_zero_point"] = base.Tensor(
            "I8", m.packed[stem + ".weight_scale"].shape, zero.astype(np.int8))
    if shuffled:
        m.packed[stem + ".weight_g_idx"] = base.Tensor("I32", [cols], order.astype("<i4"))


def as_plain(w, dtype):
    return base.Tensor("F16", w.shape, w.astype("<f2")) if dtype == "F16" else base.plain(w)


def floats(m, name, rows, cols, block, dtype="F32", shape=None):
    """8-bit floats; `shape` is that of their scales, if it is not that of a grid."""
    w = base.weights(name, rows, cols)
    codes, _, _ = base.fp8(w, block[0] or rows, block[1] or cols, "F32")
    up, across = block[0] or rows, block[1] or cols
    grid = np.zeros((-(-rows // up), -(-cols // across)), np.float32)
    for r in range(grid.shape[0]):
        for c in range(grid.shape[1]):
            grid[r, c] = np.abs(w[r * up:(r + 1) * up, c * across:(c + 1) * across]).max() / 448
    if dtype == "U8":
        stored = (np.ceil(np.log2(grid)).astype(np.int32) + 127).astype(np.uint8)
        scale = np.exp2(stored.astype(np.float32) - 127)
    else:
        stored, scale = in_dtype(grid, dtype)
    every = base.in_blocks(scale, w.shape, up, across)
    codes = base.nearest(w / every, base.E4M3, 127) | np.where(np.signbit(w), 128, 0).astype(np.uint8)
    m.packed[name] = base.Tensor("F8_E4M3", [rows, cols], codes)
    m.packed[name + "_scale"] = base.Tensor(dtype, stored.shape if shape is None else shape, stored)
    m.plain[name] = as_plain(base.E4M3[codes] * every, dtype)


def nvfp4(m, name, rows, cols, divides):
    w = base.weights(name, rows, cols)
    groups = np.abs(w).reshape(rows, -1, 16).max(-1)
    second = np.float32(np.abs(w).max() / (6 * 448))
    if divides:
        second = np.float32(1) / second
    per_group = lambda codes: base.E4M3[codes] / second if divides else base.E4M3[codes] * second
    scale = np.maximum(base.nearest(groups / 6 * second if divides else groups / 6 / second, base.E4M3, 127), 1)
    every = np.repeat(per_group(scale), 16, -1)
    codes = base.nearest(w / every, base.E2M1, 8) | np.where(np.signbit(w), 8, 0).astype(np.uint8)
    m.plain[name] = base.plain(base.E2M1[codes] * every)
    data = codes[:, 0::2] | codes[:, 1::2] << 4
    m.packed[name + "_packed" if divides else name] = base.Tensor("U8", data.shape, data)
    m.packed[name + "_scale"] = base.Tensor("F8_E4M3", scale.shape, scale)
    if divides:
        m.packed[name + "_global_scale"] = base.Tensor("F32", [1], second)
        m.packed[name.replace(".weight", ".input_global_scale")] = base.Tensor("F32", [1], np.float32([3]))
    else:
        m.packed[name + "_scale_2"] = base.Tensor("F32", [], second)
        m.packed[name.replace(".weight", ".input_scale")] = base.Tensor("F32", [], np.float32(.25))


def mxfp4(m, name, rows, cols, ending="_packed"):
    blocks, scale, unpacked = base.mxfp4(base.weights(name, rows, cols))
    m.packed[name + ending] = base.Tensor("U8", [rows, cols // 2], blocks)
    m.packed[name + "_scale"] = base.Tensor("U8", scale.shape, scale)
    m.plain[name] = base.plain(unpacked)


# ---- checkpoints -------------------------------------------------------------------------------------


def kimi_k2_thinking():
    """Kimi-K2 Thinking in its published form: routed experts in 4 bits, the rest in bf16."""
    config = compressed("pack-quantized", group(4, size=32))
    config["ignore"] = ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*",
                        "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"]

    def pack(m, name, rows, cols):
        if ".experts." in name:
            integers(m, name, rows, cols, size=32, shape_dtype="I32")
        else:
            m.both(name, rows, cols)

    m = base.deepseek(quantization=config, pack=pack, expert=128)
    m.config["model_type"] = "kimi_k2"
    return m


def of_qwen3(quantization, pack, inner=144, **how):
    return lambda: base.qwen3(quantization, lambda m, name, *shape: pack(m, name, *shape, **how), inner=inner)


def widths(m, name, rows, cols):
    """Every number of bits from 1 to 8, with and without zero points."""
    bits = {"q": 1, "k": 2, "v": 3, "o": 4, "gate": 5, "up": 6, "down": 7}[name.split("_proj")[0].split(".")[-1]]
    integers(m, name, rows, cols, bits=bits, size=16, zeros=bits % 2 == 1)


def mixed(m, name, rows, cols):
    if "self_attn" in name:
        floats(m, name, rows, cols, (1, 0), "BF16")
    elif "gate" in name:
        nvfp4(m, name, rows, cols, True)
    elif "up" in name:
        integers(m, name, rows, cols, bits=8, size=32)
    else:
        integers(m, name, rows, cols, bits=4, size=48, zeros=True, dtype="BF16")


def small_mixed(m, name, rows, cols):
    """Integers with reordered columns, 4-bit floats and 8-bit ones."""
    if "gate" in name or "v_proj" in name:
        integers(m, name, rows, cols, bits=4, size=8, zeros=True, shuffled=True, dtype="BF16")
    elif "up" in name or "q_proj" in name:
        nvfp4(m, name, rows, cols, True)
    else:
        floats(m, name, rows, cols, (1, 0), "BF16")


def modelopt(algorithm, pack, beside=False, bare=False, experts=0, **more):
    """`beside`: only hf_quant_config.json describes it; `bare`: nothing does."""
    def make():
        quantization = {"quant_algo": algorithm, "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"], **more}
        m = base.qwen3(None if beside or bare else {"quant_method": "modelopt", **quantization}, pack, experts, inner=160)
        for which in "kv":
            m.packed[f"model.layers.0.self_attn.{which}_proj.{which}_scale"] = base.Tensor("F32", [], np.float32(1))
        if beside:
            m.files["hf_quant_config.json"] = {"producer": {"name": "modelopt", "version": "0.47.0"},
                                               "quantization": quantization}
        return m

    return make


def modelopt_mixed(m, name, rows, cols):
    if "self_attn" in name:
        floats(m, name, rows, cols, (0, 0), shape=[])
    elif "gate" in name:
        floats(m, name, rows, cols, (1, 0), shape=[rows])
    elif "up" in name:
        nvfp4(m, name, rows, cols, False)
    else:
        floats(m, name, rows, cols, (1, 32), "U8")


def modelopt_stacks(m, name, rows, cols, *more):
    """Fused experts [experts, rows, cols] with one scale, or one each; other weights like the form without experts."""
    if not more:
        floats(m, name, rows, cols, (0, 0), shape=[])
        return
    w = base.weights(name, rows, cols, *more)
    most = np.abs(w).max((1, 2), keepdims=True) / np.float32(448)
    scale = (most if "down" in name else most.max(keepdims=True)).astype("<f4")
    codes = base.nearest(w / scale, base.E4M3, 127) | np.where(np.signbit(w), 128, 0).astype(np.uint8)
    m.packed[name] = base.Tensor("F8_E4M3", w.shape, codes)
    m.packed[name + "_weight_scale"] = base.Tensor("F32", scale.shape if "down" in name else [], scale)
    m.packed[name + "_input_scale"] = base.Tensor("F32", [], np.float32(1))
    m.plain[name] = base.plain(base.E4M3[codes] * scale)


def modelopt_blocks(m, name, rows, cols):
    floats(m, name, rows, cols, (32, 32), shape=[-(-rows // 32), 1, -(-cols // 32), 1])


def modelopt_bytes(m, name, rows, cols):
    integers(m, name, rows, cols, bits=8, packed=False)
    m.packed[name + "_scale"].shape = [rows]


LAYERS = {f"model.layers.0.mlp.{name}_proj": how for name, how in (
    ("gate", {"quant_algo": "FP8_PER_CHANNEL_PER_TOKEN"}), ("up", {"quant_algo": "NVFP4", "group_size": 16}),
    ("down", {"quant_algo": "MXFP8", "group_size": 32}))}
LAYERS.update({f"model.layers.0.self_attn.{name}_proj": {"quant_algo": "FP8"} for name in "qkvo"})


def forms(from_base):
    global base
    base = from_base
    pack, plain = "pack-quantized", integers
    return {
        "kimi-k2-thinking": kimi_k2_thinking,
        "ct-float-channel": of_qwen3(compressed("float-quantized", group(8, "float", "channel")), floats, block=(1, 0),
                                     dtype="BF16"),
        "ct-float-tensor": of_qwen3(compressed("float-quantized", group(8, "float", "tensor")), floats, block=(0, 0),
                                    dtype="F16", shape=[1]),
        "ct-float-block": of_qwen3(compressed("float-quantized", group(8, "float", "block", block=[64, 48])), floats,
                                   block=(64, 48)),
        "ct-mxfp8": of_qwen3(compressed("mxfp8-quantized", group(8, "float", size=32)), floats, inner=160, block=(1, 32),
                             dtype="U8"),
        "ct-int-channel": of_qwen3(compressed("int-quantized", group(8, strategy="channel", symmetric=False)), plain,
                                   bits=8, packed=False, zeros=True),
        "ct-naive-tensor": of_qwen3(compressed("naive-quantized", group(8, strategy="tensor", symmetric=False)), plain,
                                    bits=8, packed=False, block=(0, 0), zeros=True, dtype="F32"),
        "ct-pack4": of_qwen3(compressed(pack, group(4, size=24)), plain, size=24, dtype="F16"),
        "ct-pack4-zeros": of_qwen3(compressed(pack, group(4, size=24, symmetric=False)), plain, size=24, zeros=True),
        "ct-pack4-order": of_qwen3(compressed(pack, group(4, size=24, symmetric=False)), plain, size=24, zeros=True,
                                   shuffled=True, dtype="F16"),
        "ct-pack8-channel": of_qwen3(compressed(pack, group(8, strategy="channel", symmetric=False)), plain, bits=8,
                                     zeros=True),
        "ct-pack4-tensor": of_qwen3(compressed(pack, group(4, strategy="tensor", symmetric=False)), plain, block=(0, 0),
                                    zeros=True, dtype="F32"),
        "ct-pack3-words": of_qwen3(compressed(pack, group(3, size=16, symmetric=False)), plain, bits=3, size=16,
                                   zeros=True, dense=False),
        "ct-pack-widths": of_qwen3(compressed(pack, *(group(b, size=16, symmetric=b % 2 == 0) for b in range(1, 9))),
                                   widths),
        "ct-nvfp4": of_qwen3(compressed("nvfp4-pack-quantized", group(4, "float", "tensor_group", 16)), nvfp4,
                             divides=True),
        "ct-mxfp4": of_qwen3(compressed("mxfp4-pack-quantized", group(4, "float", size=32)), mxfp4, inner=160),
        "ct-mixed": of_qwen3(compressed("mixed-precision", group(8, "float", "channel", fmt="float-quantized"),
                                        group(4, "float", "tensor_group", 16, fmt="nvfp4-pack-quantized"),
                                        group(8, size=32, fmt=pack), group(4, size=48, symmetric=False, fmt=pack)), mixed),
        "ct-small": lambda: base.small(compressed("mixed-precision", group(8, "float", "channel", fmt="float-quantized"),
                                                  group(4, "float", "tensor_group", 16, fmt="nvfp4-pack-quantized"),
                                                  group(4, size=8, symmetric=False, fmt=pack)), small_mixed),
        "modelopt-nvfp4": modelopt("NVFP4", lambda m, *a: nvfp4(m, *a, False), group_size=16),
        "modelopt-nvfp4-beside": modelopt("NVFP4", lambda m, *a: nvfp4(m, *a, False), True, group_size=16),
        "modelopt-nvfp4-bare": modelopt("NVFP4", lambda m, *a: nvfp4(m, *a, False), bare=True),
        "modelopt-fp8": modelopt("FP8", lambda m, *a: floats(m, *a, (0, 0), shape=[])),
        "modelopt-fp8-stacks": modelopt("FP8", modelopt_stacks, experts=3),
        "modelopt-fp8-blocks": modelopt("FP8_PB_WO", modelopt_blocks, group_size=32),
        "modelopt-int8": modelopt("W8A16", modelopt_bytes),
        "modelopt-mixed": modelopt("MIXED_PRECISION", modelopt_mixed, True, quantized_layers=LAYERS),
    }


# ---- defects -----------------------------------------------------------------------------------------


def numbers(m, ending, dtype):
    """The numbers of the first tensor with this suffix; put() writes changed ones back."""
    t = m.packed[base.some(m, ending)]
    return t, np.frombuffer(t.data, dtype).copy()


def weights_of(m):
    return m.quantization["config_groups"]["group_0"]["weights"]


def set_(m, ending, at, value, dtype):
    t, data = numbers(m, ending, dtype)
    data[at] = value
    t.data = data.tobytes()


def drop(ending):
    return lambda m: m.packed.pop(base.some(m, ending))


def change(**values):
    return lambda m: weights_of(m).update(values)


def rename(m, old, new):
    """Rename the first tensor with this suffix."""
    name = base.some(m, old)
    m.packed[name.removesuffix(old) + new] = m.packed.pop(name)


def reshape(m, ending, shape):
    m.packed[base.some(m, ending)].shape = shape


def add(m, ending, dtype, values):
    """Add a tensor beside the first weight."""
    name = base.some(m, "_scale").removesuffix("weight_scale")
    m.packed[name + ending] = base.Tensor(dtype, [len(values)], np.array(values))


def rename(m):
    """Codes and scales of a module whose name is unlike all others."""
    name = base.some(m, "_scale").removesuffix("weight_scale")
    for ending in ("", "_scale"):
        m.packed[name + "kernel" + ending] = m.packed.pop(name + "weight" + ending)


def with_two(m):
    """A second group that matches as well, with other parameters."""
    again = json.loads(json.dumps(m.quantization["config_groups"]["group_0"]))
    again["weights"]["block_structure"] = [65, 48]
    m.quantization["config_groups"]["group_1"] = again


SPOILS = {
    "no-zero-points": drop("_zero_point"), "no-shape": drop("_shape"), "no-global": drop(".weight_global_scale"),
    "no-second": drop("_scale_2"),
    "other-shape": lambda m: set_(m, "_shape", 0, 7, "<i8"),
    "second-zero": lambda m: set_(m, "_scale_2", 0, 0, "<f4"),
    "global-zero": lambda m: set_(m, ".weight_global_scale", 0, 0, "<f4"),
    "order-range": lambda m: set_(m, "_g_idx", 5, 99, "<i4"),
    "order-counts": lambda m: set_(m, "_g_idx", slice(0, 3), 1, "<i4"),
    "order-unset": lambda m: set_(m, "_g_idx", 5, -1, "<i4"),
    "symmetric": change(symmetric=True), "asymmetric": change(symmetric=False), "set-group-size": change(group_size=32),
    "no-group-size": change(group_size=None), "num-bits": change(num_bits=8), "bad-num-bits": change(num_bits="four"),
    "strategy": change(strategy="token"), "type": change(type="complex"), "structure": change(block_structure=[0, 48]),
    "no-groups": lambda m: m.quantization.pop("config_groups"),
    "two-groups": with_two,
    "sparse": lambda m: m.quantization.update(sparsity_config={"format": "sparse-24-bitmask"}),
    "marlin": lambda m: m.quantization.update(format="marlin-24"),
    "other-format": lambda m: m.quantization.update(format="float-quantized"),
    "wide-codes": lambda m: setattr(m.packed[base.some(m, "_packed")], "dtype", "U32"),
    "scale-u16": lambda m: setattr(m.packed[base.some(m, "_scale")], "dtype", "U16"),
    "stack-shape": lambda m: reshape(m, "down_proj_weight_scale", [1, 3]),
    "stack-bytes": lambda m: setattr(m.packed[base.some(m, "experts.down_proj")], "dtype", "I8"),
    "stack-missing": drop("down_proj_weight_scale"),
    "other-name": rename,
    "pre-quant": lambda m: add(m, "pre_quant_scale", "F32", np.float32([1, 2])),
    "algorithm": lambda m: m.quantization.update(quant_algo="W4A16_AWQ"),
    "other-algorithm": lambda m: m.quantization.update(quant_algo="FP8"),
    "nvfp4-group-size": lambda m: m.quantization.update(group_size=32),
}
