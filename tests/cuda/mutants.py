#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels with one mistake each, which the emulator must detect for the right reason: mutants.py SOURCE NVCC, prints
TAP."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import kernels  # prints the reason if numpy is missing
import ptx
import sass

SIZE = dict(rows=37, cols=1100, outliers=60)
V2, V2C = dict(SIZE, kind="v2"), dict(SIZE, kind="v2c", group=32, codebooks=16)
# Ways to check a kernel: run_case, the same with overlapping launches, for many vectors, run_list, sass.
RUN, EARLY, WIDE, LIST, SASS = range(5)
# (way, unit, its only kernel, options of Weights, vectors): the code that contains a mistake.
EXACT = RUN, "v2", "XFP_CUDA_KERNEL(xfp_multiply_v2_k3_m4, 1, multiply_vectors<4, tile<3>>)", dict(V2, k=3), 5
MANY = WIDE, "v2", "XFP_CUDA_WIDE_KERNEL(xfp_multiply_v2_k3, wide<3>)", dict(V2, k=3), 7
PRODUCTS = LIST, "v2", "XFP_CUDA_KERNEL(xfp_multiply_v2_k4_list, 2, multiply_list<tile<4>>)", dict(V2, k=4), 2
ONE, TWO, THREE = ((RUN, "v2", f"XFP_CUDA_FEW_KERNEL(xfp_multiply_v2_k4, 4, {most}, 0, v2_books<4>)", dict(V2, k=4), vectors)
                   for vectors, most in ((1, 1), (2, 2), (3, 4)))
NAMES = RUN, "v2c", "XFP_CUDA_FEW_KERNEL(xfp_multiply_v2c32_k4, 4, 1, 1, v2c_books<4>)", dict(V2C, k=4), 1
AT_ONCE, CODE = (EARLY, *ONE[1:]), (SASS, *ONE[1:])
LEFT = """value = *reinterpret_cast<const T *>(left);
	for (uint32_t i = 1; i < gridDim.z; i++)
		value += *reinterpret_cast<const T *>(left + i * XFP_CUDA_PART_BYTES);"""
COPY = "copy_async(slot + to + i * PIECE, from + i % 2 * 8 * lanes<K>::BYTES + i / 2 * 64);"
# (mistake, file, text, replacement, pattern of the expected fault, code as above)
MUTANTS = [
    ("a barrier is missing", "tile.h", "p, own, b.outlier);\n\t__syncthreads();\n\n", "p, own, b.outlier);\n",
     "race in shared", EXACT),
    ("one chunk too many", "tile.h", "chunk < own.end", "chunk <= own.end",
     "out of bounds|of the bound", EXACT),
    ("a row more than there are", "tile.h", "end = row < call.weights.rows ?",
     "end = row <= call.weights.rows ?", "out of bounds", EXACT),
    ("outliers are added by every warp", "tile.h", "x.each == 1 ? at_[0] :",
     "x.each == 2 ? __fadd_rn(__fadd_rn(at_[0], at_[1]), b.outlier[r * 8 * N + v]) :", "of the bound", EXACT),
    ("the last column is missing", "prepare.cu", "if (own < call.cols)", "if (own < call.cols - 1)",
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
     "t0 = i ? s0 ^ 0x88880888u", "of the bound", ONE),
    ("two digits change places", "prepare.cu", "(to + 32) = prmt(low01, low23, 0x7632)",
     "(to + 32) = prmt(low01, low23, 0x5410)", "of the bound", ONE),
    ("a chunk of the last round is left out", "integer.h", "(own.end - chunk + XFP_CUDA_WARPS - 1) / XFP_CUDA_WARPS",
     "(own.end - chunk) / XFP_CUDA_WARPS", "of the bound", PRODUCTS),
    ("sums of a warp that nobody awaits", "tile.h", "p, own, b.outlier);\n\t__syncthreads();\n\treturn",
     "p, own, b.outlier);\n\treturn", "race in shared", PRODUCTS),
    ("a chunk of the ring is not waited for", "ring.h", "wait_for_copies<static_cast<int>(SLOTS) - 2>",
     "wait_for_copies<static_cast<int>(SLOTS) - 1>", "not been waited for", ONE),
    ("a slot of the ring is filled while it is read", "ring.h", "copy_digits(released, count, p);",
     "copy_digits(oldest, count, p);", "cp.async|race in shared", ONE),
    ("a warp does not wait for its copies together", "ring.h", "__syncwarp();\n\t\tif (left)", "if (left)",
     "race in shared", ONE),
    ("indices of a chunk too far", "ring.h", "from += STRIDE * CHUNK;", "from += 2 * STRIDE * CHUNK;",
     "out of bounds|of the bound", ONE),
    ("digits do not begin again with a row", "ring.h", "if (STRIDE == 1 && !--row_left)", "if (STRIDE == 2 && !--row_left)",
     "out of bounds", ONE),
    ("digits of a run that begin with the row", "ring.h", "3 * x.cols + chunk * DIGITS", "3 * x.cols",
     "of the bound|out of bounds", ONE),
    ("digits of a vector that does not exist", "ring.h", "here += v < 3 || count > 3 ? stride : 0;", "here += stride;",
     "out of bounds", THREE),
    ("digits of the first vector for the second", "ring.h", "mine += (p.g / 3 == 1) * DIGITS;", "", "of the bound", TWO),
    ("names of the wrong rows", "ring.h", "mine_names + released + i *", "mine_names + released + (1 - i) *",
     "of the bound", NAMES),
    ("names of the first chunk for all", "ring.h", "(names ? NAME_BYTES : DIGITS);", "(names ? 0 : DIGITS);",
     "of the bound", NAMES),
    ("tables that nobody awaits", "v2c.cu", "wait_for_copies<GROUPS>();\n", "", "race in shared", NAMES),
    ("tables that only their copiers await", "v2c.cu", "wait_for_copies<GROUPS>();\n\t\t__syncthreads();",
     "wait_for_copies<GROUPS>();", "race in shared", NAMES),
    ("a worker keeps its part of a tile to itself", "few.h", "complete = some == own.chunks ?",
     "complete = some == own.chunks || own.left ?", "race in|of the bound", ONE),
    ("a worker too many is counted", "few.h", "(tile * cost + chunks - 1) / run", "(tile * cost + chunks - 1) / run + 1",
     "never written", ONE),
    ("a worker with no chunk of a tile is counted", "few.h", "(tile * cost + chunks - 1) / run",
     "(tile * cost + cost - 1) / run", "never written", ONE),
    ("the last worker but one completes a tile", "few.h", "== last - first)", "== (last - first) / 2)",
     "of the bound|race in", ONE),
    ("shared sums are not 0 again", "few.h", "*mine = 0;", "", "other bits|never written|of the bound", ONE),
    ("sums are added without atomics", "few.h", "before = add_atomic(mine, given);", "before = *mine;\n\t\t*mine += given;",
     "race in", ONE),
    ("sums that a lane reads too early", "few.h", "total, p, shared);\n\t\t__syncwarp();", "total, p, shared);",
     "race in shared", ONE),
    ("codebooks of rows that do not exist", "v2.cu", "min(tile * XFP_CUDA_TILE_ROWS + p.g + 8 * i, w.rows - 1)",
     "tile * XFP_CUDA_TILE_ROWS + p.g + 8 * i", "out of bounds", ONE),
    ("results of rows that do not exist", "few.h", "if (row >= call.weights.rows)", "if (row > call.weights.rows)",
     "out of bounds", ONE),
    ("outliers of the first vector for the second", "few.h", "outliers_of_row(call, row, call.first + v)",
     "outliers_of_row(call, row, call.first)", "of the bound", TWO),
    ("digits are read before the launch that writes them ends", "few.h", "\twait_for_launch_before();\n", "",
     "read before griddepcontrol.wait", AT_ONCE),
    ("a copy is waited for where it begins", "ring.h", "commit_copies();\n\t\treleased = oldest;",
     "commit_copies();\n\t\twait_for_copies<0>();\n\t\treleased = oldest;", "in flight: 0 bytes per warp", CODE),
    ("loads to registers, behind a condition for each chunk", "ring.h", COPY,
     "*static_cast<uint4 *>(__cvta_shared_to_generic(slot + to + i * PIECE)) = load_once(" + COPY.split(", ", 1)[1],
     "loads into registers", CODE),
    ("a ring of two slots", "abi.h", "#define XFP_CUDA_RING 3u", "#define XFP_CUDA_RING 2u",
     "in flight: .* per multiprocessor, fewer", CODE),
    ("a copy is not waited for", "wide.h", "wait_for_copies<XFP_CUDA_WIDE_STAGES - 2>",
     "wait_for_copies<XFP_CUDA_WIDE_STAGES - 1>", "cp.async", MANY),
    ("a stage is filled while it is read", "wide.h", "place == XFP_CUDA_WIDE_STAGES *",
     "place == (XFP_CUDA_WIDE_STAGES - 1) *", "cp.async|race in shared", MANY),
    ("a stage without a barrier", "wide.h", "__syncthreads();\n\t\tif (s +", "if (s +", "cp.async|race in shared",
     MANY),
    ("planes that nobody copied", "wide.h", "i * 32 + first < count);", "(i + 1) * 32 + first < count);",
     "of the bound", MANY),
    ("an outlier in another's place", "wide.h", "from[i] = p.t < 2 ? low : high", "from[i] = p.t < 2 ? high : low",
     "of the bound", MANY),
    ("the next chunk comes too late", "wide_rows.h", "if (stage + STAGES < stages)", "if (stage + 2 * STAGES < stages)",
     "of the bound", MANY),
]


def only(folder, unit, kernel):
    """Remove all kernels but one."""
    path = os.path.join(folder, "kernels", "cuda", unit + ".cu")
    with open(path, encoding="utf-8") as file:
        kept, times = re.subn(r"^(XFP_CUDA_)?(FEW_)?KERNELS\(.*\n", "", file.read(), flags=re.M)
    if not times:
        raise ValueError(f"{path} makes no kernels")
    with open(path, "w", encoding="utf-8") as file:
        file.write(kept + kernel + "\n")


def included(folder, name, texts):
    """{name: text} of a file and of all our files that it includes, taken from `texts`."""
    if name not in texts:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            texts[name] = file.read()
        for other in re.findall(r'^#include "(kernels/cuda/.*?)"', texts[name], flags=re.M):
            included(folder, other, texts)
    return texts


MODULES = {}   # number of texts; prepare.cu is the same for most


def module_of(nvcc, folder, unit, architecture):
    key = architecture, *sorted(included(folder, f"kernels/cuda/{unit}.cu", {}).items())
    if key not in MODULES:
        out = os.path.join(folder, unit + ".ptx")
        subprocess.run([nvcc, "-std=c++17", "-I", folder, "-arch=compute_" + architecture, "-ptx", "-o", out,
                        os.path.join(folder, "kernels", "cuda", unit + ".cu")], check=True)
        MODULES[key] = ptx.load(out)
    return MODULES[key]


def copied(source, mutant, folder):
    """A copy with the mistake and a single kernel."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(os.path.join(source, "kernels", "cuda"), os.path.join(folder, "kernels", "cuda"))
    _, name, there, now, _, (_, unit, kernel, *_) = mutant
    path = os.path.join(folder, "kernels", "cuda", name)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if text.count(there) != 1:
        raise ValueError(f"{name} has this {text.count(there)} times: {there}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(there, now))
    only(folder, unit, kernel)


def executed(nvcc, folder, code):
    """The emulator's fault: with one block per tile and, if there is none, with three; with workers of one and a half
    tiles, and of one chunk."""
    how, unit, kernel, options, vectors = code
    modules = [module_of(nvcc, folder, one, "90" if how == EARLY else "80") for one in (unit, "prepare")]
    shares = (3 / 2, 0) if "FEW" in kernel else (None,)
    for parts in (1, 3) if how == RUN and "FEW" not in kernel else (1,):
        try:
            if how == LIST:
                bound, same = kernels.run_list(modules, options)
            else:
                bound, same = kernels.run_case(modules, options, vectors, "f32", parts, wide=how == WIDE, shares=shares)
        except ptx.Fault as fault:
            return str(fault)
        if not bound <= 1:
            return f"{bound:.3g} of the bound"
        if not same:
            return "another order, or other runs, give other bits"
    return "nothing"


def in_machine_code(folder, code):
    """The fault that sass.py finds; None without a disassembler."""
    if not sass.tool("nvdisasm") or not sass.tool("cuobjdump"):
        return None
    cubin, = sass.cubins(os.path.join(folder, "kernels", "cuda", code[1] + ".cu"), folder, ("90",)).values()
    loop, = sass.loops(cubin, sass.layouts(folder)).values()
    return "; ".join(loop.faults("90")[0])


def main():
    source, nvcc = sys.argv[1:3]
    failed = 0
    print(f"1..{len(MUTANTS)}")
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "copy")
        for at, mutant in enumerate(MUTANTS, 1):
            mistake, *_, pattern, code = mutant
            copied(source, mutant, copy)
            found = in_machine_code(copy, code) if code[0] == SASS else executed(nvcc, copy, code)
            if found is None:
                print(f"ok {at} - {mistake} # SKIP no nvdisasm and cuobjdump", flush=True)
                continue
            seen = re.search(pattern, found)
            print(f"{'ok' if seen else 'not ok'} {at} - {mistake}\n# {found[:200]}", flush=True)
            failed += not seen
    return failed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
