/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DRIVER "libcuda.so.1"
#define OLDEST 12000 /* first version with all functions */
#define LOADS 12040  /* first version with cuFuncLoad */

typedef int get_fn(const char *name, void **function, int version, uint64_t flags, int *found);

/* Store an address from dlsym in a function pointer; C has no conversion for it. */
static void set_function(void *to, void *address)
{
	memcpy(to, &address, sizeof address);
}

static enum xfp_status too_old(const struct xfp_cu_driver *cu, int wanted, struct xfp_error *err)
{
	return xfp_fail(err, XFP_FAILED,
			"the driver supports CUDA %d.%d, but the kernels need CUDA %d.%d or newer; update the "
			"NVIDIA driver, or build xfp with an older nvcc",
			cu->version / 1000, cu->version % 1000 / 10, wanted / 1000, wanted % 1000 / 10);
}

static enum xfp_status find_functions(struct xfp_cu_driver *cu, int wanted, struct xfp_error *err)
{
	get_fn *get;

	set_function(&get, dlsym(cu->library, "cuGetProcAddress_v2"));
	set_function(&cu->cuDriverGetVersion, dlsym(cu->library, "cuDriverGetVersion"));
	if (!cu->cuDriverGetVersion || cu->cuDriverGetVersion(&cu->version))
		return xfp_fail(err, XFP_FAILED,
				DRIVER " is not a CUDA driver (it has no version); reinstall the NVIDIA driver");
	wanted = wanted > OLDEST ? wanted : OLDEST;
	if (!get || cu->version < wanted)
		return too_old(cu, wanted, err);
#define FIND(name, parameters)                                                                                        \
	do {                                                                                                          \
		void *address = NULL;                                                                                 \
		int found = 0;                                                                                        \
                                                                                                                      \
		if (get(#name, &address, OLDEST, XFP_CU_WITH_LEGACY_STREAM, &found) || !address)                      \
			return xfp_fail(err, XFP_FAILED, "the CUDA driver has no " #name "; update or reinstall it"); \
		set_function(&cu->name, address);                                                                     \
	} while (0);
	XFP_CU_FUNCTIONS(FIND)
#undef FIND
	/* Older drivers would report an error. */
	if (cu->version >= LOADS) {
		void *address = NULL;
		int found = 0;

		if (!get("cuFuncLoad", &address, LOADS, XFP_CU_WITH_LEGACY_STREAM, &found) && address)
			set_function(&cu->cuFuncLoad, address);
	}
	return XFP_OK;
}

static enum xfp_status begin(struct xfp_cu_driver *cu, struct xfp_error *err)
{
	int count = 0, result = cu->cuInit(0);

	if (result && result != XFP_CU_NO_DEVICE)
		return xfp_cu_fail(cu, result, "cuInit", NULL, 0, err);
	if (!result && (result = cu->cuDeviceGetCount(&count)))
		return xfp_cu_fail(cu, result, "cuDeviceGetCount", NULL, 0, err);
	if (!count)
		return xfp_fail(
			err, XFP_FAILED,
			"the CUDA driver finds no device; nvidia-smi lists them, and CUDA_VISIBLE_DEVICES hides them");
	return XFP_OK;
}

enum xfp_status xfp_cu_open(struct xfp_cu_driver *cu, int wanted, struct xfp_error *err)
{
	enum xfp_status status;

	*cu = (struct xfp_cu_driver){ 0 };
	/* The library stays loaded (RTLD_NODELETE): it runs threads of its own. */
	if (!(cu->library = dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE))) {
		const char *why = dlerror();

		return xfp_fail(err, XFP_FAILED, "no CUDA driver found (%s); install the NVIDIA driver",
				why ? why : DRIVER);
	}
	if ((status = find_functions(cu, wanted, err)) || (status = begin(cu, err)))
		xfp_cu_close(cu);
	return status;
}

void xfp_cu_close(struct xfp_cu_driver *cu)
{
	if (cu->library)
		dlclose(cu->library);
	cu->library = NULL;
}

/* cuFuncLoad is documented to load a function's code. On older drivers, reading an attribute that depends on the code,
 * such as the number of registers, is the call most likely to load it without a launch. */
enum xfp_status xfp_cu_load(const struct xfp_cu_driver *cu, xfp_cu_handle function, const char *what,
			    struct xfp_error *err)
{
	int result, registers;

	if (cu->cuFuncLoad)
		return (result = cu->cuFuncLoad(function)) ? xfp_cu_fail(cu, result, "cuFuncLoad", what, 0, err)
							   : XFP_OK;
	result = cu->cuFuncGetAttribute(&registers, XFP_CU_FUNCTION_REGISTERS, function);
	return result ? xfp_cu_fail(cu, result, "cuFuncGetAttribute", what, 0, err) : XFP_OK;
}

/* Return the remedy for an error, if one is known. */
static const char *remedy(int result)
{
	switch (result) {
	case XFP_CU_NO_BINARY_FOR_GPU:
		return "; the kernels do not support this device: update the NVIDIA driver, or build xfp with a newer "
		       "nvcc";
	case XFP_CU_UNSUPPORTED_PTX:
		return "; the driver is older than the nvcc that compiled the kernels: update it, or build xfp with an "
		       "older nvcc";
	case XFP_CU_DRIVER_MISMATCH:
	case XFP_CU_COMPAT_NOT_SUPPORTED:
		return "; the driver's library and its kernel module are of different versions: restart, or reinstall "
		       "it";
	case XFP_CU_ILLEGAL_ADDRESS:
	case XFP_CU_LAUNCH_FAILED:
		return "; an earlier launch failed, and the context cannot be used any more";
	default:
		return "";
	}
}

enum xfp_status xfp_cu_fail(const struct xfp_cu_driver *cu, int result, const char *call, const char *what,
			    uint64_t pinned, struct xfp_error *err)
{
	const char *name = NULL, *text = NULL;
	size_t left = 0, all = 0;
	char memory[160] = "";

	if (cu->cuGetErrorName(result, &name) || !name)
		name = "an unknown error";
	if (cu->cuGetErrorString(result, &text) || !text)
		text = "no description";
	if (result == XFP_CU_OUT_OF_MEMORY && pinned)
		snprintf(memory, sizeof memory,
			 "; %" PRIu64 " bytes of host memory could not be pinned: free memory, or raise ulimit -l",
			 pinned);
	else if (result == XFP_CU_OUT_OF_MEMORY && !cu->cuMemGetInfo(&left, &all))
		snprintf(memory, sizeof memory,
			 "; %zu of %zu bytes on the device are free: free memory, or use another device", left, all);
	return xfp_fail(err, XFP_FAILED, "%s%s%s failed: %s (%d): %s%s%s", what ? what : "", what ? ": " : "", call,
			name, result, text, memory, remedy(result));
}
