# SPDX-License-Identifier: Apache-2.0
"""Control flow and memory. Each test returns None, or a message."""
import numpy as np

import ptx
import snippets
from opcode_common import different, lanes, numbers, test
from snippets import HEAD


# ---- control flow

@test("branches: loops of different lengths, tables, early ends")
def branches(tap):
    a = numbers(1) % np.uint32(7)
    got, = lanes(tap, """
	mov.u32 %o0, 0; mov.u32 %t0, 0;
$again:
	setp.ge.u32 %p0, %t0, %i0;
	@%p0 bra $out;
	add.u32 %o0, %o0, %t0; add.u32 %t0, %t0, 1;
	bra.uni $again;
$out:
	@!%p0 add.u32 %o0, %o0, 1000;""", [a], "b32", "b32")
    wrong = different("loop", got, a * (a - 1) // 2)
    got, = lanes(tap, """
	rem.u32 %t0, %i0, 3;
$targets: .branchtargets $one, $two, $three;
	brx.idx %t0, $targets;
$one: mov.u32 %o0, 11; bra $end;
$two: mov.u32 %o0, 22; bra $end;
$three: mov.u32 %o0, 33;
$end:""", [a], "b32", "b32")
    wrong = wrong or different("brx", got, np.array([11, 22, 33])[a % 3])
    memory = ptx.Memory()
    text = HEAD + """.visible .entry k(.param .u64 k_0) { .reg .b32 %r<4>; .reg .b64 %d<3>; .reg .pred %p;
	mov.u32 %r1, %tid.x; setp.gt.u32 %p, %r1, 9; @%p exit;
	ld.param.u64 %d1, [k_0]; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2; st.global.u32 [%d1], %r1;
	exit; trap; }"""
    tap.note(text)
    at = memory.alloc(40)
    ptx.launch(ptx.load(text), "k", 1, 64, [at], memory)
    return wrong or different("exit", memory.download(at, np.uint32, 10), np.arange(10))


@test("counts are of threads, and without what a guard kept back")
def counts(tap):
    del tap
    text = snippets.kernel("\tsetp.lt.u32 %p0, %i0, 5; @%p0 mad.lo.u32 %i0, %i0, 3, 1; xor.b32 %o0, %i0, 1;",
                           ["b32"], ["b32"])
    _, got = snippets.run(text, [np.arange(100, dtype=np.uint32)], ["b32"])
    return different("counts", [got["mad"], got["xor"], got.per_weight(50)["xor"]], [5, 100, 2])


@test("special registers")
def special(tap):
    text = HEAD + """.visible .entry k(.param .u64 k_0) { .reg .b32 %r<32>; .reg .b64 %d<3>;
	mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y;
	mov.u32 %r6, %ctaid.z; mov.u32 %r7, %ntid.x; mov.u32 %r8, %ntid.y; mov.u32 %r9, %ntid.z; mov.u32 %r10, %nctaid.x;
	mov.u32 %r11, %nctaid.y; mov.u32 %r12, %nctaid.z; mov.u32 %r13, %laneid; mov.u32 %r14, %warpid;
	mov.u32 %r15, %lanemask_lt; mov.u32 %r16, %lanemask_le; mov.u32 %r17, %lanemask_eq; mov.u32 %r18, %lanemask_gt;
	mov.u32 %r19, %lanemask_ge;
	mad.lo.u32 %r20, %r3, %r8, %r2; mad.lo.u32 %r20, %r20, %r7, %r1;
	mad.lo.u32 %r21, %r6, %r11, %r5; mad.lo.u32 %r21, %r21, %r10, %r4;
	mul.lo.u32 %r22, %r7, %r8; mul.lo.u32 %r22, %r22, %r9; mad.lo.u32 %r21, %r21, %r22, %r20;
	ld.param.u64 %d1, [k_0]; mul.wide.u32 %d2, %r21, 96; add.u64 %d1, %d1, %d2;
	""" + " ".join(f"st.global.u32 [%d1+{4 * n}], %r{n + 1};" for n in range(19)) + " ret; }"
    tap.note(text)
    memory = ptx.Memory()
    grid, block = (3, 2, 2), (5, 4, 3)
    threads, blocks = 60, 12
    at = memory.upload(np.zeros(96 * threads * blocks, np.uint8))
    ptx.launch(ptx.load(text), "k", grid, block, [at], memory, most_lanes=300)
    got = memory.download(at, np.uint32, 24 * threads * blocks).reshape(-1, 24)
    for number in range(threads * blocks):
        b, t = divmod(number, threads)
        lane = t % 32
        bit = 1 << lane
        wanted = [t % 5, t // 5 % 4, t // 20, b % 3, b // 3 % 2, b // 6, *block, *grid, lane, t // 32, bit - 1,
                  2 * bit - 1, bit, ~(2 * bit - 1) & 0xffffffff, ~(bit - 1) & 0xffffffff]
        wrong = different(f"thread {t} of block {b}", got[number, :19], np.array(wanted, np.uint32))
        if wrong:
            return wrong
    return None


# ---- memory

@test("loads and stores of all widths, extended and cut off")
def widths(tap):
    a = numbers(2)
    space = ".shared .align 16 .b8 sm[8192]; .local .align 16 .b8 stack[64];"
    wrong = None
    for where, base in (("shared", "mov.u32 %t0, sm; mov.u32 %t1, %tid.x; mad.lo.u32 %t0, %t1, 32, %t0;"),
                        ("local", "mov.u32 %t0, stack;")):
        for kind, wide, view in (("u8", "b32", np.uint8), ("s8", "b32", np.int8), ("u16", "b32", np.uint16),
                                 ("s16", "b32", np.int16), ("b32", "b32", np.uint32)):
            got, = lanes(tap, f"{base} st.{where}.b32 [%t0], %i0; ld.{where}.{kind} %o0, [%t0];", [a], "b32", wide,
                         declarations=space)
            wrong = wrong or different(f"ld.{where}.{kind}", got, a.view(view)[::4 // view(0).itemsize].astype(
                np.int64).astype(np.uint32))
        got = lanes(tap, f"""{base} st.{where}.v4.b32 [%t0], {{%i0, %i1, %i2, %i3}}; ld.{where}.v2.b64 {{%w0, %w1}}, [%t0];
	st.{where}.v2.b64 [%t0+16], {{%w1, %w0}}; ld.{where}.v4.b32 {{%o0, %o1, %o2, %o3}}, [%t0+16];
	ld.{"volatile." if where == "shared" else ""}{where}.b8 %t2, [%t0+5]; st.{where}.b8 [%t0+16], %t2; ld.{where}.b32 %o4, [%t0+16];""",
                    [a, a + 1, a + 2, a + 3], "b32 b32 b32 b32", "b32 b32 b32 b32 b32", declarations=space)
        wrong = wrong or different(f"vectors in {where}", np.stack(got), np.stack(
            [a + 2, a + 3, a, a + 1, ((a + 2) & 0xffffff00) | ((a + 1) >> np.uint32(8) & np.uint32(255))]))
    return wrong


@test("addresses of one space for all, variables, parameters by value")
def addresses(tap):
    text = HEAD + """.const .align 4 .u32 table[4] = {10, 20, 30, 40}; .global .align 8 .b8 bytes[8] = {1, 2, 3, 4, 5};
	.visible .entry k(.param .u64 k_0, .param .align 8 .b8 k_1[24]) { .reg .b32 %r<9>; .reg .b64 %d<16>; .reg .pred %p<4>;
	.local .align 8 .b8 stack[16]; .shared .align 8 .b8 sm[512];
	mov.u32 %r1, %tid.x; mul.wide.u32 %d8, %r1, 40; ld.param.u64 %d1, [k_0]; add.u64 %d1, %d1, %d8;
	cvta.to.global.u64 %d1, %d1; cvta.global.u64 %d1, %d1;
	mov.u64 %d2, stack; cvta.local.u64 %d2, %d2; mov.u64 %d3, sm; mul.wide.u32 %d4, %r1, 8; add.u64 %d3, %d3, %d4;
	cvta.shared.u64 %d3, %d3;
	st.u32 [%d2+4], %r1; ld.u32 %r2, [%d2+4]; add.u32 %r3, %r1, 7; st.u32 [%d3], %r3; ld.shared.u32 %r4, [sm];
	cvta.to.shared.u64 %d5, %d3; ld.shared.u32 %r4, [%d5];
	and.b32 %r5, %r1, 3; mul.wide.u32 %d6, %r5, 4; mov.u64 %d7, table; add.u64 %d7, %d7, %d6; ld.const.u32 %r5, [%d7];
	ld.global.u8 %r6, [bytes+4]; mov.b64 %d9, k_1; ld.param.u32 %r7, [%d9+12]; ld.param.v2.u32 {%r0, %r8}, [k_1+16];
	isspacep.shared %p1, %d3; isspacep.local %p2, %d2; isspacep.global %p3, %d1; and.pred %p1, %p1, %p2; and.pred %p1, %p1, %p3;
	isspacep.shared %p2, %d1; not.pred %p2, %p2; and.pred %p1, %p1, %p2; selp.u32 %r0, 1, 0, %p1;
	prefetch.global.L2 [%d1]; createpolicy.fractional.L2::evict_first.b64 %d10, 1.0; nanosleep.u32 20;
	st.v2.u32 [%d1], {%r2, %r4}; st.global.u32 [%d1+8], %r5; st.global.u32 [%d1+12], %r6; st.global.u32 [%d1+16], %r7;
	st.global.u32 [%d1+20], %r8; st.global.u32 [%d1+24], %r0;
	ld.global.nc.L1::no_allocate.L2::128B.u8 %r6, [bytes]; prefetchu.L1 [%d1]; ldu.global.u32 %r7, [bytes];
	st.global.L1::no_allocate.u32 [%d1+28], %r6; st.global.u32 [%d1+32], %r7; ret; }""".replace("ld.shared.u32 %r4, [sm];\n", "")
    tap.note(text)
    memory = ptx.Memory()
    at = memory.alloc(64 * 40)
    block = np.arange(100, 106, dtype=np.uint32).tobytes()
    ptx.launch(ptx.load(text), "k", 1, 64, [at, block], memory)
    got = np.stack([memory.download(at + 40 * n, np.uint32, 9) for n in range(64)])
    n = np.arange(64)
    return different("values", got, np.stack([n, n + 7, 10 * (n % 4) + 10, 0 * n + 5, 0 * n + 103, 0 * n + 105, 0 * n + 1,
                                              0 * n + 1, 0 * n + 0x04030201], 1))


@test("cp.async lands when it is waited for, and fills up with zeros")
def async_copies(tap):
    a = numbers(3, count=256)
    text = HEAD + """.visible .entry k(.param .u64 k_0, .param .u64 k_1) { .reg .b32 %r<9>; .reg .b64 %d<9>;
	.shared .align 16 .b8 sm[4096]; mov.u32 %r1, %tid.x; mul.wide.u32 %d3, %r1, 16;
	ld.param.u64 %d1, [k_0]; ld.param.u64 %d2, [k_1]; add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;
	mov.u32 %r2, sm; mad.lo.u32 %r2, %r1, 32, %r2;
	cp.async.cg.shared.global.L2::128B [%r2], [%d1], 16; cp.async.commit_group;
	and.b32 %r3, %r1, 3; shl.b32 %r3, %r3, 2; cp.async.cg.shared.global [%r2+16], [%d1], 16, %r3; cp.async.commit_group;
	cp.async.wait_group 1; ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r2]; cp.async.wait_group 0;
	ld.shared.b32 %r8, [%r2+16]; xor.b32 %r4, %r4, %r8; ld.shared.b32 %r8, [%r2+20]; xor.b32 %r5, %r5, %r8;
	ld.shared.b32 %r8, [%r2+24]; xor.b32 %r6, %r6, %r8; ld.shared.b32 %r8, [%r2+28]; xor.b32 %r7, %r7, %r8;
	cp.async.ca.shared.global [%r2], [%d1], 4; cp.async.ca.shared.global [%r2+8], [%d1+8], 8; cp.async.wait_all;
	ld.shared.b32 %r8, [%r2]; add.u32 %r4, %r4, %r8; ld.shared.b32 %r8, [%r2+12]; add.u32 %r7, %r7, %r8;
	st.global.v4.b32 [%d2], {%r4, %r5, %r6, %r7}; ret; }"""
    tap.note(text)
    memory = ptx.Memory()
    source, to = memory.upload(a), memory.alloc(1024)
    ptx.launch(ptx.load(text), "k", 1, 64, [source, to], memory)
    rows = a.reshape(64, 4)
    have = np.arange(4) < (np.arange(64) % 4)[:, None]
    wanted = rows ^ np.where(have, rows, np.uint32(0))
    wanted[:, 0] += rows[:, 0]
    wanted[:, 3] += rows[:, 3]
    return different("copies", memory.download(to, np.uint32, 256).reshape(64, 4), wanted)
