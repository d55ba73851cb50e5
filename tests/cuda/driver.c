/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.c - a stand-in for libcuda.so.1, so that host code runs unchanged without a device: memory is a file shared
 * with a server (ptx_server.py), which runs the kernels in the PTX emulator. It implements only the calls that a
 * library needs. Work that a real driver may delay is delayed until something waits for it, so that a missing
 * synchronisation shows: cuMemcpyHtoD from pageable memory returns before the bytes reach the device, and streams
 * created with CU_STREAM_NON_BLOCKING do not wait for them. A fault in a kernel is printed, and every later call fails
 * with CUDA_ERROR_ILLEGAL_ADDRESS.
 *
 * The environment describes the machine and the faults:
 *
 *   STAND_IN_PTX          the PTX files that stand for the binaries that are loaded, with colons between: the
 *                         one beside FILE.fatbin for that, where there is such a file, else all for each;
 *                         a library that is loaded from PTX's text stands for itself
 *   STAND_IN_SERVER       ptx_server.py, if it is not in $srcdir/tests/cuda; PYTHON runs it
 *   STAND_IN_ARCH         compute capability: 90 (default), 80, 120, ...
 *   STAND_IN_VERSION      CUDA_VERSION that the driver claims, 13000; what came later it has not
 *   STAND_IN_DEVICES      how many, 1
 *   STAND_IN_PROCESSORS   multiprocessors of each, 4
 *   STAND_IN_SHARED       bytes of shared memory that a block can have, as data sheets say
 *   STAND_IN_MEMORY       bytes of each, 4 GiB
 *   STAND_IN_PINNED       bytes of the host that can be pinned at a time, 1 GiB
 *   STAND_IN_FAIL_ALLOC   the how-manieth allocation of device memory fails
 *   STAND_IN_FAIL         "CALL NUMBER RESULT": the how-manieth call of this name, from when that was set, gives RESULT
 *   STAND_IN_CAPTURING    if 1, every stream says that it is being captured
 *   STAND_IN_REFUSE       if 1, binaries are for other devices: loading fails
 *   STAND_IN_IDLE         if 1, kernels are launched, and do nothing; if 2, those of the bench's own do nothing, and
 *                         the others nothing when a graph of them is launched again
 *   STAND_IN_ORDER        the order of blocks at atomics: forward, reverse, or the seed of a random one
 *   STAND_IN_COUNTS       a file that gets a line for each launch: kernel, grid, block, counts as JSON
 */
#include "tests/cuda/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/driver_calls.h"

static bool initialized;
static enum result error;
static struct context primary[DEVICES], made[64];
static int made_count;
static unsigned long long ids;
static _Thread_local struct context *stack[16];
static _Thread_local int depth;

long setting(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtol(text, NULL, 0) : otherwise;
}

int devices(void)
{
	long count = setting("STAND_IN_DEVICES", 1);

	return count < DEVICES ? (int)count : DEVICES;
}

int version(void)
{
	return (int)setting("STAND_IN_VERSION", 13000);
}

int compute_capability(void)
{
	return (int)setting("STAND_IN_ARCH", 90);
}

/* Shared memory by data sheet; the driver reserves 1 KiB per block. */
int shared_optin(void)
{
	if (setting("STAND_IN_SHARED", 0))
		return (int)setting("STAND_IN_SHARED", 0);
	switch (compute_capability()) {
	case 80:
	case 87:
		return 166912;
	case 90:
	case 100:
	case 103:
		return 232448;
	default:
		return 101376;
	}
}

void set_sticky(enum result why)
{
	if (!error)
		error = why;
}

int sticky(void)
{
	return error;
}

struct context *current(void)
{
	return depth ? stack[depth - 1] : NULL;
}

int failure(const char *call)
{
	static char last[128];
	static int calls;
	const char *text = getenv("STAND_IN_FAIL");
	char name[64];
	int number, result;

	if (!text)
		text = "";
	if (strcmp(text, last)) {
		snprintf(last, sizeof last, "%s", text);
		calls = 0;
	}
	if (sscanf(text, "%63s %d %d", name, &number, &result) != 3 || strcmp(name, call))
		return SUCCESS;
	return ++calls == number ? result : SUCCESS;
}

int ready_for(const char *call)
{
	int result = failure(call);

	if (result)
		return result;
	if (!initialized)
		return NOT_INITIALIZED;
	if (!current())
		return INVALID_CONTEXT;
	return current()->alive ? error : CONTEXT_IS_DESTROYED;
}

static bool no_device(int device)
{
	return device < 0 || device >= devices();
}

int cuInit(unsigned flags)
{
	int result = failure(__func__);

	if (flags || result)
		return result ? result : INVALID_VALUE;
	if (!devices())
		return NO_DEVICE;
	initialized = true;
	return SUCCESS;
}

int cuDriverGetVersion(int *to)
{
	*to = version();
	return SUCCESS;
}

int cuDeviceGetCount(int *count)
{
	int result = failure(__func__);

	*count = devices();
	return initialized ? result : NOT_INITIALIZED;
}

int cuDeviceGet(int *device, int number)
{
	*device = number;
	return !initialized ? NOT_INITIALIZED : no_device(number) ? INVALID_DEVICE : SUCCESS;
}

int cuDeviceGetName(char *name, int bytes, int device)
{
	if (no_device(device))
		return INVALID_DEVICE;
	snprintf(name, (size_t)bytes, "stand-in sm_%d", compute_capability());
	return SUCCESS;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	*bytes = (size_t)setting("STAND_IN_MEMORY", 4L << 30);
	return no_device(device) ? INVALID_DEVICE : SUCCESS;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	static const struct {
		int attribute, value;
	} known[] = {
		{ 1, 1024 },         /* threads of a block */
		{ 8, PLAIN_SHARED }, /* shared memory of a block */
		{ 10, 32 },          /* threads of a warp */
		{ 13, 1500000 },     /* clock rate in kHz */
		{ 18, 0 },           /* one with the host */
		{ 19, 1 },           /* maps the host's memory */
		{ 36, 2000000 },     /* memory's clock rate in kHz */
		{ 37, 512 },         /* memory's bits */
		{ 38, 32 << 20 },    /* level two cache */
		{ 39, 2048 },        /* threads of a multiprocessor */
		{ 41, 1 },           /* one address space with the host */
		{ 111, 1024 },       /* shared memory that the driver takes */
	};

	int result = failure(__func__);

	if (no_device(device) || result)
		return result ? result : INVALID_DEVICE;
	switch (attribute) {
	case 16:
		*value = (int)setting("STAND_IN_PROCESSORS", 4);
		return SUCCESS;
	case 75:
		*value = compute_capability() / 10;
		return SUCCESS;
	case 76:
		*value = compute_capability() % 10;
		return SUCCESS;
	case 81:
		*value = shared_optin() + 1024;
		return SUCCESS;
	case 97:
		*value = shared_optin();
		return SUCCESS;
	}
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (known[i].attribute == attribute) {
			*value = known[i].value;
			return SUCCESS;
		}
	}
	return INVALID_VALUE;
}

/* ---- contexts */

int cuDevicePrimaryCtxRetain(struct context **context, int device)
{
	int result = failure(__func__);

	if (!initialized || result)
		return result ? result : NOT_INITIALIZED;
	if (no_device(device))
		return INVALID_DEVICE;
	if (!primary[device].alive)
		primary[device] = (struct context){ .device = device, .alive = true, .id = ++ids };
	primary[device].uses++;
	*context = &primary[device];
	return SUCCESS;
}

int cuDevicePrimaryCtxReset_v2(int device)
{
	if (no_device(device))
		return INVALID_DEVICE;
	drain();
	primary[device].alive = false;
	primary[device].uses = 0;
	free_events(&primary[device]);
	free_pinned(&primary[device]);
	free_device(device);
	return SUCCESS;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	if (no_device(device) || !primary[device].uses)
		return no_device(device) ? INVALID_DEVICE : INVALID_CONTEXT;
	return --primary[device].uses ? SUCCESS : cuDevicePrimaryCtxReset_v2(device);
}

int cuCtxCreate_v2(struct context **context, unsigned flags, int device)
{
	(void)flags;
	if (!initialized || no_device(device) || made_count == 64)
		return initialized ? INVALID_DEVICE : NOT_INITIALIZED;
	made[made_count] = (struct context){ .device = device, .alive = true, .id = ++ids };
	*context = &made[made_count++];
	return cuCtxPushCurrent_v2(*context);
}

int cuCtxDestroy_v2(struct context *context)
{
	if (!context || !context->alive)
		return INVALID_CONTEXT;
	drain();
	context->alive = false;
	free_events(context);
	free_pinned(context);
	free_device(context->device);
	if (current() == context)
		depth--;
	return SUCCESS;
}

int cuCtxGetCurrent(struct context **context)
{
	*context = current();
	return initialized ? SUCCESS : NOT_INITIALIZED;
}

int cuCtxSetCurrent(struct context *context)
{
	if (!initialized)
		return NOT_INITIALIZED;
	if (context && !context->alive)
		return CONTEXT_IS_DESTROYED;
	if (depth)
		depth--;
	return context ? cuCtxPushCurrent_v2(context) : SUCCESS;
}

int cuCtxPushCurrent_v2(struct context *context)
{
	if (!context || depth == 16)
		return INVALID_CONTEXT;
	stack[depth++] = context;
	return SUCCESS;
}

int cuCtxPopCurrent_v2(struct context **context)
{
	if (!depth)
		return INVALID_CONTEXT;
	depth--;
	if (context)
		*context = stack[depth];
	return SUCCESS;
}

int cuCtxGetDevice(int *device)
{
	if (!initialized || !current())
		return initialized ? INVALID_CONTEXT : NOT_INITIALIZED;
	*device = current()->device;
	return SUCCESS;
}

/* NULL: the current context. */
int cuCtxGetId(struct context *context, unsigned long long *id)
{
	int result = failure(__func__);

	if (result)
		return result;
	context = context ? context : current();
	if (!initialized || !context)
		return initialized ? INVALID_CONTEXT : NOT_INITIALIZED;
	*id = context->id;
	return context->alive ? SUCCESS : CONTEXT_IS_DESTROYED;
}

int cuCtxSynchronize(void)
{
	int result = ready();

	if (!result && (result = not_capturing()))
		spoil_capture();
	return result ? result : drain();
}

/* ---- errors */

#define ERRORS(E)                                                                                                   \
	E(SUCCESS, "CUDA_SUCCESS", "no error")                                                                      \
	E(INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument")                                            \
	E(OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory")                                               \
	E(NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error")                                    \
	E(NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected")                                  \
	E(INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal")                                    \
	E(INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid")                              \
	E(INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context")                                  \
	E(NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",                                                        \
	  "no kernel image is available for execution on the device")                                               \
	E(UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",                                            \
	  "the provided PTX was compiled with an unsupported toolchain.")                                           \
	E(OPERATING_SYSTEM, "CUDA_ERROR_OPERATING_SYSTEM", "OS call failed or operation not supported on this OS")  \
	E(INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle")                                   \
	E(NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found")                                              \
	E(NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready")                                                    \
	E(ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered")                \
	E(LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch") \
	E(CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed")                          \
	E(HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",                              \
	  "part or all of the requested memory range is already mapped")                                            \
	E(HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",                                      \
	  "pointer does not correspond to a registered memory region")                                              \
	E(STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",                                      \
	  "operation not permitted when stream is capturing")                                                       \
	E(STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",                                      \
	  "operation failed due to a previous error during capture")                                                \
	E(STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",                                          \
	  "the capture was not initiated in this stream")                                                           \
	E(STREAM_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",                                            \
	  "operation would make the legacy stream depend on a capturing blocking stream")

int cuGetErrorName(int result, const char **text)
{
#define NAME(value, name, meaning) \
	if (result == (value)) {   \
		*text = name;      \
		return SUCCESS;    \
	}
	ERRORS(NAME)
	*text = NULL;
	return INVALID_VALUE;
}

int cuGetErrorString(int result, const char **text)
{
#define MEANING(value, name, meaning) \
	if (result == (value)) {      \
		*text = meaning;      \
		return SUCCESS;       \
	}
	ERRORS(MEANING)
	*text = NULL;
	return INVALID_VALUE;
}

/* the calls of the interface, and the version that introduced each */

int cuGetProcAddress_v2(const char *name, void **function, int wanted, uint64_t flags, int *status)
{
	static const struct {
		const char *name;
		int since;
		void (*function)(void);
	} known[] = {
#define ENTRY(since, name, exported, parameters) { #name, since, (void (*)(void))exported },
		DRIVER_CALLS(ENTRY)
	};

	(void)flags;
	*function = NULL;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (strcmp(name, known[i].name))
			continue;
		if (known[i].since > version() || known[i].since > wanted) {
			if (status)
				*status = 2;
			return known[i].since > version() ? NOT_FOUND : SUCCESS;
		}
		memcpy(function, &known[i].function, sizeof *function);
		if (status)
			*status = 0;
		return SUCCESS;
	}
	if (status)
		*status = 1;
	return NOT_FOUND;
}
