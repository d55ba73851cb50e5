/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blas.h - bf16 products by cuBLAS, if it is installed, for comparison with ours.
 */
#ifndef XFP_KERNEL_VERIFY_BLAS_H
#define XFP_KERNEL_VERIFY_BLAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xfp_blas {
	void *library, *handle;
	char name[64];    /* "libcublas.so.13", */
	int version;      /* and its version; or */
	char reason[256]; /* why it is not available */
	int (*create)(void **handle);
	int (*destroy)(void *handle);
	int (*get_version)(void *handle, int *version);
	int (*set_stream)(void *handle, void *stream);
	int (*set_workspace)(void *handle, void *memory, size_t bytes);
	int (*multiply)(void *handle, int turn_a, int turn_b, int m, int n, int k, const void *alpha, const void *a,
			int a_type, int a_stride, const void *b, int b_type, int b_stride, const void *beta, void *c,
			int c_type, int c_stride, int compute, int algorithm);
};

#define XFP_BLAS_WORKSPACE ((size_t)32 << 20)

/* Open cuBLAS in the current context, for a stream, with XFP_BLAS_WORKSPACE bytes of device memory. On false, `reason`
 * has the error. */
bool xfp_blas_open(struct xfp_blas *blas, void *stream, uint64_t workspace);
void xfp_blas_close(struct xfp_blas *blas);

/* y [vectors][rows] = x [vectors][cols] times W [rows][cols], all bf16, accumulated in f32. Returns nonzero on
 * failure. */
int xfp_blas_multiply(struct xfp_blas *blas, uint64_t w, uint64_t x, uint64_t y, int rows, int cols, int vectors);

#endif
