/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trial.h - trials of kernels, and the report on them.
 *
 * An op is a kernel, or a kernel with a k or a dtype; a group is an op of one instruction set; a trial is one call of
 * it with inputs that depend only on the seed, the op's name and the trial's number. So any group
 * can be run alone, and all sets get the same inputs.
 *
 * An op's function makes its inputs in buffers, seals them, makes buffers for the outputs, calls the kernel
 * and registers its outputs:
 *
 *     float *w = xfp_trial_buffer(trial, "w", cols * sizeof *w, sizeof *w), sum;
 *
 *     xfp_trial_gaussians(trial, w, cols, 1);
 *     xfp_trial_seal(trial);
 *     while (xfp_trial_again(trial))
 *         sum = xfp_kernel_encoder(trial->set)->norm(w, cols);
 *     xfp_trial_doubles(trial, "sum", &sum, 1);
 *
 * A buffer ends, or begins, at an inaccessible page. The rest of its own pages
 * is NaN in every type and must stay unchanged. Sealed buffers cannot be written. A violation, or a
 * signal, is a failure of the kernel. Outputs are compared with those of plain C, bit for bit; if an op is
 * not `exact`, its function checks them and calls xfp_trial_fail.
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

/* The last is not a processor's instruction set but a GPU used through libxfp-cuda, for --device. */
enum xfp_kernel_set {
	XFP_SET_PLAIN,
	XFP_SET_AVX2,
	XFP_SET_AVX512,
	XFP_SET_VBMI,
	XFP_SET_NEON,
	XFP_SET_DOTPROD,
	XFP_SET_CUDA,
	XFP_KERNEL_SETS
};

#define XFP_ONLY_PLAIN (1u << XFP_SET_PLAIN)
#define XFP_ENCODER_SETS (1u << XFP_SET_PLAIN | 1u << XFP_SET_AVX2 | 1u << XFP_SET_AVX512 | 1u << XFP_SET_NEON)
#define XFP_INTEGER_SETS (1u << XFP_SET_AVX2 | 1u << XFP_SET_VBMI | 1u << XFP_SET_DOTPROD)
#define XFP_PROCESSOR_SETS ((1u << XFP_SET_CUDA) - 1)
#define XFP_MATVEC_SETS (XFP_PROCESSOR_SETS | 1u << XFP_SET_CUDA)

/* Names: "avx512"; for people "AVX-512". */
const char *xfp_kernel_set_name(enum xfp_kernel_set set);
const char *xfp_kernel_set_title(enum xfp_kernel_set set);

/* Sets in this build, GPU included; and those that this machine can run, GPU excluded. */
unsigned xfp_kernel_sets_built(void);
unsigned xfp_kernel_sets_here(void);

/* Select a processor set: vectors are prepared for the set in use. Do not call it while other threads compute. */
void xfp_kernel_use(enum xfp_kernel_set set);

/* Parse comma-separated names of processor sets. Returns false if a name is unknown. */
bool xfp_kernel_sets_parse(const char *text, unsigned *sets);

/* The tables under test (tables.c; the tests have a program with broken ones). */
const struct xfp_encoder *xfp_kernel_encoder(enum xfp_kernel_set set);
bool xfp_kernel_rows(enum xfp_kernel_set set, const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first,
		     size_t rows, bool add, float *y, size_t stride);
void xfp_kernel_decode(enum xfp_kernel_set set, const struct xfp_matvec *w, size_t row, float *x);
xfp_panel_fn *xfp_kernel_panel(enum xfp_kernel_set set);

/* ---- ops ------------------------------------------------------------------------------------------ */

#define XFP_KIND_PANEL (XFP_MATVEC_V2C + 1)

struct xfp_trial;
typedef void xfp_trial_fn(struct xfp_trial *trial);

struct xfp_kernel_op {
	char name[40];
	xfp_trial_fn *run;
	unsigned k;
	int kind; /* dtype, mode, XFP_KIND_PANEL or log2 of a group, depending on the function */
	unsigned sets;
	unsigned trials;
	unsigned large; /* further trials of a device, if all are run: large matrices (matrix.h) */
	bool exact;
};

#define XFP_MAX_OPS 192
struct xfp_kernel_ops {
	struct xfp_kernel_op op[XFP_MAX_OPS];
	unsigned count;
};

/* Add an op. %u in `name` is replaced by k. */
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
	bool from_start; /* buffers begin, instead of end, at the inaccessible page */
	uint8_t fresh;   /* initial value of output bytes */

	struct xfp_trial_buffer buffers[XFP_TRIAL_BUFFERS];
	unsigned buffer_count, sealed;
	struct xfp_trial_record records[XFP_TRIAL_RECORDS];
	unsigned record_count;
	uint8_t *recorded;
	size_t recorded_bytes, recorded_capacity;

	char shape[160];
	bool failed;
	char failure[320];

	struct xfp_device *device; /* for XFP_SET_CUDA */

	struct xfp_timing *timing; /* NULL: the kernel is called once */
	unsigned calls;
	double weights; /* per call, for the bench */
};

uint64_t xfp_trial_random(struct xfp_trial *trial);
/* 0 ... max - 1 */
size_t xfp_trial_random_below(struct xfp_trial *trial, size_t max);
/* A number of columns; trials cover all tails, a bench always uses the same. */
size_t xfp_trial_columns(struct xfp_trial *trial, size_t max);
float xfp_trial_gaussian(struct xfp_trial *trial);
void xfp_trial_gaussians(struct xfp_trial *trial, float *to, size_t count, float scale);
void xfp_trial_halves(struct xfp_trial *trial, uint16_t *to, size_t count, float scale);

void *xfp_trial_buffer(struct xfp_trial *trial, const char *name, size_t bytes, size_t align);
/* A padded row, zero from `cols` on. */
float *xfp_trial_row(struct xfp_trial *trial, const char *name, size_t cols);
void xfp_trial_seal(struct xfp_trial *trial);
/* Whether to call the kernel again: true once, or as often as a measurement needs. */
bool xfp_trial_again(struct xfp_trial *trial);
/* "12 rows of 345, bf16", for messages. */
void xfp_trial_shape(struct xfp_trial *trial, const char *format, ...) XFP_PRINTF(2, 3);
/* Fail the trial. Only the first failure is kept. */
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

/* Run a trial and catch signals. Buffers are freed at the end; records stay until the trial is freed. `seed` is the
 * run's. */
void xfp_trial_run(struct xfp_trial *trial, const struct xfp_kernel_op *op, enum xfp_kernel_set set, uint64_t seed,
		   unsigned number);
void xfp_trial_free(struct xfp_trial *trial);
/* Fail `trial` if its outputs differ from those of `expected`. */
void xfp_trial_compare(struct xfp_trial *trial, const struct xfp_trial *expected);

/* Call `run(context)`. Returns the name of the signal that ended it, or NULL. `where`, which may be NULL, receives the
 * address. */
const char *xfp_kernel_guarded(void (*run)(void *context), void *context, void **where);

/* ---- time ----------------------------------------------------------------------------------------- */

#define XFP_TIMING_ROUNDS 9
struct xfp_timing {
	uint64_t calls, batch;
	double begun, seconds[XFP_TIMING_ROUNDS]; /* per call */
	unsigned rounds;
};
bool xfp_timing_again(struct xfp_timing *timing);

/* Monotonic clock. */
double xfp_seconds_now(void);
/* Returns the median; sorts the numbers. */
double xfp_median_of(double *of, unsigned count);

/* ---- request and report --------------------------------------------------------------------------- */

struct xfp_kernel_request {
	uint64_t seed;
	unsigned sets;      /* allowed and available */
	unsigned masked;    /* excluded */
	const char *filter; /* NULL: all */
	const char *bundle;
	uint64_t bundle_rows;      /* per matrix; 0: all */
	struct xfp_device *device; /* NULL: the processor */
	const char *device_name;   /* as given on the command line */
	unsigned trials;           /* most per group; 0: the bench alone */
	unsigned threads;
	uint64_t mib;     /* size of a matrix of the bench */
	unsigned vectors; /* numbers of vectors of the device bench, as xfp_bench_counts_parse sets them; 0: all */
	bool json, bench, golden, list;
	bool unchecked;      /* device bench: results are not checked */
	bool processor_time; /* time the bench by processor time, not by the clock */
};

/* Whether the filter selects a group, by the op's name alone or with the set's. */
bool xfp_kernel_wanted(const struct xfp_kernel_request *request, const char *op, enum xfp_kernel_set set);

/* Prints results as they arrive: lines, or one JSON object. */
struct xfp_kernel_report {
	const struct xfp_kernel_request *request;
	unsigned groups, trials, failed, failed_groups, not_run[XFP_KERNEL_SETS];
	unsigned unsupported; /* matrices of a bundle that no kernel supports */
	unsigned lost;        /* groups not run because the device was lost */
	bool any;             /* the open JSON list has entries */
};
void xfp_report_string(const char *text); /* as JSON */
void xfp_report_group(struct xfp_kernel_report *report, const char *op, enum xfp_kernel_set set, unsigned trials,
		      unsigned failed, const char (*failures)[640], unsigned kept);

#define XFP_KEPT_FAILURES 5 /* failures reported per group */

#endif
