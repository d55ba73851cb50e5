/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h - what the files of the device's bench share: how long a graph takes, and weights that come as they come.
 */
#ifndef XFP_KERNEL_VERIFY_CUDA_BENCH_H
#define XFP_KERNEL_VERIFY_CUDA_BENCH_H

#include "kernel-verify/cuda/blas.h"
#include "kernel-verify/cuda/device.h"
#include "kernel-verify/cuda/unit_file.h"

#define XFP_BENCH_ROUNDS 7

/* Numbers between which the one in the middle is told. */
struct xfp_rounds {
	double of[XFP_BENCH_ROUNDS];
};
double xfp_median(struct xfp_rounds rounds);

/* What is measured: a matrix, or a stack of them. */
struct xfp_bench_case {
	const char *op; /* as --filter and the table have it */
	unsigned mode, k, group, library;
	uint64_t rows, cols; /* rows 0: as many as there are in --mib */
	uint32_t experts;    /* 1, or of which eight are multiplied by */
	bool sum;            /* of a stack: the eight results are added up */
	uint16_t vectors;    /* bits: of which numbers of vectors, of xfp_bench_vectors */
};

struct xfp_bench {
	struct xfp_device *device;
	struct xfp_kernel_report *report;
	xfp_cu_handle begin, end; /* events */
	xfp_cu_handle code, read, fill;
	xfp_cu_handle reading;    /* a graph of reads */
	struct xfp_error failure; /* the first that a line of the table had, or the first that is wrong */
	uint64_t reads;           /* device memory to be read, */
	size_t read_bytes;
	uint64_t workspace;
	struct xfp_blas blas;
	bool blas_found;
	uint64_t random;
};

/* Bytes that --mib stands for, of such a matrix. */
enum xfp_status xfp_bench_unit(struct xfp_bench *bench, const struct xfp_bench_case *of, struct xfp_unit_file *unit,
			       struct xfp_error *err);

/* Seconds that a graph takes; and those of one of many reads, each of `read_bytes`, of a graph, too. */
enum xfp_status xfp_bench_time(struct xfp_bench *bench, xfp_cu_handle graph, double *seconds, struct xfp_error *err);
enum xfp_status xfp_bench_read(struct xfp_bench *bench, double *seconds, struct xfp_error *err);
enum xfp_status xfp_bench_fill(struct xfp_bench *bench, uint64_t memory, uint64_t bytes, struct xfp_error *err);

/* bf16 numbers of both signs between 2^-7 and 2^-6, as xfp_bench_fill has them. */
void xfp_bench_vectors(struct xfp_bench *bench, uint8_t *x, size_t count);

/* Instead of a line of the table: what went wrong. */
void xfp_bench_failed(struct xfp_bench *bench, const char *op, const struct xfp_error *failure);

/* What a graph came to, all bf16. */
struct xfp_bench_results {
	const struct xfp_unit_file *unit; /* without outliers and balance */
	const uint8_t *x;                 /* on the host, vectors of unit->cols */
	uint64_t y;                       /* on the device, `count` times unit->rows */
	size_t count; /* of results; where there is no list, as many vectors that are one launch's */
	const struct xfp_product *list;
	size_t listed; /* at most eight; 0: no list */
};
/* XFP_UNMET where one of the rows that are looked at is not within the bound. */
enum xfp_status xfp_bench_check(struct xfp_bench *bench, const struct xfp_bench_results *of, struct xfp_error *err);

/* A matrix's lines of the table. */
enum xfp_status xfp_bench_products(struct xfp_bench *bench, const struct xfp_bench_case *of, struct xfp_error *err);

/* Upload from a file, beside reading it and copying as much to the device. */
enum xfp_status xfp_bench_upload(struct xfp_bench *bench, struct xfp_error *err);

#endif
