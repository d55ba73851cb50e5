# SPDX-License-Identifier: Apache-2.0
"""Faults of the emulator: (name, kernel, text of the fault, launch options). Each kernel differs little from a correct
one, and a text of `None` means that it is accepted."""
import numpy as np

import snippets
from opcode_warps import LAST_BLOCK
from snippets import HEAD

CASES = []
BEGIN = """.visible .entry k(.param .u64 k_0) { .reg .b32 %r<16>; .reg .b64 %d<16>; .reg .pred %p<8>; .reg .b16 %h<4>;
	.shared .align 16 .b8 sm[256]; .local .align 8 .b8 stack[16];
	ld.param.u64 %d1, [k_0]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d1, %d2;
	mov.u32 %r3, sm; mad.lo.u32 %r4, %r1, 4, %r3; """
FULL = {"inputs": [np.arange(64, dtype=np.uint32)]}


def case(name, body, said, **arguments):
    CASES.append((name, HEAD + BEGIN + body + " ret; }", said, {**FULL, **arguments}))


def check(text, said, arguments):
    got = snippets.fault(text, **arguments)
    if said is None:
        return None if got is None else f"a fault: {got}"
    if got is None or said not in got:
        return f"not \"{said}\", but {got}"
    return None


# ---- single accesses
case("none", "ld.global.u32 %r5, [%d2]; st.global.u32 [%d2], %r5;", None)
case("a byte behind an allocation", "ld.global.u32 %r5, [%d2+132];", "out of bounds: bytes 256 to 260", block=32)
case("names instruction, thread and block", "ld.global.u32 %r5, [%d2+132];",
     "at ld.global.u32 %r5, [%d2+132]; in k, thread 31 of block (0, 0, 0)")
case("the third block's thread", "setp.eq.u32 %p1, %r2, 2; @%p1 ld.global.u32 %r5, [%d2+132];", "thread 31 of block (2, 0, 0)",
     grid=4)
case("a byte before an allocation", "ld.global.u8 %r5, [%d1+-1];", "in no allocation")
case("store behind", "st.global.u32 [%d2+256], %r1;", "out of bounds")
case("vector that ends behind", "ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%d1+248];", "out of bounds: bytes 248 to 264")
case("wild address", "mov.u64 %d3, 4096; ld.global.u32 %r5, [%d3];", "in no allocation")
case("misaligned word", "ld.global.u32 %r5, [%d2+2];", "misaligned: 4 bytes at offset 2")
case("misaligned vector", "ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%d1+8];", "misaligned: 16 bytes at offset 8")
case("aligned vector", "ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%d1+16];", None)
case("misaligned in shared memory", "st.shared.u32 [%r4+2], %r1;", "misaligned", block=8)
case("misaligned atomic", "red.global.add.u32 [%d1+2], %r1;", "misaligned")
case("behind shared memory", "st.shared.u32 [%r4+132], %r1;", "out of bounds: bytes 256 to 260 of shared memory")
case("behind local memory", "mov.u32 %r5, stack; st.local.u32 [%r5+16], %r1;", "out of bounds")
case("a parameter too far", "ld.param.u32 %r5, [k_0+8];", "beyond the 8 bytes")
case("never written", "ld.global.u32 %r5, [%d2];", "never written", inputs=[256])
case("half written", "st.global.u16 [%d2], %r1; ld.global.u32 %r5, [%d2];", "never written", inputs=[256])
case("shared memory never written", "ld.shared.u32 %r5, [%r4];", "never written")
case("local memory never written", "mov.u32 %r5, stack; st.local.u32 [%r5], %r1; ld.local.u32 %r6, [%r5+4];", "never written")
case("an atomic of what was never written", "red.global.add.u32 [%d1], %r1;", "never written", inputs=[256])
case("register never written", "add.u32 %r5, %r6, 1;", "register %r6 is read before it is written")
case("register written by some", "setp.lt.u32 %p1, %r1, 5; @%p1 mov.u32 %r6, 1; add.u32 %r5, %r6, 1;",
     "read before it is written; at add.u32 %r5, %r6, 1; in k, thread 5")
case("register written by all in turn", "setp.lt.u32 %p1, %r1, 5; @%p1 mov.u32 %r6, 1; @!%p1 mov.u32 %r6, 2; add.u32 %r5, "
     "%r6, 1;", None)
case("division by zero", "div.u32 %r5, %r1, %r1;", "division by zero")
case("trap", "setp.eq.u32 %p1, %r1, 7; @%p1 trap;", "trap; at @%p1 trap; in k, thread 7")

# ---- unknown code
for opcode in ("ex2.approx.f32 %r5, %r1;", "add.ftz.f32 %r5, %r1, %r1;", "tex.1d %r5;", "mov.u32 %r5, %clock;",
               "ld.global.strange.u32 %r5, [%d2];", "cvt.rna.tf32.f32 %r5, %r1;", "wgmma.fence.sync.aligned;",
               "mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 {%r5, %r6, %r7, %r8}, {%r5, %r6, %r7, %r8}, {%r5, %r6}, "
               "{%r5, %r6, %r7, %r8};"):
    case(f"unknown: {opcode.split()[0]}{' %clock' if 'clock' in opcode else ''}", f"bra $over; {opcode} $over:",
         "special register" if "clock" in opcode else "unknown instruction")

# ---- races
WRITE, READ_NEXT = "st.shared.u32 [%r4], %r1;", "xor.b32 %r5, %r1, 1; mad.lo.u32 %r5, %r5, 4, %r3; ld.shared.u32 %r6, [%r5];"
FAR = "xor.b32 %r5, %r1, 33; mad.lo.u32 %r5, %r5, 4, %r3; ld.shared.u32 %r6, [%r5];"
case("shared memory without a barrier", WRITE + READ_NEXT, "race in shared memory: read here, written by thread 1 of block 0")
case("shared memory with one", WRITE + "bar.sync 0;" + READ_NEXT, None, block=64)
case("a barrier of warps alone", WRITE + "bar.warp.sync 0xffffffff;" + FAR, "race in shared memory", block=64)
case("a barrier of warps in a warp", WRITE + "bar.warp.sync 0xffffffff;" + READ_NEXT, None, block=64)
case("written after it was read", WRITE + "bar.sync 0;" + FAR + WRITE, "race in shared memory: written here, read by",
     block=64)
case("written after a barrier", WRITE + "bar.sync 0;" + FAR + "bar.sync 0;" + WRITE, None, block=64)
case("two write at once", "st.shared.u32 [sm], %r1;", "two threads write the same bytes")
case("two write without a barrier", "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [sm], %r1; setp.eq.u32 %p2, %r1, 40; "
     "@%p2 st.shared.u32 [sm], %r1;", "race in shared memory: written here, written by thread 0", block=64)
case("bytes of one word", "add.u32 %r5, %r3, %r1; st.shared.u8 [%r5], %r1;", None, block=64)
case("atomics in shared memory", "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [sm], 0; bar.sync 0; red.shared.add.u32 [sm], 1; "
     "bar.sync 0; ld.shared.u32 %r5, [sm];", None, block=64)
case("atomics read too soon", "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [sm], 0; bar.sync 0; red.shared.add.u32 [sm], 1; "
     "ld.shared.u32 %r5, [sm];", "changed by an atomic", block=64)
case("global memory within a block", "st.global.u32 [%d2], %r1; xor.b32 %r5, %r1, 1; mul.wide.u32 %d3, %r5, 4; "
     "add.u64 %d3, %d1, %d3; ld.global.u32 %r6, [%d3];", "race in allocation 1")
case("global memory behind a barrier", "st.global.u32 [%d2], %r1; bar.sync 0; xor.b32 %r5, %r1, 1; mul.wide.u32 %d3, %r5, 4; "
     "add.u64 %d3, %d1, %d3; ld.global.u32 %r6, [%d3];", None)
case("two blocks write the same", "st.global.u32 [%d2], %r1;", "race in allocation 1", grid=2)
case("blocks write what others have read", "ld.global.u32 %r5, [%d2]; bar.sync 0; setp.eq.u32 %p1, %r2, 1; "
     "@%p1 st.global.u32 [%d2], %r1;", "race in allocation 1", grid=2)
case("blocks in batches", "st.global.u32 [%d2], %r1;", "race in allocation 1", grid=2, most_lanes=32)
case("a constant that is written", "ld.global.nc.u32 %r5, [%d2]; st.global.u32 [%d2], %r5;",
     "race in allocation 1 of 256 bytes: written, and read as a constant in the same launch")
for opcode in ("ld.global.nc.u32", "ldu.global.u32"):
    case(f"what was written, by {opcode}", f"st.global.u32 [%d2], %r1; bar.sync 0; {opcode} %r5, [%d2];",
         "race in allocation 1 of 256 bytes: read as a constant, and written in the same launch")
case("constants beside what is written", "ld.global.nc.u32 %r5, [%d2]; st.global.u32 [%d2+128], %r5;", None)
case("an atomic, and then constants", "red.global.add.u32 [%d2], %r1; bar.sync 0; ld.global.nc.u32 %r5, [%d2];",
     "read as a constant, and written")
case("the last atomic of a block's, and plain", "red.global.add.u32 [%d1], 1; setp.eq.u32 %p1, %r1, 31; "
     "@%p1 st.global.u32 [%d1], 0;", "changed by an atomic")
case("constants, and then an atomic", "ld.global.nc.u32 %r5, [%d2]; red.global.add.u32 [%d2], %r5;",
     "read as a constant")
case("atomic and plain", "red.global.add.u32 [%d2], %r1; ld.global.u32 %r5, [%d2];", "changed by an atomic", grid=2)
PROTOCOL = {"inputs": [np.zeros(1, np.uint32), 4 * 32 * 8, 128], "grid": 8}
for name, fences, said in (("without fences", ("", "", ""), "race in allocation 2"),
                           ("without the first", ("", "", "fence.acq_rel.gpu;"), "race in allocation 2"),
                           ("without the second", ("", "fence.acq_rel.gpu;", ""), "race in allocation 2"),
                           ("with fences", ("", "fence.acq_rel.gpu;", "fence.acq_rel.gpu;"), None)):
    first, second, third = fences
    kernel = LAST_BLOCK.replace("FENCE2", second).replace("FENCE3", third).replace("FENCE", first)
    CASES.append((f"the last block adds up, {name}", kernel.replace(", .param .u32 k_3", "").replace(
        "ld.param.u32 %r10, [k_3];", ""), said, PROTOCOL))
CASES.append(("the last block adds up, without a barrier", CASES[-1][1].replace("bar.sync 0; setp.ne.u32 %p1", "setp.ne.u32 %p1"),
              "race in allocation 2", {**PROTOCOL, "inputs": [np.zeros(1, np.uint32), 4 * 64 * 8, 256], "block": 64}))
# One thread passed the fence; the others of its warp are informed, but not ordered.
TOLD = CASES[-2][1].replace("mov.u32 %r1, %tid.x;", "mov.u32 %r1, %tid.x; mov.u32 %r5, 0;", 1).replace(
    "st.shared.u32 [last], %r5;", "").replace("$wait:\n\tbar.sync 0; ld.shared.u32 %r6, [last];",
                                             "$wait:\n\tshfl.sync.idx.b32 %r6, %r5, 0, 31, 0xffffffff;")
CASES.append(("the last block adds up, with threads that are only told", TOLD, "race in allocation 2", PROTOCOL))
CASES.append(("the last block adds up, with threads that are told at a barrier",
              TOLD.replace("31, 0xffffffff;", "31, 0xffffffff; bar.sync 0;"), None, PROTOCOL))
ATOMIC = next(text for name, text, _, _ in CASES if name == "the last block adds up, without fences")
for way, said in (("acq_rel.gpu", None), ("release.gpu", "race in allocation 2"),
                  ("acquire.gpu", "race in allocation 2"), ("relaxed.gpu", "race in allocation 2"),
                  ("acq_rel.cta", "unknown instruction")):
    CASES.append((f"the last block adds up, by atom.{way}", ATOMIC.replace("atom.", f"atom.{way}."), said, PROTOCOL))
CASES.append(("the last block adds up, after fences of the block alone",
              ATOMIC.replace("atom.", "fence.acq_rel.cta; atom.").replace(
                  "1;  st.shared", "1; fence.acq_rel.cta; st.shared"), "race in allocation 2", PROTOCOL))
# The counter is reset by the last arrival, which only its own atomic identifies; no order exists with the others.
AGAIN = next(text for name, text, _, _ in CASES if name == "the last block adds up, with fences").replace(
    "\tmov.f32 %f2", "\tsetp.ne.u32 %p4, %r1, 0; @%p4 bra $sum; st.global.u32 [%d1], 0;\n$sum:\n\tmov.f32 %f2")
CASES.append(("the last block puts the counter back", AGAIN, None, PROTOCOL))
CASES.append(("all blocks put the counter back", AGAIN.replace("@%p2 bra $end;", ""), "race in allocation", PROTOCOL))
CASES.append(("the last block reads the counter",
              AGAIN.replace("st.global.u32 [%d1], 0;", "ld.global.u32 %r9, [%d1];"), None, PROTOCOL))
CASES.append(("blocks add up that are not the last", AGAIN.replace("@%p2 bra $end;", "").replace(
    "@%p4 bra $sum;", "bra $sum;").replace("atom.", "atom.acq_rel.gpu."), "race in allocation 2", PROTOCOL))
CASES.append(("blocks add up that are not the first", AGAIN.replace(
    "setp.ne.u32 %p2, %r6, %r3;", "setp.eq.u32 %p2, %r6, 1;").replace("@%p4 bra $sum;", "bra $sum;").replace(
        "atom.", "atom.acq_rel.gpu."), "race in allocation 2", PROTOCOL))
CASES.append(("another thread of the last block puts the counter back",
              AGAIN.replace("%p4, %r1, 0", "%p4, %r1, 9"), None, PROTOCOL))

# Warps of one block add up: each lane writes its word, a lane of each warp counts, and the warp that comes last reads what
# all of them wrote. The first bar.warp.sync orders the words before the count, the second the count before the reads.
LAST_WARP = """st.global.u32 [%d2+64], %r1; SYNC1
	and.b32 %r5, %r1, 31; setp.ne.u32 %p1, %r5, 0; mov.u32 %r6, 0; @%p1 bra $wait;
	FENCE1 ATOM.add.u32 %r6, [%d1], 1; FENCE2
$wait:
	SYNC2 shfl.sync.idx.b32 %r6, %r6, 0, 31, 0xffffffff; setp.ne.u32 %p2, %r6, 3; @%p2 bra $end;
	xor.b32 %r7, %r1, XOR; mul.wide.u32 %d3, %r7, 4; add.u64 %d3, %d1, %d3; ld.global.u32 %r8, [%d3+64];
	RESET
$end:"""
WARPS = {"inputs": [np.zeros(16 + 128, np.uint32)], "block": 128, "grid": 1}
ACQ_REL, SYNC, FENCE = "atom.acq_rel.gpu.global", "bar.warp.sync 0xffffffff;", "fence.acq_rel.gpu;"
RACE = "race in allocation 1"
for name, said, changed in (
        ("by atom.acq_rel", None, {}),
        ("between fences", None, {"ATOM": "atom.global", "FENCE1": FENCE, "FENCE2": FENCE}),
        ("by release and acquire of their own", None, {"ATOM": "atom.release.gpu.global", "FENCE2": FENCE}),
        ("without the first bar.warp.sync", RACE, {"SYNC1": ""}),
        ("without the second", RACE, {"SYNC2": ""}),
        ("by atom.relaxed", RACE, {"ATOM": "atom.relaxed.gpu.global"}),
        ("by atom.release", RACE, {"ATOM": "atom.release.gpu.global"}),
        ("by atom.acquire", RACE, {"ATOM": "atom.acquire.gpu.global"}),
        ("without the first fence", RACE, {"ATOM": "atom.global", "FENCE2": FENCE}),
        ("without the second fence", RACE, {"ATOM": "atom.global", "FENCE1": FENCE}),
        ("with a word written after the count", RACE, {"FENCE2": "st.global.u32 [%d2+64], 7;"}),
        ("and the last one puts the count back", None, {"RESET": "@%p1 bra $end; st.global.u32 [%d1], 0;"}),
        ("and two lanes of the last one put it back", RACE,
         {"RESET": "setp.gt.u32 %p3, %r5, 1; @%p3 bra $end; @!%p1 st.global.u32 [%d1], 0; @%p1 st.global.u32 [%d1], 0;"}),
):
    parts = {"SYNC1": SYNC, "SYNC2": SYNC, "FENCE1": "", "FENCE2": "", "ATOM": ACQ_REL, "XOR": "96", "RESET": "", **changed}
    text = LAST_WARP
    for key, value in parts.items():
        text = text.replace(key, value)
    for way in ("forward", "reverse", 5):
        case(f"warps add up {name}, {way}", text, said, order=way, **WARPS)
# Every warp reads, not only the last one.
ALL_WARPS = LAST_WARP.replace("@%p2 bra $end;", "")
for key, value in {"SYNC1": SYNC, "SYNC2": SYNC, "FENCE1": "", "FENCE2": "", "ATOM": ACQ_REL, "RESET": ""}.items():
    ALL_WARPS = ALL_WARPS.replace(key, value)
case("warps add up that are not the last", ALL_WARPS.replace("XOR", "96"), RACE, **WARPS)
# A lane may read its own words, and after bar.warp.sync those of its warp, whichever warp is last.
case("warps read only what they wrote themselves", ALL_WARPS.replace("XOR", "1"), None, **WARPS)
# Sums that count arrivals: each lane has a word, to which the same lane of every warp adds, and the last one resets
# it. No fence is needed, as nothing else is read.
COUNTED = """and.b32 %r5, %r1, MASK; mul.wide.u32 %d3, %r5, 4; add.u64 %d3, %d1, %d3; atom.global.add.u32 %r6, [%d3], 1;
	setp.ne.u32 %p1, %r6, LAST; @%p1 bra $end; STORE
$end:"""
ZERO = "st.global.u32 [%d3], 0;"
for name, mask, last, store, said in (
        ("and the last one puts zero there", 31, 3, ZERO, None),
        ("and the last one reads it", 31, 3, "ld.global.u32 %r7, [%d3];", None),
        ("and the last but one puts zero there", 31, 2, ZERO, RACE),
        ("and the first one puts zero there", 31, 0, ZERO, RACE)):
    case(f"counted sums, {name}", COUNTED.replace("MASK", str(mask)).replace("LAST", str(last)).replace("STORE", store), said,
         **WARPS)
case("counted sums, of two lanes of a warp", COUNTED.replace("MASK", "15").replace("LAST", "1").replace("STORE", ZERO), RACE,
     **{**WARPS, "block": 32})
case("counted sums, of more blocks", COUNTED.replace("MASK", "31").replace("LAST", "11").replace("STORE", ZERO), None,
     **{**WARPS, "grid": 3})

# A flag that announces a block's words.
FLAG = """setp.ne.u32 %p1, %r2, 0; @%p1 bra $other;
	st.global.u32 [%d2], %r1; bar.sync 0; setp.ne.u32 %p2, %r1, 0; @%p2 bra $end; STORE [%d1+160], 1; bra $end;
$other:
	setp.ne.u32 %p2, %r1, 0; @%p2 bra $wait; LOAD st.shared.u32 [sm], %r5;
$wait:
	bar.sync 0; ld.shared.u32 %r6, [sm]; setp.ne.u32 %p3, %r6, 1; @%p3 bra $end;
	xor.b32 %r7, %r1, 1; mul.wide.u32 %d3, %r7, 4; add.u64 %d3, %d1, %d3; ld.global.u32 %r8, [%d3];
$end:"""
RELEASE, ACQUIRE = "st.release.gpu.global.u32", "ld.acquire.gpu.global.u32 %r5, [%d1+160];"
RELAXED, SEES = RELEASE.replace("release", "relaxed"), ACQUIRE.replace("acquire", "relaxed")
for name, store, load, said in (
        ("released and acquired", RELEASE, ACQUIRE, None),
        ("not released", RELAXED, ACQUIRE, "race in allocation 1"),
        ("not acquired", RELEASE, SEES, "race in allocation 1"),
        ("volatile", "st.volatile.global.u32", ACQUIRE.replace("acquire.gpu", "volatile"), "race in allocation 1"),
        ("plain", "membar.gl; st.global.u32", "ld.global.u32 %r5, [%d1+160]; membar.gl;", "race in allocation 1"),
        ("between fences", f"membar.gl; {RELAXED}", f"{SEES} membar.gl;", None),
        ("between fences of the block", f"fence.acq_rel.cta; {RELAXED}", f"{SEES} fence.acq_rel.cta;",
         "race in allocation 1"),
        ("released in the block", RELEASE.replace("gpu", "cta"), ACQUIRE, "unknown instruction"),
        ("released elsewhere", f"{RELEASE} [%d1+164], 1; {RELAXED}", ACQUIRE, "race in allocation 1"),
):
    for most in (64, 32):
        case(f"a flag that is {name}" + (", one block at a time" if most == 32 else ""),
             FLAG.replace("STORE", store).replace("LOAD", load), said, grid=2, most_lanes=most)
SET = "STORE [%d1+160], 1;"
for name, store, load, said in (
        ("set before a fence", f"{RELAXED} [%d1+160], 1; membar.gl; {SEES}", ACQUIRE, "race in allocation 1"),
        ("released before a word is written", f"{RELEASE} [%d1+160], 1; st.global.u32 [%d1], 7;", ACQUIRE,
         "race in allocation 1"),
        ("set after a word behind the fence", f"membar.gl; st.global.u32 [%d1], 7; {RELAXED} [%d1+160], 1;", ACQUIRE,
         "race in allocation 1"),
        ("added to, which reads nothing", f"{RELEASE} [%d1+160], 1;", f"red.relaxed.gpu.global.add.u32 [%d1+160], 0; "
         f"membar.gl; {SEES}", "race in allocation 1")):
    case(f"a flag that is {name}", FLAG.replace(SET, store).replace("LOAD", load), said, grid=2)
# Another thread's store to the flag revokes the release.
case("a flag that another has set again", FLAG.replace("STORE", RELEASE).replace(
    "LOAD", f"{RELAXED} [%d1+160], 1; {ACQUIRE}"), "race in allocation 1", grid=2, most_lanes=32)

# ---- launches that begin before the previous one has ended
WAIT = "griddepcontrol.wait;"
ONE = f"setp.ne.u32 %p1, %r1, 5; @%p1 bra $on; {WAIT} $on:"
for name, body, said in (
        ("read", "ld.global.u32 %r5, [%d2];", "written by the launch before, and read before griddepcontrol.wait"),
        ("written", "st.global.u32 [%d2], %r1;", "used by the launch before, and written before griddepcontrol.wait"),
        ("read later", f"{WAIT} ld.global.u32 %r5, [%d2]; st.global.u32 [%d2], %r5;", None),
        ("read when one thread waited", f"{ONE} ld.global.u32 %r5, [%d2];",
         "and read before griddepcontrol.wait; at ld.global.u32 %r5, [%d2]; in k, thread 0"),
        ("read behind a barrier", f"{ONE} bar.sync 0; ld.global.u32 %r5, [%d2];", None),
        ("left alone", "ld.global.u32 %r5, [%d2+128]; st.global.u32 [%d2+384], %r5;", None),
        ("bytes, written where it read", "add.u64 %d3, %d1, 258; st.global.u8 [%d3], %r1;",
         "used by the launch before"),
):
    case(f"dependent launches: {name}", body, said, inputs=[np.zeros(128, np.uint32)], grid=1, after=HEAD + BEGIN +
         "st.global.u32 [%d2], %r1; ld.global.u32 %r5, [%d2+256]; ret; }")

# ---- warps
MMA = "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%r5, %r6, %r7, %r8}, {%r1, %r1, %r1, %r1}, {%r1, %r1}, " \
      "{%r1, %r1, %r1, %r1};"
MISSING = "a lane is missing"
case("mma of a whole warp", MMA, None)
case("mma with a lane that ended", "setp.eq.u32 %p1, %r1, 3; @%p1 exit; " + MMA, MISSING)
case("mma behind a guard", "setp.ne.u32 %p1, %r1, 3; @%p1 " + MMA, MISSING)
case("mma of half a warp", MMA, MISSING, block=48)
case("ldmatrix of some", "st.shared.u32 [%r4], %r1; bar.sync 0; setp.lt.u32 %p1, %r1, 8; @%p1 ldmatrix.sync.aligned.m8n8.x1."
     "shared.b16 {%r5}, [%r3];", MISSING)
case("ldmatrix, misaligned", "st.shared.u32 [%r4], %r1; bar.sync 0; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [%r4];",
     "misaligned: 16 bytes")
case("shfl with a lane missing", "setp.lt.u32 %p1, %r1, 31; @%p1 shfl.sync.bfly.b32 %r5, %r1, 1, 31, 0xffffffff;", MISSING)
case("shfl by one who is not named", "shfl.sync.idx.b32 %r5, %r1, 1, 31, 0xff;", "not in the mask")
case("shfl from a lane that is not named", "setp.lt.u32 %p1, %r1, 8; @%p1 shfl.sync.idx.b32 %r5, %r1, 9, 31, 0xff;",
     "lane 9, which does not take part")
case("shfl among those that are named", "setp.lt.u32 %p1, %r1, 8; @%p1 shfl.sync.idx.b32 %r5, %r1, 7, 31, 0xff;", None)
case("vote with a lane missing", "setp.lt.u32 %p1, %r1, 31; @%p1 vote.sync.any.pred %p2, %p1, 0xffffffff;", MISSING)
case("bar.warp.sync with a lane missing", "setp.lt.u32 %p1, %r1, 31; @%p1 bar.warp.sync 0xffffffff;", MISSING)
case("masks that differ", "setp.lt.u32 %p1, %r1, 16; selp.u32 %r5, 0xffffffff, 0xffff0000, %p1; "
     "redux.sync.add.u32 %r6, %r1, %r5;", "lanes name different masks")
case("a barrier that some miss", "setp.lt.u32 %p1, %r1, 40; @%p1 bar.sync 0; @!%p1 bar.sync 1;", "is never met", block=64)
case("a barrier after some ended", "setp.lt.u32 %p1, %r1, 32; @%p1 exit; bar.sync 0;", None, block=64)

# ---- cp.async
COPY = "mad.lo.u32 %r5, %r1, 16, %r3; cp.async.ca.shared.global [%r5], [%d2], 4; cp.async.commit_group; "
case("cp.async read before it is waited for", COPY + "ld.shared.u32 %r6, [%r5];", "cp.async has not been waited for", block=16)
case("cp.async not waited for enough", COPY + "cp.async.wait_group 1; ld.shared.u32 %r6, [%r5];",
     "cp.async has not been waited for", block=16)
case("cp.async waited for", COPY + "cp.async.wait_group 0; ld.shared.u32 %r6, [%r5];", None, block=16)
case("cp.async that was not committed", COPY.replace("cp.async.commit_group;", "") + "cp.async.wait_group 0; "
     "ld.shared.u32 %r6, [%r5];", "cp.async has not been waited for", block=16)
case("cp.async read by others without a barrier", COPY + "cp.async.wait_group 0; xor.b32 %r6, %r1, 1; "
     "mad.lo.u32 %r6, %r6, 16, %r3; ld.shared.u32 %r6, [%r6];", "race in shared memory", block=16)
case("cp.async, misaligned", "cp.async.cg.shared.global [%r3], [%d1+8], 16;", "misaligned", block=1)
