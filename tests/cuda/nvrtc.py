# SPDX-License-Identifier: Apache-2.0
"""nvrtc.py LIBNVRTC OPTION... FILE.cu - compile device code with NVRTC where nvcc is not available: PyPI has nvcc for
CUDA 13 and later, but for CUDA 12 only NVRTC (nvidia-cuda-nvrtc-cu12). Both contain the same compiler. Options are
those that bare_build.py uses: --version, --list-gpu-code, -o OUT, -fatbin with -gencode arch=compute_NN,code=sm_NN (the
output is a cubin, which the driver loads as well), -ptx with -arch=compute_NN, -I, -D and NVRTC's own options."""
import ctypes
import sys

# The parts of the C library that device code uses. NVRTC has no headers of its own.
HEADERS = {
    "stdint.h": """
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned uint32_t;
typedef unsigned long uint64_t;
typedef unsigned long uintptr_t;
#define UINT32_MAX 0xffffffffu
#define UINT64_MAX 0xfffffffffffffffful
""",
    "assert.h": "",
    "stddef.h": "",
}


class Nvrtc:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.nvrtcGetErrorString.restype = ctypes.c_char_p

    def call(self, name, *arguments):
        result = getattr(self.library, name)(*arguments)
        if result:
            raise RuntimeError(f"{name}: {self.library.nvrtcGetErrorString(result).decode()}")

    def version(self):
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def architectures(self):
        count = ctypes.c_int()
        self.call("nvrtcGetNumSupportedArchs", ctypes.byref(count))
        found = (ctypes.c_int * count.value)()
        self.call("nvrtcGetSupportedArchs", found)
        return list(found)

    def output(self, program, what):
        """The result of nvrtcGet...: the log, PTX or a cubin."""
        size = ctypes.c_size_t()
        self.call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        self.call(f"nvrtcGet{what}", program, text)
        return text.raw

    def compile(self, path, options, what):
        with open(path, "rb") as file:
            source = file.read()
        program = ctypes.c_void_p()
        count = len(HEADERS)
        self.call("nvrtcCreateProgram", ctypes.byref(program), source, path.encode(), count,
                  (ctypes.c_char_p * count)(*(text.encode() for text in HEADERS.values())),
                  (ctypes.c_char_p * count)(*(name.encode() for name in HEADERS)))
        words = [option.encode() for option in options]
        try:
            self.call("nvrtcCompileProgram", program, len(words), (ctypes.c_char_p * len(words))(*words))
        except RuntimeError:
            sys.stderr.write(self.output(program, "ProgramLog").rstrip(b"\0").decode(errors="replace"))
            raise
        return self.output(program, what)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    nvrtc, words = Nvrtc(sys.argv[1]), sys.argv[2:]
    if words == ["--version"]:
        print("NVRTC, release {0}.{1}, V{0}.{1}\nin place of nvcc".format(*nvrtc.version()))
        return
    if words == ["--list-gpu-code"]:
        print("\n".join(f"sm_{number}" for number in nvrtc.architectures()))
        return
    options, out, what, path = [], None, None, words.pop()
    words = iter(words)
    for word in words:
        if word == "-o":
            out = next(words)
        elif word == "-gencode":
            options.append("-arch=" + next(words).rpartition("code=")[2])
        elif word in ("-fatbin", "-ptx"):
            what = "CUBIN" if word == "-fatbin" else "PTX"
        else:
            options.append(word)
    text = nvrtc.compile(path, options, what)
    with open(out, "wb") as file:
        file.write(text.rstrip(b"\0") if what == "PTX" else text)


if __name__ == "__main__":
    try:
        main()
    except (OSError, RuntimeError) as failure:
        sys.exit(f"nvrtc: {failure}")
