/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trial.h - trials of kernels, and the report on them.
 *
 * An op is a kernel, or a kernel with a k or a dtype; a group is an op of one instruction set; a trial is one call of
 * it with inputs that follow from the seed, the op's name and the trial's number, and from nothing else. So any group
 * can be run alone, and all sets get the same inputs.
 *
 * An op's function makes its inputs in buffers, seals them, makes buffers for what is to be written, calls the kernel
 * and says what its outputs are:
 *
 *     float *w = xfp_trial_buffer(trial, "w", cols * sizeof *w, sizeof *w), sum;
 *
 *     xfp_trial_gaussians(trial, w, cols, 1);
 *     xfp_trial_seal(trial);
 *     while (xfp_trial_again(trial))
 *         sum = xfp_kernel_encoder(trial->set)->norm(w, cols);
 *     xfp_trial_doubles(trial, "sum", &sum, 1);
 *
 * A buffer ends, or begins, where a page begins that must not be touched; what it has of its own pages beside the data
 * is NaN, whatever it is read as, and must stay so. Sealed buffers cannot be written. What is wrong with that, a
 * signal included, is the kernel's failure. Outputs are compared with those of plain C, bit for bit; of an op that is
 * not `exact`, the function itself judges them, by xfp_trial_fail.
 */
#ifndef XFP_KERNEL_TRIAL_H
#define XFP_KERNEL_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/xfp_error.h"
#include "kernels/encode/encode.h"
#include "kernels/multiply/matvec.h"

/* ---- instruction sets ---------------------------------------------------------------------------- */

/* The last is no set of a processor, but a GPU, by libxfp-cuda: what --device names. */
enum xfp_kernel_set {
	XFP_SET_PLAIN,
	XFP_SET_AVX2,
	XFP_SET_AVX512,
	XFP_SET_VBMI,
	XFP_SET_NEON,
	XFP_SET_CUDA,
	XFP_KERNEL_SETS
};

#define XFP_ONLY_PLAIN (1u << XFP_SET_PLAIN)
#define XFP_ENCODER_SETS (1u << XFP_SET_PLAIN | 1u << XFP_SET_AVX2 | 1u << XFP_SET_AVX512 | 1u << XFP_SET_NEON)
#define XFP_PROCESSOR_SETS ((1u << XFP_SET_CUDA) - 1)
#define XFP_MATVEC_SETS (XFP_PROCESSOR_SETS | 1u << XFP_SET_CUDA)

/* "avx512", and for people: "AVX-512". */
const char *xfp_kernel_set_name(enum xfp_kernel_set set);
const char *xfp_kernel_set_title(enum xfp_kernel_set set);

/* What this build has, a GPU included, and of that what this machine can run, without one. */
unsigned xfp_kernel_sets_built(void);
unsigned xfp_kernel_sets_here(void);

/* Names of processors' sets with commas between them; false when one is none. */
bool xfp_kernel_sets_parse(const char *text, unsigned *sets);

/* The tables under test (tables.c; the tests have a program with broken ones). */
const struct xfp_encoder *xfp_kernel_encoder(enum xfp_kernel_set set);
bool xfp_kernel_rows(enum xfp_kernel_set set, const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first,
		     size_t rows, bool add, float *y, size_t stride);
void xfp_kernel_decode(enum xfp_kernel_set set, const struct xfp_matvec *w, size_t row, float *x);

/* ---- ops ------------------------------------------------------------------------------------------ */

struct xfp_trial;
typedef void xfp_trial_fn(struct xfp_trial *trial);

struct xfp_kernel_op {
	char name[40];
	xfp_trial_fn *run;
	unsigned k;
	int kind; /* dtype, mode, log2 of a group: the function knows */
	unsigned sets;
	unsigned trials;
	unsigned large; /* beyond these, of a device, where all are run: large matrices (matrix.h) */
	bool exact;
};

#define XFP_MOST_OPS 192
struct xfp_kernel_ops {
	struct xfp_kernel_op op[XFP_MOST_OPS];
	unsigned count;
};

/* `name` may have %u, which is k. */
void xfp_kernel_op_add(struct xfp_kernel_ops *ops, const char *name, unsigned k, int kind, unsigned sets,
		       xfp_trial_fn *run);

/* ---- trials --------------------------------------------------------------------------------------- */

#define XFP_TRIAL_BUFFERS 48
#define XFP_TRIAL_RECORDS 16

struct xfp_trial_buffer {
	const char *name;
	uint8_t *map, *data;
	size_t mapped, bytes;
	uint8_t around;
};

struct xfp_trial_record {
	const char *name;
	char type; /* 'f' float, 'd' double, 'h' uint16, 'i' int32, 'l' int64, 'b' uint8 */
	size_t count, at;
};

struct xfp_device;
struct xfp_timing;

struct xfp_trial {
	const struct xfp_kernel_op *op;
	enum xfp_kernel_set set;
	unsigned number;
	uint64_t random;
	bool from_start; /* buffers begin, instead of end, at the page that is not there */
	uint8_t fresh;   /* what is in outputs at first */

	struct xfp_trial_buffer buffers[XFP_TRIAL_BUFFERS];
	unsigned buffer_count, sealed;
	struct xfp_trial_record records[XFP_TRIAL_RECORDS];
	unsigned record_count;
	uint8_t *recorded;
	size_t recorded_bytes, recorded_capacity;

	char shape[160];
	bool failed;
	char failure[320];

	struct xfp_device *device; /* of XFP_SET_CUDA */

	struct xfp_timing *timing; /* NULL: the kernel is called once */
	unsigned calls;
	double weights; /* of a call, for the bench */
};

uint64_t xfp_trial_random(struct xfp_trial *trial);
/* 0 ... most - 1 */
size_t xfp_trial_below(struct xfp_trial *trial, size_t most);
/* Columns with all tails; of a bench always the same. */
size_t xfp_trial_columns(struct xfp_trial *trial, size_t most);
float xfp_trial_gaussian(struct xfp_trial *trial);
void xfp_trial_gaussians(struct xfp_trial *trial, float *to, size_t count, float scale);
void xfp_trial_halves(struct xfp_trial *trial, uint16_t *to, size_t count, float scale);

void *xfp_trial_buffer(struct xfp_trial *trial, const char *name, size_t bytes, size_t align);
/* A padded row, zero from `cols` on. */
float *xfp_trial_row(struct xfp_trial *trial, const char *name, size_t cols);
void xfp_trial_seal(struct xfp_trial *trial);
/* Whether the kernel is to be called: once, or as often as the clock wants. */
bool xfp_trial_again(struct xfp_trial *trial);
/* "12 rows of 345, bf16", for messages. */
void xfp_trial_shape(struct xfp_trial *trial, const char *format, ...) XFP_PRINTF(2, 3);
/* Only the first counts. */
void xfp_trial_fail(struct xfp_trial *trial, const char *format, ...) XFP_PRINTF(2, 3);

void xfp_trial_record(struct xfp_trial *trial, const char *name, char type, const void *from, size_t count);
static inline void xfp_trial_floats(struct xfp_trial *trial, const char *name, const float *from, size_t count)
{
	xfp_trial_record(trial, name, 'f', from, count);
}
static inline void xfp_trial_doubles(struct xfp_trial *trial, const char *name, const double *from, size_t count)
{
	xfp_trial_record(trial, name, 'd', from, count);
}
static inline void xfp_trial_bytes(struct xfp_trial *trial, const char *name, const uint8_t *from, size_t count)
{
	xfp_trial_record(trial, name, 'b', from, count);
}

/* Run one, signals and all; buffers are gone afterwards, records stay until the trial is freed. `seed` is the run's. */
void xfp_trial_run(struct xfp_trial *trial, const struct xfp_kernel_op *op, enum xfp_kernel_set set, uint64_t seed,
		   unsigned number);
void xfp_trial_free(struct xfp_trial *trial);
/* Fails `trial` where its outputs are not those of `expected`. */
void xfp_trial_compare(struct xfp_trial *trial, const struct xfp_trial *expected);

/* Call `run(context)`; the name of the signal that ended it, or NULL. `where`, which may be NULL: the address. */
const char *xfp_kernel_guarded(void (*run)(void *context), void *context, void **where);

/* ---- time ----------------------------------------------------------------------------------------- */

#define XFP_TIMING_ROUNDS 9
struct xfp_timing {
	uint64_t calls, batch;
	double begun, seconds[XFP_TIMING_ROUNDS]; /* of a call */
	unsigned rounds;
};
bool xfp_timing_again(struct xfp_timing *timing);

/* Of a clock that nobody sets. */
double xfp_seconds_now(void);
/* The number in the middle; sorts them. */
double xfp_median_of(double *of, unsigned count);

/* ---- request and report --------------------------------------------------------------------------- */

struct xfp_kernel_request {
	uint64_t seed;
	unsigned sets;      /* that may be used, and are here */
	unsigned masked;    /* that were not to be used */
	const char *filter; /* NULL: all */
	const char *bundle;
	uint64_t bundle_rows;      /* of a matrix; 0: all */
	struct xfp_device *device; /* NULL: the processor */
	const char *device_name;   /* as it was asked for */
	unsigned trials;           /* of a group, at most; 0: the bench alone */
	unsigned threads;
	size_t mib;       /* of a matrix of the bench */
	unsigned vectors; /* numbers of vectors of the device bench, as xfp_bench_counts_parse sets them; 0: all */
	bool json, bench, golden, list;
	bool unchecked;      /* of the bench of a device: what it comes to is not looked at */
	bool processor_time; /* of the bench's threads, not the clock's */
};

/* Whether the filter lets a group pass: by the op's name, or by that and the set's. */
bool xfp_kernel_wanted(const struct xfp_kernel_request *request, const char *op, enum xfp_kernel_set set);

/* What was found, printed as it is found: lines, or one JSON object. */
struct xfp_kernel_report {
	const struct xfp_kernel_request *request;
	unsigned groups, trials, failed, failed_groups, not_run[XFP_KERNEL_SETS];
	unsigned strange; /* matrices of a bundle that no kernel multiplies by */
	unsigned lost;    /* groups that were not run, because the device answers no more */
	bool any;         /* in the JSON list that is open */
};
void xfp_report_string(const char *text); /* as JSON */
void xfp_report_group(struct xfp_kernel_report *report, const char *op, enum xfp_kernel_set set, unsigned trials,
		      unsigned failed, const char (*failures)[640], unsigned kept);

#define XFP_KEPT_FAILURES 5 /* of a group, told */

#endif
