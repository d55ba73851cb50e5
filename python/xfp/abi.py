# SPDX-License-Identifier: Apache-2.0
"""The types and functions of xfp.h and xfp_cuda.h, for ctypes.

tests/python/layouts.py compares this file with what a C compiler makes of the headers.
"""
from ctypes import (
    POINTER, Structure, c_bool, c_char, c_char_p, c_double, c_float, c_int, c_size_t, c_uint, c_uint8,
    c_uint32, c_uint64, c_void_p,
)

VERSION = "0.2.0"  # of libxfp; no other is accepted

NOT_FOUND = 0xFFFFFFFF
STATUS = {
    "OK": 0, "FAILED": 1, "USAGE": 2, "BAD_INPUT": 3, "UNMET": 4, "DAMAGED": 75, "WANT_EXTENDED": 76, "CHANGED": 77,
}
FLOAT = {"FLOAT32": 1, "FLOAT16": 2, "BFLOAT16": 3}
CUDA_WORKSPACE = 4194304  # bytes
CUDA_ALIGN = 256


class Error(Structure):
    _fields_ = [("status", c_int), ("text", c_char * 1024)]


class BundleInfo(Structure):
    _fields_ = [
        ("version", c_uint32), ("family", c_char_p), ("json", c_void_p), ("json_bytes", c_size_t),
        ("file_bytes", c_uint64), ("weights", c_uint64), ("units", c_uint32), ("matrices", c_uint32),
        ("tensors", c_uint32), ("files", c_uint32), ("path", c_char_p),
    ]


class UnitInfo(Structure):
    _fields_ = [
        ("name", c_char_p), ("role", c_char_p), ("class_name", c_char_p), ("mode_name", c_char_p),
        ("dtype_name", c_char_p), ("class_", c_uint8), ("mode", c_uint8), ("dtype", c_uint8), ("k", c_uint8),
        ("met", c_bool), ("group_size", c_uint32), ("library_size", c_uint32), ("experts", c_uint32),
        ("first_matrix", c_uint32), ("rows", c_uint64), ("cols", c_uint64), ("weights", c_uint64), ("bytes", c_uint64),
        ("outliers", c_uint64), ("cos_median", c_double), ("cos_p5", c_double), ("error", c_double),
        ("floor", c_double),
    ]


class MatrixInfo(Structure):
    _fields_ = [
        ("unit", c_uint32), ("expert", c_uint32), ("tensor", c_uint32), ("base", c_uint64), ("row_stride", c_uint64),
        ("col_stride", c_uint64), ("rows", c_uint64), ("cols", c_uint64), ("mode", c_uint8), ("k", c_uint8),
        ("group_size", c_uint32), ("library_size", c_uint32), ("exponent", c_int), ("outliers", c_uint64),
        ("source", c_void_p), ("index", c_void_p), ("code", c_void_p), ("group", c_void_p), ("balance", c_void_p),
        ("outlier", c_void_p), ("index_bytes", c_uint64), ("code_bytes", c_uint64), ("group_bytes", c_uint64),
        ("balance_bytes", c_uint64), ("outlier_bytes", c_uint64),
    ]


class TensorInfo(Structure):
    _fields_ = [
        ("name", c_char_p), ("reason", c_char_p), ("class_name", c_char_p), ("dtype_name", c_char_p),
        ("fate_name", c_char_p), ("class_", c_uint8), ("dtype", c_uint8), ("fate", c_uint8), ("rank", c_uint32),
        ("shape", c_uint64 * 8), ("elements", c_uint64), ("tied", c_uint32), ("data", c_void_p), ("bytes", c_uint64),
        ("source", c_void_p),
    ]


class FileInfo(Structure):
    _fields_ = [("name", c_char_p), ("data", c_void_p), ("bytes", c_uint64)]


class MemberInfo(Structure):
    _fields_ = [
        ("file", c_uint32), ("unit", c_uint32), ("tensor", c_uint32), ("data", c_void_p), ("bytes", c_uint64),
        ("sha256", c_void_p),
    ]


class Slice(Structure):
    _fields_ = [("first_row", c_uint64), ("rows", c_uint64), ("first_col", c_uint64), ("cols", c_uint64)]


class LinearInfo(Structure):
    _fields_ = [("experts", c_uint32), ("rows", c_uint64), ("cols", c_uint64)]


class Input(Structure):
    _fields_ = [("data", c_void_p), ("type", c_int), ("count", c_size_t), ("stride", c_size_t)]


class Output(Structure):
    _fields_ = [("data", c_void_p), ("type", c_int), ("count", c_size_t), ("stride", c_size_t)]


class Product(Structure):
    _fields_ = [("expert", c_uint32), ("x", c_uint32), ("y", c_uint32), ("weight", c_float)]


class CudaInfo(Structure):
    _fields_ = [
        ("device", c_char_p), ("major", c_int), ("minor", c_int), ("processors", c_int), ("shared_bytes", c_int),
        ("driver", c_int), ("toolkit", c_int),
    ]


class CudaQueue(Structure):
    _fields_ = [("stream", c_void_p), ("workspace", c_uint64)]


class CudaLinearInfo(Structure):
    _fields_ = [
        ("experts", c_uint32), ("rows", c_uint64), ("cols", c_uint64), ("bytes", c_uint64), ("kernel", c_char * 32),
        ("tiles", c_uint32), ("parts", c_uint32), ("shared_bytes", c_uint32), ("repacked", c_bool),
    ]


class CudaInput(Structure):
    _fields_ = [("data", c_uint64), ("type", c_int), ("count", c_size_t), ("stride", c_size_t)]


class CudaOutput(Structure):
    _fields_ = [("data", c_uint64), ("type", c_int), ("count", c_size_t), ("stride", c_size_t)]


class CudaPrepared(Structure):
    _fields_ = [
        ("memory", c_uint64), ("count", c_uint32), ("cols", c_uint32), ("planes", c_uint32), ("columns", c_uint8 * 32),
    ]


STRUCTS: dict[str, type[Structure]] = {
    "xfp_error": Error, "xfp_bundle_info": BundleInfo, "xfp_unit_info": UnitInfo, "xfp_matrix_info": MatrixInfo,
    "xfp_tensor_info": TensorInfo, "xfp_file_info": FileInfo, "xfp_member_info": MemberInfo, "xfp_slice": Slice,
    "xfp_linear_info": LinearInfo, "xfp_input": Input, "xfp_output": Output, "xfp_product": Product,
    "xfp_cuda_info": CudaInfo, "xfp_cuda_queue": CudaQueue, "xfp_cuda_linear_info": CudaLinearInfo,
    "xfp_cuda_input": CudaInput, "xfp_cuda_output": CudaOutput, "xfp_cuda_prepared": CudaPrepared,
}

_ERROR = POINTER(Error)
_HANDLE = POINTER(c_void_p)
_LINEAR_OPEN = (c_void_p, c_uint32, POINTER(Slice), _HANDLE, _ERROR)

# name: (result, parameters)
FUNCTIONS = {
    "xfp_version": (c_char_p, ()),
    "xfp_bundle_open": (c_int, (c_char_p, _HANDLE, _ERROR)),
    "xfp_bundle_close": (None, (c_void_p,)),
    "xfp_bundle_describe": (None, (c_void_p, POINTER(BundleInfo))),
    "xfp_bundle_unit": (c_bool, (c_void_p, c_uint32, POINTER(UnitInfo))),
    "xfp_bundle_matrix": (c_bool, (c_void_p, c_uint32, POINTER(MatrixInfo))),
    "xfp_bundle_tensor": (c_bool, (c_void_p, c_uint32, POINTER(TensorInfo))),
    "xfp_bundle_file": (c_bool, (c_void_p, c_uint32, POINTER(FileInfo))),
    "xfp_bundle_find_tensor": (c_uint32, (c_void_p, c_char_p)),
    "xfp_bundle_find_file": (c_uint32, (c_void_p, c_char_p)),
    "xfp_bundle_dequantize": (c_int, (c_void_p, c_uint32, c_uint64, c_uint64, c_int, c_void_p, _ERROR)),
    "xfp_bundle_members": (c_uint32, (c_void_p,)),
    "xfp_bundle_check_member": (c_int, (c_void_p, c_uint32, _ERROR)),
    "xfp_bundle_member": (c_bool, (c_void_p, c_uint32, POINTER(MemberInfo))),
    "xfp_team_start": (c_int, (c_uint, _HANDLE, _ERROR)),
    "xfp_team_end": (None, (c_void_p,)),
    "xfp_linear_open": (c_int, _LINEAR_OPEN),
    "xfp_linear_open_tensor": (c_int, _LINEAR_OPEN),
    "xfp_linear_close": (None, (c_void_p,)),
    "xfp_linear_describe": (None, (c_void_p, POINTER(LinearInfo))),
    "xfp_multiply": (c_int, (c_void_p, c_void_p, c_uint32, c_size_t, POINTER(Input), POINTER(Output), _ERROR)),
    "xfp_multiply_experts": (c_int, (c_void_p, c_void_p, c_void_p, c_size_t, POINTER(Input), POINTER(Output), _ERROR)),
    "xfp_multiply_linears": (c_int, (
        c_void_p, POINTER(c_void_p), c_size_t, c_void_p, c_size_t, POINTER(Input), POINTER(Output), _ERROR)),
    "xfp_rows": (c_int, (c_void_p, c_void_p, c_size_t, POINTER(Output), _ERROR)),
    "xfp_instructions": (c_char_p, ()),
    "xfp_use_instructions": (c_bool, (c_char_p,)),
}

_CUDA_BYTES = (c_void_p, c_uint32, POINTER(Slice), POINTER(c_uint64), _ERROR)
_CUDA_OPEN = (c_void_p, c_void_p, c_uint32, POINTER(Slice), c_uint64, c_uint64, c_void_p, _HANDLE, _ERROR)
_PREPARED, _QUEUE = POINTER(CudaPrepared), POINTER(CudaQueue)

# Functions of libxfp-cuda
CUDA_FUNCTIONS = {
    "xfp_cuda_open": (c_int, (_HANDLE, _ERROR)),
    "xfp_cuda_close": (None, (c_void_p,)),
    "xfp_cuda_describe": (None, (c_void_p, POINTER(CudaInfo))),
    "xfp_cuda_queue_open": (c_int, (c_void_p, c_void_p, c_uint64, c_uint64, _QUEUE, _ERROR)),
    "xfp_cuda_linear_bytes": (c_int, _CUDA_BYTES),
    "xfp_cuda_linear_bytes_tensor": (c_int, _CUDA_BYTES),
    "xfp_cuda_linear_open": (c_int, _CUDA_OPEN),
    "xfp_cuda_linear_open_tensor": (c_int, _CUDA_OPEN),
    "xfp_cuda_linear_close": (None, (c_void_p,)),
    "xfp_cuda_linear_describe": (None, (c_void_p, POINTER(CudaLinearInfo))),
    "xfp_cuda_prepared_bytes": (c_uint64, (c_void_p, c_size_t)),
    "xfp_cuda_prepare": (c_int, (c_void_p, POINTER(CudaInput), c_uint64, c_uint64, _QUEUE, _PREPARED, _ERROR)),
    "xfp_cuda_multiply": (c_int, (c_void_p, c_uint32, c_size_t, _PREPARED, POINTER(CudaOutput), _QUEUE, _ERROR)),
    "xfp_cuda_multiply_experts": (c_int, (c_void_p, c_uint64, c_size_t, _PREPARED, POINTER(CudaOutput), _QUEUE,
                                          _ERROR)),
}
