/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel-verify/cuda/device.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libxfp-cuda.so.0"
#define CACHE_BYTES 38 /* device attributes */
#define RELAXED 2      /* capture mode: only calls that wait are forbidden */

bool xfp_device_parse(const char *text, int *number)
{
	char *end;

	*number = 0;
	if (!strcmp(text, "cuda"))
		return true;
	if (strncmp(text, "cuda:", 5) || text[5] < '0' || text[5] > '9' || strlen(text) > 8)
		return false;
	*number = (int)strtol(text + 5, &end, 10);
	return !*end;
}

/* A sticky error is a device fault, after which no call works. Waiting fails while a stream captures, whatever the
 * device's state, and invalidates the capture. */
void xfp_device_check_lost(struct xfp_device *device)
{
	if (!device->capturing && device->cuCtxSynchronize)
		device->lost = device->cuCtxSynchronize() != 0;
}

enum xfp_status xfp_device_check(struct xfp_device *device, int result, const char *call, struct xfp_error *err)
{
	if (!result)
		return XFP_OK;
	xfp_device_check_lost(device);
	return xfp_cu_fail(&device->cu, result, call, NULL, 0, err);
}

/* ---- opening ---------------------------------------------------------------------------------------- */

/* Convert an address to a function pointer, for which C has no conversion. */
static void set_function(void *to, void *address)
{
	memcpy(to, &address, sizeof address);
}

static enum xfp_status find_library(struct xfp_device *device, struct xfp_error *err)
{
	if (!(device->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL))) {
		const char *why = dlerror();

		return xfp_fail(err, XFP_FAILED,
				"libxfp-cuda not found (%s); build xfp with nvcc, or add the library's folder to "
				"LD_LIBRARY_PATH",
				why ? why : LIBRARY);
	}
#define FIND(name)                                                                                               \
	do {                                                                                                     \
		void *address = dlsym(device->library, #name);                                                   \
                                                                                                                 \
		if (!address)                                                                                    \
			return xfp_fail(err, XFP_FAILED, LIBRARY " has no " #name ": it is of another release"); \
		set_function(&device->lib.name, address);                                                        \
	} while (0);
	XFP_DEVICE_LIBRARY(FIND)
#undef FIND
	return XFP_OK;
}

static enum xfp_status find_calls(struct xfp_device *device, struct xfp_error *err)
{
	int (*get)(const char *name, void **function, int version, uint64_t flags, int *found);

	set_function(&get, dlsym(device->cu.library, "cuGetProcAddress_v2"));
#define FIND(name, parameters)                                                                                        \
	do {                                                                                                          \
		void *address = NULL;                                                                                 \
		int found = 0;                                                                                        \
                                                                                                                      \
		if (!get || get(#name, &address, 12000, XFP_CU_WITH_LEGACY_STREAM, &found) || !address)               \
			return xfp_fail(err, XFP_FAILED, "the CUDA driver has no " #name "; update or reinstall it"); \
		set_function(&device->name, address);                                                                 \
	} while (0);
	XFP_DEVICE_CALLS(FIND)
#undef FIND
	return XFP_OK;
}

static enum xfp_status open_context(struct xfp_device *device, struct xfp_error *err)
{
	enum xfp_status status;
	int count = 0, cache = 0;
	size_t left;

	if ((status = xfp_device_check(device, device->cu.cuDeviceGetCount(&count), "cuDeviceGetCount", err)))
		return status;
	if (device->number >= count)
		return xfp_fail(err, XFP_FAILED, "there is no device %d; the CUDA driver finds %d, numbered from 0",
				device->number, count);
	if ((status = XFP_DEVICE_DO(device, cuDeviceGet, (&device->number, device->number), err)) ||
	    (status = XFP_DEVICE_DO(device, cuDevicePrimaryCtxRetain, (&device->context, device->number), err)) ||
	    (status = XFP_DEVICE_DO(device, cuCtxSetCurrent, (device->context), err)) ||
	    (status = XFP_DEVICE_DO(device, cuStreamCreate, (&device->stream, 1), err)) ||
	    (status = xfp_device_check(device, device->cu.cuMemGetInfo(&left, &device->memory), "cuMemGetInfo", err)) ||
	    (status = xfp_device_check(device, device->cu.cuDeviceGetAttribute(&cache, CACHE_BYTES, device->number),
				       "cuDeviceGetAttribute", err)))
		return status;
	device->cache = (size_t)cache;
	return XFP_OK;
}

enum xfp_status xfp_device_open(struct xfp_device *device, int number, struct xfp_error *err)
{
	enum xfp_status status;

	*device = (struct xfp_device){ .number = number };
	if ((status = find_library(device, err)) || (status = xfp_cu_open(&device->cu, 0, err)) ||
	    (status = find_calls(device, err)) || (status = open_context(device, err)) ||
	    (status = device->lib.xfp_cuda_open(&device->cuda, err)) || (status = xfp_device_queue_open(device, err)))
		xfp_device_close(device);
	else
		device->lib.xfp_cuda_describe(device->cuda, &device->info);
	return status;
}

void xfp_device_close(struct xfp_device *device)
{
	if (device->cuda)
		device->lib.xfp_cuda_close(device->cuda);
	if (device->workspace)
		xfp_device_free(device, device->workspace);
	if (device->stream)
		device->cuStreamDestroy(device->stream);
	if (device->context)
		device->cuDevicePrimaryCtxRelease(device->number);
	/* The libraries stay loaded: threads of the driver may still run in one of them. */
	device->cuda = NULL;
	device->workspace = 0;
	device->stream = device->context = NULL;
}

/* ---- memory --------------------------------------------------------------------------------------- */

enum xfp_status xfp_device_alloc(struct xfp_device *device, size_t bytes, uint64_t *memory, struct xfp_error *err)
{
	int result = device->cuMemAlloc(memory, bytes ? bytes : 1);

	if (result)
		*memory = 0;
	return result ? xfp_cu_fail(&device->cu, result, "cuMemAlloc", NULL, bytes, err) : XFP_OK;
}

void xfp_device_free(struct xfp_device *device, uint64_t memory)
{
	if (memory)
		device->cuMemFree(memory);
}

enum xfp_status xfp_device_copy_in(struct xfp_device *device, uint64_t to, const void *from, size_t bytes,
				   struct xfp_error *err)
{
	int result = device->cu.cuMemcpyHtoDAsync(to, from, bytes, device->stream);
	enum xfp_status status = xfp_device_check(device, result, "cuMemcpyHtoDAsync", err);

	return status ? status : XFP_DEVICE_DO(device, cuStreamSynchronize, (device->stream), err);
}

enum xfp_status xfp_device_copy_out(struct xfp_device *device, void *to, uint64_t from, size_t bytes,
				    struct xfp_error *err)
{
	enum xfp_status status = XFP_DEVICE_DO(device, cuMemcpyDtoHAsync, (to, from, bytes, device->stream), err);

	return status ? status : XFP_DEVICE_DO(device, cuStreamSynchronize, (device->stream), err);
}

/* ---- graphs --------------------------------------------------------------------------------------- */

enum xfp_status xfp_device_graph(struct xfp_device *device, xfp_device_enqueue_fn *enqueue, void *context,
				 xfp_cu_handle *run, struct xfp_error *err)
{
	xfp_cu_handle graph = NULL;
	enum xfp_status status, ended;
	struct xfp_error ignored;

	*run = NULL;
	if ((status = XFP_DEVICE_DO(device, cuStreamBeginCapture, (device->stream, RELAXED), err)))
		return status;
	device->capturing = true;
	status = enqueue(context, err);
	device->capturing = false;
	ended = XFP_DEVICE_DO(device, cuStreamEndCapture, (device->stream, &graph), status ? &ignored : err);
	if (status)
		xfp_device_check_lost(device);
	if (!(status = status ? status : ended))
		status = XFP_DEVICE_DO(device, cuGraphInstantiateWithFlags, (run, graph, 0), err);
	if (graph)
		device->cuGraphDestroy(graph);
	return status;
}

void xfp_device_graph_free(struct xfp_device *device, xfp_cu_handle run)
{
	if (run)
		device->cuGraphExecDestroy(run);
}
