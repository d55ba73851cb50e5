/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h - a machine with the stand-in driver (driver.c), for tests of libxfp-cuda: its calls, and a context.
 *
 * The library opens libcuda.so.1 and gets the library already loaded by that name. Tests without a driver run first, in
 * processes of their own.
 */
#ifndef XFP_TEST_MACHINE_H
#define XFP_TEST_MACHINE_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define result driver_result /* bundle_fixture.h has another */
#include "tests/cuda/driver_calls.h"
#undef result
#include "tests/unit/unit.h"

struct machine {
#define MEMBER(since, name, exported, parameters) int(*name) parameters;
	DRIVER_CALLS(MEMBER)
#undef MEMBER
	struct context *context;
};

/* The stand-in that the tests were built with, and PTX of an architecture for all kernels. */
static inline void machine_load(struct machine *cu, const char *arch)
{
	static const char *const sources[] = { "fp8", "kept", "prepare", "repack", "v2", "v2a", "v2c" };
	const char *tools = getenv("XFP_TEST_TOOLS");
	char path[4096], ptx[8192] = "";
	void *library, *function;

	assert_non_null(tools);
	snprintf(path, sizeof path, "%s/cuda/libcuda.so.1", tools);
	if (!(library = dlopen(path, RTLD_NOW | RTLD_LOCAL)))
		fail_msg("%s", dlerror());
	function = dlsym(library, "cuGetProcAddress_v2");
	assert_non_null(function);
	memcpy(&cu->cuGetProcAddress, &function, sizeof function);
#define LOOK_UP(since, name, exported, parameters)                                         \
	assert_int_equal(cu->cuGetProcAddress(#name, &function, 13000, 0, NULL), SUCCESS); \
	memcpy(&cu->name, &function, sizeof function);
	DRIVER_CALLS(LOOK_UP)
#undef LOOK_UP
	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
		snprintf(ptx + strlen(ptx), sizeof ptx - strlen(ptx), "%s%s/../kernels/cuda/%s.ptx%s", i ? ":" : "",
			 tools, sources[i], arch);
	setenv("STAND_IN_PTX", ptx, 1);
	setenv("STAND_IN_ARCH", arch, 1);
}

static inline void machine_begin(struct machine *cu)
{
	assert_int_equal(cu->cuInit(0), SUCCESS);
	assert_int_equal(cu->cuCtxCreate(&cu->context, 0, 0), SUCCESS);
}

static inline uint64_t machine_alloc(struct machine *cu, size_t bytes)
{
	address memory = 0;

	assert_int_equal(cu->cuMemAlloc(&memory, bytes ? bytes : 1), SUCCESS);
	return memory;
}

static inline uint64_t machine_copy(struct machine *cu, const void *from, size_t bytes)
{
	uint64_t memory = machine_alloc(cu, bytes);

	assert_int_equal(cu->cuMemcpyHtoD(memory, from, bytes), SUCCESS);
	return memory;
}

#endif
