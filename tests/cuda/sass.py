#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the main loops of kernels for few vectors take a weight, in machine code: sass.py [--all] FILE ..., as TAP.

FILE is a .fatbin (cuobjdump takes what is for sm_90 and sm_120 out of it; without it, the .cu is compiled again), a
.cubin, or a .cu, which $NVCC compiles for both. nvdisasm and cuobjdump are looked for as $NVDISASM and $CUOBJDUMP,
beside $NVCC, and on PATH; where there is no nvdisasm everything is skipped. --all tells every kernel that has such a
loop, not only those for few vectors.

	NVCC=nvcc NVDISASM=/where/nvdisasm tests/cuda/sass.py kernels/cuda/v2.cu

A main loop is the smallest one that has loads, and matrix products of integers alone or of numbers alone. How many
weights a thread has in one turn, products of numbers tell, 16 rows by 16 columns each for a warp, and of integers,
which are of several planes, the indices that are loaded: these loads have the hint that nothing is to stay in L1
(device.h). Columns: issue is every instruction of the loop, ALU those that go to the pipe of integers and logic, shared
those that look up or shuffle; all by weight. What is not executed in each turn is counted as if it were. For some loops
it is stated below what they were designed for, and they may have a tenth more; others are told and not judged.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ARCHITECTURES = ("90", "120")
SLACK = 1.1
# Issue slots and ALU instructions a weight that a loop was designed for, from prototypes.
STATED = {("xfp_multiply_v2_k2_m1", "integers"): (1.08, 0.86), ("xfp_multiply_v2_k3_m1", "integers"): (1.21, 0.98),
          ("xfp_multiply_v2_k4_m1", "integers"): (1.87, 1.48), ("xfp_multiply_v2c32_k2_m1", "integers"): (1.79, 1.21),
          ("xfp_multiply_v2c32_k3_m1", "integers"): (1.92, 1.31),
          ("xfp_multiply_v2c32_k4_m1", "integers"): (2.16, 1.59)}
ALU = ("LOP3", "SHF", "PRMT", "IADD", "VIADD", "ISETP", "SEL", "FSEL", "LEA", "MOV", "PLOP3", "IMNMX", "VIMNMX",
       "FMNMX", "FSETP", "SGXT", "BMSK", "IABS", "POPC", "FLO", "I2FP", "R2P", "P2R", "VABSDIFF")
SHARED = ("LDS", "SHFL", "LDSM", "STS", "ATOMS")
PRODUCTS = {"integers": "IMMA", "numbers": "HMMA"}
FEW, OTHERS = r"_m1$", r"_(m1|m4|list)$"


def tool(name):
    """Where a program of the toolkit is, or None."""
    beside = os.path.join(os.path.dirname(shutil.which(os.environ.get("NVCC", "nvcc")) or ""), name)
    return os.environ.get(name.upper()) or (beside if os.path.isfile(beside) else shutil.which(name))


def cubins(path, folder):
    """{architecture: cubin} of a file."""
    base = os.path.join(folder, os.path.basename(path))
    if path.endswith(".fatbin") and not tool("cuobjdump"):
        name = os.path.basename(path).replace(".fatbin", ".cu")
        path = os.path.join(os.environ.get("srcdir", "."), "kernels", "cuda", name)
    if path.endswith(".cubin"):
        return {"": path}
    if path.endswith(".cu"):
        found = {one: f"{base}.{one}.cubin" for one in ARCHITECTURES}
        root = os.path.dirname(os.path.abspath(path)) + "/../.."
        for one, cubin in found.items():
            subprocess.run([os.environ.get("NVCC", "nvcc"), "-std=c++17", "-I", root, "-arch=sm_" + one, "-cubin", "-o",
                            cubin, path], check=True)
        return found
    found = {}
    for one in ARCHITECTURES:
        inside = os.path.join(folder, one)
        os.makedirs(inside, exist_ok=True)
        subprocess.run([tool("cuobjdump"), "-xelf", f"sm_{one}.cubin", os.path.abspath(path)], check=True, cwd=inside,
                       stdout=subprocess.DEVNULL)
        name, = [name for name in os.listdir(inside)]
        found[one] = shutil.move(os.path.join(inside, name), f"{base}.{one}.cubin")
    return found


def functions(cubin):
    """{kernel: [(label or None, instruction or None)]}"""
    text = subprocess.run([tool("nvdisasm"), "-c", cubin], check=True, capture_output=True, text=True).stdout
    found, current = {}, None
    for line in text.splitlines():
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


def opcode(code):
    """With its modifiers, without its guard."""
    return re.sub(r"^@!?\w+\s+", "", code).split()[0]


def is_a(code, kinds):
    return opcode(code).startswith(kinds)


def index_bits(code):
    """Bits that a load of indices has; of anything else 0."""
    words = opcode(code).split(".")
    if words[0] != "LDG" or "NA" not in words:
        return 0
    return next((int(word) for word in words if word in ("64", "128")), 32)


def main_loop(lines, product):
    """The instructions of the smallest loop with this kind of product, and no other, and loads; or None."""
    at = {label: i for i, (label, _) in enumerate(lines) if label}
    best = None
    for end, (_, code) in enumerate(lines):
        to = code and re.search(r"\bBRA\b.*?(\.L_\w+)", code)
        begin = at.get(to[1], end) if to else end
        body = [code for _, code in lines[begin:end + 1] if code]
        products = {kind for kind in PRODUCTS.values() for code in body if is_a(code, kind)} if begin < end else None
        if products == {product} and any(is_a(code, "LDG") for code in body):
            best = body if best is None or len(body) < len(best) else best
    return best


def figures(name, kind, body):
    """Weights of a turn, and issue, ALU and shared by weight."""
    if kind == "integers":
        weights = sum(map(index_bits, body)) // int(re.search(r"_k(\d)", name)[1])
    else:  # of eight columns each; in v2a, the sums of vectors are products, too
        columns = 4 if name.endswith("_m4") else 1
        weights = 8 * sum(is_a(code, "HMMA") for code in body) // columns // (2 if "_v2a_" in name else 1)
    counts = (len(body), sum(is_a(code, ALU) for code in body), sum(is_a(code, SHARED) for code in body))
    return weights, [count / weights for count in counts]


def verdict(name, kind, found):
    """(whether it may be so, what to say of it)"""
    stated = STATED.get((name, kind))
    if not stated:
        return True, "not judged"
    good = all(has <= SLACK * of for has, of in zip(found, stated))
    return good, f"stated: {stated[0]:.2f} {stated[1]:.2f}" + ("" if good else f"; more than {SLACK} times as many")


def loops(cubin, everything):
    """(kernel, kind of product, instructions) of main loops."""
    for name, lines in sorted(functions(cubin).items()):
        if re.search(OTHERS if everything else FEW, name):
            for kind, product in PRODUCTS.items():
                body = main_loop(lines, product)
                if body:
                    yield name, kind, body


def missing_loops(paths, met):
    """What is stated of files that were read, and was not found in them."""
    stems = {os.path.basename(path).split(".")[0] for path in paths if not path.endswith(".cubin")}
    return [(architecture, name, kind) for architecture in ARCHITECTURES for name, kind in STATED
            if re.search(r"multiply_(v2c|v2a|v2)", name)[1] in stems and (architecture, name, kind) not in met]


def main():
    arguments = sys.argv[1:]
    everything = "--all" in arguments
    paths = [path for path in arguments if path != "--all"]
    if not tool("nvdisasm"):
        print("1..0 # SKIP no nvdisasm")
        return 0
    failed = done = 0
    met = set()
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            for architecture, cubin in cubins(path, folder).items():
                for name, kind, body in loops(cubin, everything):
                    weights, found = figures(name, kind, body)
                    good, why = verdict(name, kind, found)
                    done, failed = done + 1, failed + (not good)
                    met.add((architecture, name, kind))
                    print(f"{'ok' if good else 'not ok'} {done} - sm_{architecture} {name}, {kind}")
                    print(f"# {weights} weights a turn: issue %.2f, ALU %.2f, shared %.2f; " % tuple(found) + why,
                          flush=True)
    for architecture, name, kind in missing_loops(paths, met):
        done, failed = done + 1, failed + 1
        print(f"not ok {done} - sm_{architecture} {name}, {kind}\n# it has no such loop")
    print(f"1..{done}")
    return failed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
