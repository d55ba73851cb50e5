# SPDX-License-Identifier: Apache-2.0
"""Arithmetic, bits, comparisons and conversions: (instructions, types of operands, types of results, meaning). The
meaning maps integers to integers: signed types are signed numbers, floats are bits; results are truncated to their
width. A result of None is unspecified."""
from fractions import Fraction

from reference import (FORMATS, NAN, add, decoded, divide, encoded, fma, least, multiply, root, signed, to_integer)
from snippets import BITS

CASES = []


def case(text, ins, outs, meaning):
    CASES.append((text, ins.split(), outs.split(), meaning))


def line(opcode, count):
    return f"{opcode} %o0, " + ", ".join(f"%i{n}" for n in range(count)) + ";"


def same(opcode, kinds, meaning, count=2):
    """An instruction whose operands and result have the same type."""
    for kind in kinds.split():
        case(line(f"{opcode}.{kind}", count), " ".join([kind] * count), kind,
             lambda *v, kind=kind: meaning(*v, bits=BITS[kind]))


INTEGERS = "u16 s16 u32 s32 u64 s64"
same("add", INTEGERS, lambda a, b, bits: a + b)
same("sub", INTEGERS, lambda a, b, bits: a - b)
same("mul.lo", INTEGERS, lambda a, b, bits: a * b)
same("mul.hi", INTEGERS, lambda a, b, bits: a * b >> bits)
same("mad.lo", INTEGERS, lambda a, b, c, bits: a * b + c, 3)
same("mad.hi", "u32 s32 u64 s64", lambda a, b, c, bits: (a * b >> bits) + c, 3)
same("min", INTEGERS, lambda a, b, bits: min(a, b))
same("max", INTEGERS, lambda a, b, bits: max(a, b))
same("sad", INTEGERS, lambda a, b, c, bits: abs(a - b) + c, 3)
same("abs", "s16 s32 s64", lambda a, bits: abs(a), 1)
same("neg", "s16 s32 s64", lambda a, bits: -a, 1)
same("and", "b16 b32 b64", lambda a, b, bits: a & b)
same("or", "b16 b32 b64", lambda a, b, bits: a | b)
same("xor", "b16 b32 b64", lambda a, b, bits: a ^ b)
same("not", "b16 b32 b64", lambda a, bits: ~a, 1)
same("cnot", "b16 b32 b64", lambda a, bits: a == 0, 1)
case("and.pred %o0, %i0, %i1;", "pred pred", "pred", lambda a, b: a & b)
case("or.pred %o0, %i0, %i1;", "pred pred", "pred", lambda a, b: a | b)
case("xor.pred %o0, %i0, %i1;", "pred pred", "pred", lambda a, b: a ^ b)
case("not.pred %o0, %i0;", "pred", "pred", lambda a: 1 - a)
case("mov.pred %o0, %i0;", "pred", "pred", lambda a: a)
case("add.sat.s32 %o0, %i0, %i1;", "s32 s32", "s32", lambda a, b: max(-1 << 31, min((1 << 31) - 1, a + b)))
case("sub.sat.s32 %o0, %i0, %i1;", "s32 s32", "s32", lambda a, b: max(-1 << 31, min((1 << 31) - 1, a - b)))
for narrow, wide in (("u16", "u32"), ("s16", "s32"), ("u32", "u64"), ("s32", "s64")):
    case(f"mul.wide.{narrow} %o0, %i0, %i1;", f"{narrow} {narrow}", wide, lambda a, b: a * b)
    case(f"mad.wide.{narrow} %o0, %i0, %i1, %i2;", f"{narrow} {narrow} {wide}", wide, lambda a, b, c: a * b + c)
for kind in ("u32", "s32"):
    def low24(a, kind=kind):
        return signed(a & 0xffffff, 24) if kind[0] == "s" else a & 0xffffff
    case(f"mul24.lo.{kind} %o0, %i0, %i1;", f"{kind} {kind}", kind, lambda a, b, f=low24: f(a) * f(b))
    case(f"mad24.lo.{kind} %o0, %i0, %i1, %i2;", f"{kind} {kind} {kind}", kind, lambda a, b, c, f=low24: f(a) * f(b) + c)
for kind in INTEGERS.split():
    def toward_zero(a, b):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    set_one = f"setp.eq.{kind} %p0, %i1, 0; selp.{kind.replace('s', 'b').replace('u', 'b')} %i1, 3, %i1, %p0; "
    case(f"{set_one}div.{kind} %o0, %i0, %i1;", f"{kind} {kind}", kind, lambda a, b: toward_zero(a, b or 3))
    case(f"{set_one}rem.{kind} %o0, %i0, %i1;", f"{kind} {kind}", kind, lambda a, b: a - toward_zero(a, b or 3) * (b or 3))
case("add.cc.u32 %o0, %i0, %i2; addc.cc.u32 %o1, %i1, %i3; addc.u32 %o2, 0, 0;", "u32 u32 u32 u32", "u32 u32 u32",
     lambda a, b, c, d: [(a + (b << 32) + c + (d << 32)) >> n for n in (0, 32, 64)])
case("sub.cc.u32 %o0, %i0, %i2; subc.cc.u32 %o1, %i1, %i3; subc.u32 %o2, 0, 0;", "u32 u32 u32 u32", "u32 u32 u32",
     lambda a, b, c, d: [(a + (b << 32) - c - (d << 32)) >> n for n in (0, 32, 64)])
case("add.cc.u64 %o0, %i0, %i1; addc.u64 %o1, %i0, %i1;", "u64 u64", "u64 u64",
     lambda a, b: [a + b, a + b + (a + b >> 64)])

# ---- shifts and bits

for kind in ("b16", "b32", "b64"):
    case(f"shl.{kind} %o0, %i0, %i1;", f"{kind} u32", kind, lambda a, b, n=BITS[kind]: a << b if b < n else 0)
for kind in ("u16", "u32", "u64", "s16", "s32", "s64"):
    case(f"shr.{kind} %o0, %i0, %i1;", f"{kind} u32", kind, lambda a, b, n=BITS[kind]: a >> min(b, n))
case("shr.b32 %o0, %i0, 33;", "u32", "u32", lambda a: 0)
for mode in ("wrap", "clamp"):
    def by(c, mode=mode):
        return c & 31 if mode == "wrap" else min(c, 32)
    case(f"shf.l.{mode}.b32 %o0, %i0, %i1, %i2;", "u32 u32 u32", "u32",
         lambda a, b, c, by=by: (b << 32 | a) << by(c) >> 32)
    case(f"shf.r.{mode}.b32 %o0, %i0, %i1, %i2;", "u32 u32 u32", "u32", lambda a, b, c, by=by: (b << 32 | a) >> by(c))


def table(a, b, c, truth):
    return sum(1 << n for n in range(32) if truth >> ((a >> n & 1) * 4 + (b >> n & 1) * 2 + (c >> n & 1)) & 1)


for truth in (0x00, 0xff, 0x01, 0x80, 0x96, 0xe8, 0xca, 0xac, 0x1b, 0x6a, 0xf8, 0x78, 0x27, 0xd8, 0xea, 0x4d, 0x7e):
    case(f"lop3.b32 %o0, %i0, %i1, %i2, {truth:#x};", "u32 u32 u32", "u32",
         lambda a, b, c, truth=truth: table(a, b, c, truth))


def permuted(a, b, fields, sign=True):
    both = b << 32 | a
    result = 0
    for n, field in enumerate(fields):
        byte = both >> 8 * (field & 7) & 255
        if field & 8 and sign:
            byte = 255 if byte & 128 else 0
        result |= byte << 8 * n
    return result


case("prmt.b32 %o0, %i0, %i1, %i2;", "u32 u32 u32", "u32",
     lambda a, b, c: permuted(a, b, [c >> 4 * n & 15 for n in range(4)]))
for selector in (0x0123, 0x7654, 0x5410, 0xba98, 0x8f37, 0x4440):
    case(f"prmt.b32 %o0, %i0, %i1, {selector:#x}U;", "u32 u32", "u32",
         lambda a, b, c=selector: permuted(a, b, [c >> 4 * n & 15 for n in range(4)]))
for mode, meaning in (("f4e", lambda s, n: s + n), ("b4e", lambda s, n: (s - n) % 8), ("rc8", lambda s, n: s),
                      ("ecl", lambda s, n: max(s, n)), ("ecr", lambda s, n: min(s, n)),
                      ("rc16", lambda s, n: 2 * (s & 1) + (n & 1))):
    case(f"prmt.b32.{mode} %o0, %i0, %i1, %i2;", "u32 u32 u32", "u32",
         lambda a, b, c, f=meaning: permuted(a, b, [f(c & 3, n) for n in range(4)]))


def field(a, at, many, bits, is_signed):
    at, many = at & 255, many & 255
    raw = a & ((1 << bits) - 1)
    if not many:
        return 0
    top = raw >> min(at + many - 1, bits - 1) & 1 if is_signed else 0
    return sum((raw >> (at + n) & 1 if n < many and at + n < bits else top) << n for n in range(bits))


for kind in ("u32", "s32", "u64", "s64"):
    case(f"bfe.{kind} %o0, %i0, %i1, %i2;", f"{kind} u32 u32", kind,
         lambda a, b, c, kind=kind: field(a, b, c, BITS[kind], kind[0] == "s"))
    case(f"and.b32 %t0, %i1, 31; and.b32 %t1, %i2, 31; bfe.{kind} %o0, %i0, %t0, %t1;", f"{kind} u32 u32", kind,
         lambda a, b, c, kind=kind: field(a, b & 31, c & 31, BITS[kind], kind[0] == "s"))
    top = "u" + kind[1:]
    case(f"bfind.{kind} %o0, %i0;", kind, "u32", lambda a: (a if a >= 0 else ~a).bit_length() - 1)
    case(f"bfind.shiftamt.{kind} %o0, %i0;", kind, "u32", lambda a, bits=BITS[kind]:
         bits - (a if a >= 0 else ~a).bit_length() if (a if a >= 0 else ~a) else -1)


def inserted(a, b, at, many, bits):
    at, many = at & 255, many & 255
    for n in range(many):
        if at + n < bits:
            b = b & ~(1 << at + n) | (a >> n & 1 if n < bits else 0) << at + n
    return b


for kind in ("b32", "b64"):
    case(f"bfi.{kind} %o0, %i0, %i1, %i2, %i3;", f"{kind} {kind} u32 u32", kind,
         lambda a, b, c, d, n=BITS[kind]: inserted(a, b, c, d, n))
    case(f"and.b32 %t0, %i2, 31; and.b32 %t1, %i3, 31; bfi.{kind} %o0, %i0, %i1, %t0, %t1;", f"{kind} {kind} u32 u32",
         kind, lambda a, b, c, d, n=BITS[kind]: inserted(a, b, c & 31, d & 31, n))
    case(f"popc.{kind} %o0, %i0;", kind, "u32", lambda a: bin(a).count("1"))
    case(f"clz.{kind} %o0, %i0;", kind, "u32", lambda a, n=BITS[kind]: n - a.bit_length())
    case(f"brev.{kind} %o0, %i0;", kind, kind, lambda a, n=BITS[kind]: int(f"{a:0{n}b}"[::-1], 2))
for mode in ("clamp", "wrap"):
    case(f"bmsk.{mode}.b32 %o0, %i0, %i1;", "u32 u32", "u32", lambda a, b, mode=mode:
         ((1 << (b & 31)) - 1) << (a & 31) if mode == "wrap" else ((1 << min(b, 32)) - 1) << min(a, 32))


def dotted(a, b, c, kinds, size_a, size_b, first=0):
    def part(value, kind, size, n):
        raw = value >> size * n & ((1 << size) - 1)
        return signed(raw, size) if kind == "s32" else raw
    return c + sum(part(a, kinds[0], size_a, n) * part(b, kinds[1], size_b, n + first) for n in range(32 // size_a))


for kinds in (("u32", "u32"), ("u32", "s32"), ("s32", "u32"), ("s32", "s32")):
    sums = "s32" if "s32" in kinds else "u32"
    case(f"dp4a.{kinds[0]}.{kinds[1]} %o0, %i0, %i1, %i2;", f"b32 b32 {sums}", sums,
         lambda a, b, c, kinds=kinds: dotted(a, b, c, kinds, 8, 8))
    for half in ("lo", "hi"):
        case(f"dp2a.{half}.{kinds[0]}.{kinds[1]} %o0, %i0, %i1, %i2;", f"b32 b32 {sums}", sums,
             lambda a, b, c, kinds=kinds, half=half: dotted(a, b, c, kinds, 16, 8, 2 * (half == "hi")))

# ---- comparisons and choices

COMPARE = {"eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
           "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b}
for kind in INTEGERS.split():
    for name, meaning in COMPARE.items():
        case(f"setp.{name}.{kind} %o0, %i0, %i1;", f"{kind} {kind}", "pred", meaning)
for name, meaning in (("lo", "lt"), ("ls", "le"), ("hi", "gt"), ("hs", "ge")):
    case(f"setp.{name}.u32 %o0, %i0, %i1;", "u32 u32", "pred", COMPARE[meaning])


def ordered(a, b, kind, name):
    x, y = decoded(a, kind)[1], decoded(b, kind)[1]
    if name in ("num", "nan"):
        return (NAN in (x, y)) == (name == "nan")
    if NAN in (x, y):
        return name[-1] == "u" and name != "u"
    order = {"-inf": -(1 << 2000), "+inf": 1 << 2000}
    return COMPARE[name[:2]](order.get(x, x), order.get(y, y))


for kind in ("f16", "bf16", "f32", "f64"):
    for name in [*COMPARE, *(name + "u" for name in COMPARE), "num", "nan"]:
        if kind in ("f32", "f16") or name in ("lt", "neu", "nan"):
            case(f"setp.{name}.{kind} %o0, %i0, %i1;", f"{kind} {kind}", "pred",
                 lambda a, b, kind=kind, name=name: ordered(a, b, kind, name))
for name, meaning in (("and", lambda a, b: a & b), ("or", lambda a, b: a | b), ("xor", lambda a, b: a ^ b)):
    case(f"setp.lt.{name}.s32 %o0|%o1, %i0, %i1, %i2;", "s32 s32 pred", "pred pred",
         lambda a, b, c, f=meaning: [f(a < b, c), f(a >= b, c)])
case("setp.lt.and.s32 %o0, %i0, %i1, !%i2;", "s32 s32 pred", "pred", lambda a, b, c: a < b and not c)
case("set.gt.u32.s32 %o0, %i0, %i1;", "s32 s32", "u32", lambda a, b: -(a > b))
case("set.le.s32.f32 %o0, %i0, %i1;", "f32 f32", "s32", lambda a, b: -ordered(a, b, "f32", "le"))
case("set.ltu.f32.f32 %o0, %i0, %i1;", "f32 f32", "f32", lambda a, b: 0x3f800000 * ordered(a, b, "f32", "ltu"))
for kind in ("b16", "b32", "b64", "f32", "s64"):
    case(f"selp.{kind} %o0, %i0, %i1, %i2;", f"{kind} {kind} pred", kind, lambda a, b, c: a if c else b)
case("slct.s32.s32 %o0, %i0, %i1, %i2;", "s32 s32 s32", "s32", lambda a, b, c: a if c >= 0 else b)
case("slct.b32.f32 %o0, %i0, %i1, %i2;", "b32 b32 f32", "b32",
     lambda a, b, c: a if decoded(c, "f32")[1] != NAN and (c >> 31 == 0 or c == 1 << 31) else b)

# ---- floats

for kind in ("f16", "bf16", "f32", "f64"):
    def of(function, kind, mode="rn", count=2, **options):
        return lambda *v: function(*[decoded(bits, kind) for bits in v[:count]], kind, mode, **options)
    sign_bit = 1 << BITS[kind] - 1

    def minus(a, b, kind, mode):
        return add(a, (1 - b[0], b[1] if isinstance(b[1], str) and b[1] == NAN else
                       {"+inf": "-inf", "-inf": "+inf"}.get(b[1]) or -b[1]), kind, mode)
    for mode in ("rn", "rz", "rm", "rp") if kind == "f32" else ("rn",):
        case(f"add.{mode}.{kind} %o0, %i0, %i1;", f"{kind} {kind}", kind, of(add, kind, mode))
        case(f"sub.{mode}.{kind} %o0, %i0, %i1;", f"{kind} {kind}", kind, of(minus, kind, mode))
        case(f"mul.{mode}.{kind} %o0, %i0, %i1;", f"{kind} {kind}", kind, of(multiply, kind, mode))
        case(f"fma.{mode}.{kind} %o0, %i0, %i1, %i2;", f"{kind} {kind} {kind}", kind, of(fma, kind, mode, 3))
    for name in ("min", "max"):
        for nan in ((False, True) if kind != "f64" else (False,)):
            case(f"{name}{'.NaN' if nan else ''}.{kind} %o0, %i0, %i1;", f"{kind} {kind}", kind,
                 lambda a, b, kind=kind, name=name, nan=nan:
                 least(decoded(a, kind), decoded(b, kind), name == "max", nan, kind, (a, b)))
    case(f"abs.{kind} %o0, %i0;", kind, kind, lambda a, s=sign_bit: a & ~s)
    case(f"neg.{kind} %o0, %i0;", kind, kind, lambda a, s=sign_bit: a ^ s)
    if kind in ("f32", "f64"):
        case(f"div.rn.{kind} %o0, %i0, %i1;", f"{kind} {kind}", kind,
             lambda a, b, kind=kind: divide(decoded(a, kind), decoded(b, kind), kind))
        case(f"rcp.rn.{kind} %o0, %i0;", kind, kind,
             lambda a, kind=kind: divide((0, 1), decoded(a, kind), kind))
        case(f"sqrt.rn.{kind} %o0, %i0;", kind, kind, lambda a, kind=kind: root(decoded(a, kind), kind))
        case(f"copysign.{kind} %o0, %i0, %i1;", f"{kind} {kind}", kind,
             lambda a, b, s=sign_bit: a & s | b & ~s)
        case(f"testp.finite.{kind} %o0, %i0;", kind, "pred",
             lambda a, kind=kind: decoded(a, kind)[1] not in (NAN, "+inf", "-inf"))
        case(f"testp.notanumber.{kind} %o0, %i0;", kind, "pred", lambda a, kind=kind: decoded(a, kind)[1] == NAN)
        case(f"testp.number.{kind} %o0, %i0;", kind, "pred", lambda a, kind=kind: decoded(a, kind)[1] != NAN)
        case(f"testp.infinite.{kind} %o0, %i0;", kind, "pred",
             lambda a, kind=kind: decoded(a, kind)[1] in ("+inf", "-inf"))
        case(f"testp.subnormal.{kind} %o0, %i0;", kind, "pred", lambda a, kind=kind:
             0 < a & ((1 << BITS[kind] - 1) - 1) < 1 << FORMATS[kind][0])
        case(f"testp.normal.{kind} %o0, %i0;", kind, "pred", lambda a, kind=kind:
             0 < (a >> FORMATS[kind][0]) & ((1 << FORMATS[kind][1]) - 1) < (1 << FORMATS[kind][1]) - 1)
# 1 + 2^-23 + 2^-24 - 2^-70: rounded to a double first, it would be a tie.
case("fma.rn.f32 %o0, %i0, 0f39800001, 0f3F800001;", "f32", "f32",
     lambda a: fma(*[decoded(v, "f32") for v in (a, 0x39800001, 0x3f800001)], "f32"))
for kind in ("f32", "f16"):
    def clamped(bits, kind):
        value = decoded(bits, kind)[1]
        one = 0x3f800000 if kind == "f32" else 0x3c00
        return 0 if value == NAN or value == "-inf" or value != "+inf" and value <= 0 else \
            one if value == "+inf" or value >= 1 else bits
    case(f"add.rn.sat.{kind} %o0, %i0, %i1;", f"{kind} {kind}", kind,
         lambda a, b, kind=kind: clamped(add(decoded(a, kind), decoded(b, kind), kind), kind))
    case(f"fma.rn.sat.{kind} %o0, %i0, %i1, %i2;", f"{kind} {kind} {kind}", kind, lambda a, b, c, kind=kind:
         clamped(fma(*[decoded(v, kind) for v in (a, b, c)], kind), kind))
for kind in ("f16", "bf16"):
    def halves(function, kind):
        return lambda *v: sum(function(*[value >> 16 * n & 0xffff for value in v]) << 16 * n for n in range(2))
    for name, count, function in (
            ("add.rn", 2, lambda a, b, kind=kind: add(decoded(a, kind), decoded(b, kind), kind)),
            ("mul.rn", 2, lambda a, b, kind=kind: multiply(decoded(a, kind), decoded(b, kind), kind)),
            ("fma.rn", 3, lambda a, b, c, kind=kind: fma(decoded(a, kind), decoded(b, kind), decoded(c, kind), kind)),
            ("max", 2, lambda a, b, kind=kind: least(decoded(a, kind), decoded(b, kind), True, False, kind, (a, b))),
            ("neg", 1, lambda a: a ^ 0x8000), ("abs", 1, lambda a: a & 0x7fff)):
        case(line(f"{name}.{kind}x2", count), " ".join([kind + "x2"] * count), kind + "x2", halves(function, kind))

# ---- conversions

WHOLE = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
REGISTER = {"u8": "u16", "s8": "s16"}


def clamp(value, kind):
    low, high = (-(1 << BITS[kind] - 1), (1 << BITS[kind] - 1) - 1) if kind[0] == "s" else (0, (1 << BITS[kind]) - 1)
    return max(low, min(high, value))


def cut(value, kind):
    """The bits of the destination register, after extension."""
    raw = value & ((1 << BITS[kind]) - 1)
    return signed(raw, BITS[kind]) if kind[0] == "s" else raw


for source in WHOLE:
    for to in WHOLE:
        if source == to:
            continue
        case(f"cvt.{to}.{source} %o0, %i0;", REGISTER.get(source, source), REGISTER.get(to, to),
             lambda a, to=to, source=source: cut(cut(a, source), to))
        if clamp(-1 << 70, source) >= clamp(-1 << 70, to) and clamp(1 << 70, source) <= clamp(1 << 70, to):
            continue   # nothing to clamp, and no such instruction
        case(f"cvt.sat.{to}.{source} %o0, %i0;", REGISTER.get(source, source), REGISTER.get(to, to),
             lambda a, to=to, source=source: clamp(cut(a, source), to))
for kind in ("f16", "bf16", "f32", "f64"):
    for source in WHOLE:
        modes = ("rn", "rz", "rm", "rp") if kind != "bf16" else ("rn",)
        for mode in modes:
            if source in ("u8", "s8") and (kind in ("f16", "bf16") or mode != "rn"):
                continue
            case(f"cvt.{mode}.{kind}.{source} %o0, %i0;", REGISTER.get(source, source), kind,
                 lambda a, kind=kind, source=source, mode=mode:
                 encoded(int(cut(a, source) < 0), Fraction(cut(a, source)), kind, mode))
    for to in WHOLE:
        for rounding in ("rni", "rzi", "rmi", "rpi"):
            if to in ("u8", "s8") and (kind in ("f16", "bf16") or rounding != "rzi"):
                continue
            case(f"cvt.{rounding}.{to}.{kind} %o0, %i0;", kind, REGISTER.get(to, to),
                 lambda a, kind=kind, to=to, rounding=rounding:
                 to_integer(decoded(a, kind), BITS[to], to[0] == "s", rounding))
for to, source, modes in (("f16", "f32", ("rn", "rz")), ("f16", "f64", ("rn", "rz", "rm", "rp")), ("bf16", "f32", ("rn", "rz")),
                          ("f32", "f64", ("rn", "rz", "rm", "rp")), ("f32", "f16", ("",)), ("f64", "f16", ("",)),
                          ("f32", "bf16", ("",)), ("f64", "f32", ("",)), ("bf16", "f64", ("rn",)), ("f64", "bf16", ("",)),
                          ("bf16", "f16", ("rn",)), ("f16", "bf16", ("rn",))):
    for mode in modes:
        case(f"cvt.{mode}.{to}.{source} %o0, %i0;".replace("..", "."), source, to,
             lambda a, to=to, source=source, mode=mode: encoded(*decoded(a, source), to, mode or "rn"))
for rounding in ("rni", "rzi", "rmi", "rpi"):
    for kind in ("f32", "f64", "f16"):
        case(f"cvt.{rounding}.{kind}.{kind} %o0, %i0;", kind, kind, lambda a, kind=kind, rounding=rounding:
             encoded(*decoded(a, kind), kind) if isinstance(decoded(a, kind)[1], str) else
             encoded(decoded(a, kind)[0], Fraction(
                 to_integer(decoded(a, kind), 2100, True, rounding)), kind))
case("cvt.sat.f32.f32 %o0, %i0;", "f32", "f32", lambda a: clamped(a, "f32"))
for kind in ("f16", "bf16"):
    for mode in ("rn", "rz"):
        case(f"cvt.{mode}.{kind}x2.f32 %o0, %i0, %i1;", "f32 f32", f"{kind}x2", lambda a, b, kind=kind, mode=mode:
             encoded(*decoded(a, "f32"), kind, mode) << 16 | encoded(*decoded(b, "f32"), kind, mode))
for kind in ("e4m3", "e5m2"):
    case(f"cvt.rn.f16x2.{kind}x2 %o0, %i0;", "b16", "f16x2", lambda a, kind=kind:
         sum(encoded(*decoded(a >> 8 * n & 255, kind), "f16") << 16 * n for n in range(2)))
    case(f"cvt.rn.satfinite.{kind}x2.f32 %o0, %i0, %i1;", "f32 f32", "b16", lambda a, b, kind=kind:
         encoded(*decoded(a, "f32"), kind, saturate=True) << 8 | encoded(*decoded(b, "f32"), kind, saturate=True))
    case(f"cvt.rn.satfinite.{kind}x2.f16x2 %o0, %i0;", "f16x2", "b16", lambda a, kind=kind:
         sum(encoded(*decoded(a >> 16 * n & 0xffff, "f16"), kind, saturate=True) << 8 * n for n in range(2)))

# ---- moves

case("mov.b32 %o0, {%i0, %i1};", "b16 b16", "b32", lambda a, b: b << 16 | a)
case("mov.b64 %o0, {%i0, %i1};", "b32 b32", "b64", lambda a, b: b << 32 | a)
case("mov.b64 %o0, {%i0, %i1, %i0, %i1};", "b16 b16", "b64", lambda a, b: (b << 16 | a) * (1 + (1 << 32)))
case("mov.b32 {%o0, %o1}, %i0;", "b32", "b16 b16", lambda a: [a, a >> 16])
case("mov.b64 {%o0, _}, %i0;", "b64", "b32", lambda a: a)
case("mov.b64 {_, %o0}, %i0;", "b64", "b32", lambda a: a >> 32)
case("mov.b64 %o0, %i0;", "b64", "b64", lambda a: a)
case("mov.f32 %o0, 0f40490FDB;", "b32", "b32", lambda a: 0x40490fdb)
case("mov.f64 %o0, 0d400921FB54442D18;", "b64", "b64", lambda a: 0x400921fb54442d18)
case("mov.u32 %o0, -5;", "b32", "b32", lambda a: -5)
