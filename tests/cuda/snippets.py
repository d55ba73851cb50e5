# SPDX-License-Identifier: Apache-2.0
"""Small kernels around a few instructions: each thread loads a set of operands, and stores the results. Operands are
random, mixed with special values of their type."""
import numpy as np

import ptx

HEAD = ".version 8.6\n.target sm_90\n.address_size 64\n"
BITS = {"pred": 1, "b8": 8, "u8": 8, "s8": 8, "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16,
        "b32": 32, "u32": 32, "s32": 32, "f32": 32, "f16x2": 32, "bf16x2": 32,
        "b64": 64, "u64": 64, "s64": 64, "f64": 64}
SPECIAL = {
    8: [0, 1, 2, 0x7f, 0x80, 0x81, 0xfe, 0xff, 0x7e, 0x7b, 0x7c, 0x7d, 0xfc],
    16: [0, 1, 2, 0x7fff, 0x8000, 0x8001, 0xffff, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 0x03ff, 0x0400, 0x7bff, 0x3f80,
         0x7f80, 0xff80, 0x7f7f, 0x0080, 0x007f, 0x3800, 0x5640, 15, 16, 17, 31],
    32: [0, 1, 2, 7, 8, 15, 16, 31, 32, 33, 63, 255, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff, 0xfffffffe,
         0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00001, 0x007fffff, 0x00800000, 0x7f7fffff, 0x3f000000,
         0x4b000001, 0x4f000000, 0xcf000000, 0x5f000000, 0x33800000, 0x38800000, 0x477fe000, 0x477ff000, 0x43e00000,
         0x3fc00000, 0x40200000, 0xc0200000, 0xbf000000, 0x397ffffe],
    64: [0, 1, 2, 31, 32, 63, 64, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 0x3ff0000000000000, 0xbff0000000000000,
         0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000001, 0x000fffffffffffff, 0x0010000000000000,
         0x7fefffffffffffff, 0x3fe0000000000000, (1 << 53) + 1, (1 << 62) + (1 << 38), 0x47efffffe0000000,
         0x47effffff0000000, 0x36a0000000000000, 0x3e60000000000001, 0x41dfffffffe00000],
}
PLAIN = {1: np.uint8, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
LANES = 1792


def operands(kind, rng, spread):
    """Bits of LANES operands; most floats have similar magnitudes, so that both operands affect sums."""
    bits = BITS[kind]
    if bits == 1:
        return rng.integers(0, 2, LANES).astype(np.uint8)
    value = rng.integers(0, 1 << bits, LANES, dtype=np.uint64)
    if kind in ("f16", "bf16", "f32", "f64"):
        near = {"f16": (0x3c00, 10), "bf16": (0x3f80, 7), "f32": (0x3f800000, 23), "f64": (0x3ff << 52, 52)}[kind]
        moved = np.uint64(near[0]) + (rng.integers(0, 12, LANES).astype(np.uint64) << np.uint64(near[1])) - \
            (np.uint64(6) << np.uint64(near[1])) + rng.integers(0, 1 << near[1], LANES).astype(np.uint64)
        moved |= rng.integers(0, 2, LANES).astype(np.uint64) << np.uint64(bits - 1)
        value = np.where(rng.random(LANES) < 0.7, moved, value)
    special = np.array(SPECIAL[bits], np.uint64)
    if kind in ("f16x2", "bf16x2"):
        halves = np.array(SPECIAL[16], np.uint64)
        special = rng.choice(halves, 64) | (rng.choice(halves, 64) << np.uint64(16))
    # All pairs of special values, and random triples.
    at = np.arange(len(special) * (len(special) if spread else 1))[:LANES * 6 // 7]
    value[:len(at)] = special[(at // len(special) if spread == 2 else at) % len(special)]
    if spread == 3:
        value[:len(at)] = rng.permutation(value[:len(at)])
    return value.astype(PLAIN[bits])


def kernel(body, ins, outs, declarations=""):
    """The kernel's text. Operands are %i0, %i1, ..., results %o0, ...; %t0 to %t7 and %w0 to %w7 are free, of 32 and 64
    bits, %h0 to %h7 of 16, %p0 to %p7 predicates."""
    names = [f".param .u64 k_{n}" for n in range(len(ins) + len(outs))]
    lines = [f".visible .entry k({', '.join(names)})", "{",
             "\t.reg .b32 %t<8>; .reg .b64 %w<8>; .reg .b16 %h<8>; .reg .pred %p<8>;",
             "\t.reg .b64 %ptr, %off; .reg .b32 %n, %m;", declarations,
             "\tmov.u32 %n, %ctaid.x;", "\tmov.u32 %m, %ntid.x;", "\tmul.lo.u32 %n, %n, %m;", "\tmov.u32 %m, %tid.x;",
             "\tadd.u32 %n, %n, %m;"]
    for way, kinds, first in (("i", ins, 0), ("o", outs, len(ins))):
        for n, kind in enumerate(kinds):
            register = "pred" if kind == "pred" else f"b{max(16, BITS[kind])}"
            lines.append(f"\t.reg .{register} %{way}{n};")
    for first, way, kinds in ((0, "i", ins), (len(ins), "o", outs)):
        if way == "o":
            lines.append(body)
        for n, kind in enumerate(kinds):
            size = max(1, BITS[kind] // 8)
            lines += [f"\tld.param.u64 %ptr, [k_{first + n}];", f"\tmul.wide.u32 %off, %n, {size};",
                      "\tadd.u64 %ptr, %ptr, %off;"]
            register = f"%{way}{n}"
            if kind == "pred" and way == "i":
                lines += ["\tld.global.u8 %m, [%ptr];", f"\tsetp.ne.u32 {register}, %m, 0;"]
            elif kind == "pred":
                lines += [f"\tselp.u32 %m, 1, 0, {register};", "\tst.global.u8 [%ptr], %m;"]
            else:
                lines.append(f"\tld.global.b{8 * size} {register}, [%ptr];" if way == "i" else
                             f"\tst.global.b{8 * size} [%ptr], {register};")
    return HEAD + "\n".join(line for line in lines if line) + "\n\tret;\n}\n"


def run(text, inputs, outs, block=256, lanes=None, **options):
    """Run it; returns the bits of the results. Inputs are arrays of bits."""
    lanes = lanes or len(inputs[0])
    memory = ptx.Memory()
    addresses = [memory.upload(array) for array in inputs]
    results = [memory.alloc(lanes * max(1, BITS[kind] // 8)) for kind in outs]
    counts = ptx.launch(ptx.load(text), "k", -(-lanes // block), min(block, lanes), addresses + results, memory,
                        **options)
    return [memory.download(at, PLAIN[BITS[kind]], lanes) for at, kind in zip(results, outs)], counts


def fault(text, block=32, grid=1, inputs=(), after=None, **options):
    """The fault of a launch of entry k, or None. `after`: a previous launch, which may still run."""
    memory = ptx.Memory()
    try:
        addresses = [memory.alloc(one) if isinstance(one, int) else memory.upload(one) for one in inputs]
        if after:
            ptx.launch(ptx.load(after), "k", grid, block, addresses, memory)
        ptx.launch(ptx.load(text), "k", grid, block, addresses, memory, dependent=bool(after), **options)
    except ptx.Fault as said:
        return str(said)
    return None
