#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Write a small Llama in the format of torch.save, and as safetensors: make-pytorch-checkpoint.py FORM TORCH PLAIN

TORCH is a folder or, for forms that begin with "zip", an archive TORCH.zip. Both have the same tensors, names, shapes
and config.json. With --spoil KIND, TORCH has one defect or oddity. Run without arguments for the lists of forms and
kinds. Pickles are made by Python's own pickler from classes named like those of PyTorch; archives have the layout of
its writer: members stored, each at a multiple of 64 bytes, with sizes after the data.
"""
import argparse
import io
import json
import os
import pickle
import struct
import sys
import types
import zipfile
import zlib
from collections import OrderedDict

import numpy as np

HIDDEN, INNER, LAYERS, HEADS, KV_HEADS, VOCAB = 64, 96, 2, 4, 2, 128

# ---- classes in a pickle of PyTorch ------------------------------------------------------------------


def module(name):
    return sys.modules.setdefault(name, types.ModuleType(name))


def named(where, name, value=None):
    value = value or type(name, (), {})
    value.__module__, value.__qualname__, value.__name__ = where, name, name
    setattr(module(where), name, value)
    return value


module("torch")
STORAGES = {"F32": ("FloatStorage", 4), "F16": ("HalfStorage", 2), "BF16": ("BFloat16Storage", 2),
            "F64": ("DoubleStorage", 8), "I64": ("LongStorage", 8), "BOOL": ("BoolStorage", 1),
            "Q8": ("QInt8Storage", 1)}
CLASSES = {dtype: named("torch", name) for dtype, (name, _) in STORAGES.items()}
UNTYPED = named("torch.storage", "UntypedStorage")
REBUILD = named("torch._utils", "_rebuild_tensor_v2", lambda *a: None)
REBUILD3 = named("torch._utils", "_rebuild_tensor_v3", lambda *a: None)
PARAMETER = named("torch._utils", "_rebuild_parameter", lambda *a: None)
FLOAT8 = named("torch", "float8_e4m3fn", lambda: None)
STRANGE = named("torch._utils", "_rebuild_sparse_tensor", lambda *a: None)


class Storage:
    def __init__(self, dtype, data, untyped=False):
        self.dtype, self.data, self.untyped, self.key, self.location = dtype, data, untyped, None, "cpu"
        self.claimed = self.alias = None


class Tensor:
    """A view of a storage; `function` is the name of its rebuild function."""

    said = None  # metadata beside its state, written by newer versions

    def __init__(self, storage, shape, stride=None, offset=0, parameter=False):
        self.storage, self.shape, self.offset, self.parameter = storage, tuple(shape), offset, parameter
        self.stride = tuple(contiguous(shape) if stride is None else stride)
        self.function = REBUILD3 if storage.untyped else REBUILD

    def __reduce_ex__(self, protocol):
        arguments = (self.storage, self.offset, self.shape, self.stride, False, OrderedDict())
        if self.storage.untyped:
            arguments += (FLOAT8,)
        if self.said:
            arguments += (self.said,)
        if self.parameter:
            return PARAMETER, (Tensor(self.storage, self.shape, self.stride, self.offset), True, OrderedDict())
        return self.function, arguments


class StateDict(OrderedDict):
    """A state_dict with attributes, such as that of a module: "_metadata"."""

    def __reduce__(self):
        metadata = OrderedDict([("", {"version": 1})])
        return OrderedDict, (), {"_metadata": metadata}, None, iter(self.items())


def contiguous(shape):
    stride, step = [], 1
    for size in reversed(shape):
        stride.insert(0, step)
        step *= size
    return stride


class Writer(pickle.Pickler):
    def __init__(self, file, protocol=2):
        super().__init__(file, protocol)
        self.storages = []

    def persistent_id(self, value):
        if not isinstance(value, Storage):
            return None
        if value.alias:
            value.key = value.alias.key
        elif value.key is None:
            value.key = str(len(self.storages))
            self.storages.append(value)
        size = 1 if value.untyped else STORAGES[value.dtype][1]
        count = len(value.data) // size if value.claimed is None else value.claimed
        return "storage", UNTYPED if value.untyped else CLASSES[value.dtype], value.key, value.location, count


# ---- archives ----------------------------------------------------------------------------------------


class Member:
    def __init__(self, name, data):
        self.name, self.data, self.stored = name, data, data
        self.flags, self.method, self.crc = 0x808, 0, zlib.crc32(data)
        self.size = self.compressed = len(data)
        self.local_name, self.at, self.extra = name.encode(), None, b""


def archive(members, comment=b"", zip64=True, edit=None, count=None):
    out = bytearray()
    for member in members:
        if member.at is not None:
            continue
        member.at = len(out)
        pad = -(len(out) + 30 + len(member.local_name) + 4) % 64
        local = struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 20, member.flags, member.method, 0, 0, 0, 0, 0,
                            len(member.local_name), 4 + pad)
        out += local + member.local_name + struct.pack("<2sH", b"FB", pad) + b"Z" * pad
        out += member.stored + struct.pack("<4sIII", b"PK\7\x08", member.crc, len(member.stored), len(member.data))
    start = len(out)
    for member in members:
        name = member.name.encode() if isinstance(member.name, str) else member.name
        out += struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\1\2", 0, 20, member.flags, member.method, 0, 0, member.crc,
                           member.compressed, member.size, len(name), len(member.extra), 0, 0, 0, 0, member.at)
        out += name + member.extra
    count = len(members) if count is None else count
    end = len(out)
    record = [b"PK\6\6", 44, 45, 45, 0, 0, count, count, end - start, start]
    locator = [b"PK\6\7", 0, end, 1]
    last = [b"PK\5\6", 0, 0, count, count, end - start, start, len(comment)]
    if edit:
        edit(record, locator, last)
    if zip64:
        out += struct.pack("<4sQHHIIQQQQ", *record) + struct.pack("<4sIQI", *locator)
    return bytes(out + struct.pack("<4sHHHHIIH", *last) + comment)


def torch_file(value, name="archive", spoil=None, protocol=2, pickled=None):
    """The bytes of a file in the format of torch.save."""
    text = io.BytesIO()
    writer = Writer(text, protocol)
    writer.dump(value)
    data = text.getvalue() if pickled is None else pickled(text.getvalue())
    members = [Member(f"{name}/data.pkl", data), Member(f"{name}/.format_version", b"1"),
               Member(f"{name}/.storage_alignment", b"64"), Member(f"{name}/byteorder", b"little")]
    members += [Member(f"{name}/data/{s.key}", s.data) for s in writer.storages]
    members += [Member(f"{name}/version", b"3\n"), Member(f"{name}/.data/serialization_id", b"0" * 40)]
    options = {}
    if spoil:
        spoil(members, options)
    return archive(members, **options)


# ---- the model ---------------------------------------------------------------------------------------


def to_dtype(w, dtype):
    if dtype == "BF16":
        bits = w.astype("<f4").view("<u4").astype(np.uint64)
        return ((bits + 0x7FFF + (bits >> np.uint64(16) & np.uint64(1))) >> np.uint64(16)).astype("<u2")
    return w.astype({"F32": "<f4", "F16": "<f2", "F64": "<f8"}[dtype])


def weights(dtype):
    shapes = OrderedDict([("model.embed_tokens.weight", (VOCAB, HIDDEN))])
    kv = HIDDEN // HEADS * KV_HEADS
    for layer in range(LAYERS):
        p = f"model.layers.{layer}."
        shapes.update({p + "self_attn.q_proj.weight": (HIDDEN, HIDDEN), p + "self_attn.k_proj.weight": (kv, HIDDEN),
                       p + "self_attn.v_proj.weight": (kv, HIDDEN), p + "self_attn.o_proj.weight": (HIDDEN, HIDDEN),
                       p + "mlp.gate_proj.weight": (INNER, HIDDEN), p + "mlp.up_proj.weight": (INNER, HIDDEN),
                       p + "mlp.down_proj.weight": (HIDDEN, INNER), p + "input_layernorm.weight": (HIDDEN,),
                       p + "post_attention_layernorm.weight": (HIDDEN,)})
    shapes.update({"model.norm.weight": (HIDDEN,), "lm_head.weight": (VOCAB, HIDDEN)})
    out = OrderedDict()
    for name, shape in shapes.items():
        random = np.random.default_rng(zlib.crc32(name.encode()))
        w = random.standard_normal(shape) * 0.02 * np.exp(random.standard_normal((*shape[:-1], 1)) * .5)
        out[name] = to_dtype(w if len(shape) > 1 else 1 + w, dtype)
    return out


def config(dtype):
    names = {"BF16": "bfloat16", "F16": "float16", "F32": "float32", "F64": "float64"}
    return {"architectures": ["LlamaForCausalLM"], "attention_bias": False, "head_dim": HIDDEN // HEADS,
            "hidden_act": "silu", "hidden_size": HIDDEN, "intermediate_size": INNER, "max_position_embeddings": 4096,
            "mlp_bias": False, "model_type": "llama", "num_attention_heads": HEADS, "num_hidden_layers": LAYERS,
            "num_key_value_heads": KV_HEADS, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
            "tie_word_embeddings": False, "torch_dtype": names[dtype], "vocab_size": VOCAB}


def safetensors(tensors, dtype):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, w in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(w.shape), "data_offsets": [len(data), len(data) + w.nbytes]}
        data += w.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def plainly(tensors, dtype):
    return StateDict((name, Tensor(Storage(dtype, w.tobytes()), w.shape)) for name, w in tensors.items())


def views(tensors, dtype):
    """Transposed matrices, slices of longer rows, slices of the rows of one storage, in turn; the last two in one
    storage with a gap."""
    out, shared, start = StateDict(), [], 0
    for w in tensors.values():
        if w.ndim == 1:
            shared += [w, np.zeros(3, w.dtype)]
    shared = Storage(dtype, np.concatenate(shared).tobytes())
    for i, (name, w) in enumerate(tensors.items()):
        if w.ndim == 1:
            out[name] = Tensor(shared, w.shape, offset=start)
            start += len(w) + 3
            continue
        rows, cols = w.shape
        if i % 4 == 0:
            out[name] = Tensor(Storage(dtype, w.T.tobytes()), w.shape, (1, rows))
        elif i % 4 == 1:
            wide = np.concatenate([np.ones((rows, 5), w.dtype), w, np.ones((rows, 2), w.dtype)], 1)
            out[name] = Tensor(Storage(dtype, wide.tobytes()), w.shape, (cols + 7, 1), 5)
        elif i % 4 == 2:
            tall = np.concatenate([w[:1] + 1, w.astype(w.dtype), w[:2]]).astype(w.dtype)
            out[name] = Tensor(Storage(dtype, tall.tobytes()), w.shape, (cols, 1), cols)
        else: # a transposed slice
            wide = np.concatenate([w.T, np.ones((cols, 3), w.dtype)], 1)
            out[name] = Tensor(Storage(dtype, wide.tobytes()), w.shape, (1, rows + 3))
    return out


def write(path, data):
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else (json.dumps(data, indent=1) + "\n").encode())


# ---- forms -------------------------------------------------------------------------------------------


def single(tensors, options):
    return {"pytorch_model.bin": torch_file(plainly(tensors, options.dtype), "pytorch_model")}


def strided(tensors, options):
    return {"pytorch_model.bin": torch_file(views(tensors, options.dtype))}


def parameters(tensors, options):
    """A training checkpoint under any name: parameters in a dict among other objects, some of them twice."""
    state = plainly(tensors, options.dtype)
    for tensor in state.values():
        tensor.parameter = True
    step = Tensor(Storage("I64", struct.pack("<q", 7)), ())
    whole = {"epoch": 3, "lr": [0.5, (1, None, True, -5, 1 << 40)], "step": step, "state_dict": state,
             "optimizer": {0: step}}
    return {"last.pth": torch_file(whole, "last")}


def sharded(tensors, options):
    names, files, index = list(tensors), {}, {}
    for i in range(2):
        file = f"pytorch_model-{i + 1:05d}-of-00002.bin"
        part = OrderedDict((n, tensors[n]) for n in names[i::2])
        files[file] = torch_file(plainly(part, options.dtype), file[:-4])
        index.update({n: file for n in part})
    files["pytorch_model.bin.index.json"] = {"metadata": {"total_size": 0}, "weight_map": index}
    return files


META = {"model.embed_tokens.weight": ("tok_embeddings.weight", None), "model.norm.weight": ("norm.weight", "same"),
        "lm_head.weight": ("output.weight", 0), "self_attn.q_proj.weight": ("attention.wq.weight", HEADS),
        "self_attn.k_proj.weight": ("attention.wk.weight", KV_HEADS),
        "self_attn.v_proj.weight": ("attention.wv.weight", 0),
        "self_attn.o_proj.weight": ("attention.wo.weight", 1), "mlp.gate_proj.weight": ("feed_forward.w1.weight", 0),
        "mlp.up_proj.weight": ("feed_forward.w3.weight", 0), "mlp.down_proj.weight": ("feed_forward.w2.weight", 1),
        "input_layernorm.weight": ("attention_norm.weight", "same"),
        "post_attention_layernorm.weight": ("ffn_norm.weight", "same")}
PARAMS = {"dim": HIDDEN, "n_layers": LAYERS, "n_heads": HEADS, "n_kv_heads": KV_HEADS, "vocab_size": -1,
          "norm_eps": 1e-05, "multiple_of": 32}


def interleaved(w, heads):
    """Rows of a head in Meta's order: alternating between its two halves."""
    return w.reshape(heads, 2, -1, w.shape[1]).transpose(0, 2, 1, 3).reshape(w.shape)


def meta(ranks, embedding):
    """Split among `ranks` files; `embedding` is the axis for that of tokens. If there are fewer heads of keys and
    values than files, each file has one."""
    def make(tensors, options):
        parts = [OrderedDict() for _ in range(ranks)]
        for name, w in tensors.items():
            layer = name.split(".")[2] if name.startswith("model.layers.") else None
            to, how = META[name if layer is None else name.split(".", 3)[3]]
            to = to if layer is None else f"layers.{layer}.{to}"
            if "wq" in to or "wk" in to:
                w, how = interleaved(w, how), 0
            how = embedding if how is None else how
            if "wk" in to or "wv" in to:
                w = np.repeat(w.reshape(KV_HEADS, -1, HIDDEN), max(1, ranks // KV_HEADS), axis=0).reshape(-1, HIDDEN)
            for i, part in enumerate(parts):
                part[to] = w if how == "same" else np.ascontiguousarray(np.array_split(w, ranks, how)[i])
        files = {"params.json": dict(PARAMS)}
        for i, part in enumerate(parts):
            state = plainly(part, options.dtype)
            # Meta's own files have each layer in one storage.
            state["rope.freqs"] = Tensor(Storage("F32", np.ones(8, "<f4").tobytes()), (8,))
            files[f"consolidated.{i:02d}.pth"] = torch_file(state, f"consolidated.{i:02d}")
        return files
    return make


def zipped(form, inside="", compression=zipfile.ZIP_STORED):
    def make(tensors, options):
        files = form(tensors, options)
        files.setdefault("config.json", config(options.dtype))
        if "params.json" in files:
            del files["config.json"]
        files["tokenizer.json"] = {"model": {}}
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", compression) as archive_:
            if inside:
                archive_.writestr(inside, b"")
            for name, data in files.items():
                archive_.writestr(inside + name, data if isinstance(data, bytes) else json.dumps(data, indent=1) + "\n")
        return {".zip": out.getvalue()}
    return make


def as_safetensors(tensors, options):
    return {"model.safetensors": safetensors(tensors, options.dtype)}


FORMS = {"single": single, "views": strided, "parameters": parameters, "sharded": sharded, "meta-1": meta(1, 0),
         "meta-2": meta(2, 1), "meta-2-rows": meta(2, 0), "meta-4": meta(4, 0),
         "zip-safetensors": zipped(as_safetensors, "model/"),
         "zip-single": zipped(single), "zip-sharded": zipped(sharded, "a/b/"), "zip-views": zipped(strided),
         "zip-meta": zipped(meta(2, 1)),
         "zip-compressed": zipped(as_safetensors, "", zipfile.ZIP_DEFLATED)}


# ---- defects -----------------------------------------------------------------------------------------


def tampered(change):
    """Change the pickle's bytes."""
    return lambda tensors, options: {"pytorch_model.bin": torch_file(plainly(tensors, options.dtype), pickled=change)}


def rezipped(change):
    return lambda tensors, options: {"pytorch_model.bin": torch_file(plainly(tensors, options.dtype), spoil=change)}


def restated(change, **keywords):
    """Change the state_dict: the returned object is saved instead."""
    def make(tensors, options):
        state = plainly(tensors, options.dtype)
        result = change(state)
        return {"pytorch_model.bin": torch_file(state if result is None else result, **keywords)}
    return make


def of_files(form, change):
    def make(tensors, options):
        files = form(tensors, options)
        change(files)
        return files
    return make


def member(members, ending):
    return next(m for m in members if m.name.endswith(ending))


def encrypted(members, options):
    member(members, "data/3").flags |= 1


def compressed(members, options):
    m = member(members, "data/3")
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    m.stored = deflate.compress(m.data) + deflate.flush()
    m.method, m.compressed = 8, len(m.stored)


def without_crc(*endings):
    """Without CRCs, like torch.save when told so; for members with this suffix, or all."""
    def change(members, options):
        for m in members:
            if not endings or m.name.endswith(endings):
                m.crc = 0
    return change


def renamed(name):
    def change(members, options):
        m = member(members, "data/3")
        m.name = name
        m.local_name = name if isinstance(name, bytes) else name.encode()
    return change


def twice(members, options):
    members.append(Member("archive/data/3", b"x" * 16))


def shared_header(members, options):
    m = Member("archive/data/99", member(members, "data/3").data)
    archive(members)
    m.at = member(members, "data/3").at
    for other in members:
        other.at = None
    order = members[:]
    members.append(m)
    # the offset of the other one
    at = 0
    for other in order:
        if other.name.endswith("data/3"):
            break
        at += 30 + len(other.local_name) + 4 + -(at + 30 + len(other.local_name) + 4) % 64 + len(other.stored) + 16
    m.at = at


def overlap(members, options):
    """A whole member inside the bytes of another."""
    inner = Member("archive/data/98", b"y" * 16)
    data = bytearray(member(members, "data/3").data)
    head = struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 20, 0x808, 0, 0, 0, 0, 0, 0, len(inner.local_name), 0)
    data[64:64 + len(head) + len(inner.local_name) + 16] = head + inner.local_name + b"y" * 16
    outer = member(members, "data/3")
    outer.data = outer.stored = bytes(data)
    at = 0
    for other in members:
        start = at + 30 + len(other.local_name) + 4
        start += -start % 64
        if other is outer:
            break
        at = start + len(other.stored) + 16
    inner.at = start + 64
    members.append(inner)


def other_name(members, options):
    member(members, "data/3").local_name = b"archive/data/4"


def other_size(members, options):
    m = member(members, "data/3")
    m.size = m.compressed = m.size - 2


def unlike(members, options):
    member(members, "data/3").size += 2


def full32(extra):
    def change(members, options):
        m = member(members, "data/3")
        m.extra = extra(m)
        m.size = m.compressed = 0xffffffff
    return change


def end(**changes):
    """Fields of the three records at the end: 64-bit record, locator, last."""
    def change(members, options):
        def edit(record, locator, last):
            for name, value in changes.items():
                where, at = name.split("_")
                {"record": record, "locator": locator, "last": last}[where][int(at)] = value
        options["edit"] = edit
    return change


def with_member(name, data):
    return lambda members, options: members.append(Member("archive/" + name, data))


def changed_member(name, data):
    def change(members, options):
        m = member(members, name)
        m.data = m.stored = data
        m.size = m.compressed = len(data)
    return change


def without(ending):
    def change(members, options):
        members.remove(member(members, ending))
    return change


Q = "model.layers.0.self_attn.q_proj.weight"


def tensor(**changes):
    def change(state):
        for name, value in changes.items():
            setattr(state[Q], name, value)
    return change


def storage(**changes):
    def change(state):
        for name, value in changes.items():
            setattr(state[Q].storage, name, value)
    return change


def other_class(state):
    """Two tensors of one storage, with different classes."""
    second = Storage("F16", state[Q].storage.data)
    state["z.weight"] = Tensor(second, state[Q].shape)
    second.alias = state[Q].storage


class Harmful:
    def __reduce__(self):
        return os.system, ("touch harmed",)


class Strange:
    def __reduce__(self):
        return STRANGE, (1,)


def itself(state):
    state["again"] = state


def around(state):
    first, second = {}, {}
    first["x"], second["x"] = second, first
    state["round"] = first


def deep(state):
    sys.setrecursionlimit(10**6)
    nest = []
    for _ in range(900):
        nest = [nest]
    state["nest"] = nest


OLD = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e\x80\x02M\xe9\x03." + bytes(64)
HEAD = b"\x80\x02}("


def put_file(name, data):
    return lambda tensors, options: {name: data}


KINDS = {
    # of the archive
    "truncated": of_files(single, lambda f: f.update({"pytorch_model.bin": f["pytorch_model.bin"][:-200]})),
    "cut-in-data": of_files(single, lambda f: f.update({"pytorch_model.bin": f["pytorch_model.bin"][:9000]})),
    "empty": put_file("pytorch_model.bin", b""),
    "text": put_file("pytorch_model.bin", b"version https://git-lfs.github.com/spec/v1\n"),
    "old-layout": put_file("pytorch_model.bin", OLD),
    "before": of_files(single, lambda f: f.update({"pytorch_model.bin": b"PK\3\4" + f["pytorch_model.bin"]})),
    "no-crc": rezipped(without_crc()), "some-crc": rezipped(without_crc("data/3", "version")),
    "encrypted": rezipped(encrypted), "compressed": rezipped(compressed),
    "absolute": rezipped(renamed("/etc/data/3")),
    "escape": rezipped(renamed("archive/../../data/3")), "backslash": rezipped(renamed("archive\\data\\3")),
    "nul": rezipped(renamed("archive/da\0ta/3")), "twice": rezipped(twice), "shared-header": rezipped(shared_header),
    "overlap": rezipped(overlap), "other-name": rezipped(other_name), "other-size": rezipped(other_size),
    "unlike": rezipped(unlike), "no-zip64": rezipped(full32(lambda m: b"")),
    "short-zip64": rezipped(full32(lambda m: struct.pack("<HHQ", 1, 8, m.size))),
    "huge-zip64": rezipped(full32(lambda m: struct.pack("<HHQQ", 1, 16, 1 << 63, 1 << 63))),
    "good-zip64": rezipped(full32(lambda m: struct.pack("<HHHHQQ", 9, 0, 1, 16, len(m.data), len(m.data)))),
    "count": rezipped(end(record_6=5, record_7=5, last_3=5, last_4=5)),
    "huge-count": rezipped(end(record_6=1 << 63, record_7=1 << 63, last_3=0xffff, last_4=0xffff)),
    "huge-directory": rezipped(end(record_8=1 << 63, last_5=0xffffffff)),
    "contradiction": rezipped(end(last_6=77)), "disks": rezipped(end(record_4=1)), "locator": rezipped(end(locator_2=9)),
    "comment": rezipped(lambda members, options: options.update(comment=b"a comment")),
    # of its members
    "no-pickle": rezipped(without("data.pkl")), "torchscript": rezipped(with_member("constants.pkl", b"x")),
    "big-endian": rezipped(changed_member("byteorder", b"big")), "no-storage": rezipped(without("data/3")),
    "old-archive": rezipped(without("byteorder")),
    # of the pickle
    "global": restated(lambda s: s.update(x=Harmful())), "rebuilder": restated(lambda s: s.update(x=Strange())),
    "quantized": restated(lambda s: s.update(x=Tensor(Storage("Q8", b"abcd"), (4,)))),
    "protocol": restated(lambda s: None, protocol=4),
    "opcode": tampered(lambda b: HEAD + b"X\1\0\0\0aI5\nu."), "cut": tampered(lambda b: b[:-30]),
    "goes-on": tampered(lambda b: b + b"N."), "no-mark": tampered(lambda b: HEAD[:3] + b"NNu."),
    "memo": tampered(lambda b: HEAD + b"h\7h\7u."), "far-memo": tampered(lambda b: HEAD + b"Nr\xff\xff\xff\x7f"),
    "long-text": tampered(lambda b: HEAD + b"X\xff\xff\xff\xffabc"),
    "utf8": tampered(lambda b: b.replace(b"q_proj", b"q\xffproj")),
    "flood": tampered(lambda b: HEAD + b"N" * 3000000), "dicts": tampered(lambda b: HEAD + b"}" * 3000000),
    "marks": tampered(lambda b: HEAD + b"(" * 3000000),
    "wide-number": tampered(lambda b: HEAD + b"\x8a\x09" + bytes(9) + b"Nu."),
    "itself": restated(itself), "round": restated(around), "deep": restated(deep),
    "attributes": tampered(lambda b: b"\x80\x02]}b."), "call": tampered(lambda b: b"\x80\x02ctorch\nFloatStorage\n)R."),
    "one": restated(lambda s: s[Q]), "list": restated(lambda s: list(s.values())),
    "nothing": restated(lambda s: {"model": {"a": 1}, "b": 2}),
    # of tensors
    "past": restated(tensor(offset=1)), "huge-offset": restated(tensor(offset=2**63 - 1)),
    "negative": restated(tensor(offset=-1)), "negative-size": restated(tensor(shape=(-1, -4096))),
    "huge-shape": restated(tensor(shape=(2**62, 2**62))), "stride": restated(tensor(stride=(2**62, 2**62))),
    "ranks": restated(tensor(shape=(64, 64), stride=(1,))), "rank": restated(tensor(shape=(1,) * 9, stride=(1,) * 9)),
    "expanded": restated(tensor(stride=(0, 1))), "windows": restated(tensor(shape=(60, 64), stride=(1, 1))),
    "every-other": restated(tensor(shape=(32, 32), stride=(128, 2))),
    "storage-size": restated(storage(claimed=4095)), "storage-huge": restated(storage(claimed=2**62)),
    "negated": restated(tensor(said={"conj": False, "neg": True})), "conjugated": restated(tensor(said={"conj": True})),
    "meta-device": restated(storage(location="meta")), "key": restated(storage(key="../x")),
    "classes": restated(other_class),
    "long-name": restated(lambda s: s.update({"n" * 2000: s[Q]})),
    # of several files
    "missing-shard": of_files(sharded, lambda f: f.pop("pytorch_model-00002-of-00002.bin")),
    "no-index": of_files(sharded, lambda f: f.pop("pytorch_model.bin.index.json")),
    "index-escape": of_files(sharded, lambda f: f["pytorch_model.bin.index.json"]["weight_map"].update(
        {Q: "../pytorch_model-00001-of-00002.bin"})),
    "index-other": of_files(sharded, lambda f: f["pytorch_model.bin.index.json"]["weight_map"].update(
        {Q: "x.safetensors"})),
    "index-more": of_files(sharded, lambda f: f["pytorch_model.bin.index.json"]["weight_map"].update(
        {"zz": "pytorch_model-00001-of-00002.bin"})),
    "in-two": of_files(sharded, lambda f: f.update({"pytorch_model-00002-of-00002.bin":
                                                    f["pytorch_model-00001-of-00002.bin"]})),
    # of Meta's
    "missing-part": of_files(meta(2, 1), lambda f: f.pop("consolidated.00.pth")),
    "no-params": of_files(meta(2, 1), lambda f: f.pop("params.json")),
    "heads": of_files(meta(2, 1), lambda f: f["params.json"].update(n_kv_heads=4)),
    "copies": of_files(meta(2, 1), lambda f: f["params.json"].update(n_kv_heads=1)),
    "odd-width": of_files(meta(2, 1), lambda f: f["params.json"].update(n_heads=3)),
    "no-dim": of_files(meta(2, 1), lambda f: f["params.json"].update(dim="64")),
    "other-model": lambda tensors, options: of_files(meta(1, 0), lambda f: f.update(
        {"consolidated.00.pth": torch_file(plainly({"layers.0.feed_forward.experts.w1": np.ones((2, 2), "<u2")}, "BF16"))}))(
            tensors, options),
    "unlike-parts": of_files(meta(2, 1), lambda f: f.update({"consolidated.01.pth": torch_file(
        plainly({"norm.weight": np.ones(4, "<u2")}, "BF16"))})),
}


def write_torch(folder, files, options):
    os.makedirs(folder)
    if "params.json" not in files and not any(name.startswith("consolidated") for name in files):
        files["config.json"] = config(options.dtype)
    for name, data in files.items():
        write(folder + "/" + name, data)


def main():
    parser = argparse.ArgumentParser(epilog="forms: " + " ".join(FORMS) + "; kinds: " + " ".join(KINDS))
    parser.add_argument("form", choices=FORMS)
    parser.add_argument("torch")
    parser.add_argument("plain")
    parser.add_argument("--dtype", default="BF16", choices=("BF16", "F16", "F32", "F64"))
    parser.add_argument("--spoil", choices=[*KINDS, "each"], help="each: all kinds, in folders of these names below torch")
    options = parser.parse_args()
    tensors = weights(options.dtype)
    os.makedirs(options.plain)
    write(options.plain + "/model.safetensors", safetensors(tensors, options.dtype))
    write(options.plain + "/config.json", config(options.dtype))
    if options.spoil == "each":
        for kind, make in KINDS.items():
            write_torch(f"{options.torch}/{kind}", make(OrderedDict(tensors), options), options)
        return
    files = (KINDS[options.spoil] if options.spoil else FORMS[options.form])(tensors, options)
    if ".zip" in files:
        write(options.torch + ".zip", files[".zip"])
    else:
        write_torch(options.torch, files, options)


main()
