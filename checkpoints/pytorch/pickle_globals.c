/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pickle_globals.c - the globals that a pickle may refer to. None of them is ever called.
 */
#include <string.h>

#include "checkpoints/pytorch/pickle_machine.h"

static const struct xfp_global globals[] = {
	{ "torch", "DoubleStorage", XFP_GLOBAL_STORAGE, XFP_F64, 0 },
	{ "torch", "FloatStorage", XFP_GLOBAL_STORAGE, XFP_F32, 0 },
	{ "torch", "HalfStorage", XFP_GLOBAL_STORAGE, XFP_F16, 0 },
	{ "torch", "BFloat16Storage", XFP_GLOBAL_STORAGE, XFP_BF16, 0 },
	{ "torch", "BoolStorage", XFP_GLOBAL_STORAGE, XFP_BOOL, 0 },
	{ "torch", "ByteStorage", XFP_GLOBAL_STORAGE, XFP_U8, 0 },
	{ "torch", "CharStorage", XFP_GLOBAL_STORAGE, XFP_I8, 0 },
	{ "torch", "ShortStorage", XFP_GLOBAL_STORAGE, XFP_I16, 0 },
	{ "torch", "IntStorage", XFP_GLOBAL_STORAGE, XFP_I32, 0 },
	{ "torch", "LongStorage", XFP_GLOBAL_STORAGE, XFP_I64, 0 },
	{ "torch", "ComplexFloatStorage", XFP_GLOBAL_STORAGE, XFP_C64, 0 },
	{ "torch.storage", "UntypedStorage", XFP_GLOBAL_UNTYPED, XFP_U8, 0 },
	{ "torch", "float64", XFP_GLOBAL_DTYPE, XFP_F64, 0 },
	{ "torch", "float32", XFP_GLOBAL_DTYPE, XFP_F32, 0 },
	{ "torch", "float16", XFP_GLOBAL_DTYPE, XFP_F16, 0 },
	{ "torch", "bfloat16", XFP_GLOBAL_DTYPE, XFP_BF16, 0 },
	{ "torch", "bool", XFP_GLOBAL_DTYPE, XFP_BOOL, 0 },
	{ "torch", "uint8", XFP_GLOBAL_DTYPE, XFP_U8, 0 },
	{ "torch", "int8", XFP_GLOBAL_DTYPE, XFP_I8, 0 },
	{ "torch", "uint16", XFP_GLOBAL_DTYPE, XFP_U16, 0 },
	{ "torch", "int16", XFP_GLOBAL_DTYPE, XFP_I16, 0 },
	{ "torch", "uint32", XFP_GLOBAL_DTYPE, XFP_U32, 0 },
	{ "torch", "int32", XFP_GLOBAL_DTYPE, XFP_I32, 0 },
	{ "torch", "uint64", XFP_GLOBAL_DTYPE, XFP_U64, 0 },
	{ "torch", "int64", XFP_GLOBAL_DTYPE, XFP_I64, 0 },
	{ "torch", "complex64", XFP_GLOBAL_DTYPE, XFP_C64, 0 },
	{ "torch", "float8_e4m3fn", XFP_GLOBAL_DTYPE, XFP_F8_E4M3, 0 },
	{ "torch", "float8_e5m2", XFP_GLOBAL_DTYPE, XFP_F8_E5M2, 0 },
	{ "torch", "float8_e8m0fnu", XFP_GLOBAL_DTYPE, XFP_F8_E8M0, 0 },
	{ "torch", "float8_e4m3fnuz", XFP_GLOBAL_DTYPE, XFP_F8_E4M3FNUZ, 0 },
	{ "torch", "float8_e5m2fnuz", XFP_GLOBAL_DTYPE, XFP_F8_E5M2FNUZ, 0 },
	{ "torch", "float4_e2m1fn_x2", XFP_GLOBAL_DTYPE, XFP_F4, 2 },
	{ "torch._utils", "_rebuild_tensor", XFP_GLOBAL_TENSOR, XFP_U8, 0 },
	{ "torch._utils", "_rebuild_tensor_v2", XFP_GLOBAL_TENSOR, XFP_U8, 0 },
	{ "torch._utils", "_rebuild_tensor_v3", XFP_GLOBAL_TENSOR_TYPED, XFP_U8, 0 },
	{ "torch._utils", "_rebuild_parameter", XFP_GLOBAL_PARAMETER, XFP_U8, 0 },
	{ "torch._utils", "_rebuild_parameter_with_state", XFP_GLOBAL_PARAMETER, XFP_U8, 0 },
	{ "collections", "OrderedDict", XFP_GLOBAL_DICT, XFP_U8, 0 },
	{ "torch", "Size", XFP_GLOBAL_SIZE, XFP_U8, 0 },
	{ "torch", "device", XFP_GLOBAL_DEVICE, XFP_U8, 0 },
};

static bool is(const char *wanted, const char *text, size_t length)
{
	return strlen(wanted) == length && !memcmp(wanted, text, length);
}

const struct xfp_global *xfp_global_find(const char *module, size_t module_length, const char *name, size_t name_length)
{
	/* Older files name the storages of a device by its module. */
	if (is("torch.cuda", module, module_length))
		module_length = strlen("torch");
	for (size_t i = 0; i < sizeof globals / sizeof *globals; i++)
		if (is(globals[i].module, module, module_length) && is(globals[i].name, name, name_length))
			return &globals[i];
	return NULL;
}
