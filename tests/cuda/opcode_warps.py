# SPDX-License-Identifier: Apache-2.0
"""Cooperation of threads in warps, blocks and grids. Each test returns None, or a message."""
import numpy as np

import ptx
from opcode_common import ALL, different, lanes, numbers, test
from snippets import HEAD


@test("barriers of a block, of some of its threads, and of warps")
def barriers(tap):
    a = numbers(4, count=256)
    space = ".shared .align 16 .b8 sm[1024];"
    begin = "mov.u32 %t0, %tid.x; mov.u32 %t1, sm; mad.lo.u32 %t2, %t0, 4, %t1; st.shared.b32 [%t2], %i0;"
    wrong = None
    for wait in ("bar.sync 0;", "barrier.sync.aligned 3;", "barrier.sync 1, 128;"):
        got, = lanes(tap, f"{begin} {wait} xor.b32 %t3, %t0, 127; mad.lo.u32 %t3, %t3, 4, %t1; ld.shared.b32 %o0, [%t3];",
                     [a], "b32", "b32", declarations=space, block=128)
        wrong = wrong or different(wait, got, a[np.arange(256) ^ 127])
    got, = lanes(tap, f"{begin} bar.warp.sync {ALL}; xor.b32 %t3, %t0, 31; mad.lo.u32 %t3, %t3, 4, %t1; "
                      "ld.shared.b32 %o0, [%t3];", [a], "b32", "b32", declarations=space, block=128)
    wrong = wrong or different("bar.warp.sync", got, a[np.arange(256) ^ 31])
    # Warps that reconverge after diverging, some through code further down.
    got, = lanes(tap, f"""mov.u32 %t0, %tid.x; and.b32 %t1, %t0, 3; setp.eq.u32 %p0, %t1, 1; mov.u32 %t2, %i0;
	@%p0 bra $aside;
$back:
	shfl.sync.bfly.b32 %o0, %t2, 1, 31, {ALL};
	@!%p0 bra $end;
	add.u32 %o0, %o0, 7;
	bra $end;
$aside:
	add.u32 %t2, %t2, 5;
	bra $back;
$end:""", [a], "b32", "b32")
    n = np.arange(256)
    aside = (n % 4 == 1).astype(np.uint32)
    return wrong or different("after going aside, and again", got, (a + 5 * aside)[n ^ 1] + 7 * aside)


@test("shfl in all modes and segments")
def shuffles(tap):
    a, b = numbers(5), numbers(6) % np.uint32(40)
    lane = np.arange(128) % 32
    wrong = None
    for mode in ("idx", "up", "down", "bfly"):
        for width in (32, 16, 8):
            limits = ((32 - width) << 8) | (0 if mode == "up" else 31)
            got, said = lanes(tap, f"shfl.sync.{mode}.b32 %o0|%o1, %i0, %i1, {limits}, {ALL};", [a, b], "b32 b32", "b32 pred")
            by = (b & 31).astype(int)
            inside = lane % width
            source = {"idx": by % width, "up": inside - by, "down": inside + by, "bfly": inside ^ by}[mode]
            fits = (source >= 0) & (source < width)
            at = np.arange(128) - inside + np.where(fits, source, inside)
            if mode == "bfly":   # it may reach into segments before this one
                reach = lane ^ by
                fits = reach <= (lane | (width - 1))
                at = np.arange(128) - lane + np.where(fits, reach, lane)
            wrong = wrong or different(f"{mode} {width}", got, a[at]) or different(f"{mode} {width} said", said, fits)
    got, = lanes(tap, """mov.u32 %t0, %laneid; setp.lt.u32 %p0, %t0, 8; mov.u32 %o0, 0;
	@%p0 shfl.sync.idx.b32 %o0, %i0, 3, 31, 0xff;""", [a], "b32", "b32")
    return wrong or different("of eight", got, np.where(lane < 8, a[np.arange(128) - lane + 3], 0))


@test("vote, match, redux, activemask, elect")
def votes(tap):
    a = numbers(7)
    small, bits = a % np.uint32(3), (a >> np.uint32(9)) & np.uint32(1)
    odd = "mov.u32 %t0, %laneid; and.b32 %t1, %t0, 1; setp.eq.u32 %p1, %t1, 1; mov.u32 %o0, 0;"
    warps = np.arange(128).reshape(4, 32)
    wrong = None

    def over_warps(function):
        return np.array([function(warp, lane) for warp in warps for lane in warp])
    weights = np.uint64(1) << np.arange(32, dtype=np.uint64)
    for mode, meaning in (("ballot.b32", lambda w, _: (bits[w] * weights).sum()), ("any.pred", lambda w, _: bits[w].any()),
                          ("all.pred", lambda w, _: bits[w].all()), ("uni.pred", lambda w, _: len(set(bits[w])) == 1)):
        for source, name in ((bits, "mixed"), (np.ones(128, np.uint32), "ones"), (np.zeros(128, np.uint32), "zeros")):
            bits, saved = source, bits
            got, = lanes(tap, f"setp.ne.u32 %p0, %i0, 0; vote.sync.{mode} %o0, %p0, {ALL};", [source], "b32",
                         "pred" if "pred" in mode else "b32")
            wrong = wrong or different(f"vote {mode} {name}", got, over_warps(meaning))
            bits = saved
    got, = lanes(tap, f"match.any.sync.b32 %o0, %i0, {ALL};", [small], "b32", "b32")
    wrong = wrong or different("match.any", got, over_warps(lambda w, n: ((small[w] == small[n]) * weights).sum()))
    got, said = lanes(tap, f"match.all.sync.b32 %o0|%o1, %i0, {ALL};", [np.repeat(small[:4], 32)], "b32", "b32 pred")
    wrong = wrong or different("match.all", got, np.full(128, 0xffffffff)) or different("match.all said", said, np.ones(128))
    for name, kind, function in (("add", "u32", np.add), ("min", "s32", np.minimum), ("max", "u32", np.maximum),
                                 ("and", "b32", np.bitwise_and), ("or", "b32", np.bitwise_or), ("xor", "b32", np.bitwise_xor)):
        view = a.view(np.int32) if kind == "s32" else a
        got, = lanes(tap, f"redux.sync.{name}.{kind} %o0, %i0, {ALL};", [a], "b32", "b32")
        wrong = wrong or different(f"redux {name}", got.view(view.dtype), over_warps(lambda w, _: function.reduce(view[w], dtype=view.dtype)))
    got, = lanes(tap, f"{odd} @%p1 activemask.b32 %o0;", [a], "b32", "b32")
    wrong = wrong or different("activemask", got, np.where(np.arange(128) % 2, 0xaaaaaaaa, 0))
    got, said = lanes(tap, "mov.pred %o1, 0; mov.u32 %t0, %laneid; setp.gt.u32 %p1, %t0, 4; mov.u32 %o0, 0; "
                           "@%p1 elect.sync %o0|%o1, 0xffffffe0;", [a], "b32", "b32 pred")
    lane = np.arange(128) % 32
    return wrong or different("elect", got, np.where(lane > 4, 5, 0)) or different("elected", said, lane == 5)


@test("atomics in the order of blocks that was asked for")
def atomics(tap):
    head = """.visible .entry k(.param .u64 k_0, .param .u64 k_1, .param .u64 k_2) { .reg .b32 %r<9>; .reg .b64 %d<9>;
	ld.param.u64 %d1, [k_0]; ld.param.u64 %d2, [k_1]; ld.param.u64 %d3, [k_2];
	mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 32, %r1; mul.wide.u32 %d4, %r3, 4;
	add.u64 %d2, %d2, %d4; add.u64 %d3, %d3, %d4; ld.global.u32 %r4, [%d2]; and.b32 %r5, %r1, 3; mul.wide.u32 %d5, %r5, 4;
	add.u64 %d1, %d1, %d5; """
    values = np.random.default_rng(8).standard_normal(256).astype(np.float32)
    wrong = None
    plain = {"add.u32": lambda o, v: o + v, "min.u32": min, "max.u32": max, "min.s32": None, "max.s32": None,
             "and.b32": lambda o, v: o & v, "or.b32": lambda o, v: o | v, "xor.b32": lambda o, v: o ^ v,
             "exch.b32": lambda o, v: v, "inc.u32": lambda o, v: 0 if o >= v else o + 1,
             "dec.u32": lambda o, v: v if o == 0 or o > v else o - 1, "add.f32": None}
    number = (lambda bits: bits - (1 << 32) if bits >> 31 else bits)
    plain["min.s32"] = lambda o, v: min(o, v, key=number)
    plain["max.s32"] = lambda o, v: max(o, v, key=number)

    def add_floats(old, value):
        return int((np.array([old], np.uint32).view(np.float32) + np.array([value], np.uint32).view(np.float32))
                   .view(np.uint32)[0])
    plain["add.f32"] = add_floats
    for name, function in plain.items():
        for order in ("forward", "reverse", 5):
            for most in (1 << 14, 64):
                text = HEAD + head + f"atom.global.{name} %r6, [%d1], %r4; st.global.u32 [%d3], %r6; ret; }}"
                memory = ptx.Memory()
                source = values.view(np.uint32) if name == "add.f32" else numbers(9, count=256) % np.uint32(1 << 20)
                first = np.zeros(4, np.uint32) + (1 << 19 if name != "add.f32" else 0)
                cell, inputs, old = memory.upload(first.astype(np.uint32)), memory.upload(source), memory.alloc(1024)
                ptx.launch(ptx.load(text), "k", 8, 32, [cell, inputs, old], memory, order=order, most_lanes=most)
                got, olds = memory.download(cell, np.uint32, 4), memory.download(old, np.uint32, 256)
                if order == 5:
                    if len(set(olds.tolist())) < 2:
                        wrong = wrong or f"{name}: what was before does not change"
                    continue
                now = first.tolist()
                wanted = np.zeros(256, np.uint32)
                for n in range(256) if order == "forward" else range(255, -1, -1):
                    wanted[n] = now[n & 3]
                    now[n & 3] = function(now[n & 3], int(source[n])) & 0xffffffff
                wrong = wrong or different(f"{name} {order}", got, np.array(now, np.uint32)) or \
                    different(f"{name} {order} before", olds, wanted)
        tap.note(text)
    for name in ("red.global.add.u32 [%d1], %r4;", "red.global.add.f32 [%d1], %r4;", "red.relaxed.gpu.global.max.u32 [%d1], %r4;"):
        results = []
        for order in ("forward", "reverse"):
            text = HEAD + head + name + " ret; }"
            memory = ptx.Memory()
            source = values if ".f32" in name else numbers(9, count=256)
            cell, inputs = memory.upload(np.zeros(4, np.uint32)), memory.upload(source)
            ptx.launch(ptx.load(text), "k", 8, 32, [cell, inputs, cell], memory, order=order)
            results.append(memory.download(cell, np.uint32, 4))
        tap.note(text)
        if (results[0] != results[1]).any() != (".f32" in name):
            wrong = wrong or f"{name}: the order {'makes no' if '.f32' in name else 'makes a'} difference"
        if name.startswith("red.global.add.u32"):
            wrong = wrong or different(name, results[0], source.reshape(-1, 4).sum(0, dtype=np.uint32))
    # Compare and swap: for each address the first one wins. Also with 64 bits.
    text = HEAD + head + "add.u32 %r7, %r3, 1; atom.global.cas.b32 %r6, [%d1], 0, %r7; st.global.u32 [%d3], %r6; ret; }"
    tap.note(text)
    memory = ptx.Memory()
    cell, inputs, old = memory.upload(np.zeros(4, np.uint32)), memory.upload(numbers(9, count=256)), memory.alloc(1024)
    ptx.launch(ptx.load(text), "k", 8, 32, [cell, inputs, old], memory)
    wrong = wrong or different("cas", memory.download(cell, np.uint32, 4), np.arange(1, 5))
    got, = lanes(tap, """mov.u32 %t0, sm; mov.u64 %w1, 0; mov.u32 %t1, %tid.x; setp.eq.u32 %p0, %t1, 0;
	@%p0 st.shared.b64 [%t0], %w1; bar.sync 0; red.shared.add.u64 [%t0], %i0; bar.sync 0; ld.shared.b64 %o0, [%t0];""",
                 [numbers(10, np.uint64)], "b64", "b64", declarations=".shared .align 8 .b8 sm[8];", block=128)
    return wrong or different("64 bits", got, np.full(128, numbers(10, np.uint64).sum(dtype=np.uint64)))


LAST_BLOCK = HEAD + """.visible .entry k(.param .u64 k_0, .param .u64 k_1, .param .u64 k_2, .param .u32 k_3) {
	.reg .b32 %r<16>; .reg .f32 %f<8>; .reg .b64 %d<9>; .reg .pred %p<8>; .shared .align 4 .b8 last[4];
	ld.param.u64 %d1, [k_0]; ld.param.u64 %d2, [k_1]; ld.param.u64 %d3, [k_2]; ld.param.u32 %r10, [k_3];
	mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %nctaid.x; mad.lo.u32 %r4, %r2, 32, %r1;
	mul.wide.u32 %d4, %r4, 4; add.u64 %d4, %d2, %d4; cvt.rn.f32.u32 %f1, %r4; st.global.f32 [%d4], %f1;
	FENCE bar.sync 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra $wait;
	FENCE2 atom.global.add.u32 %r5, [%d1], 1; FENCE3 st.shared.u32 [last], %r5;
$wait:
	bar.sync 0; ld.shared.u32 %r6, [last]; add.u32 %r6, %r6, 1; setp.ne.u32 %p2, %r6, %r3; @%p2 bra $end;
	mov.f32 %f2, 0f00000000; mov.u32 %r7, 0;
$more:
	mad.lo.u32 %r8, %r7, 32, %r1; mul.wide.u32 %d5, %r8, 4; add.u64 %d5, %d2, %d5; ld.global.f32 %f3, [%d5];
	add.f32 %f2, %f2, %f3; add.u32 %r7, %r7, 1; setp.lt.u32 %p3, %r7, %r3; @%p3 bra $more;
	mul.wide.u32 %d6, %r1, 4; add.u64 %d6, %d3, %d6; st.global.f32 [%d6], %f2;
$end:
	ret; }"""


def last_block(fence="", before="fence.acq_rel.gpu;", after="fence.acq_rel.gpu;", order="forward", most=1 << 14):
    memory = ptx.Memory()
    text = LAST_BLOCK.replace("FENCE2", before).replace("FENCE3", after).replace("FENCE", fence)
    cell, parts, sums = memory.upload(np.zeros(1, np.uint32)), memory.alloc(4 * 32 * 8), memory.alloc(128)
    ptx.launch(ptx.load(text), "k", 8, 32, [cell, parts, sums, 0], memory, order=order, most_lanes=most)
    return memory.download(sums, np.float32, 32), text


@test("the last block adds up, behind fences")
def last_blocks(tap):
    wanted = np.arange(256).reshape(8, 32).sum(0)
    wrong = None
    for order in ("forward", "reverse", 3):
        for options in ({}, {"before": "membar.gl;", "after": "membar.gl;"}, {"most": 64}):
            got, text = last_block(order=order, **options)
            wrong = wrong or different(f"{order} {options}", got, wanted)
            tap.note(text)
    return wrong
