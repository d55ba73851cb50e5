/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_calls.h - the calls of the stand-in driver: C(first version, name, exported name, parameters). If a call was
 * changed, the exported name has the version that CUDA 13's header refers to or, if that maps the name to another call,
 * the version that cuGetProcAddress returns.
 */
#ifndef TESTS_CUDA_DRIVER_CALLS_H
#define TESTS_CUDA_DRIVER_CALLS_H

#include "tests/cuda/driver.h"

/* A launch attribute; 72 bytes in the interface. */
struct launch_attribute {
	int id, unused, value, more[15];
};

struct launch_config {
	unsigned grid[3], block[3], shared;
	void *stream;
	struct launch_attribute *attributes;
	unsigned attribute_count;
};

struct copy_2d {
	size_t from_x, from_y;
	int from_type;
	const void *from_host;
	address from_device;
	void *from_array;
	size_t from_pitch;
	size_t to_x, to_y;
	int to_type;
	void *to_host;
	address to_device;
	void *to_array;
	size_t to_pitch;
	size_t width, height;
};

struct library;
struct stream;
struct event;
struct graph;

#define DRIVER_CALLS(C)                                                                                                \
	C(2000, cuInit, cuInit, (unsigned flags))                                                                      \
	C(2020, cuDriverGetVersion, cuDriverGetVersion, (int *to))                                                     \
	C(12000, cuGetProcAddress, cuGetProcAddress_v2,                                                                \
	  (const char *name, void **function, int wanted, uint64_t flags, int *status))                                \
	C(6000, cuGetErrorName, cuGetErrorName, (int result, const char **text))                                       \
	C(6000, cuGetErrorString, cuGetErrorString, (int result, const char **text))                                   \
	C(2000, cuDeviceGetCount, cuDeviceGetCount, (int *count))                                                      \
	C(2000, cuDeviceGet, cuDeviceGet, (int *device, int number))                                                   \
	C(2000, cuDeviceGetName, cuDeviceGetName, (char *name, int bytes, int device))                                 \
	C(3020, cuDeviceTotalMem, cuDeviceTotalMem_v2, (size_t * bytes, int device))                                   \
	C(2000, cuDeviceGetAttribute, cuDeviceGetAttribute, (int *value, int attribute, int device))                   \
	C(7000, cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (struct context * *context, int device))           \
	C(11000, cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (int device))                                \
	C(11000, cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, (int device))                                    \
	C(3020, cuCtxCreate, cuCtxCreate_v2, (struct context * *context, unsigned flags, int device))                  \
	C(4000, cuCtxDestroy, cuCtxDestroy_v2, (struct context * context))                                             \
	C(4000, cuCtxGetCurrent, cuCtxGetCurrent, (struct context * *context))                                         \
	C(4000, cuCtxSetCurrent, cuCtxSetCurrent, (struct context * context))                                          \
	C(4000, cuCtxPushCurrent, cuCtxPushCurrent_v2, (struct context * context))                                     \
	C(4000, cuCtxPopCurrent, cuCtxPopCurrent_v2, (struct context * *context))                                      \
	C(2000, cuCtxGetDevice, cuCtxGetDevice, (int *device))                                                         \
	C(12000, cuCtxGetId, cuCtxGetId, (struct context * context, unsigned long long *id))                           \
	C(2000, cuCtxSynchronize, cuCtxSynchronize, (void))                                                            \
	C(3020, cuMemGetInfo, cuMemGetInfo_v2, (size_t * left, size_t * all))                                          \
	C(3020, cuMemAlloc, cuMemAlloc_v2, (address * memory, size_t bytes))                                           \
	C(3020, cuMemFree, cuMemFree_v2, (address memory))                                                             \
	C(3020, cuMemcpyHtoD, cuMemcpyHtoD_v2, (address to, const void *from, size_t bytes))                           \
	C(3020, cuMemcpyDtoH, cuMemcpyDtoH_v2, (void *to, address from, size_t bytes))                                 \
	C(3020, cuMemcpyDtoD, cuMemcpyDtoD_v2, (address to, address from, size_t bytes))                               \
	C(3020, cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, (address to, const void *from, size_t bytes, void *stream))   \
	C(3020, cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void *to, address from, size_t bytes, void *stream))         \
	C(3020, cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, (address to, address from, size_t bytes, void *stream))       \
	C(3020, cuMemcpy2D, cuMemcpy2D_v2, (const struct copy_2d *copy))                                               \
	C(3020, cuMemcpy2DAsync, cuMemcpy2DAsync_v2, (const struct copy_2d *copy, void *stream))                       \
	C(3020, cuMemsetD8, cuMemsetD8_v2, (address to, unsigned char value, size_t count))                            \
	C(3020, cuMemsetD8Async, cuMemsetD8Async, (address to, unsigned char value, size_t count, void *stream))       \
	C(2020, cuMemHostAlloc, cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))                         \
	C(2000, cuMemFreeHost, cuMemFreeHost, (void *memory))                                                          \
	C(6050, cuMemHostRegister, cuMemHostRegister_v2, (void *memory, size_t bytes, unsigned flags))                 \
	C(4000, cuMemHostUnregister, cuMemHostUnregister, (void *memory))                                              \
	C(4000, cuPointerGetAttribute, cuPointerGetAttribute, (void *value, int attribute, address of))                \
	C(2000, cuStreamCreate, cuStreamCreate, (struct stream * *stream, unsigned flags))                             \
	C(4000, cuStreamDestroy, cuStreamDestroy_v2, (struct stream * stream))                                         \
	C(2000, cuStreamSynchronize, cuStreamSynchronize, (struct stream * stream))                                    \
	C(2000, cuStreamQuery, cuStreamQuery, (struct stream * stream))                                                \
	C(3020, cuStreamWaitEvent, cuStreamWaitEvent, (struct stream * stream, struct event * event, unsigned flags))  \
	C(10000, cuStreamIsCapturing, cuStreamIsCapturing, (struct stream * stream, int *state))                       \
	C(10010, cuStreamBeginCapture, cuStreamBeginCapture_v2, (struct stream * stream, int mode))                    \
	C(10000, cuStreamEndCapture, cuStreamEndCapture, (struct stream * stream, struct graph * *graph))              \
	C(11000, cuGraphInstantiate, cuGraphInstantiate_v2,                                                            \
	  (struct graph * *executable, struct graph * graph, void **error_node, char *log, size_t log_bytes))          \
	C(11040, cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags,                                             \
	  (struct graph * *executable, struct graph * graph, unsigned long long flags))                                \
	C(10000, cuGraphLaunch, cuGraphLaunch, (struct graph * executable, struct stream * stream))                    \
	C(10000, cuGraphDestroy, cuGraphDestroy, (struct graph * graph))                                               \
	C(10000, cuGraphExecDestroy, cuGraphExecDestroy, (struct graph * executable))                                  \
	C(2000, cuEventCreate, cuEventCreate, (struct event * *event, unsigned flags))                                 \
	C(4000, cuEventDestroy, cuEventDestroy_v2, (struct event * event))                                             \
	C(2000, cuEventRecord, cuEventRecord, (struct event * event, struct stream * stream))                          \
	C(2000, cuEventSynchronize, cuEventSynchronize, (struct event * event))                                        \
	C(2000, cuEventQuery, cuEventQuery, (struct event * event))                                                    \
	C(2000, cuEventElapsedTime, cuEventElapsedTime, (float *milliseconds, struct event *begin, struct event *end)) \
	C(12000, cuLibraryLoadData, cuLibraryLoadData,                                                                 \
	  (struct library * *library, const void *code, int *jit, void **jit_values, unsigned jit_count, int *options, \
	   void **values, unsigned count))                                                                             \
	C(12000, cuLibraryUnload, cuLibraryUnload, (struct library * library))                                         \
	C(12000, cuLibraryGetKernel, cuLibraryGetKernel,                                                               \
	  (struct kernel * *kernel, struct library * library, const char *name))                                       \
	C(12000, cuKernelSetAttribute, cuKernelSetAttribute,                                                           \
	  (int attribute, int value, struct kernel *kernel, int device))                                               \
	C(12000, cuKernelGetFunction, cuKernelGetFunction, (struct kernel * *function, struct kernel * kernel))        \
	C(12040, cuKernelGetParamInfo, cuKernelGetParamInfo,                                                           \
	  (struct kernel * kernel, size_t index, size_t * offset, size_t * bytes))                                     \
	C(9000, cuFuncSetAttribute, cuFuncSetAttribute, (struct kernel * function, int attribute, int value))          \
	C(2020, cuFuncGetAttribute, cuFuncGetAttribute, (int *value, int attribute, struct kernel *function))          \
	C(12040, cuFuncLoad, cuFuncLoad, (struct kernel * function))                                                   \
	C(2000, cuModuleLoadData, cuModuleLoadData, (struct library * *module, const void *code))                      \
	C(2000, cuModuleUnload, cuModuleUnload, (struct library * module))                                             \
	C(2000, cuModuleGetFunction, cuModuleGetFunction,                                                              \
	  (struct kernel * *function, struct library * module, const char *name))                                      \
	C(4000, cuLaunchKernel, cuLaunchKernel,                                                                        \
	  (struct kernel * function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,              \
	   unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **parameters, void **extra))        \
	C(11060, cuLaunchKernelEx, cuLaunchKernelEx,                                                                   \
	  (const struct launch_config *config, struct kernel *function, void **parameters, void **extra))

#define DECLARE(since, name, exported, parameters) int exported parameters;
DRIVER_CALLS(DECLARE)
#undef DECLARE

#endif
