# SPDX-License-Identifier: Apache-2.0
"""Tensor cores. Each test returns None, or a message."""
import numpy as np

from opcode_common import different, lanes, numbers, test


def fragments(array, parts, per, rows, columns):
    """Registers of a fragment: [lane of the warp, register, element]"""
    lane = np.arange(32)
    result = np.zeros((32, parts, per), array.dtype)
    for part in range(parts):
        for element in range(per):
            result[:, part, element] = array[rows(lane, part, element), columns(lane, part, element)]
    return result


def words(fragment):
    return [np.ascontiguousarray(fragment[:, n]).view(np.uint32).reshape(-1) for n in range(fragment.shape[1])]


def multiply(tap, shape, kinds, a, b, c, **options):
    """d of one warp, by the layouts in the PTX manual for each shape."""
    width = a.shape[1]
    per = 4 // a.dtype.itemsize
    many_a, many_b = width * 16 // 32 // per, width * 8 // 32 // per
    half = many_a == 2
    in_a = words(fragments(a, many_a, per, lambda n, p, e: n // 4 + 8 * (p % 2),
                           lambda n, p, e: per * (n % 4) + e + (0 if half else (p // 2) * width // 2)))
    in_b = words(fragments(b, many_b, per, lambda n, p, e: per * (n % 4) + e + p * (width // many_b), lambda n, p, e: n // 4))
    in_c = words(fragments(c, 4, 1, lambda n, p, e: n // 4 + 8 * (p // 2), lambda n, p, e: 2 * (n % 4) + p % 2))

    def names(first, count):
        return "{" + ", ".join(f"%i{first + n}" for n in range(count)) + "}"
    body = f"mma.sync.aligned.{shape}.row.col.{kinds} {{%o0, %o1, %o2, %o3}}, {names(0, many_a)}, " \
           f"{names(many_a, many_b)}, {names(many_a + many_b, 4)};"
    got = lanes(tap, body, in_a + in_b + in_c, " ".join(["b32"] * (many_a + many_b + 4)), "b32 b32 b32 b32", **options)
    d = np.zeros((16, 8), c.dtype)
    lane = np.arange(32)
    for n in range(4):
        d[lane // 4 + 8 * (n // 2), 2 * (lane % 4) + n % 2] = got[n].view(c.dtype)
    return d


@test("mma of bytes, all signs, and their sums past 32 bits")
def byte_products(tap):
    rng = np.random.default_rng(11)
    for width in (32, 16):
        for one in ("u8", "s8"):
            for other in ("u8", "s8"):
                a = rng.integers(0, 256, (16, width), dtype=np.uint8).view({"u8": np.uint8, "s8": np.int8}[one])
                b = rng.integers(0, 256, (width, 8), dtype=np.uint8).view({"u8": np.uint8, "s8": np.int8}[other])
                c = rng.integers(-1 << 31, 1 << 31, (16, 8)).astype(np.int32)
                got = multiply(tap, f"m16n8k{width}", f"s32.{one}.{other}.s32", a, b, c)
                exact = a.astype(np.int64) @ b.astype(np.int64) + c
                wrong = different(f"{one} {other} {width}", got, exact.astype(np.int32))
                got = multiply(tap, f"m16n8k{width}", f"satfinite.s32.{one}.{other}.s32", a, b, c)
                wrong = wrong or different("clamped", got, np.clip(exact, -1 << 31, (1 << 31) - 1))
                if wrong:
                    return wrong
    return None


@test("mma of halves: sums are cut off where they are aligned, or exact")
def half_products(tap):
    rng = np.random.default_rng(12)
    for kind in ("f16", "bf16"):
        for width in (16, 8):
            # Small integers: addition in any order is exact.
            a, b = rng.integers(-8, 9, (16, width)), rng.integers(-8, 9, (width, 8))
            c = rng.integers(-99, 99, (16, 8)).astype(np.float32)

            def halves(array, kind=kind):
                if kind == "f16":
                    return array.astype(np.float16)
                return (array.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
            kinds = f"f32.{kind}.{kind}.f32"
            wrong = different(f"{kind} {width}", multiply(tap, f"m16n8k{width}", kinds, halves(a), halves(b), c), a @ b + c)
            if wrong:
                return wrong
    a, b, c = np.zeros((16, 16), np.float16), np.zeros((16, 8), np.float16), np.zeros((16, 8), np.float32)
    # 1 and eight addends that are truncated, being below 2^-24 of it, then some that are not; each alone is kept.
    a[0, 0], a[0, 1:9], a[1, 0], a[1, 1:9], a[2, 1:9] = 1, 2.0 ** -14, 1, 2.0 ** -13, 2.0 ** -14
    a[3, 0], a[3, 1], a[4, 0], a[4, 1:9] = 1, -2.0 ** -14, 1, 1.5 * 2.0 ** -14
    b[0, 0], b[1:9, 0] = 1, 2.0 ** -11
    kinds = "f32.f16.f16.f32"
    got = multiply(tap, "m16n8k16", kinds, a, b, c)[:5, 0]
    # The unit below 1 (which is 0.5 times 2) is 2^-24; sums come in units of 2^-23.
    wrong = different("cut off", got, np.array([1, 1 + 2.0 ** -21, 2.0 ** -22, 1, 1], np.float32))
    got = multiply(tap, "m16n8k16", kinds, a, b, c, exact_mma=True)[:5, 0]
    wrong = wrong or different("exact", got, np.array(
        [1 + 2.0 ** -22, 1 + 2.0 ** -21, 2.0 ** -22, 1, 1 + 3 * 2.0 ** -23], np.float32))
    a, b = rng.standard_normal((16, 16)).astype(np.float16), rng.standard_normal((16, 8)).astype(np.float16)
    c = rng.standard_normal((16, 8)).astype(np.float32)
    exact = a.astype(np.float64) @ b.astype(np.float64) + c
    got, nearest = multiply(tap, "m16n8k16", kinds, a, b, c), multiply(tap, "m16n8k16", kinds, a, b, c, exact_mma=True)
    wrong = wrong or different("nearest", nearest, exact.astype(np.float32))
    scale = np.maximum(np.abs(a.astype(np.float64)[:, :, None] * b.astype(np.float64)[None]).max(1), np.abs(c))
    if not wrong and (np.abs(got - exact) > 2.0 ** -20 * scale).any():
        wrong = "cut off by more than is explained"
    if not wrong and (got == nearest).all():
        wrong = "nothing is cut off"
    a[0, 3], b[3, 0] = np.inf, np.nan
    got = multiply(tap, "m16n8k16", kinds, a, b, c)
    return wrong or different("NaN", np.isnan(got).sum(), 16) or different("infinity", np.isinf(got[0, 1:]).sum(), 7)


@test("ldmatrix, one, two and four, and transposed")
def load_matrices(tap):
    a = numbers(13, np.uint16, 32 * 8)
    rows = a.reshape(32, 8)
    space = ".shared .align 16 .b8 sm[512];"
    fill = "mov.u32 %t0, %tid.x; mov.u32 %t1, sm; mad.lo.u32 %t1, %t0, 16, %t1; " \
           "st.shared.v4.b32 [%t1], {%i0, %i1, %i2, %i3}; bar.sync 0;"
    inputs = [np.ascontiguousarray(rows.view(np.uint32)[:, n]) for n in range(4)]
    lane = np.arange(32)
    wrong = None
    for count in (1, 2, 4):
        for trans in ("", ".trans"):
            outs = ", ".join(f"%o{n}" for n in range(count))
            got = lanes(tap, f"{fill} ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{outs}}}, [%t1];", inputs,
                        "b32 b32 b32 b32", " ".join(["b32"] * count), declarations=space, block=32)
            for n in range(count):
                one = rows[8 * n:8 * n + 8]
                one = one.T if trans else one
                low, high = one[lane // 4, 2 * (lane % 4)], one[lane // 4, 2 * (lane % 4) + 1]
                wrong = wrong or different(f"x{count}{trans}", got[n], low | (high.astype(np.uint32) << np.uint32(16)))
    return wrong


@test("what only orders: fences, griddepcontrol, undefined registers")
def orders(tap):
    a = numbers(14)
    got, = lanes(tap, """griddepcontrol.wait; membar.cta; fence.acq_rel.sys; fence.sc.gpu; griddepcontrol.launch_dependents;
	// implicit-def: %t7
	add.u32 %t6, %t7, 1; mov.u32 %o0, %i0;""", [a], "b32", "b32")
    return different("a", got, a)
