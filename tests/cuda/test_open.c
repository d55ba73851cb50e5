/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening libxfp-cuda, and units in it, on machines that lack something: the error names a remedy, and nothing is
 * leaked.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/xfp_cuda.h"
#include "tests/cuda/machine.h"
#include "tests/unit/bundle_fixture.h"

static struct xfp_error err;
static struct machine cu;

static void told(const char *part)
{
	if (!strstr(err.text, part))
		fail_msg("%s", err.text);
}

static void check(enum xfp_status status)
{
	if (status)
		fail_msg("%s", err.text);
}

static void expect_closed(enum xfp_status wanted)
{
	struct xfp_cuda *cuda = (struct xfp_cuda *)&cu;

	assert_int_equal(xfp_cuda_open(&cuda, &err), wanted);
	assert_null(cuda);
	assert_int_equal(xfp_cuda_open(&cuda, NULL), wanted);
}

static void expect_one_failure(const char *call, const char *part)
{
	struct xfp_cuda *cuda = (struct xfp_cuda *)&cu;

	if (xfp_cuda_open(&cuda, &err) != XFP_FAILED)
		fail_msg("%s: did not fail", call);
	assert_null(cuda);
	told(part);
}

static int load(void **state)
{
	(void)state;
	if (!cu.cuInit)
		machine_load(&cu, "90");
	return 0;
}

/* ---- missing parts ----------------------------------------------------------------------------- */

/* In a process that has not loaded a driver. */
static void no_driver(void **state)
{
	int status;
	pid_t child;

	(void)state;
	if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) || dlopen("libcuda.so.1", RTLD_NOW)) {
		print_message("# there is a driver here\n");
		skip();
	}
	child = fork();
	if (!child) {
		struct xfp_cuda *cuda;

		status = (int)xfp_cuda_open(&cuda, &err);
		_exit(cuda || status != XFP_FAILED || !strstr(err.text, "no CUDA driver found") ||
		      !strstr(err.text, "install the NVIDIA driver"));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void no_context(void **state)
{
	(void)state;
	expect_closed(XFP_USAGE);
	told("no CUDA context is current on this thread");
	told("cuDevicePrimaryCtxRetain");
}

static void old_driver(void **state)
{
	(void)state;
	setenv("STAND_IN_VERSION", "11080", 1);
	expect_closed(XFP_FAILED);
	told("supports CUDA 11.8");
	told("the kernels need CUDA 1");
	told("update the NVIDIA driver");
	unsetenv("STAND_IN_VERSION");
}

static void no_device(void **state)
{
	(void)state;
	setenv("STAND_IN_DEVICES", "0", 1);
	expect_closed(XFP_FAILED);
	told("finds no device");
	told("CUDA_VISIBLE_DEVICES");
	unsetenv("STAND_IN_DEVICES");
}

static void old_device(void **state)
{
	(void)state;
	machine_begin(&cu);
	setenv("STAND_IN_ARCH", "75", 1);
	expect_closed(XFP_FAILED);
	told("compute capability 7.5; the kernels need 8.0");
	setenv("STAND_IN_ARCH", "90", 1);
}

static void refused(void **state)
{
	(void)state;
	setenv("STAND_IN_REFUSE", "1", 1);
	expect_closed(XFP_FAILED);
	told("fp8.cu: cuLibraryLoadData failed: CUDA_ERROR_NO_BINARY_FOR_GPU (209)");
	told("update the NVIDIA driver, or build xfp with a newer nvcc");
	unsetenv("STAND_IN_REFUSE");
}

/* If any call fails, the error names it, everything opened so far is closed, and opening works again afterwards. */
static void calls_fail(void **state)
{
	static const char *const cases[][2] = {
		{ "cuLibraryLoadData 2 2",
		  "kept.cu: cuLibraryLoadData failed: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory; "
		  "4294967296 of 4294967296 bytes on the device are free: free memory, or use" },
		{ "cuLibraryLoadData 7 222",
		  "v2c.cu: cuLibraryLoadData failed: CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222): the provided PTX was "
		  "compiled with an unsupported toolchain.; the driver is older than the nvcc that compiled the "
		  "kernels: update it, or build" },
		{ "cuCtxGetId 1 709", "cuCtxGetId failed: CUDA_ERROR_CONTEXT_IS_DESTROYED (709)" },
		{ "cuLibraryGetKernel 1 200",
		  "xfp_prepare_f32: cuLibraryGetKernel failed: CUDA_ERROR_INVALID_IMAGE (200)" },
		{ "cuKernelGetFunction 3 2", "xfp_prepare_bf16: cuKernelGetFunction failed: CUDA_ERROR_OUT_OF_MEMORY" },
		/* The library is not searched in any other library. */
		{ "cuLibraryGetKernel 1 500",
		  "xfp_prepare_f32: cuLibraryGetKernel failed: CUDA_ERROR_NOT_FOUND (500)" },
		{ "cuFuncLoad 1 999", "xfp_prepare_f32: cuFuncLoad failed: an unknown error (999): no description" },
		{ "cuFuncSetAttribute 1 1", ": cuKernelSetAttribute failed: CUDA_ERROR_INVALID_VALUE (1)" },
		{ "cuDeviceGetAttribute 1 101", "cuDeviceGetAttribute failed: CUDA_ERROR_INVALID_DEVICE (101)" },
		{ "cuDeviceGetAttribute 4 101", "cuDeviceGetAttribute failed" },
		{ "cuDeviceGetCount 1 3", "cuDeviceGetCount failed: CUDA_ERROR_NOT_INITIALIZED (3)" },
		{ "cuInit 1 304", "cuInit failed: CUDA_ERROR_OPERATING_SYSTEM (304): OS call failed" },
	};
	struct xfp_cuda *cuda;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		setenv("STAND_IN_FAIL", cases[i][0], 1);
		expect_one_failure(cases[i][0], cases[i][1]);
		unsetenv("STAND_IN_FAIL");
	}
	setenv("STAND_IN_SHARED", "49152", 1);
	expect_one_failure("shared memory", " bytes of shared memory, but the device allows 49152 per block");
	unsetenv("STAND_IN_SHARED");
	check(xfp_cuda_open(&cuda, &err));
	xfp_cuda_close(cuda);
	/* A device with the minimum of shared memory: integer kernels for several vectors that need more are
	 * omitted. */
	setenv("STAND_IN_SHARED", "101376", 1);
	check(xfp_cuda_open(&cuda, &err));
	xfp_cuda_close(cuda);
	unsetenv("STAND_IN_SHARED");
}

/* ---- units ------------------------------------------------------------------------------------- */

struct scene {
	struct fixture f;
	struct xfp_bundle *bundle;
	struct xfp_cuda *cuda;
	uint64_t memory, bytes;
	uint32_t unit;
};

static int begin(void **state)
{
	struct scene *s = calloc(1, sizeof *s);

	fixture_make_bundle(&s->f, 1);
	s->bundle = fixture_open(s->f.out);
	if (xfp_cuda_open(&s->cuda, &err))
		fail_msg("%s", err.text);
	assert_int_equal(xfp_cuda_linear_bytes(s->bundle, 0, NULL, &s->bytes, &err), XFP_OK);
	s->memory = machine_alloc(&cu, s->bytes);
	*state = s;
	return 0;
}

static int end(void **state)
{
	struct scene *s = *state;

	xfp_cuda_close(s->cuda);
	cu.cuMemFree(s->memory);
	xfp_bundle_close(s->bundle);
	fixture_free(&s->f);
	free(s);
	return 0;
}

static void what_it_is(void **state)
{
	struct scene *s = *state;
	struct xfp_cuda_info info;
	struct xfp_cuda_linear *linear;
	struct xfp_cuda_linear_info what;

	xfp_cuda_describe(s->cuda, &info);
	assert_string_equal(info.device, "stand-in sm_90");
	assert_int_equal(info.major * 10 + info.minor, 90);
	assert_int_equal(info.processors, 4);
	assert_int_equal(info.shared_bytes, 232448);
	assert_int_equal(info.driver, 13000);
	assert_true(info.toolkit >= 12000);
	assert_int_equal(xfp_cuda_linear_open(s->cuda, s->bundle, 0, NULL, s->memory, s->bytes, NULL, &linear, &err),
			 XFP_OK);
	xfp_cuda_linear_describe(linear, &what);
	assert_string_equal(what.kernel, "xfp_multiply_v2_k2_i1");
	assert_int_equal(what.rows, 3);
	assert_int_equal(what.cols, 11);
	assert_int_equal(what.experts, 1);
	assert_int_equal(what.tiles, 1);
	assert_int_equal(what.parts, 1);
	/* three slots of eight warps: indices of 16 rows and digits of 256 columns; and sums */
	assert_int_equal(what.shared_bytes, 3 * 8 * (16 * 64 + 3 * 256) + 8 * 512);
	assert_int_equal(what.bytes, s->bytes);
	assert_true(what.repacked);
	xfp_cuda_linear_close(linear);
	xfp_cuda_linear_close(NULL);
	xfp_cuda_close(NULL);
}

static void bad_memory(void **state)
{
	struct scene *s = *state;
	struct xfp_cuda_linear *linear = (struct xfp_cuda_linear *)s;
	char text[200];
	static const struct {
		uint64_t memory, off, less;
		const char *text;
	} cases[] = {
		{ 0, 0, 0, "q.weight: the address of device memory, 0, is null" },
		{ 1, 16, 0, "not a multiple of 256 bytes" },
		{ 1, 0, 1, "needs " },
		{ 256, 0, 0, "0x100 is not an address of device memory" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t memory = cases[i].memory == 1 ? s->memory + cases[i].off : cases[i].memory;

		assert_int_equal(xfp_cuda_linear_open(s->cuda, s->bundle, 0, NULL, memory, s->bytes - cases[i].less,
						      NULL, &linear, &err),
				 XFP_USAGE);
		assert_null(linear);
		told(cases[i].text);
	}
	snprintf(text, sizeof text, "needs %llu bytes", (unsigned long long)s->bytes);
	assert_int_equal(xfp_cuda_linear_open(s->cuda, s->bundle, 0, NULL, s->memory, 0, NULL, &linear, &err),
			 XFP_USAGE);
	told(text);
	told("only 0 were given");
	assert_int_equal(xfp_cuda_linear_open(s->cuda, s->bundle, 1, NULL, s->memory, 0, NULL, &linear, &err),
			 XFP_USAGE);
	told("has no unit 1");
}

/* Memory after the image is unchanged; during a capture nothing can be opened. */
static void uploads(void **state)
{
	struct scene *s = *state;
	struct xfp_cuda_linear *linear;
	struct stream *stream;
	struct graph *graph;
	uint64_t memory = machine_alloc(&cu, s->bytes + 256);
	uint8_t *there = malloc(s->bytes + 256), *again = malloc(s->bytes + 256);

	assert_int_equal(cu.cuMemsetD8(memory, 0x5a, s->bytes + 256), SUCCESS);
	assert_int_equal(cu.cuStreamCreate(&stream, 0), SUCCESS);
	assert_int_equal(xfp_cuda_linear_open(s->cuda, s->bundle, 0, NULL, memory, s->bytes, stream, &linear, &err),
			 XFP_OK);
	assert_int_equal(cu.cuMemcpyDtoH(there, memory, s->bytes + 256), SUCCESS);
	for (size_t i = 0; i < 256; i++)
		assert_int_equal(there[s->bytes + i], 0x5a);
	xfp_cuda_linear_close(linear);
	/* on the default stream it is the same */
	assert_int_equal(xfp_cuda_linear_open(s->cuda, s->bundle, 0, NULL, memory, s->bytes, NULL, &linear, &err),
			 XFP_OK);
	assert_int_equal(cu.cuMemcpyDtoH(again, memory, s->bytes), SUCCESS);
	assert_memory_equal(again, there, s->bytes);
	xfp_cuda_linear_close(linear);

	assert_int_equal(cu.cuStreamBeginCapture(stream, 0), SUCCESS);
	assert_int_equal(xfp_cuda_linear_open(s->cuda, s->bundle, 0, NULL, memory, s->bytes, stream, &linear, &err),
			 XFP_USAGE);
	told("cannot be opened while the stream captures a graph");
	assert_int_equal(cu.cuStreamEndCapture(stream, &graph), SUCCESS);
	cu.cuGraphDestroy(graph);
	cu.cuStreamDestroy(stream);
	cu.cuMemFree(memory);
	free(there);
	free(again);
}

static void another_context(void **state)
{
	struct scene *s = *state;
	struct xfp_cuda_linear *linear;
	struct context *other;

	setenv("STAND_IN_DEVICES", "2", 1);
	assert_int_equal(cu.cuCtxCreate(&other, 0, 1), SUCCESS);
	assert_int_equal(xfp_cuda_linear_open(s->cuda, s->bundle, 0, NULL, s->memory, s->bytes, NULL, &linear, &err),
			 XFP_USAGE);
	told("the CUDA context of xfp_cuda_open is not current or was destroyed");
	told("cuCtxSetCurrent");
	assert_int_equal(cu.cuCtxDestroy(other), SUCCESS);
	unsetenv("STAND_IN_DEVICES");
	assert_int_equal(xfp_cuda_linear_open(s->cuda, s->bundle, 0, NULL, s->memory, s->bytes, NULL, &linear, &err),
			 XFP_OK);
	xfp_cuda_linear_close(linear);
}

/* Memory of one device is rejected for another; the current context determines the device. */
static void two_devices(void **state)
{
	struct scene *s = *state;
	struct xfp_cuda *second;
	struct xfp_cuda_linear *linear;
	struct context *other;
	uint64_t memory;
	uint8_t there[256], first[256];

	check(xfp_cuda_linear_open(s->cuda, s->bundle, 0, NULL, s->memory, s->bytes, NULL, &linear, &err));
	xfp_cuda_linear_close(linear);
	assert_int_equal(cu.cuMemcpyDtoH(first, s->memory + 256, 256), SUCCESS);
	setenv("STAND_IN_DEVICES", "2", 1);
	assert_int_equal(cu.cuCtxCreate(&other, 0, 1), SUCCESS);
	check(xfp_cuda_open(&second, &err));
	memory = machine_alloc(&cu, s->bytes);
	assert_int_equal(xfp_cuda_linear_open(second, s->bundle, 0, NULL, s->memory, s->bytes, NULL, &linear, &err),
			 XFP_USAGE);
	told("belongs to device 0, but the context to device 1");
	check(xfp_cuda_linear_open(second, s->bundle, 0, NULL, memory, s->bytes, NULL, &linear, &err));
	assert_int_equal(cu.cuMemcpyDtoH(there, memory + 256, 256), SUCCESS);
	assert_memory_equal(there, first, 256);
	xfp_cuda_linear_close(linear);
	xfp_cuda_close(second);
	assert_int_equal(cu.cuCtxDestroy(other), SUCCESS);
	unsetenv("STAND_IN_DEVICES");
}

/* Damage found while copies are in flight leaves everything as before. */
static void damaged(void **state)
{
	struct scene *s = *state;
	struct xfp_cuda_linear *linear;
	struct xfp_matrix_info matrix;
	struct xfp_bundle_info info;
	struct xfp_bundle *bundle;
	size_t size, where;
	uint8_t *file = fixture_read(s->f.out, &size);
	char *path = malloc(strlen(s->f.out) + 8);

	xfp_bundle_describe(s->bundle, &info);
	assert_true(xfp_bundle_matrix(s->bundle, 0, &matrix));
	where = (size_t)((const char *)matrix.outlier - (info.json - 512)) + matrix.outliers * 4;
	file[where] = 99;
	sprintf(path, "%s.bad", s->f.out);
	fixture_write(path, file, size);
	bundle = fixture_open(path);
	assert_int_equal(xfp_cuda_linear_open(s->cuda, bundle, 0, NULL, s->memory, s->bytes, NULL, &linear, &err),
			 XFP_BAD_INPUT);
	assert_null(linear);
	told("outliers outside the matrix or out of order");
	told(path);
	xfp_bundle_close(bundle);
	assert_int_equal(xfp_cuda_linear_open(s->cuda, s->bundle, 0, NULL, s->memory, s->bytes, NULL, &linear, &err),
			 XFP_OK);
	xfp_cuda_linear_close(linear);
	free(file);
	free(path);
}

/* A new context may have the address of a destroyed one. */
static void primary(void **state)
{
	struct scene *s = *state;
	struct context *context, *again;
	struct xfp_cuda *cuda;
	struct xfp_cuda_linear *linear, *none;
	uint64_t memory;

	assert_int_equal(cu.cuDevicePrimaryCtxRetain(&context, 0), SUCCESS);
	assert_int_equal(cu.cuCtxPushCurrent(context), SUCCESS);
	check(xfp_cuda_open(&cuda, &err));
	memory = machine_alloc(&cu, s->bytes);
	check(xfp_cuda_linear_open(cuda, s->bundle, 0, NULL, memory, s->bytes, NULL, &linear, &err));
	assert_int_equal(cu.cuCtxPopCurrent(NULL), SUCCESS);
	/* Objects can be closed on any thread, with any current context, and no memory stays pinned. */
	setenv("STAND_IN_PINNED", "8388608", 1);
	xfp_cuda_linear_close(linear);
	xfp_cuda_close(cuda);
	assert_int_equal(cu.cuCtxPushCurrent(context), SUCCESS);
	check(xfp_cuda_open(&cuda, &err));
	check(xfp_cuda_linear_open(cuda, s->bundle, 0, NULL, memory, s->bytes, NULL, &linear, &err));
	unsetenv("STAND_IN_PINNED");
	assert_int_equal(cu.cuDevicePrimaryCtxReset(0), SUCCESS);
	assert_int_equal(xfp_cuda_linear_open(cuda, s->bundle, 0, NULL, memory, s->bytes, NULL, &none, &err),
			 XFP_USAGE);
	told("or was destroyed");
	assert_int_equal(cu.cuDevicePrimaryCtxRetain(&again, 0), SUCCESS);
	assert_ptr_equal(again, context);
	assert_int_equal(xfp_cuda_linear_open(cuda, s->bundle, 0, NULL, memory, s->bytes, NULL, &none, &err),
			 XFP_USAGE);
	told("or was destroyed");
	xfp_cuda_linear_close(linear);
	xfp_cuda_close(cuda);
	assert_int_equal(cu.cuCtxPopCurrent(NULL), SUCCESS);
	assert_int_equal(cu.cuDevicePrimaryCtxRelease(0), SUCCESS);
	/* it was also the memory of the scene's device */
	s->memory = 0;
	assert_int_equal(xfp_cuda_linear_open(s->cuda, s->bundle, 0, NULL, 0, s->bytes, NULL, &none, &err), XFP_USAGE);
}

/* The context is destroyed first; closing is then a no-op. Must be last. */
static void destroyed(void **state)
{
	struct scene *s = *state;
	struct xfp_cuda_linear *linear;

	assert_int_equal(xfp_cuda_linear_open(s->cuda, s->bundle, 0, NULL, s->memory, s->bytes, NULL, &linear, &err),
			 XFP_OK);
	assert_int_equal(cu.cuCtxDestroy(cu.context), SUCCESS);
	xfp_cuda_linear_close(linear);
	assert_int_equal(xfp_cuda_linear_open(s->cuda, s->bundle, 0, NULL, s->memory, s->bytes, NULL, &linear, &err),
			 XFP_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_driver),
		cmocka_unit_test_setup(no_device, load),
		cmocka_unit_test_setup(old_driver, load),
		cmocka_unit_test_setup(no_context, load),
		cmocka_unit_test_setup(old_device, load),
		cmocka_unit_test_setup(refused, load),
		cmocka_unit_test_setup(calls_fail, load),
		cmocka_unit_test_setup_teardown(what_it_is, begin, end),
		cmocka_unit_test_setup_teardown(bad_memory, begin, end),
		cmocka_unit_test_setup_teardown(uploads, begin, end),
		cmocka_unit_test_setup_teardown(another_context, begin, end),
		cmocka_unit_test_setup_teardown(two_devices, begin, end),
		cmocka_unit_test_setup_teardown(damaged, begin, end),
		cmocka_unit_test_setup_teardown(primary, begin, end),
		cmocka_unit_test_setup_teardown(destroyed, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
