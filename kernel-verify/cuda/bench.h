/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h - shared by the files of the device bench: timing of graphs, and random weights.
 */
#ifndef XFP_KERNEL_VERIFY_CUDA_BENCH_H
#define XFP_KERNEL_VERIFY_CUDA_BENCH_H

#include "kernel-verify/cuda/blas.h"
#include "kernel-verify/cuda/device.h"
#include "kernel-verify/cuda/unit_file.h"

#define XFP_BENCH_ROUNDS 7

/* Measurements whose median is reported. */
struct xfp_rounds {
	double of[XFP_BENCH_ROUNDS];
};
double xfp_median(struct xfp_rounds rounds);

/* A case: a matrix, or a stack of experts. */
struct xfp_bench_case {
	const char *op; /* name in --filter and in the table */
	unsigned mode, k, group, library;
	uint64_t rows, cols; /* rows 0: as many as fit in --mib */
	uint32_t experts;    /* 1, or a stack of which eight are used */
	bool sum;            /* for a stack: the eight results are added */
	uint16_t vectors;    /* bit mask of numbers of vectors, indices into xfp_bench_vectors */
};

struct xfp_bench {
	struct xfp_device *device;
	struct xfp_kernel_report *report;
	xfp_cu_handle begin, end; /* events */
	xfp_cu_handle code, read, fill;
	xfp_cu_handle reading;    /* a graph of plain reads */
	struct xfp_error failure; /* the first error of a case, or the first wrong result */
	uint64_t reads;           /* device memory to read, */
	size_t read_bytes;
	uint64_t workspace;
	struct xfp_blas blas;
	bool blas_found;
	uint64_t random;
};

/* Create a matrix of --mib bytes for a case. */
enum xfp_status xfp_bench_unit(struct xfp_bench *bench, const struct xfp_bench_case *of, struct xfp_unit_file *unit,
			       struct xfp_error *err);

/* Measure the seconds of a graph; and those of one plain read of `read_bytes`, out of a graph of many. */
enum xfp_status xfp_bench_time(struct xfp_bench *bench, xfp_cu_handle graph, double *seconds, struct xfp_error *err);
enum xfp_status xfp_bench_read(struct xfp_bench *bench, double *seconds, struct xfp_error *err);
enum xfp_status xfp_bench_fill(struct xfp_bench *bench, uint64_t memory, uint64_t bytes, struct xfp_error *err);

/* Fill x with bf16 numbers of both signs between 2^-7 and 2^-6, like those of xfp_bench_fill. */
void xfp_bench_vectors(struct xfp_bench *bench, uint8_t *x, size_t count);

/* Report an error in place of a line of the table. */
void xfp_bench_failed(struct xfp_bench *bench, const char *op, const struct xfp_error *failure);

/* The results of a graph, all bf16. */
struct xfp_bench_results {
	const struct xfp_unit_file *unit; /* without outliers and balance */
	const uint8_t *x;                 /* on the host, vectors of unit->cols */
	uint64_t y;                       /* on the device, `count` times unit->rows */
	size_t count;                     /* number of results; without a list, the vectors of one launch */
	const struct xfp_product *list;
	size_t listed; /* at most eight; 0: no list */
};
/* Returns XFP_UNMET if one of the sampled rows is outside the bound. */
enum xfp_status xfp_bench_check(struct xfp_bench *bench, const struct xfp_bench_results *of, struct xfp_error *err);

/* Measure a case and print its lines of the table. */
enum xfp_status xfp_bench_products(struct xfp_bench *bench, const struct xfp_bench_case *of, struct xfp_error *err);

/* Measure the upload of a file, next to reading the file and to copying as many bytes to the device. */
enum xfp_status xfp_bench_upload(struct xfp_bench *bench, struct xfp_error *err);

#endif
