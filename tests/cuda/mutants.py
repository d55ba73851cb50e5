#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels with a mistake each, and whether the emulator sees it, for the right reason: mutants.py SOURCE NVCC, as TAP."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import kernels  # which says so where numpy is missing
import ptx

V2 = dict(kind="v2", rows=37, cols=1100, outliers=60)
# bits, the kernel's form, vectors: which path that takes
EXACT, INTEGER, WIDE = (3, "m4", 5), (4, "m1", 1), (3, "wide", 7)
LEFT = """value = *reinterpret_cast<const T *>(left);
	for (uint32_t i = 1; i < gridDim.z; i++)
		value += *reinterpret_cast<const T *>(left + i * XFP_CUDA_PART_BYTES);"""
# (mistake, file, what was there, what is there now, what is to be said of it, and which path)
MUTANTS = [
    ("a barrier is missing", "tile.h", "b.outlier);\n\t__syncthreads();", "b.outlier);", "race in shared", EXACT),
    ("one chunk too many", "tile.h", "chunk < own.end", "chunk <= own.end",
     "out of bounds|of the bound", EXACT),
    ("a row more than there are", "tile.h", "end = row < call.weights.rows ?",
     "end = row <= call.weights.rows ?", "out of bounds", EXACT),
    ("outliers are added by every warp", "tile.h", "x.each == 1 ? at_[0] :",
     "x.each == 2 ? __fadd_rn(__fadd_rn(at_[0], at_[1]), b.outlier[r * 8 * N + v]) :", "of the bound", EXACT),
    ("the last column is missing", "prepare.cu", "c - call.lead < call.cols", "c - call.lead < call.cols - 1",
     "of the bound", EXACT),
    ("a wrong shift", "lanes.h", "two, part_of(line[2], i) >> 1)", "two, part_of(line[2], i) << 1)", "of the bound", EXACT),
    ("a lane that takes no part in a shuffle", "tile.h", "if (begin < end)\n", "if (begin + p.lane < end)\n",
     "lane|shfl", EXACT),
    ("a misaligned load", "grouped.h", "lanes<K>::THREAD * p.t", "2 * p.t", "misaligned", EXACT),
    ("a byte of shared memory that nobody wrote", "grouped.h", "i < bytes; i +=", "i + 4 < bytes; i +=",
     "never written|nobody wrote|uninitiali", EXACT),
    ("outliers are added by every part", "tile.h", " && own.has_outliers(call, r >= XFP_CUDA_WARPS)", "",
     "of the bound", EXACT),
    ("no part has the outliers of the lower rows", "parts.h", "end > call.part_chunks &&", "end > 2 * call.part_chunks &&",
     "of the bound", EXACT),
    ("parts meet without a fence", "parts.h", "atom.acq_rel.gpu", "atom.relaxed.gpu", "race in allocation", EXACT),
    ("parts meet before all threads have left their sums", "parts.h", "= value;\n\t__syncthreads();", "= value;",
     "race in", EXACT),
    ("a counter is not 0 again", "parts.h", '"r"(last)', '"r"(0xffffffffu)', "never written", EXACT),
    ("the last part adds its own first", "parts.h", LEFT,
     LEFT.replace("(left)", "(left + blockIdx.z * XFP_CUDA_PART_BYTES)")
     .replace("left + i *", "left + (i + blockIdx.z) % gridDim.z *"), "another order", EXACT),
    ("the other half of a codebook is not masked out", "integer.h", "t0 = i ? s0 ^ 0x88888888u",
     "t0 = i ? s0 ^ 0x88880888u", "of the bound", INTEGER),
    ("two digits change places", "prepare.cu", "(to + 32) = prmt(low01, low23, 0x7632)",
     "(to + 32) = prmt(low01, low23, 0x5410)", "of the bound", INTEGER),
    ("a chunk of the last round is left out", "integer.h", "if (chunk >= own.end)", "if (chunk + 1 >= own.end)",
     "of the bound", INTEGER),
    ("sums of a warp that nobody awaits", "tile.h", "b.outlier);\n\t__syncthreads();", "b.outlier);",
     "race in shared", INTEGER),
    ("a copy is not waited for", "wide.h", "wait_for_copies<XFP_CUDA_WIDE_STAGES - 2>",
     "wait_for_copies<XFP_CUDA_WIDE_STAGES - 1>", "cp.async", WIDE),
    ("a stage is filled while it is read", "wide.h", "place == XFP_CUDA_WIDE_STAGES *",
     "place == (XFP_CUDA_WIDE_STAGES - 1) *", "cp.async|race in shared", WIDE),
    ("a stage without a barrier", "wide.h", "__syncthreads();\n\t\tif (s +", "if (s +", "cp.async|race in shared",
     WIDE),
    ("planes that nobody copied", "wide.h", "i * 32 + first < count);", "(i + 1) * 32 + first < count);",
     "of the bound", WIDE),
    ("an outlier in another's place", "wide.h", "from[i] = p.t < 2 ? low : high", "from[i] = p.t < 2 ? high : low",
     "of the bound", WIDE),
    ("the next chunk comes too late", "wide_rows.h", "if (stage + STAGES < stages)", "if (stage + 2 * STAGES < stages)",
     "of the bound", WIDE),
]


def replaced(path, pattern, text):
    """Writes a file anew, in which the pattern has to be."""
    with open(path, encoding="utf-8") as file:
        now, times = re.subn(pattern, text, file.read(), flags=re.M | re.S)
    if not times:
        raise ValueError(f"{path} has nothing like {pattern}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(now)


def only(folder, k, form):
    """Leaves one kernel in v2.cu, whose forms are in two macros."""
    there = os.path.join(folder, "kernels", "cuda")
    replaced(os.path.join(there, "v2.cu"), rf"^KERNELS\([^{k}]\)\n", "")
    head, *forms = r"#define XFP_CUDA_KERNELS\(NAME, \.\.\.\)[ \t\\\n]*", "m1", "m4", "list"
    lines = [rf"(?P<{name}>XFP_CUDA_KERNEL\(NAME##_{name}, [^\n]*>\))[ \t\\]*\n\s*" for name in forms]
    replaced(os.path.join(there, "tile.h"), head + "".join(lines),
             lambda found: "#define XFP_CUDA_KERNELS(NAME, ...) " + (found[form] if form in forms else "") + "\n\n")
    if form != "wide":
        replaced(os.path.join(there, "wide.h"), r"^(#define XFP_CUDA_WIDE_KERNEL\(NAME, \.\.\.\)) .*?\n", r"\1\n")


def included(folder, name, texts):
    """{name: text} of a file and of all of ours that it includes, by `texts`."""
    if name not in texts:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            texts[name] = file.read()
        for other in re.findall(r'^#include "(kernels/cuda/.*?)"', texts[name], flags=re.M):
            included(folder, other, texts)
    return texts


MODULES = {}   # of texts; prepare.cu is the same for most


def module_of(nvcc, folder, unit):
    key = tuple(sorted(included(folder, f"kernels/cuda/{unit}.cu", {}).items()))
    if key not in MODULES:
        out = os.path.join(folder, unit + ".ptx")
        subprocess.run([nvcc, "-std=c++17", "-I", folder, "-arch=compute_80", "-ptx", "-o", out,
                        os.path.join(folder, "kernels", "cuda", unit + ".cu")], check=True)
        MODULES[key] = ptx.load(out)
    return MODULES[key]


def compiled(source, nvcc, mutant, folder):
    """The PTX of what is needed of a copy with the mistake."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(os.path.join(source, "kernels", "cuda"), os.path.join(folder, "kernels", "cuda"))
    _, name, there, now, _, (k, form, *_) = mutant
    path = os.path.join(folder, "kernels", "cuda", name)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if text.count(there) != 1:
        raise ValueError(f"{name} has this {text.count(there)} times: {there}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(there, now))
    only(folder, k, form)
    return [module_of(nvcc, folder, unit) for unit in ("v2", "prepare")]


def verdict(modules, path):
    """Of tiles that are one block's, and if that tells nothing, of three blocks'."""
    k, form, vectors = path
    wide = form == "wide"
    for parts in (1,) if wide else (1, 3):
        try:
            share, same = kernels.run_case(modules, dict(k=k, **V2), vectors, "f32", parts, wide=wide)
        except ptx.Fault as fault:
            return str(fault)
        if not same:
            return "another order gives other bits"
        if not share <= 1:
            return f"{share:.3g} of the bound"
    return "nothing"


def main():
    source, nvcc = sys.argv[1:3]
    failed = 0
    print(f"1..{len(MUTANTS)}")
    with tempfile.TemporaryDirectory() as folder:
        for at, mutant in enumerate(MUTANTS, 1):
            said = verdict(compiled(source, nvcc, mutant, os.path.join(folder, "copy")), mutant[-1])
            seen = re.search(mutant[-2], said)
            print(f"{'ok' if seen else 'not ok'} {at} - {mutant[0]}\n# {said[:200]}", flush=True)
            failed += not seen
    return failed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
