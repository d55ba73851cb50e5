#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compare python/xfp/abi.py with xfp.h and xfp_cuda.h: structs, enums, constants and functions.

    layouts.py FOLDER

FOLDER contains the installed headers; xfp_cuda.h, which is installed only with libxfp-cuda, is that of the source tree.
A C program, generated from them, prints the size of every struct, the offset and size of every member, every
enumerator and constant; the compiler is $CC. Functions are compared with their declarations. Then each struct and enum
gets one more member in a copy of the headers: the comparison must notice every one.
"""
import ctypes
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from xfp import abi, errors

HEADERS = "xfp_error.h", "xfp.h", "xfp_cuda.h"
CUDA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../runtime/xfp_cuda.h")
ENUMS = {"xfp_status": {f"XFP_{name}": value for name, value in abi.STATUS.items()},
         "xfp_float": {f"XFP_{name}": value for name, value in abi.FLOAT.items()}}
# Structs and functions that the package does not use.
UNUSED = {"xfp_team_borrow", "xfp_bundle_find_unit", "xfp_bundle_check", "xfp_bundle_check_frames", "xfp_fail", "xfp_fail_args", "xfp_fail_errno",
          "xfp_no_memory", "xfp_no_memory_for", "xfp_context"}
CONSTANTS = {f"XFP_{name}": (getattr(abi, name),) for name in ("CUDA_WORKSPACE", "CUDA_ALIGN")}
FUNCTIONS = abi.FUNCTIONS | abi.CUDA_FUNCTIONS
SIZES = {"int": 4, "uint8_t": 1, "uint32_t": 4, "uint64_t": 8, "size_t": 8, "unsigned": 4, "bool": 1, "float": 4}


def read(folder):
    """The declarations of all headers, without comments."""
    text = ""
    for name in HEADERS:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            text += re.sub(r"/\*.*?\*/|//[^\n]*", "", file.read(), flags=re.S)
    return text


def structs(text):
    """{name: members}, in order."""
    found = {}
    for name, body in re.findall(r"^struct (\w+) \{(.*?)^\};", text, re.S | re.M):
        found[name] = [re.search(r"(\w+)(\[\w+\])?$", part.strip())[1]
                       for line in body.split(";") if line.strip() for part in line.split(",")]
    return found


def enums(text):
    return {name: re.findall(r"(\w+)\s*=", body) for name, body in re.findall(r"enum (\w+) \{(.*?)\}", text, re.S)}


def constants(text):
    return re.findall(r"^#define (XFP_\w+) \d+$", text, re.M)


def functions(text):
    """{name: (result, parameters)}, each a C type without its name."""
    return {name: (result.strip(),
                   [part.strip() for part in re.sub(r"\(\*(\w+)\)\([^)]*\)", "*", inside).split(",")])
            for result, name, inside in re.findall(
                r"^((?!typedef)\w[\w ]*[ *]+)(xfp_\w+)\(((?:[^()]|\([^()]*\))*)\)[^{;]*;", text, re.M)}


def compiled(folder, text):
    """{"struct xfp_x": size, "xfp_x.member": (offset, size), "XFP_X": value}, as the compiler says."""
    lines = ["#include <stdio.h>", "#include <xfp_cuda.h>", "int main(void)", "{"]
    for name, members in structs(text).items():
        lines.append(f'printf("struct {name} %zu\\n", sizeof(struct {name}));')
        lines += [f'printf("{name}.{member} %zu %zu\\n", offsetof(struct {name}, {member}), '
                  f"sizeof(((struct {name} *)0)->{member}));" for member in members]
    lines += [f'printf("{value} %d\\n", (int){value});' for value in constants(text) + sum(enums(text).values(), [])]
    with tempfile.TemporaryDirectory() as build:
        source, program = os.path.join(build, "layouts.c"), os.path.join(build, "layouts")
        with open(source, "w", encoding="ascii") as file:
            file.write("\n".join(lines + ["}", ""]))
        subprocess.run([*shlex.split(os.environ.get("CC", "cc")), "-I", folder, source, "-o", program], check=True)
        output = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout
    found = {}
    for line in output.splitlines():
        key, *numbers = line.rsplit(" ", 2 if "." in line else 1)
        found[key] = tuple(map(int, numbers))
    return found


def expected(text):
    """What abi.py says, in the form of `compiled`."""
    found = dict(CONSTANTS)
    for name, struct in abi.STRUCTS.items():
        found[f"struct {name}"] = (ctypes.sizeof(struct),)
        for member, *_ in struct._fields_:
            found[f"{name}.{member}"] = (getattr(struct, member).offset, getattr(struct, member).size)
    for values in ENUMS.values():
        found |= {name: (value,) for name, value in values.items()}
    assert set(enums(text)) == set(ENUMS), enums(text)
    return found


def kind(declared):
    """A C type as "pointer" or its size."""
    if "*" in declared:
        return "pointer"
    if declared.startswith("enum"):
        return 4
    return None if declared == "void" else SIZES[declared.split()[0]]


def kind_of(used):
    """The same of a ctypes type."""
    if used is None:
        return None
    pointer = used in (ctypes.c_void_p, ctypes.c_char_p) or hasattr(used, "contents")
    return "pointer" if pointer else ctypes.sizeof(used)


def differences(folder):
    text = read(folder)
    real, ours = compiled(folder, text), expected(text)
    for key in sorted(set(real) | set(ours)):
        if key.removeprefix("struct ").split(".")[0] not in UNUSED and real.get(key) != ours.get(key):
            yield f"{key}: {real.get(key)} in C, {ours.get(key)} in Python"
    declared = functions(text)
    for name in sorted(set(declared) ^ set(FUNCTIONS) ^ UNUSED):
        if name not in UNUSED or name in FUNCTIONS:
            yield f"function {name}: {'not in Python' if name in declared else 'not in C'}"
    for name, (result, parameters) in FUNCTIONS.items():
        if name in declared:
            real_kinds = [kind(declared[name][0])] + [kind(part) for part in declared[name][1] if part != "void"]
            our_kinds = [kind_of(result)] + [kind_of(part) for part in parameters]
            if real_kinds != our_kinds:
                yield f"function {name}: {real_kinds} in C, {our_kinds} in Python"


def changed(folder):
    """Changes of the headers that abi.py does not have, as (what, file, text)."""
    for name in HEADERS:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            text = file.read()
        for struct in re.finditer(r"^struct (\w+) \{", text, re.M):
            if struct[1] not in UNUSED:
                end = text.index("\n};", struct.end())
                yield f"a last member of {struct[1]}", name, text[:end] + "\nuint8_t added;" + text[end:]
                yield (f"a first member of {struct[1]}", name,
                       text[:struct.end()] + "\nunsigned char added;" + text[struct.end():])
        for value in re.finditer(r"(XFP_\w+(?: =)? )(\d+)(?!\w)", text):
            yield (f"another value of {value[1]}", name,
                   text[:value.start()] + f"{value[1]}9{value[2]}" + text[value.end():])
        for function in re.finditer(r"^enum xfp_status (xfp_(?:bundle|linear|multiply|rows|team|cuda)\w*)\(", text, re.M):
            if function[1] not in UNUSED:
                yield (f"a parameter of {function[1]}", name,
                       text[:function.end()] + "unsigned added, " + text[function.end():])
                yield f"no {function[1]}", name, text[:function.start(1)] + "xfp_renamed(" + text[function.end():]


def with_cuda(installed, folder):
    """Copy the headers to a folder, xfp_cuda.h with the includes that its installed copy has."""
    for header in HEADERS[:-1]:
        shutil.copy(os.path.join(installed, header), folder)
    with open(CUDA, encoding="utf-8") as source, open(os.path.join(folder, HEADERS[-1]), "w", encoding="utf-8") as copy:
        copy.write(source.read().replace('"runtime/', '"'))


def compare(folder):
    status = 0
    for difference in differences(folder):
        print(difference)
        status = 1
    assert set(errors.CLASSES) == set(abi.STATUS.values()) - {0}, "a class for each status"
    count = 0
    for what, name, text in changed(folder):
        with tempfile.TemporaryDirectory() as copy:
            for header in HEADERS:
                shutil.copy(os.path.join(folder, header), copy)
            with open(os.path.join(copy, name), "w", encoding="utf-8") as file:
                file.write(text.replace('#ifndef XFP_ERROR_H\n', '#include <stdint.h>\n#ifndef XFP_ERROR_H\n'))
            if not list(differences(copy)):
                print(f"not noticed: {what}")
                status = 1
        count += 1
    print(f"{len(abi.STRUCTS)} structs and {len(FUNCTIONS)} functions; {count} changes tried")
    return status if count >= 30 else 1


def main(installed):
    with tempfile.TemporaryDirectory() as folder:
        with_cuda(installed, folder)
        return compare(folder)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
