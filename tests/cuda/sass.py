#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What main loops of integers keep in flight and execute, in machine code: sass.py FILE ..., as TAP.

FILE is a .fatbin, or a .cu, which $NVCC compiles. nvdisasm and cuobjdump are looked for as $NVDISASM and $CUOBJDUMP,
next to $NVCC, and on PATH; without them everything is skipped.

	NVCC=nvcc NVDISASM=/where/nvdisasm CUOBJDUMP=/where/cuobjdump tests/cuda/sass.py kernels/cuda/v2.cu

A main loop is the smallest loop with integer products (IMMA). Its weights come by asynchronous copies past L1 (LDGSTS
.BYPASS), which a ring has in flight (kernels/cuda/ring.h); digits of vectors come by L1. Checked for every kernel:

- The loop copies all weights of a turn before its first product, and loads nothing into registers.
- When the first product starts, the copies in flight are those of ring.h: one chunk less than the ring has slots. These
  are the groups that the loop's wait (DEPBAR) leaves in flight and those it commits (LDGDEPBAR) before the product, but
  no more than were copied before the loop.
- A multiprocessor has enough bytes in flight, over all the warps that its registers and shared memory hold.
- A block for one vector, or for a list, fits in shared memory. The host does without those for more vectors.
- The loop executes no more per weight than stated, with a tenth of slack. Issue: every instruction; ALU: those of the
  pipe for integers and logic; shared: loads and stores of shared memory, and shuffles. Conditional instructions count
  as executed. A thread of a warp has a 32nd of the weights that the warp copies in a turn.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ARCHITECTURES = ("80", "90", "100", "120")
REGISTERS, SHARED_KB = 65536, {"80": 164, "90": 228, "100": 228, "120": 100}   # per multiprocessor
LEAST_SHARED_KB = dict(SHARED_KB, **{"80": 100})   # of the smallest device that runs the code: 8.6 and 8.9
WARPS, WARP_LANES, COPY_BYTES = 8, 32, 16
# Bytes per multiprocessor that must be in flight: an H200 with 132 reads 4.5 TB/s, and a load takes up to 0.8 us.
IN_FLIGHT = {"90": 25 * 1024}
# Four vectors of k = 3 have 72 KB of digits and indices per chunk of a block: one block fits, with one chunk in flight.
LESS_IN_FLIGHT = {"v2_k3_i4": 24 * 1024, "v2c32_k3_i4": 24 * 1024}
SLACK = 1.1
# Issue, ALU and shared per weight, of the architecture where a loop has most.
STATED = {
    "v2_k2_i1": (1.41, 0.87, 0.07), "v2_k2_i2": (1.44, 0.88, 0.07),
    "v2_k2_i4": (1.67, 0.90, 0.11), "v2_k2_list": (1.35, 0.84, 0.10),
    "v2_k3_i1": (1.30, 0.89, 0.07), "v2_k3_i2": (1.31, 0.87, 0.07),
    "v2_k3_i4": (1.53, 0.88, 0.10), "v2_k3_list": (1.27, 0.85, 0.07),
    "v2_k4_i1": (2.47, 1.47, 0.11), "v2_k4_i2": (2.63, 1.52, 0.16),
    "v2_k4_i4": (3.05, 1.53, 0.19), "v2_k4_list": (2.35, 1.41, 0.16),
    "v2c32_k2_i1": (1.54, 0.94, 0.12), "v2c32_k2_i2": (1.60, 0.96, 0.12),
    "v2c32_k2_i4": (1.80, 0.97, 0.15), "v2c32_k2_list": (1.47, 0.92, 0.14),
    "v2c32_k3_i1": (1.42, 0.91, 0.11), "v2c32_k3_i2": (1.44, 0.92, 0.11),
    "v2c32_k3_i4": (1.65, 0.93, 0.14), "v2c32_k3_list": (1.41, 0.93, 0.12),
    "v2c32_k4_i1": (2.60, 1.52, 0.21), "v2c32_k4_i2": (2.74, 1.63, 0.21),
    "v2c32_k4_i4": (3.25, 1.63, 0.29), "v2c32_k4_list": (2.49, 1.46, 0.25),
}
ALU = ("LOP3", "SHF", "PRMT", "IADD", "VIADD", "ISETP", "SEL", "FSEL", "LEA", "MOV", "PLOP3", "IMNMX", "VIMNMX",
       "FMNMX", "FSETP", "SGXT", "BMSK", "IABS", "POPC", "FLO", "I2FP", "R2P", "P2R", "VABSDIFF")
SHARED = ("LDS", "SHFL", "LDSM", "STS", "ATOMS")
KERNEL = re.compile(r"xfp_multiply_((v2|v2c32)_k([234])_(i1|i2|i4|list))$")
ABI = """#include <stdio.h>
#include "kernels/cuda/abi.h"
int main(void)
{
	for (unsigned k = 2; k <= 4; k++)
		for (unsigned vectors = 1; vectors <= 4; vectors *= 2)
			for (unsigned names = 0; names < 2; names++)
				printf("%u %u %u %u %u %u\\n", k, vectors, names, XFP_CUDA_FEW_BLOCKS(k, vectors, names),
				       XFP_CUDA_RING_SLOTS(k), (unsigned)XFP_CUDA_RING_BYTES(k, vectors, names));
	return 0;
}
"""


def nvcc():
    return os.environ.get("NVCC", "nvcc")


def tool(name):
    """Path of a program of the toolkit, or None."""
    beside = os.path.join(os.path.dirname(shutil.which(nvcc()) or ""), name)
    return os.environ.get(name.upper()) or (beside if os.path.isfile(beside) else shutil.which(name))


def output(*command, folder=None):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          cwd=folder).stdout


def cubins(path, folder, architectures=ARCHITECTURES):
    """{architecture: cubin} of a file."""
    found = {one: os.path.join(folder, f"{os.path.basename(path)}.{one}.cubin") for one in architectures}
    for one, cubin in found.items():
        if path.endswith(".cu"):
            root = os.path.join(os.path.dirname(os.path.abspath(path)), "..", "..")
            output(nvcc(), "-std=c++17", "-I", root, "-arch=sm_" + one, "-cubin", "-o", cubin, path)
            continue
        with tempfile.TemporaryDirectory() as inside:
            output(tool("cuobjdump"), "-xelf", f"sm_{one}.cubin", os.path.abspath(path), folder=inside)
            name, = os.listdir(inside)
            shutil.move(os.path.join(inside, name), cubin)
    return found


def layouts(root):
    """{(k, vectors, names): (blocks per multiprocessor that are launched, slots, bytes)} of rings, from abi.h."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "abi.c"), os.path.join(folder, "abi")
        with open(source, "w", encoding="utf-8") as file:
            file.write(ABI)
        output(nvcc(), "-x", "c", "-I", root, "-o", program, source)
        rows = [[int(word) for word in line.split()] for line in output(program).splitlines()]
    return {(k, vectors, bool(names)): tuple(rest) for k, vectors, names, *rest in rows}


def functions(cubin):
    """{kernel: [(label or None, instruction or None)]}"""
    found, current = {}, None
    for line in output(tool("nvdisasm"), "-c", cubin).splitlines():
        label = re.match(r"\s*(\.\w[\w.$]*):", line)
        if label:
            if label[1].startswith(".text."):
                current = found.setdefault(label[1][6:], [])
            elif current is not None:
                current.append((label[1], None))
            continue
        code = re.search(r"/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", line)
        if code and current is not None:
            current.append((None, code[1]))
    return found


def registers(cubin):
    """{kernel: registers per thread}"""
    text = output(tool("cuobjdump"), "-res-usage", cubin)
    return {name: int(number) for name, number in re.findall(r"Function (\w+):\s+REG:(\d+)", text)}


def opcode(code):
    """The opcode with its modifiers, without the guard."""
    return re.sub(r"^@!?\w+\s+", "", code).split()[0]


def main_loop(lines):
    """(the code before the smallest loop with integer products, its instructions), or None."""
    at = {label: i for i, (label, _) in enumerate(lines) if label}
    best = None
    for end, (_, code) in enumerate(lines):
        to = code and re.search(r"\bBRA\b.*?(\.L_\w+)", code)
        begin = at.get(to[1], end) if to else end
        if any(code and opcode(code).startswith("IMMA") for _, code in lines[begin:end]) and \
                (best is None or end - begin < best[1] - best[0]):
            best = begin, end
    if best is None:
        return None
    return [[code for _, code in part if code] for part in (lines[:best[0]], lines[best[0]:best[1] + 1])]


def places(codes, *kinds):
    """The instructions whose opcode, up to its first modifier, is one of these."""
    return [at for at, code in enumerate(codes) if opcode(code).split(".")[0] in kinds]


def weight_copies(codes):
    return [at for at in places(codes, "LDGSTS") if "BYPASS" in opcode(codes[at])]


class Loop:
    """Figures of the main loop of a kernel; `layout` as above, `used`: registers of a thread."""

    def __init__(self, kernel, lines, layout, used):
        self.name, method, k, self.form = KERNEL.match(kernel).groups()
        self.k, self.names, self.used = int(k), method == "v2c32", used
        self.launched, self.slots, self.ring = layout[self.k, {"i2": 2, "i4": 4}.get(self.form, 1), self.names]
        self.before, self.body = main_loop(lines)
        self.first = places(self.body, "IMMA")[0]
        self.copied = len(weight_copies(self.body)) * COPY_BYTES * WARP_LANES   # by a warp in a turn

    def in_flight(self):
        """Bytes of weights per warp, when the first product of a turn starts."""
        wait = max(places(self.body[:self.first], "DEPBAR"), default=None)
        if wait is None or not self.copied:
            return 0
        groups = int(self.body[wait].split(",")[-1].split()[0], 0) + \
            len(places(self.body[wait:self.first], "LDGDEPBAR"))
        return min(groups * self.copied // len(places(self.body, "LDGDEPBAR")),
                   len(weight_copies(self.before)) * COPY_BYTES * WARP_LANES)

    def shared_bytes(self):
        """Dynamic shared memory of a block, as the host computes it; lists of v2c with 16 codebooks."""
        tables = 512 << self.k if self.names else 0
        sums = WARPS * 512 if self.form != "list" else WARPS * 512 + 512
        library = (32 << self.k) + (64 if self.names else 0) if self.form == "list" else 0
        return tables + library + self.ring + sums

    def blocks(self, architecture):
        """Per multiprocessor."""
        fit = min(REGISTERS // (-(-self.used // 8) * 8 * WARPS * WARP_LANES),
                  SHARED_KB[architecture] * 1024 // (self.shared_bytes() + 1024))
        return fit if self.form == "list" else min(fit, self.launched)

    def per_weight(self):
        """Issue, ALU, shared."""
        weights = self.copied * 8 // self.k // WARP_LANES
        kinds = [opcode(code) for code in self.body]
        return [count / weights for count in (len(kinds), sum(one.startswith(ALU) for one in kinds),
                                              sum(one.startswith(SHARED) for one in kinds))]

    def faults(self, architecture):
        """(errors, figures to print)"""
        copies, loads = weight_copies(self.body), places(self.body, "LDG", "LD")
        wrong = [f"the loop loads into registers: {self.body[loads[0]]}"] if loads else []
        if not copies:
            return wrong + ["the loop copies no weights"], ""
        if copies[-1] > self.first:
            wrong.append("a copy of weights comes after the first product")
        flight, blocks, found = self.in_flight(), self.blocks(architecture), self.per_weight()
        if flight != (self.slots - 1) * self.copied:
            wrong.append(f"in flight: {flight} bytes per warp; all but one of {self.slots} slots have {self.copied}")
        everywhere = flight * WARPS * blocks
        least = LESS_IN_FLIGHT.get(self.name, IN_FLIGHT[architecture]) if architecture in IN_FLIGHT else 0
        if everywhere < least:
            wrong.append(f"in flight: {everywhere} bytes per multiprocessor, fewer than {least}")
        if self.form in ("i1", "list") and self.shared_bytes() + 1024 > LEAST_SHARED_KB[architecture] * 1024:
            wrong.append(f"a block has {self.shared_bytes()} bytes of shared memory, more than some devices")
        for what, has, stated in zip(("issue", "ALU", "shared"), found, STATED[self.name]):
            if has > SLACK * stated:
                wrong.append(f"{what}: {has:.3f} per weight, more than {SLACK} times {stated}")
        return wrong, (f"in flight: {flight} bytes per warp, {everywhere / 1024:.0f} KB per multiprocessor ({blocks} "
                       f"blocks); {self.used} registers; per weight: issue %.3f, ALU %.3f, shared %.3f" % tuple(found))


def loops(cubin, layout):
    """{kernel: Loop} of those that multiply by integers; None without such a loop."""
    used = registers(cubin)
    return {name: Loop(name, lines, layout, used[name]) if main_loop(lines) else None
            for name, lines in functions(cubin).items() if KERNEL.match(name)}


def main():
    paths = sys.argv[1:]
    if not tool("nvdisasm") or not tool("cuobjdump"):
        print("1..0 # SKIP no nvdisasm and cuobjdump")
        return 0
    failed = done = 0
    layout = layouts(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    units = {os.path.basename(path).split(".")[0] for path in paths}
    missing = {(one, "xfp_multiply_" + name) for one in ARCHITECTURES for name in STATED
               if ("v2c" if name.startswith("v2c32") else "v2") in units}
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            for architecture, cubin in cubins(path, folder).items():
                for name, loop in sorted(loops(cubin, layout).items()):
                    wrong, figures = loop.faults(architecture) if loop else (["it has no such loop"], "")
                    missing.discard((architecture, name))
                    done, failed = done + 1, failed + bool(wrong)
                    print(f"{'not ok' if wrong else 'ok'} {done} - sm_{architecture} {name}")
                    print("".join(f"# {line}\n" for line in [*wrong, figures] if line), end="", flush=True)
    if missing:
        done, failed = done + 1, failed + 1
        print(f"not ok {done} - every kernel is there")
        print("".join(f"# sm_{one} {name}\n" for one, name in sorted(missing)), end="")
    print(f"1..{done}")
    return failed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
