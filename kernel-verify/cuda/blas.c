/* SPDX-License-Identifier: Apache-2.0 */
/* Constants are from cuBLAS's documented interface, which is called without its headers. */
#include "kernel-verify/cuda/blas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { AS_IT_IS = 0, TURNED = 1, BF16 = 14, SUMS_F32 = 68, ANY_ALGORITHM = -1 };

static void *at(uint64_t memory)
{
	return (void *)(uintptr_t)memory;
}

static bool find(struct xfp_blas *blas)
{
	const struct {
		const char *name;
		void *to;
	} functions[] = {
		{ "cublasCreate_v2", &blas->create },
		{ "cublasDestroy_v2", &blas->destroy },
		{ "cublasGetVersion_v2", &blas->get_version },
		{ "cublasSetStream_v2", &blas->set_stream },
		{ "cublasSetWorkspace_v2", &blas->set_workspace },
		{ "cublasGemmEx", &blas->multiply },
	};

	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		void *address = dlsym(blas->library, functions[i].name);

		if (!address) {
			snprintf(blas->reason, sizeof blas->reason, "%s has no %s", blas->name, functions[i].name);
			return false;
		}
		memcpy(functions[i].to, &address, sizeof address);
	}
	return true;
}

bool xfp_blas_open(struct xfp_blas *blas, void *stream, uint64_t workspace)
{
	static const char *const names[] = { "libcublas.so.14", "libcublas.so.13", "libcublas.so.12", "libcublas.so.11",
					     "libcublas.so" };
	const char *call = "cublasCreate";
	int result;

	*blas = (struct xfp_blas){ .reason = "not found" };
	for (size_t i = 0; !blas->library && i < sizeof names / sizeof *names; i++) {
		blas->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
		snprintf(blas->name, sizeof blas->name, "%s", names[i]);
	}
	if (!blas->library || !find(blas))
		return false;
	if (!(result = blas->create(&blas->handle))) {
		call = "cublasSetStream";
		result = blas->set_stream(blas->handle, stream);
	}
	/* With its own workspace cuBLAS allocates nothing and can be captured. */
	if (!result) {
		call = "cublasSetWorkspace";
		result = blas->set_workspace(blas->handle, at(workspace), XFP_BLAS_WORKSPACE);
	}
	if (!result)
		blas->get_version(blas->handle, &blas->version);
	else
		snprintf(blas->reason, sizeof blas->reason, "%s: %s failed (%d)", blas->name, call, result);
	if (result)
		xfp_blas_close(blas);
	return !result;
}

void xfp_blas_close(struct xfp_blas *blas)
{
	if (blas->handle)
		blas->destroy(blas->handle);
	blas->handle = NULL;
}

int xfp_blas_multiply(struct xfp_blas *blas, uint64_t w, uint64_t x, uint64_t y, int rows, int cols, int vectors)
{
	static const float one = 1, zero = 0;

	/* cuBLAS matrices are column-major: W as stored is its transpose. */
	return blas->multiply(blas->handle, TURNED, AS_IT_IS, rows, vectors, cols, &one, at(w), BF16, cols, at(x), BF16,
			      cols, &zero, at(y), BF16, rows, SUMS_F32, ANY_ALGORITHM);
}
