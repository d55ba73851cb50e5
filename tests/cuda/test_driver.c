/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver behaves as host code may expect, and fails where a real one would. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/driver_calls.h"
#include "tests/unit/unit.h"

enum { COUNT = 1000, BLOCK = 128 };

static struct {
#define MEMBER(since, name, exported, parameters) int(*name) parameters;
	DRIVER_CALLS(MEMBER)
#undef MEMBER
} cu;
static char *twice;

static char *text_of(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = calloc(1, 1 << 16);

	assert_non_null(file);
	assert_non_null(text);
	assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
	fclose(file);
	return text;
}

static int open_driver(void **state)
{
	char path[4096];
	void *library, *function;

	(void)state;
	snprintf(path, sizeof path, "%s/cuda/libcuda.so.1", getenv("XFP_TEST_TOOLS"));
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		fail_msg("%s", dlerror());
	function = dlsym(library, "cuGetProcAddress_v2");
	assert_non_null(function);
	memcpy(&cu.cuGetProcAddress, &function, sizeof function);
#define LOOK_UP(since, name, exported, parameters)                                        \
	assert_int_equal(cu.cuGetProcAddress(#name, &function, 13000, 0, NULL), SUCCESS); \
	memcpy(&cu.name, &function, sizeof function);
	DRIVER_CALLS(LOOK_UP)
#undef LOOK_UP
	snprintf(path, sizeof path, "%s/tests/cuda/twice.ptx", getenv("srcdir"));
	twice = text_of(path);
	return 0;
}

static int close_driver(void **state)
{
	(void)state;
	free(twice);
	return 0;
}

static void machines(void **state)
{
	int count = 0, value = 0, status = 0;
	void *function;
	struct context *context = NULL;

	(void)state;
	setenv("STAND_IN_DEVICES", "0", 1);
	assert_int_equal(cu.cuInit(0), NO_DEVICE);
	unsetenv("STAND_IN_DEVICES");
	assert_int_equal(cu.cuDevicePrimaryCtxRetain(&context, 0), NOT_INITIALIZED);
	assert_int_equal(cu.cuInit(0), SUCCESS);
	setenv("STAND_IN_DEVICES", "2", 1);
	assert_int_equal(cu.cuDeviceGetCount(&count), SUCCESS);
	assert_int_equal(count, 2);
	unsetenv("STAND_IN_DEVICES");
	assert_int_equal(cu.cuDeviceGetAttribute(&value, 97, 0), SUCCESS);
	assert_int_equal(value, 232448);
	assert_int_equal(cu.cuDeviceGetAttribute(&value, 81, 0), SUCCESS); /* per multiprocessor */
	assert_int_equal(value, 233472);
	setenv("STAND_IN_ARCH", "120", 1);
	assert_int_equal(cu.cuDeviceGetAttribute(&value, 97, 0), SUCCESS);
	assert_int_equal(value, 101376);
	assert_int_equal(cu.cuDeviceGetAttribute(&value, 81, 0), SUCCESS);
	assert_int_equal(value, 102400);
	assert_int_equal(cu.cuDeviceGetAttribute(&value, 75, 0), SUCCESS);
	assert_int_equal(value, 12);
	unsetenv("STAND_IN_ARCH");
	setenv("STAND_IN_VERSION", "11080", 1);
	assert_int_equal(cu.cuDriverGetVersion(&value), SUCCESS);
	assert_int_equal(value, 11080);
	assert_int_equal(cu.cuGetProcAddress("cuLibraryLoadData", &function, 13000, 0, &status), NOT_FOUND);
	assert_null(function);
	assert_int_equal(cu.cuGetProcAddress("cuLaunchKernelEx", &function, 13000, 0, &status), SUCCESS);
	assert_non_null(function);
	unsetenv("STAND_IN_VERSION");
}

static void contexts(void **state)
{
	struct context *context = NULL, *now = NULL;
	address memory;
	int device = 7;

	(void)state;
	assert_int_equal(cu.cuMemAlloc(&memory, 16), INVALID_CONTEXT);
	assert_int_equal(cu.cuCtxGetDevice(&device), INVALID_CONTEXT);
	assert_int_equal(cu.cuDevicePrimaryCtxRetain(&context, 0), SUCCESS);
	assert_int_equal(cu.cuCtxSetCurrent(context), SUCCESS);
	assert_int_equal(cu.cuCtxGetCurrent(&now), SUCCESS);
	assert_ptr_equal(now, context);
	assert_int_equal(cu.cuCtxGetDevice(&device), SUCCESS);
	assert_int_equal(device, 0);
	assert_int_equal(cu.cuMemAlloc(&memory, 16), SUCCESS);
	assert_int_equal(cu.cuDevicePrimaryCtxRelease(0), SUCCESS);
	assert_int_equal(cu.cuMemFree(memory), CONTEXT_IS_DESTROYED);
	assert_int_equal(cu.cuDevicePrimaryCtxRetain(&context, 0), SUCCESS);
	assert_int_equal(cu.cuMemFree(memory), INVALID_VALUE);
}

static void memory(void **state)
{
	unsigned char bytes[64], back[64] = { 0 }, *pinned = NULL;
	address at = 0, other = 0, large = 0;
	size_t left = 0, before = 0, all = 0;
	unsigned type = 0;

	(void)state;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)(3 * i);
	assert_int_equal(cu.cuMemGetInfo(&before, &all), SUCCESS);
	assert_int_equal(cu.cuMemAlloc(&at, 64), SUCCESS);
	assert_int_equal(cu.cuMemGetInfo(&left, &all), SUCCESS);
	assert_int_equal(before - left, 512);
	assert_int_equal(cu.cuPointerGetAttribute(&type, 2, at + 63), SUCCESS);
	assert_int_equal(type, 2);
	assert_int_equal(cu.cuPointerGetAttribute(&type, 2, at + 64), INVALID_VALUE);
	assert_int_equal(cu.cuMemcpyHtoD(at, bytes, 64), SUCCESS);
	assert_int_equal(cu.cuMemcpyDtoH(back, at + 16, 48), SUCCESS);
	assert_memory_equal(back, bytes + 16, 48);
	assert_int_equal(cu.cuMemFree(at + 1), INVALID_VALUE);
	/* Pinned memory is read when the copy runs, not when it is queued. */
	assert_int_equal(cu.cuMemHostAlloc((void **)&pinned, 64, 0), SUCCESS);
	memcpy(pinned, bytes, 64);
	assert_int_equal(cu.cuMemcpyHtoDAsync(at, pinned, 64, NULL), SUCCESS);
	pinned[5] = 99;
	assert_int_equal(cu.cuStreamSynchronize(NULL), SUCCESS);
	assert_int_equal(cu.cuMemcpyDtoH(back, at, 64), SUCCESS);
	assert_int_equal(back[5], 99);
	assert_int_equal(cu.cuMemcpyHtoDAsync(at, bytes, 64, NULL), SUCCESS);
	bytes[5] = 17;
	assert_int_equal(cu.cuMemcpyDtoH(back, at, 64), SUCCESS);
	assert_int_equal(back[5], 15);
	memset(pinned, 0, 64);
	assert_int_equal(cu.cuMemcpyDtoHAsync(pinned, at, 64, NULL), SUCCESS);
	assert_int_equal(pinned[1], 0);
	assert_int_equal(cu.cuCtxSynchronize(), SUCCESS);
	assert_int_equal(pinned[1], 3);
	assert_int_equal(cu.cuMemFreeHost(pinned), SUCCESS);
	/* Rows: two of 8 bytes, 16 apart, to two that are 32 apart. */
	assert_int_equal(cu.cuMemcpy2D(&(struct copy_2d){ .from_type = 1,
							  .from_host = bytes,
							  .from_pitch = 16,
							  .to_type = 2,
							  .to_device = at,
							  .to_pitch = 32,
							  .width = 8,
							  .height = 2 }),
			 SUCCESS);
	assert_int_equal(cu.cuMemcpyDtoH(back, at, 64), SUCCESS);
	assert_memory_equal(back + 32, bytes + 16, 8);
	assert_int_equal(back[9], 27);
	assert_int_equal(cu.cuMemsetD8(at + 8, 0xee, 4), SUCCESS);
	assert_int_equal(cu.cuMemcpyDtoH(back, at, 64), SUCCESS);
	assert_int_equal(back[11], 0xee);
	assert_int_equal(back[12], 36);
	setenv("STAND_IN_FAIL_ALLOC", "3", 1); /* one was in contexts() */
	assert_int_equal(cu.cuMemAlloc(&other, 64), OUT_OF_MEMORY);
	unsetenv("STAND_IN_FAIL_ALLOC");
	assert_int_equal(cu.cuMemAlloc(&large, all), OUT_OF_MEMORY);
	assert_int_equal(cu.cuMemFree(at), SUCCESS);
	assert_int_equal(cu.cuMemGetInfo(&left, &all), SUCCESS);
	assert_int_equal(left, before);
}

struct scene {
	struct library *library;
	struct kernel *kernel;
	address x, y;
	float from[COUNT], to[COUNT];
};

static void set_up(struct scene *scene)
{
	for (int i = 0; i < COUNT; i++)
		scene->from[i] = (float)i / 8;
	assert_int_equal(cu.cuLibraryLoadData(&scene->library, twice, NULL, NULL, 0, NULL, NULL, 0), SUCCESS);
	assert_int_equal(cu.cuLibraryGetKernel(&scene->kernel, scene->library, "once"), NOT_FOUND);
	assert_int_equal(cu.cuLibraryGetKernel(&scene->kernel, scene->library, "twice"), SUCCESS);
	assert_int_equal(cu.cuMemAlloc(&scene->x, sizeof scene->from), SUCCESS);
	assert_int_equal(cu.cuMemAlloc(&scene->y, sizeof scene->to), SUCCESS);
	assert_int_equal(cu.cuMemcpyHtoD(scene->x, scene->from, sizeof scene->from), SUCCESS);
	assert_int_equal(cu.cuCtxSynchronize(), SUCCESS); /* for streams that do not wait for the copy */
}

static int start(struct scene *scene, float a, unsigned n, unsigned shared, void *stream)
{
	void *parameters[] = { &scene->x, &scene->y, &a, &n };

	return cu.cuLaunchKernelEx(&(struct launch_config){ .grid = { (n + BLOCK - 1) / BLOCK, 1, 1 },
							    .block = { BLOCK, 1, 1 },
							    .shared = shared,
							    .stream = stream },
				   scene->kernel, parameters, NULL);
}

static void expect(struct scene *scene, float a, int n)
{
	assert_int_equal(cu.cuMemcpyDtoH(scene->to, scene->y, sizeof(float) * (size_t)n), SUCCESS);
	for (int i = 0; i < n; i++) {
		if (scene->to[i] != a * scene->from[i])
			fail_msg("%d: %g for %g", i, (double)scene->to[i], (double)(a * scene->from[i]));
	}
}

/* Programmatic dependent launches, if the device supports them. */
static void attributes(void **state)
{
	struct launch_attribute attribute = { .id = 6, .value = 1 };
	struct launch_config config = { .grid = { (COUNT + BLOCK - 1) / BLOCK, 1, 1 },
					.block = { BLOCK, 1, 1 },
					.attributes = &attribute,
					.attribute_count = 1 };
	struct scene scene;
	float a = 6;
	unsigned n = COUNT;
	void *parameters[] = { &scene.x, &scene.y, &a, &n };

	(void)state;
	assert_int_equal(sizeof attribute, 72);
	set_up(&scene);
	assert_int_equal(cu.cuLaunchKernelEx(&config, scene.kernel, parameters, NULL), SUCCESS);
	expect(&scene, 6, COUNT);
	setenv("STAND_IN_ARCH", "89", 1);
	assert_int_equal(cu.cuLaunchKernelEx(&config, scene.kernel, parameters, NULL), INVALID_VALUE);
	unsetenv("STAND_IN_ARCH");
	attribute.value = 2;
	assert_int_equal(cu.cuLaunchKernelEx(&config, scene.kernel, parameters, NULL), INVALID_VALUE);
	attribute = (struct launch_attribute){ .id = 7, .value = 1 };
	assert_int_equal(cu.cuLaunchKernelEx(&config, scene.kernel, parameters, NULL), INVALID_VALUE);
	config.attributes = NULL;
	assert_int_equal(cu.cuLaunchKernelEx(&config, scene.kernel, parameters, NULL), INVALID_VALUE);
	config.attribute_count = 0;
	a = 7;
	assert_int_equal(cu.cuLaunchKernelEx(&config, scene.kernel, parameters, NULL), SUCCESS);
	expect(&scene, 7, COUNT);
	assert_int_equal(cu.cuLibraryUnload(scene.library), SUCCESS);
}

static void launches(void **state)
{
	struct scene scene;
	struct library *other = NULL;
	int value = 0;

	(void)state;
	set_up(&scene);
	assert_int_equal(start(&scene, 2, COUNT, 0, NULL), SUCCESS);
	expect(&scene, 2, COUNT);
	assert_int_equal(start(&scene, 3, COUNT - 77, 0, NULL), SUCCESS);
	expect(&scene, 3, COUNT - 77);
	/* More shared memory than requested, and than the device has. */
	assert_int_equal(start(&scene, 2, COUNT, PLAIN_SHARED + 4, NULL), INVALID_VALUE);
	assert_int_equal(cu.cuKernelSetAttribute(FUNCTION_MAX_SHARED, 300000, scene.kernel, 0), INVALID_VALUE);
	assert_int_equal(cu.cuKernelSetAttribute(FUNCTION_MAX_SHARED, 100000, scene.kernel, 0), SUCCESS);
	assert_int_equal(cu.cuFuncGetAttribute(&value, FUNCTION_MAX_SHARED, scene.kernel), SUCCESS);
	assert_int_equal(value, 100000);
	assert_int_equal(start(&scene, 4, COUNT, PLAIN_SHARED + 4, NULL), SUCCESS);
	expect(&scene, 4, COUNT);
	assert_int_equal(start(&scene, 2, 0, 0, NULL), INVALID_VALUE);
	setenv("STAND_IN_REFUSE", "1", 1);
	assert_int_equal(cu.cuLibraryLoadData(&other, twice, NULL, NULL, 0, NULL, NULL, 0), NO_BINARY_FOR_GPU);
	unsetenv("STAND_IN_REFUSE");
	assert_int_equal(cu.cuLibraryLoadData(&other, "none", NULL, NULL, 0, NULL, NULL, 0), INVALID_IMAGE);
	assert_int_equal(cu.cuLibraryUnload(scene.library), SUCCESS);
}

/* ---- non-blocking streams -------------------------------------------------------------------------- */

static void set_source(struct scene *scene, float first)
{
	for (int i = 0; i < COUNT; i++)
		scene->from[i] = first + (float)i / 8;
}

/* Copy from pageable memory, which is freed on return. */
static void copy_in(struct scene *scene, float first)
{
	struct scene from;

	set_source(&from, first);
	assert_int_equal(cu.cuMemcpyHtoD(scene->x, from.from, sizeof from.from), SUCCESS);
	memset(&from, 0xff, sizeof from);
}

/* Check what a launch on the stream reads now. */
static void expect_read(struct scene *scene, void *stream, float first)
{
	assert_int_equal(start(scene, 2, COUNT, 0, stream), SUCCESS);
	assert_int_equal(cu.cuStreamSynchronize(stream), SUCCESS);
	set_source(scene, first);
	expect(scene, 2, COUNT);
}

static void late_copies(void **state)
{
	struct stream *blocking = NULL, *apart = NULL;
	struct event *event = NULL;
	struct scene scene;
	float *pinned = NULL;

	(void)state;
	set_up(&scene);
	assert_int_equal(cu.cuStreamCreate(&blocking, 0), SUCCESS);
	assert_int_equal(cu.cuStreamCreate(&apart, 1), SUCCESS);
	assert_int_equal(cu.cuEventCreate(&event, 0), SUCCESS);
	copy_in(&scene, 100);
	expect_read(&scene, apart, 0); /* its cuMemcpyDtoH is on the legacy stream, and completes the copy */
	expect_read(&scene, apart, 100);
	copy_in(&scene, 200);
	expect_read(&scene, blocking, 200);
	copy_in(&scene, 300);
	expect_read(&scene, NULL, 300);
	copy_in(&scene, 400);
	assert_int_equal(cu.cuStreamSynchronize(NULL), SUCCESS);
	expect_read(&scene, apart, 400);
	/* Launched before the context is synchronized: the old contents. */
	copy_in(&scene, 500);
	assert_int_equal(start(&scene, 2, COUNT, 0, apart), SUCCESS);
	assert_int_equal(cu.cuCtxSynchronize(), SUCCESS);
	expect(&scene, 2, COUNT);
	expect_read(&scene, apart, 500);
	copy_in(&scene, 600);
	assert_int_equal(cu.cuEventRecord(event, NULL), SUCCESS);
	assert_int_equal(cu.cuStreamWaitEvent(apart, event, 0), SUCCESS);
	expect_read(&scene, apart, 600);
	/* On the stream itself, and from pinned memory, the copy is in time. */
	set_source(&scene, 700);
	assert_int_equal(cu.cuMemcpyHtoDAsync(scene.x, scene.from, sizeof scene.from, apart), SUCCESS);
	expect_read(&scene, apart, 700);
	assert_int_equal(cu.cuMemHostAlloc((void **)&pinned, sizeof scene.from, 0), SUCCESS);
	set_source(&scene, 800);
	memcpy(pinned, scene.from, sizeof scene.from);
	assert_int_equal(cu.cuMemcpyHtoD(scene.x, pinned, sizeof scene.from), SUCCESS);
	expect_read(&scene, apart, 800);
	assert_int_equal(cu.cuMemsetD8(scene.x, 0, sizeof scene.from), SUCCESS);
	expect_read(&scene, apart, 800);
	/* cuMemcpyDtoH does not wait for the launch either. */
	copy_in(&scene, 900);
	assert_int_equal(cu.cuCtxSynchronize(), SUCCESS);
	assert_int_equal(start(&scene, 2, COUNT, 0, apart), SUCCESS);
	expect(&scene, 2, COUNT);
	assert_int_equal(cu.cuStreamSynchronize(apart), SUCCESS);
	set_source(&scene, 900);
	expect(&scene, 2, COUNT);
	assert_int_equal(cu.cuMemFreeHost(pinned), SUCCESS);
	assert_int_equal(cu.cuEventDestroy(event), SUCCESS);
	assert_int_equal(cu.cuStreamDestroy(apart), SUCCESS);
	assert_int_equal(cu.cuStreamDestroy(blocking), SUCCESS);
	assert_int_equal(cu.cuLibraryUnload(scene.library), SUCCESS);
}

static void graphs(void **state)
{
	struct scene scene;
	struct stream *stream = NULL;
	struct graph *graph = NULL, *executable = NULL;
	struct event *event = NULL;
	address more;
	int capturing = 0;

	(void)state;
	set_up(&scene);
	assert_int_equal(cu.cuStreamCreate(&stream, 1), SUCCESS);
	/* Code must be loaded before a capture. */
	assert_int_equal(cu.cuStreamBeginCapture(stream, 0), SUCCESS);
	assert_int_equal(start(&scene, 5, COUNT / 2, 0, stream), STREAM_CAPTURE_UNSUPPORTED);
	assert_int_equal(cu.cuStreamEndCapture(stream, &graph), SUCCESS);
	assert_int_equal(cu.cuGraphDestroy(graph), SUCCESS);
	assert_int_equal(cu.cuFuncLoad(scene.kernel), SUCCESS);
	assert_int_equal(cu.cuStreamBeginCapture(stream, 0), SUCCESS);
	assert_int_equal(cu.cuStreamIsCapturing(stream, &capturing), SUCCESS);
	assert_int_equal(capturing, 1);
	assert_int_equal(cu.cuMemsetD8Async(scene.y, 0, sizeof scene.to, stream), SUCCESS);
	assert_int_equal(start(&scene, 5, COUNT / 2, 0, stream), SUCCESS);
	/* Nothing that allocates or waits may be captured. */
	assert_int_equal(cu.cuMemAlloc(&more, 16), STREAM_CAPTURE_UNSUPPORTED);
	assert_int_equal(cu.cuStreamSynchronize(stream), STREAM_CAPTURE_UNSUPPORTED);
	assert_int_equal(cu.cuStreamEndCapture(stream, &graph), SUCCESS);
	/* The header's name for three arguments returns the call with five. */
	assert_int_equal(cu.cuGraphInstantiate(&executable, graph, NULL, NULL, 0), INVALID_VALUE);
	assert_int_equal(cu.cuGraphInstantiateWithFlags(&executable, graph, 0), SUCCESS);
	assert_int_equal(cu.cuGraphDestroy(graph), SUCCESS);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(cu.cuMemsetD8Async(scene.y, 0x77, sizeof scene.to, stream), SUCCESS);
		assert_int_equal(cu.cuGraphLaunch(executable, stream), SUCCESS);
		assert_int_equal(cu.cuStreamSynchronize(stream), SUCCESS);
		expect(&scene, 5, COUNT / 2);
		assert_int_equal(cu.cuMemcpyDtoH(scene.to, scene.y, sizeof scene.to), SUCCESS);
		assert_true(scene.to[COUNT - 1] == 0);
	}
	assert_int_equal(cu.cuGraphExecDestroy(executable), SUCCESS);
	assert_int_equal(cu.cuEventCreate(&event, 0), SUCCESS);
	assert_int_equal(start(&scene, 6, COUNT, 0, stream), SUCCESS);
	assert_int_equal(start(&scene, 7, COUNT, 0, stream), SUCCESS);
	assert_int_equal(cu.cuEventRecord(event, stream), SUCCESS);
	assert_int_equal(cu.cuEventQuery(event), NOT_READY);
	assert_int_equal(cu.cuEventQuery(event), SUCCESS);
	assert_int_equal(cu.cuEventSynchronize(event), SUCCESS);
	assert_int_equal(cu.cuEventDestroy(event), SUCCESS);
	setenv("STAND_IN_CAPTURING", "1", 1);
	assert_int_equal(cu.cuStreamIsCapturing(NULL, &capturing), SUCCESS);
	assert_int_equal(capturing, 1);
	assert_int_equal(cu.cuLibraryLoadData(&scene.library, twice, NULL, NULL, 0, NULL, NULL, 0),
			 STREAM_CAPTURE_UNSUPPORTED);
	unsetenv("STAND_IN_CAPTURING");
	assert_int_equal(cu.cuStreamDestroy(stream), SUCCESS);
	assert_int_equal(cu.cuLibraryUnload(scene.library), SUCCESS);
}

/* Must be last: no call works afterwards. */
static void faults(void **state)
{
	struct scene scene;
	const char *name = NULL;
	address at;

	(void)state;
	set_up(&scene);
	assert_int_equal(start(&scene, 2, COUNT + 1, 0, NULL), SUCCESS);
	assert_int_equal(cu.cuCtxSynchronize(), ILLEGAL_ADDRESS);
	assert_int_equal(cu.cuMemAlloc(&at, 16), ILLEGAL_ADDRESS);
	assert_int_equal(start(&scene, 2, COUNT, 0, NULL), ILLEGAL_ADDRESS);
	assert_int_equal(cu.cuGetErrorName(ILLEGAL_ADDRESS, &name), SUCCESS);
	assert_string_equal(name, "CUDA_ERROR_ILLEGAL_ADDRESS");
	assert_int_equal(cu.cuLibraryUnload(scene.library), ILLEGAL_ADDRESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(machines),   cmocka_unit_test(contexts),    cmocka_unit_test(memory),
		cmocka_unit_test(launches),   cmocka_unit_test(late_copies), cmocka_unit_test(graphs),
		cmocka_unit_test(attributes), cmocka_unit_test(faults),
	};

	return cmocka_run_group_tests_name("the stand-in driver", tests, open_driver, close_driver);
}
