/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.c - open the driver, check the caller's context, and load all kernels into it.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda/cuda.h"

#define OLDEST_DEVICE 80            /* compute capability, times ten */
#define SHARED_WITHOUT_ASKING 49152 /* bytes of shared memory per block without opt-in */

/* ---- the context ------------------------------------------------------------------------------- */

enum xfp_status xfp_cuda_check_context(const struct xfp_cuda *cuda, struct xfp_error *err)
{
	unsigned long long id = 0;
	int result = cuda->cu.cuCtxGetId(NULL, &id); /* current context */

	if (result && result != XFP_CU_INVALID_CONTEXT && result != XFP_CU_CONTEXT_IS_DESTROYED)
		return xfp_cu_fail(&cuda->cu, result, "cuCtxGetId", NULL, 0, err);
	if (result || id != cuda->context_id)
		return xfp_fail(
			err, XFP_USAGE,
			"%s: the CUDA context of xfp_cuda_open is not current or was destroyed; make it current on "
			"this thread (cuCtxSetCurrent, cudaSetDevice)",
			cuda->name);
	return XFP_OK;
}

static enum xfp_status get(struct xfp_cuda *cuda, int attribute, int *value, struct xfp_error *err)
{
	int result = cuda->cu.cuDeviceGetAttribute(value, attribute, cuda->device);

	return result ? xfp_cu_fail(&cuda->cu, result, "cuDeviceGetAttribute", NULL, 0, err) : XFP_OK;
}

static enum xfp_status find_device(struct xfp_cuda *cuda, struct xfp_error *err)
{
	struct xfp_cuda_info *info = &cuda->info;
	enum xfp_status status;
	int result;

	if ((result = cuda->cu.cuCtxGetCurrent(&cuda->context)))
		return xfp_cu_fail(&cuda->cu, result, "cuCtxGetCurrent", NULL, 0, err);
	if (!cuda->context)
		return xfp_fail(
			err, XFP_USAGE,
			"no CUDA context is current on this thread; create one before xfp_cuda_open (cuCtxSetCurrent "
			"with cuDevicePrimaryCtxRetain's, cudaFree(0), or any use of the GPU in PyTorch)");
	if ((result = cuda->cu.cuCtxGetId(cuda->context, &cuda->context_id)))
		return xfp_cu_fail(&cuda->cu, result, "cuCtxGetId", NULL, 0, err);
	if ((result = cuda->cu.cuCtxGetDevice(&cuda->device)))
		return xfp_cu_fail(&cuda->cu, result, "cuCtxGetDevice", NULL, 0, err);
	if ((result = cuda->cu.cuDeviceGetName(cuda->name, sizeof cuda->name, cuda->device)))
		return xfp_cu_fail(&cuda->cu, result, "cuDeviceGetName", NULL, 0, err);
	if ((status = get(cuda, XFP_CU_ATTRIBUTE_MAJOR, &info->major, err)) ||
	    (status = get(cuda, XFP_CU_ATTRIBUTE_MINOR, &info->minor, err)) ||
	    (status = get(cuda, XFP_CU_ATTRIBUTE_PROCESSORS, &info->processors, err)) ||
	    (status = get(cuda, XFP_CU_ATTRIBUTE_SHARED_OPTIN, &info->shared_bytes, err)) ||
	    (status = get(cuda, XFP_CU_ATTRIBUTE_SHARED_ALL, &cuda->shared_all, err)))
		return status;
	info->device = cuda->name;
	info->driver = cuda->cu.version;
	info->toolkit = xfp_cuda_toolkit;
	if (info->major * 10 + info->minor < OLDEST_DEVICE)
		return xfp_fail(err, XFP_FAILED,
				"%s has compute capability %d.%d; the kernels need %d.%d or newer: multiply on the CPU",
				cuda->name, info->major, info->minor, OLDEST_DEVICE / 10, OLDEST_DEVICE % 10);
	return XFP_OK;
}

/* ---- kernels ----------------------------------------------------------------------------------- */

static enum xfp_status load_libraries(struct xfp_cuda *cuda, struct xfp_error *err)
{
	for (int i = 0; xfp_cuda_fatbins[i].data; i++) {
		int result = cuda->cu.cuLibraryLoadData(&cuda->library[i], xfp_cuda_fatbins[i].data, NULL, NULL, 0,
							NULL, NULL, 0);

		/* The output of a failed call is undefined; there is nothing to unload. */
		if (result) {
			cuda->library[i] = NULL;
			return xfp_cu_fail(&cuda->cu, result, "cuLibraryLoadData", xfp_cuda_fatbins[i].name, 0, err);
		}
	}
	return XFP_OK;
}

/* Return the library loaded from a source. Kernels are looked up only in their own library: a failed look-up is an
 * error that tools which watch driver calls would count. */
static xfp_cu_handle library_of(const struct xfp_cuda *cuda, const char *source)
{
	int i = 0;

	while (xfp_cuda_fatbins[i].data && strcmp(xfp_cuda_fatbins[i].name, source))
		i++;
	return cuda->library[i];
}

/* Find a kernel in this context and load its code. */
static enum xfp_status load_kernel(struct xfp_cuda *cuda, const char *source, const char *name, uint32_t shared,
				   xfp_cu_handle *function, struct xfp_error *err)
{
	const char *call = "cuLibraryGetKernel";
	xfp_cu_handle kernel;
	int result;

	if (shared > (uint32_t)cuda->info.shared_bytes)
		return xfp_fail(err, XFP_FAILED,
				"%s: %s needs %u bytes of shared memory, but the device allows %d per block",
				cuda->name, name, shared, cuda->info.shared_bytes);
	result = cuda->cu.cuLibraryGetKernel(&kernel, library_of(cuda, source), name);
	if (!result && shared > SHARED_WITHOUT_ASKING) {
		call = "cuKernelSetAttribute";
		result = cuda->cu.cuKernelSetAttribute(XFP_CU_FUNCTION_MAX_SHARED, (int)shared, kernel, cuda->device);
	}
	if (!result) {
		call = "cuKernelGetFunction";
		result = cuda->cu.cuKernelGetFunction(function, kernel);
	}
	return result ? xfp_cu_fail(&cuda->cu, result, call, name, 0, err)
		      : xfp_cu_load(&cuda->cu, *function, name, err);
}

static enum xfp_status load_method(struct xfp_cuda *cuda, enum xfp_cuda_method method, unsigned k,
				   struct xfp_error *err)
{
	static const char *const source[XFP_CUDA_METHODS] = { "kept.cu", "kept.cu", "kept.cu", "fp8.cu",
							      "v2.cu",   "v2a.cu",  "v2c.cu",  "v2c.cu" };
	enum xfp_status status = XFP_OK;
	char name[XFP_CUDA_KERNEL_NAME];

	for (enum xfp_cuda_form form = XFP_CUDA_M1; !status && form < XFP_CUDA_FORMS; form++) {
		/* If the vectors do not fit in a block, the integer path uses several launches: see
		 * xfp_cuda_choose_launch. */
		if (!xfp_cuda_has_form(method, k, form) ||
		    (form > XFP_CUDA_I1 &&
		     xfp_cuda_max_shared_bytes(method, k, form) > (uint32_t)cuda->info.shared_bytes))
			continue;
		xfp_cuda_kernel_name(method, k, form, name);
		status = load_kernel(cuda, source[method], name, xfp_cuda_max_shared_bytes(method, k, form),
				     &cuda->multiply[method][k ? k - 2 : 0][form], err);
	}
	return status;
}

static enum xfp_status load_kernels(struct xfp_cuda *cuda, struct xfp_error *err)
{
	static const char *const prepare[] = { "xfp_prepare_f32", "xfp_prepare_f16", "xfp_prepare_bf16" };
	static const char *const repack[] = { "xfp_repack_k2", "xfp_repack_k3", "xfp_repack_k4" };
	enum xfp_status status = XFP_OK;

	for (int i = 0; !status && i < 3; i++)
		status = load_kernel(cuda, "prepare.cu", prepare[i], 0, &cuda->prepare[i], err);
	for (int i = 0; !status && i < 3; i++)
		status = load_kernel(cuda, "repack.cu", repack[i], 0, &cuda->repack[i], err);
	for (enum xfp_cuda_method method = XFP_CUDA_F32; !status && method < XFP_CUDA_METHODS; method++) {
		if (method < XFP_CUDA_V2)
			status = load_method(cuda, method, 0, err);
		for (unsigned k = 2; !status && method >= XFP_CUDA_V2 && k <= 6; k++)
			status = load_method(cuda, method, k, err);
	}
	return status;
}

/* ---- opening ----------------------------------------------------------------------------------- */

enum xfp_status xfp_cuda_open(struct xfp_cuda **out, struct xfp_error *err)
{
	struct xfp_cuda *cuda = calloc(1, sizeof *cuda);
	enum xfp_status status;

	*out = NULL;
	if (!cuda)
		return xfp_no_memory(err);
	if ((status = xfp_cu_open(&cuda->cu, xfp_cuda_toolkit / 1000 * 1000, err))) {
		free(cuda);
		return status;
	}
	pthread_mutex_init(&cuda->uploads, NULL);
	if ((status = find_device(cuda, err)) || (status = load_libraries(cuda, err)) ||
	    (status = load_kernels(cuda, err)))
		xfp_cuda_close(cuda);
	else
		*out = cuda;
	return status;
}

/* If the context was destroyed, its objects are gone, and their addresses and handles may belong to others. */
static bool context_is_current(const struct xfp_cuda *cuda)
{
	unsigned long long id;

	return cuda->context && !cuda->cu.cuCtxGetId(cuda->context, &id) && id == cuda->context_id;
}

void xfp_cuda_close(struct xfp_cuda *cuda)
{
	xfp_cu_handle context;

	if (!cuda)
		return;
	if (context_is_current(cuda) && !cuda->cu.cuCtxPushCurrent(cuda->context)) {
		xfp_cuda_upload_end(cuda);
		cuda->cu.cuCtxPopCurrent(&context);
	}
	for (int i = 0; i < XFP_CUDA_MAX_FATBINS; i++)
		if (cuda->library[i])
			cuda->cu.cuLibraryUnload(cuda->library[i]);
	pthread_mutex_destroy(&cuda->uploads);
	xfp_cu_close(&cuda->cu);
	free(cuda);
}

void xfp_cuda_describe(const struct xfp_cuda *cuda, struct xfp_cuda_info *info)
{
	*info = cuda->info;
}
