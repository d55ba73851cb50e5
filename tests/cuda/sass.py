#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the main loops of kernels for few vectors take a weight, in machine code: sass.py [--all] FILE ..., as TAP.

FILE is a .fatbin (cuobjdump takes what is for sm_90 and sm_120 out of it), a .cubin, or a .cu, which $NVCC compiles for
both. nvdisasm and cuobjdump are looked for as $NVDISASM and $CUOBJDUMP, beside $NVCC, and on PATH; where there is no
nvdisasm everything is skipped. --all prints every kernel that has such a loop, not only those for few vectors.

	NVCC=nvcc NVDISASM=/where/nvdisasm tests/cuda/sass.py kernels/cuda/v2.cu

The main loop is the smallest one that has matrix products and loads of indices; these are known by their hint that
nothing of them is to stay in L1 (load_once of device.h), and their bits say how many weights one thread has in one
turn. Columns: issue is every instruction of the loop, ALU those that go to the pipe of integers and logic, shared those
that look up or shuffle; all by weight. What is not executed in each turn is counted as if it were.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ARCHITECTURES = ("90", "120")
SLACK = 1.1
# Issue slots and ALU instructions a weight that a kernel was designed for, from prototypes.
STATED = {
    "xfp_multiply_v2_k2_m1": (1.58, 1.36),
    "xfp_multiply_v2_k4_m1": (3.10, 2.85),
}
ALU = ("LOP3", "SHF", "PRMT", "IADD", "VIADD", "ISETP", "SEL", "FSEL", "LEA", "MOV", "PLOP3", "IMNMX", "VIMNMX", "FMNMX",
       "FSETP", "SGXT", "BMSK", "IABS", "POPC", "FLO", "I2FP", "R2P", "P2R", "VABSDIFF")
SHARED = ("LDS", "SHFL", "LDSM", "STS", "ATOMS")
MATRIX = ("HMMA", "IMMA", "QMMA")
FEW = r"_m1$|_i\d+$"  # kernels for few vectors


def tool(name):
    """Where a program of the toolkit is, or None."""
    beside = os.path.join(os.path.dirname(shutil.which(os.environ.get("NVCC", "nvcc")) or ""), name)
    return os.environ.get(name.upper()) or (beside if os.path.isfile(beside) else shutil.which(name))


def cubins(path, folder):
    """{architecture: cubin} of a file."""
    base = os.path.join(folder, os.path.basename(path))
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


def main_loop(lines):
    """The instructions of the smallest loop with both, or None."""
    at = {label: i for i, (label, _) in enumerate(lines) if label}
    best = None
    for end, (_, code) in enumerate(lines):
        to = code and re.search(r"\bBRA\b.*?(\.L_\w+)", code)
        begin = at.get(to[1], end) if to else end
        body = [code for _, code in lines[begin:end + 1] if code]
        if begin < end and any(is_a(code, MATRIX) for code in body) and any(map(index_bits, body)):
            best = body if best is None or len(body) < len(best) else best
    return best


def figures(name, body):
    """Weights of a turn, and issue, ALU and shared by weight."""
    k = re.search(r"_k(\d)", name)
    weights = sum(map(index_bits, body)) // int(k[1] if k else 8)
    counts = (len(body), sum(is_a(code, ALU) for code in body), sum(is_a(code, SHARED) for code in body))
    return weights, [count / weights for count in counts]


def verdict(name, found):
    """(whether it may be so, what to say of it)"""
    stated = STATED.get(name)
    if not stated:
        return True, "nothing stated"
    good = all(has <= SLACK * of for has, of in zip(found, stated))
    return good, f"stated: {stated[0]:.2f} {stated[1]:.2f}" + ("" if good else f"; more than {SLACK} times as many")


def main():
    arguments = sys.argv[1:]
    everything = "--all" in arguments
    paths = [path for path in arguments if path != "--all"]
    missing = "nvdisasm" if not tool("nvdisasm") else ""
    if not missing and any(path.endswith(".fatbin") for path in paths) and not tool("cuobjdump"):
        missing = "cuobjdump"
    if missing:
        print(f"1..0 # SKIP no {missing}")
        return 0
    failed = done = 0
    met = set()
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            for architecture, cubin in cubins(path, folder).items():
                for name, lines in sorted(functions(cubin).items()):
                    body = main_loop(lines) if everything or re.search(FEW, name) else None
                    if not body:
                        continue
                    weights, found = figures(name, body)
                    good, why = verdict(name, found)
                    done, failed = done + 1, failed + (not good)
                    met.add(name)
                    print(f"{'ok' if good else 'not ok'} {done} - sm_{architecture} {name}\n# {weights} weights a turn: "
                          "issue %.2f, ALU %.2f, shared %.2f; " % tuple(found) + why, flush=True)
    print(f"1..{done}")
    return failed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
