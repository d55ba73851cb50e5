/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.h - the CUDA driver functions that the library uses. The driver is opened at run time, so that programs run
 * without one. Types and functions are declared here, following the driver's documented interface, so that building
 * does not need its headers.
 */
#ifndef XFP_CUDA_DRIVER_H
#define XFP_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/xfp_error.h"

/* Handles of the driver, and device addresses. */
typedef void *xfp_cu_handle;
typedef uint64_t xfp_cu_address;

/* Result codes that the library handles; 0 is success. */
enum xfp_cu_result {
	XFP_CU_INVALID_VALUE = 1,
	XFP_CU_OUT_OF_MEMORY = 2,
	XFP_CU_NO_DEVICE = 100,
	XFP_CU_INVALID_CONTEXT = 201, /* no context is current */
	XFP_CU_NO_BINARY_FOR_GPU = 209,
	XFP_CU_UNSUPPORTED_PTX = 222,
	XFP_CU_NOT_FOUND = 500,
	XFP_CU_ILLEGAL_ADDRESS = 700,
	XFP_CU_CONTEXT_IS_DESTROYED = 709,
	XFP_CU_LAUNCH_FAILED = 719,
	XFP_CU_DRIVER_MISMATCH = 803,      /* library and kernel module have different versions */
	XFP_CU_COMPAT_NOT_SUPPORTED = 804, /* the same, with the compatibility package */
};

/* Constants of the driver's interface. */
enum {
	XFP_CU_ATTRIBUTE_PROCESSORS = 16,   /* device attributes: multiprocessors */
	XFP_CU_ATTRIBUTE_MAJOR = 75,        /* compute capability, major */
	XFP_CU_ATTRIBUTE_MINOR = 76,        /* compute capability, minor */
	XFP_CU_ATTRIBUTE_SHARED_ALL = 81,   /* shared memory per multiprocessor */
	XFP_CU_ATTRIBUTE_SHARED_OPTIN = 97, /* maximum shared memory per block, opt-in */
	XFP_CU_FUNCTION_REGISTERS = 4,      /* function attributes: registers per thread */
	XFP_CU_FUNCTION_MAX_SHARED = 8,     /* maximum dynamic shared memory per block */
	XFP_CU_POINTER_MEMORY_TYPE = 2,     /* pointer attributes: kind of memory */
	XFP_CU_POINTER_DEVICE = 9,          /* number of the device that owns it */
	XFP_CU_MEMORY_HOST = 1,             /* value of the kind: host memory */
	XFP_CU_EVENT_NO_TIMING = 2,
	XFP_CU_WITH_LEGACY_STREAM = 1, /* the stream that a null stream stands for */
	XFP_CU_LAUNCH_DEPENDENT = 6,   /* launch attribute: programmatic dependent launch */
};

/* A launch attribute with an int value. */
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
 * F(result, function, parameters): all driver functions in use. cuGetProcAddress resolves each one at version 12.0;
 * cuGetProcAddress itself is looked up as "cuGetProcAddress_v2".
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
	void *library;                             /* from dlopen */
	int version;                               /* 1000 * major + 10 * minor */
	int (*cuFuncLoad)(xfp_cu_handle function); /* since 12.4; NULL if the driver is older */
#define XFP_CU_MEMBER(name, parameters) int(*name) parameters;
	XFP_CU_FUNCTIONS(XFP_CU_MEMBER)
#undef XFP_CU_MEMBER
};

/* Open the driver. XFP_FAILED if there is no driver, it is older than `wanted` (in the format of `version`), or it
 * finds no device. Nothing is open after a failure. */
enum xfp_status xfp_cu_open(struct xfp_cu_driver *cu, int wanted, struct xfp_error *err);
void xfp_cu_close(struct xfp_cu_driver *cu);

/* Load a function's code now. Otherwise the driver loads it at the first launch, which may be captured in a graph. */
enum xfp_status xfp_cu_load(const struct xfp_cu_driver *cu, xfp_cu_handle function, const char *what,
			    struct xfp_error *err);

/* Report a failed driver call and return XFP_FAILED. `call` is the name of the function; `what` is the object it was
 * for, such as a unit, or NULL. If the error is out of memory, the message reports free device memory or, if `pinned`
 * is not 0, the number of bytes of host memory that could not be pinned. */
enum xfp_status xfp_cu_fail(const struct xfp_cu_driver *cu, int result, const char *call, const char *what,
			    uint64_t pinned, struct xfp_error *err);

#endif
