/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.h - the CUDA driver, as far as it is called. It is opened when it is needed, so that nothing depends on one
 * being installed; types and functions are declared here, by the driver's documented interface, so that nothing
 * depends on its headers either.
 */
#ifndef XFP_CUDA_DRIVER_H
#define XFP_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/xfp_error.h"

/* The driver's handles, and addresses of device memory. */
typedef void *xfp_cu_handle;
typedef uint64_t xfp_cu_address;

/* Results that mean something here; 0 is success. */
enum xfp_cu_result {
	XFP_CU_INVALID_VALUE = 1,
	XFP_CU_OUT_OF_MEMORY = 2,
	XFP_CU_NO_DEVICE = 100,
	XFP_CU_INVALID_CONTEXT = 201, /* none is current */
	XFP_CU_NO_BINARY_FOR_GPU = 209,
	XFP_CU_UNSUPPORTED_PTX = 222,
	XFP_CU_NOT_FOUND = 500,
	XFP_CU_ILLEGAL_ADDRESS = 700,
	XFP_CU_CONTEXT_IS_DESTROYED = 709,
	XFP_CU_LAUNCH_FAILED = 719,
	XFP_CU_DRIVER_MISMATCH = 803,      /* of its library and its kernel module */
	XFP_CU_COMPAT_NOT_SUPPORTED = 804, /* likewise */
};

/* Numbers of the interface. */
enum {
	XFP_CU_ATTRIBUTE_PROCESSORS = 16,   /* of a device: */
	XFP_CU_ATTRIBUTE_MAJOR = 75,        /* compute capability */
	XFP_CU_ATTRIBUTE_MINOR = 76,        /* likewise */
	XFP_CU_ATTRIBUTE_SHARED_ALL = 81,   /* shared memory of a multiprocessor */
	XFP_CU_ATTRIBUTE_SHARED_OPTIN = 97, /* shared memory of a block, where it is asked for */
	XFP_CU_FUNCTION_REGISTERS = 4,      /* of a kernel: of a thread */
	XFP_CU_FUNCTION_MAX_SHARED = 8,     /* shared memory of a block, where it is asked for */
	XFP_CU_POINTER_MEMORY_TYPE = 2,     /* of an address: */
	XFP_CU_POINTER_DEVICE = 9,          /* whose memory it is */
	XFP_CU_MEMORY_HOST = 1,             /* what it then is */
	XFP_CU_EVENT_NO_TIMING = 2,
	XFP_CU_WITH_LEGACY_STREAM = 1, /* what a null stream means */
	XFP_CU_LAUNCH_DEPENDENT = 6,   /* attribute of a launch: it may begin before the one before it has ended */
};

/* An attribute of a launch; of those whose value is an int. */
struct xfp_cu_attribute {
	int id;
	int unused;
	int value;
	int more[15];
};

/* Parameters of cuLaunchKernelEx. */
struct xfp_cu_launch {
	unsigned grid[3], block[3], shared;
	xfp_cu_handle stream;
	struct xfp_cu_attribute *attributes;
	unsigned count;
};

/*
 * F(result, function, parameters): all that is called. Each is looked up as of version 12.0, by cuGetProcAddress,
 * which is itself looked up by its name with "_v2" behind it.
 */
#define XFP_CU_FUNCTIONS(F)                                                                                   \
	F(cuDriverGetVersion, (int *version))                                                                 \
	F(cuGetErrorName, (int result, const char **text))                                                    \
	F(cuGetErrorString, (int result, const char **text))                                                  \
	F(cuInit, (unsigned flags))                                                                           \
	F(cuDeviceGetCount, (int *count))                                                                     \
	F(cuDeviceGetName, (char *name, int bytes, int device))                                               \
	F(cuDeviceGetAttribute, (int *value, int attribute, int device))                                      \
	F(cuCtxGetCurrent, (xfp_cu_handle * context))                                                         \
	F(cuCtxGetDevice, (int *device))                                                                      \
	F(cuCtxGetId, (xfp_cu_handle context, unsigned long long *id))                                        \
	F(cuCtxPushCurrent, (xfp_cu_handle context))                                                          \
	F(cuCtxPopCurrent, (xfp_cu_handle * context))                                                         \
	F(cuMemGetInfo, (size_t * free, size_t * all))                                                        \
	F(cuLibraryLoadData, (xfp_cu_handle * library, const void *code, int *jit_options, void **jit_values, \
			      unsigned jit_count, int *options, void **values, unsigned count))               \
	F(cuLibraryUnload, (xfp_cu_handle library))                                                           \
	F(cuLibraryGetKernel, (xfp_cu_handle * kernel, xfp_cu_handle library, const char *name))              \
	F(cuKernelSetAttribute, (int attribute, int value, xfp_cu_handle kernel, int device))                 \
	F(cuKernelGetFunction, (xfp_cu_handle * function, xfp_cu_handle kernel))                              \
	F(cuFuncGetAttribute, (int *value, int attribute, xfp_cu_handle function))                            \
	F(cuLaunchKernel, (xfp_cu_handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,         \
			   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,             \
			   xfp_cu_handle stream, void **parameters, void **extra))                            \
	F(cuLaunchKernelEx, (const struct xfp_cu_launch *launch, xfp_cu_handle function, void **parameters,   \
			     void **extra))                                                                  \
	F(cuStreamIsCapturing, (xfp_cu_handle stream, int *state))                                            \
	F(cuStreamSynchronize, (xfp_cu_handle stream))                                                        \
	F(cuPointerGetAttribute, (void *value, int attribute, xfp_cu_address address))                        \
	F(cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))                                      \
	F(cuMemFreeHost, (void *memory))                                                                      \
	F(cuMemcpyHtoDAsync, (xfp_cu_address to, const void *from, size_t bytes, xfp_cu_handle stream))       \
	F(cuMemsetD8Async, (xfp_cu_address to, unsigned char value, size_t bytes, xfp_cu_handle stream))      \
	F(cuEventCreate, (xfp_cu_handle * event, unsigned flags))                                             \
	F(cuEventRecord, (xfp_cu_handle event, xfp_cu_handle stream))                                         \
	F(cuEventSynchronize, (xfp_cu_handle event))                                                          \
	F(cuEventDestroy, (xfp_cu_handle event))

struct xfp_cu_driver {
	void *library;                             /* what dlopen gave */
	int version;                               /* 1000 * major + 10 * minor */
	int (*cuFuncLoad)(xfp_cu_handle function); /* of version 12.4; NULL: the driver is older */
#define XFP_CU_MEMBER(name, parameters) int(*name) parameters;
	XFP_CU_FUNCTIONS(XFP_CU_MEMBER)
#undef XFP_CU_MEMBER
};

/* XFP_FAILED when there is no driver, or one that is older than `wanted` (as `version`), or when it finds no device.
 * On failure nothing is open. */
enum xfp_status xfp_cu_open(struct xfp_cu_driver *cu, int wanted, struct xfp_error *err);
void xfp_cu_close(struct xfp_cu_driver *cu);

/* Has the driver load a function's code now, rather than at its first launch, which might be captured. */
enum xfp_status xfp_cu_load(const struct xfp_cu_driver *cu, xfp_cu_handle function, const char *what,
			    struct xfp_error *err);

/* XFP_FAILED: a call, by its name, for something (a unit; NULL: nothing of its own) went wrong. Where memory ran out,
 * it is the device's, or, where `pinned` is not 0, so many bytes of the host's. */
enum xfp_status xfp_cu_fail(const struct xfp_cu_driver *cu, int result, const char *call, const char *what,
			    uint64_t pinned, struct xfp_error *err);

#endif
