#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Cost of the inner loops of products, from their object code: of processors that are not at hand, too.

    kernel_cost.py [--update] [--no-cycles] [--table FILE] [--set NAME] BUILD

Prints, for each instruction set, mode, bits an index and number of vectors, the instructions and bytes of code that 64
weights take, and the cycles that llvm-mca computes for several processors, next to the values of tests/kernel-cost.csv.
Status 1 if a loop has over 2 % more instructions than in the table; --update writes the table instead.

BUILD is a configured build folder whose kernels are compiled. The table is of one compiler, one set of options and one
version of LLVM (COMPILER, OPTIONS and LLVM below); with another compiler or other options nothing is compared, and
without that llvm-mca, or with --no-cycles, which is much faster, only instructions and bytes. Status 77, after a line
with the reason, if nothing can be compared.

The loop is the one with most multiply-adds among those that contain no loop and no branch but exits. It processes whole
chunks of 16 lanes, so that the number of its weights is that of its multiply-adds, rounded down to chunks: groups may
need a few more for their scales. Not in the table: products of several vectors with the f32 sets, which process one
slot of a chunk at a time, and few others with loops within the loop.

Rows `decode-` are of decoding to f32, by the loop with most stores; rows `panel-` of 64 f32 weights times sixteen
vectors. Both are of x86 only.
"""
import argparse
import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
COMPILER, OPTIONS, LLVM = "gcc 12.2", "-g -O2", "19.1"
SLACK = 1.02

# For each set: its object, vectors at a time, the multiply-adds of 64 weights and one vector, their name, and the
# processors to simulate. With bytes, a weight and an activation have two bytes each; the product of the low ones is
# left out. `narrow` has weights of one byte. With words, sums are of pairs.
SETS = {
    "vbmi": ("matvec_vbmi_la-matvec_vbmi", (1, 2), 3, r"vpdpbusd", ("znver4", "icelake-server", "sapphirerapids")),
    "narrow": ("matvec_vbmi_la-matvec_narrow", (1, 2), 2, r"vpdpbusd", ("znver4", "icelake-server", "sapphirerapids")),
    "words": ("matvec_vbmi_la-matvec_words", (4, 8), 2, r"vpdpwssd", ("znver4", "icelake-server", "sapphirerapids")),
    "avx512": ("matvec_avx512_la-matvec_avx512", (1,), 4, r"vfn?madd\w*ps",
               ("znver4", "icelake-server", "sapphirerapids")),
    "avx2": ("matvec_avx2_la-matvec_avx2", (1,), 8, r"vfn?madd\w*ps", ("znver4", "alderlake")),
    "avx2-words": ("matvec_avx2_la-matvec_words_avx2", (1, 2, 4, 8), 4, r"vpmaddwd", ("znver4", "alderlake")),
    "decode-avx512": ("decode_avx512_la-matvec_decode_avx512", (1,), 4, r"vmov[au]ps\s+%zmm\d+,(?!.*%rsp).*\(",
                      ("znver4", "icelake-server", "sapphirerapids")),
    "decode-avx2": ("decode_avx2_la-matvec_decode_avx2", (1,), 8, r"vmov[au]ps\s+%ymm\d+,(?!.*%rsp).*\(",
                    ("znver4", "alderlake")),
    "panel-avx512": ("matvec_avx512_la-matvec_avx512", (16,), 4, r"vfn?madd\w*ps",
                     ("znver4", "icelake-server", "sapphirerapids")),
    "panel-avx2": ("matvec_avx2_la-matvec_avx2", (16,), 8, r"vfn?madd\w*ps", ("znver4", "alderlake")),
    "neon": ("neon", (1,), 16, r"fmla", ("neoverse-v2",)),
    "dotprod": ("dotprod", (1, 2, 4, 8), 12, r"sdot", ("neoverse-v2",)),
}
AARCH64 = {"neon": (), "dotprod": ("-march=armv8.2-a+dotprod", "-DXFP_AARCH64")}  # compiled here, with these options
# The names of functions: mode, k and vectors.
FUNCTIONS = {"decode": r"(v2|v2a|v2c)_numbers_(\d)()", "panel": r"multiply_panel()()()(?:\..*)?"}
CHUNK = {2: 256, 3: 512, 4: 128, 5: 512, 6: 256}  # columns: kernels/common/lane_index.h
FIELDS = ("set", "mode", "k", "vectors", "instructions", "bytes")


def output(*command, text=None):
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, check=True, text=True).stdout


# ---- object code ----------------------------------------------------------------------------------

def functions(object_file, objdump):
    """The name of each function, and its instructions: address, text and size."""
    name, body = None, []
    for line in output(objdump, "-d", "-w", "--no-show-raw-insn", object_file).splitlines() + ["0 <>:"]:
        head = re.fullmatch(r"[0-9a-f]+ <(.*)>:", line)
        code = re.fullmatch(r"\s*([0-9a-f]+):\s+(.*?)\s*", line)
        if head:
            if name:
                yield name, body
            name, body = head[1], []
        elif code:
            body.append((int(code[1], 16), re.sub(r"\s*(//|\s{2,}#).*", "", code[2])))


JUMP = re.compile(r"(?:j\w+|b|b\.\w+|cbn?z|tbn?z|call|bl|ret)\b")


def loops(body):
    """Code between a jump backwards and its target, if other jumps in it leave the loop: texts, and bytes of code."""
    at = {address: i for i, (address, _) in enumerate(body)}
    jumps = {}
    for i, (_, text) in enumerate(body):
        if JUMP.match(text):
            target = re.search(r"\b([0-9a-f]+) <", text)
            jumps[i] = at.get(int(target[1], 16), -1) if target else -1
    for i, first in jumps.items():
        if 0 <= first <= i and all(jumps.get(j, i + 1) > i for j in range(first, i)):
            end = body[i + 1][0] if i + 1 < len(body) else body[i][0]
            yield [text for _, text in body[first:i + 1]], end - body[first][0]


def cycles(texts, processor, mca):
    """Cycles of one iteration, in the steady state."""
    arm = processor.startswith("neoverse")
    code = ["again:"] + [re.sub(r"\b[0-9a-f]+ <.*", "again", text) if JUMP.match(text) else re.sub(r" <.*>", "", text)
                         for text in texts]
    said = output(mca, "-mtriple=" + ("aarch64" if arm else "x86_64"), "-mcpu=" + processor, "-iterations=200",
                  text="\n".join(code) + "\n")
    return float(re.search(r"Total Cycles:\s+(\d+)", said)[1]) / 200


def rows(object_file, which, objdump, mca):
    _, vectors, per_64, product, processors = SETS[which]
    for name, body in functions(object_file, objdump):
        parts = re.fullmatch(FUNCTIONS.get(which.split("-", maxsplit=1)[0], r"(v2|v2a|v2c)_(\d)_(\d)"), name)
        if not parts or int(parts[3] or vectors[0]) not in vectors:
            continue
        mode, k, tile = parts[1] or "f32", int(parts[2] or 0), int(parts[3] or vectors[0])
        count, best, size = max((sum(bool(re.match(product, text)) for text in texts), texts, size)
                                for texts, size in [*loops(body), ([], 0)])
        chunk = CHUNK.get(k, 1)
        weights = 64 * count // (per_64 * tile) // chunk * chunk
        if not weights:
            continue
        row = dict(zip(FIELDS, (which, mode, k, tile, f"{len(best) * 64 / weights:.1f}", f"{size * 64 / weights:.0f}")))
        row.update({processor: f"{cycles(best, processor, mca) * 64 / weights:.2f}" for processor in processors if mca})
        yield row


# ---- what can be compared ---------------------------------------------------------------------------

def variable(build, name):
    with open(os.path.join(build, "Makefile"), encoding="utf-8") as file:
        found = re.search(rf"^{name} = (.*)$", file.read(), re.M)
    return found[1].strip() if found else ""


def version(compiler):
    """"gcc 12.2" of a command that runs a compiler; "" if there is none."""
    try:
        macros = output(*compiler, "-dM", "-E", "-xc", os.devnull)
    except (OSError, subprocess.CalledProcessError):
        return ""
    number = dict(re.findall(r"#define (__\w+__) (\d+)$", macros, re.M))
    return "clang" if "__clang__" in number else f"gcc {number.get('__GNUC__')}.{number.get('__GNUC_MINOR__')}"


def find_mca():
    for name in ("llvm-mca-" + LLVM.split(".", maxsplit=1)[0], "llvm-mca"):
        if shutil.which(name) and f"LLVM version {LLVM}." in output(name, "--version"):
            return name
    print(f"# no cycles: llvm-mca {LLVM} is not installed (Debian: llvm-{LLVM.split('.', maxsplit=1)[0]})")
    return None


def x86(build, mca, sets):
    if variable(build, "host_cpu") != "x86_64":
        return print("# no x86-64 rows: the build is for another processor")
    if version(variable(build, "CC").split()) != COMPILER or variable(build, "CFLAGS") != OPTIONS:
        return print(f"# no x86-64 rows: the build is not of {COMPILER} with CFLAGS='{OPTIONS}'")
    if "-fsanitize" in variable(build, "RUNTIME_CFLAGS"):
        return print("# no x86-64 rows: the build has sanitizers")
    for which in sets:
        path = os.path.join(build, "kernels", "multiply", ".libs", f"lib{SETS[which][0]}.o")
        yield from rows(path, which, "objdump", mca)


def aarch64(build, mca, sets):
    compiler = "aarch64-linux-gnu-gcc"
    if version([compiler]) != COMPILER:
        return print(f"# no neon rows: {compiler} is not installed, or not {COMPILER}")
    source = os.path.join(HERE, "..")
    flags = [*OPTIONS.split(), *variable(build, "RUNTIME_CFLAGS").split(), *variable(build, "KERNEL_CFLAGS").split()]
    for which in sets:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, which + ".o")
            subprocess.run([compiler, *flags, *AARCH64[which], "-I", source, "-c", "-o", path,
                            os.path.join(source, "kernels", "multiply", f"matvec_{SETS[which][0]}.c")], check=True)
            yield from rows(path, which, "aarch64-linux-gnu-objdump", mca)


# ---- the table --------------------------------------------------------------------------------------

def key(row):
    return tuple(str(row[field]) for field in FIELDS[:4])


def columns():
    return [*FIELDS, *dict.fromkeys(processor for entry in SETS.values() for processor in entry[4])]


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return {key(row): row for row in csv.DictReader(line for line in file if line[0] != "#")}


def write(path, found):
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(f"# By tests/kernel_cost.py: instructions, bytes and cycles of 64 weights; {COMPILER} {OPTIONS}, "
                   f"llvm-mca {LLVM}\n")
        table = csv.DictWriter(file, columns(), lineterminator="\n")
        table.writeheader()
        table.writerows(found)


def show(found, known):
    """Print each value, and that of the table if it differs; return how many loops have grown."""
    grown = 0
    print(" ".join(f"{name:>15}" for name in columns()))
    for row in found:
        old = known.get(key(row), {})
        print(" ".join(f"{value if value == old.get(name, '') else f'{old.get(name)}->{value}':>15}"
                       for name in columns() for value in [str(row.get(name, ""))]))
        if float(row["instructions"]) > SLACK * float(old.get("instructions", 0)):
            grown += 1
            print(f"not in the table, or over {SLACK - 1:.0%} more instructions than there: {' '.join(key(row))}")
    return grown


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--no-cycles", action="store_true")
    parser.add_argument("--table", default=os.path.join(HERE, "kernel-cost.csv"))
    parser.add_argument("--set", action="append", choices=SETS)
    parser.add_argument("build")
    given = parser.parse_args()
    mca = None if given.no_cycles else find_mca()
    sets = given.set or list(SETS)
    x86_sets, arm_sets = ([which for which in sets if (which in AARCH64) == arm] for arm in (False, True))
    found = [*(x86(given.build, mca, x86_sets) if x86_sets else []),
             *(aarch64(given.build, mca, arm_sets) if arm_sets else [])]
    found.sort(key=lambda row: (list(SETS).index(row["set"]), row["mode"], row["k"], row["vectors"]))
    if not found:
        print("nothing to compare: see above")
        return 77
    if given.update:
        write(given.table, found)
        return 0
    grown = show(found, read(given.table))
    print(f"{len(found)} loops, {grown} grown: if that is intended, make kernel-cost KERNEL_COST=--update")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
