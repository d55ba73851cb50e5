/* SPDX-License-Identifier: Apache-2.0 */
/*
 * footprint.c - estimates the memory of a conversion from the buffers that its processes allocate.
 *
 * `steps` has one entry per stage; update it when a stage's buffers change. Each buffer is counted as bytes per known
 * quantity (thread, column, row, ...); small allocations are part of `fixed`.
 */
#include "conversion/estimate/footprint.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/processors.h"
#include "conversion/estimate/groups.h"
#include "kernels/encode/lloyd.h"
#include "kernels/encode/moments.h"
#include "schemas/layout/bundle_layout.h"
#include "schemas/packed.h"
#include "schemas/recipe/recipe.h"
#include "stages/quantize/candidates.h"
#include "stages/quantize/fit_rows.h"
#include "stages/quantize/measure.h"
#include "stages/quantize/rows.h"
#include "stages/quantize/survey.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

/* ---- the table --------------------------------------------------------------------------------- */

/* Peak bytes of one process of a step, per ... */
struct coefficients {
	uint64_t fixed;         /* private pages of libc, libgomp and libhdf5, and the buffer for checking digests */
	uint64_t text;          /* program and library pages, shared by all processes of the step */
	unsigned thread;        /* thread */
	unsigned thread_column; /* column, in each thread */
	unsigned column;
	unsigned stack_column; /* column of every matrix of the unit */
	unsigned stack_row;    /* row of every matrix of the unit */
	unsigned matrix;       /* matrix of the unit */
	unsigned suspect;      /* candidate outlier, beyond 7/8 of the threshold */
	unsigned outlier;      /* outlier of one matrix */
	unsigned row;          /* row of one matrix */
};

/* struct xfp_outliers: digest, exponent, mean, sigma, first. */
#define KNOWN_MATRIX (16 + 2 + 8 + 8 + 8)

static const struct coefficients steps[XFP_STAMPS] = {
	/* column: scan buffers, square and chunk, narrow, wide, down, balance, x, outliers of a row; stack column:
	 * largest. survey_bytes counts the sample, its fits and libraries */
	[XFP_STAMP_SURVEY] = { .fixed = 2304 * KIB,
			       .text = 3072 * KIB,
			       .thread = sizeof(struct xfp_lloyd_row),
			       .thread_column = 4 + 4 + 4 + 4 + 4,
			       .column = 8 + 8 + 4 + 8 + 4 + 1 + 4 + 4,
			       .stack_column = 4,
			       .matrix = KNOWN_MATRIX + sizeof(struct xfp_survey_block) },
	/* thread and column: chunk and largest of the scan, narrow, wide, x, outliers of a row; column: square,
	 * balance; stack column: largest; suspect: struct xfp_outlier; outlier: the same, for sorting */
	[XFP_STAMP_OUTLIERS] = { .fixed = 1792 * KIB,
				 .text = 3072 * KIB,
				 .thread_column = 8 + 4 + 8 + 4 + 4,
				 .column = 8 + 4 + 1,
				 .stack_column = 4,
				 .matrix = KNOWN_MATRIX,
				 .suspect = sizeof(xfp_outlier),
				 .outlier = sizeof(xfp_outlier) },
	/* thread and column: w, x, value, two of the outliers; column: narrow, wide, down, balance; row: where its
	 * outliers begin; outlier: column */
	[XFP_STAMP_FIT] = { .fixed = 2304 * KIB,
			    .text = 3072 * KIB,
			    .thread = sizeof(struct xfp_lloyd_row),
			    .thread_column = 4 + 4 + 4 + 4 + 4,
			    .column = 4 + 8 + 4 + 1,
			    .row = 8,
			    .matrix = KNOWN_MATRIX,
			    .outlier = 4 },
	/* thread and column: w, x, value, two of the outliers; column: narrow, wide, down, balance; row: where its
	 * outliers begin; outlier: column. Groups, libraries and samples: groups.c */
	[XFP_STAMP_LIBRARY] = { .fixed = 2304 * KIB,
				.text = 3072 * KIB,
				.thread_column = 4 + 4 + 4 + 4,
				.column = 4 + 8 + 4 + 1,
				.row = 8,
				.matrix = KNOWN_MATRIX,
				.outlier = 4 },
	/* thread and column: x, index; column: narrow, wide, balance; stack row: cosine (of fp8); matrix: also struct
	 * xfp_packed_matrix; row: offset of its outliers, in memory and as stored; outlier: column and residual, both
	 * in memory and as stored */
	[XFP_STAMP_PACKED] = { .fixed = 2816 * KIB,
			       .text = 3072 * KIB,
			       .thread_column = 4 + 1,
			       .column = 4 + 8 + 1,
			       .stack_row = 8,
			       .matrix = KNOWN_MATRIX + sizeof(struct xfp_packed_matrix),
			       .row = 8 + 4,
			       .outlier = 4 + 2 + 4 },
};

#define GROUPS_FIXED (768 * KIB) /* pack with a library: more program pages, and HDF5 write buffers */
#define SUMMARY_ROWS 65536       /* rows whose cosines are in memory at once */

/* Other processes. */
#define FRONT_FIXED (7168 * KIB)   /* xfp: its program, libsqlite3 and libhdf5, SQLite's page cache */
#define GUARD_FIXED (1024 * KIB)   /* pages that xfp writes after the guard was forked */
#define MAKE_FIXED (768 * KIB)     /* per make: one for all units, one per unit in flight */
#define MAKE_UNIT ((uint64_t)1280) /* of the make for all units: target, variables, names in its folder */
#define SHELL_FIXED (256 * KIB)    /* runs each recipe */
#define INSPECT_FIXED (5376 * KIB)
#define LAYER_FIXED (16 * MIB)     /* xfp-calibrate: its program, libhdf5, the tables of the model */
#define BUNDLE_FIXED (11776 * KIB) /* libarchive and its dependencies, at most */
#define BUNDLE_BLOCKS (3 * MIB)    /* two copy buffers and the buffer for checking digests */
#define STRING_FIXED 24u           /* malloc overhead and rounding */

/* Multiples of the ledger's size in memory: reading and writing also need its records and text. */
#define INSPECT_LEDGERS 2.7 /* tensor list, ledger, file tables, header text */
#define READING_LEDGERS 1.8
#define BUNDLE_LEDGERS 2.6 /* the ledger as read, and the bundle's index */

/* ---- a step ------------------------------------------------------------------------------------ */

/* Result bytes per row of a fit, without bytes of groups. */
static uint64_t result_bytes(enum xfp_stamp step, const struct xfp_candidate *list, uint32_t count)
{
	uint64_t bytes = step == XFP_STAMP_LIBRARY || step == XFP_STAMP_EXTENDED_LIBRARY ? 8 : 0;

	/* codebook, cosine, struct xfp_row_error; byte of the row */
	for (uint32_t i = 0; i < count; i++)
		bytes += list[i].mode != XFP_MODE_V2 ? 24 : ((uint64_t)2 << list[i].k) + 8 + 24;
	return bytes + 1;
}

/* Bytes per thread if fp8 is measured: w, decoded. */
static uint64_t fp8_bytes(const struct xfp_candidate *list, uint32_t count, uint64_t cols)
{
	return xfp_candidates_fitted(list, count) < count ? cols * (4 + 4) : 0;
}

/* Bytes of a fit in addition to its coefficients; `fed`: its libraries are fitted with error feedback. */
static uint64_t fit_bytes(const struct xfp_parameters *measured, const struct xfp_ledger_unit *unit,
			  enum xfp_stamp step, uint64_t block, unsigned threads, bool fed)
{
	struct xfp_candidate list[XFP_MAX_CANDIDATES];
	uint32_t count = xfp_candidates_of(xfp_step_fit(step), measured, list);
	uint64_t all = unit->experts * unit->rows, held = XFP_MEASURE_HELD + block, training, feedback = 0, measuring;
	uint64_t groups = xfp_groups_bytes(list, count, unit->cols, xfp_step_wanted(measured, XFP_STAMP_SURVEY, false));

	if (fed && xfp_candidates_fitted(list, count)) {
		held = unit->rows;
		groups = 0;
		feedback = xfp_fitting_feedback_bytes(unit, count, block, measured->calibration.tokens, (int)threads);
	}
	measuring = held * (result_bytes(step, list, count) + groups) +
		    sizeof(double) * (all < SUMMARY_ROWS ? all : SUMMARY_ROWS) +
		    threads * fp8_bytes(list, count, unit->cols);
	count = xfp_candidates_fitted(list, count);
	if (step == XFP_STAMP_FIT || step == XFP_STAMP_EXTENDED)
		return measuring;
	training = xfp_groups_training(list, count, unit);
	return feedback + threads * xfp_groups_thread(list, count, unit->cols) + xfp_groups_libraries(list, count) +
	       (training > measuring ? training : measuring);
}

/* Bytes of a survey in addition to its coefficients: the sampled rows, their outliers, and the larger of its two
 * fits. */
static uint64_t survey_bytes(const struct xfp_parameters *measured, const struct xfp_ledger_unit *unit,
			     unsigned threads, bool fed)
{
	uint64_t rows = xfp_survey_rows(unit), weights = rows * unit->cols, max = 0;
	struct xfp_ledger_unit sample = *unit;
	struct xfp_candidate list[XFP_MAX_CANDIDATES];

	sample.experts = 1;
	sample.rows = rows;
	for (int library = 0; library < 2; library++) {
		uint32_t count = xfp_candidates_with(library, measured, measured->bits, list);
		uint64_t bytes = result_bytes(library ? XFP_STAMP_LIBRARY : XFP_STAMP_FIT, list, count);
		uint64_t results = rows * (bytes + xfp_fit_group_bytes(list, count, unit->cols));
		uint64_t fp8 = threads * fp8_bytes(list, count, unit->cols), training;

		count = xfp_candidates_fitted(list, count);
		training = library && count ? xfp_groups_training(list, count, &sample) : 0;
		results = (training > results ? training : results) + fp8;
		if (library && count)
			results += threads * xfp_groups_thread(list, count, unit->cols) +
				   xfp_groups_libraries(list, count) +
				   xfp_groups_again(list, count, unit->cols, threads);
		max = results > max ? results : max;
	}
	if (fed) {
		uint64_t training,
			scales = xfp_second_moments_bytes(unit->experts, unit->cols, measured->calibration.tokens,
							  (int)threads, &training);

		/* Sixteen rows, and errors of as many. */
		scales += 2 * unit->cols * XFP_LANES * sizeof(float);
		max = scales > max ? scales : max;
	}
	/* Raw rows, and the column and distance of each outlier. */
	return weights * (xfp_dtype_bits(unit->dtype) / 8) +
	       (uint64_t)((double)weights * xfp_outlier_share(XFP_SIGMA_AUTO, XFP_MAXIMUM) * (4 + 8)) + max;
}

/* Bytes of pack in addition to its coefficients, for a unit stored as `candidate`. */
static uint64_t pack_bytes(const struct xfp_candidate *candidate, const struct xfp_ledger_unit *unit, uint64_t block,
			   unsigned threads)
{
	/* value, and the outliers of a row */
	uint64_t thread = unit->cols * (4 + 4);

	if (candidate->mode <= XFP_MODE_FP8)
		return block * (unit->cols + sizeof(float));
	if (!candidate->group)
		return block * (((uint64_t)2 << candidate->k) + xfp_index_row_bytes(unit->cols, candidate->k));
	return GROUPS_FIXED + xfp_groups_packed(candidate, unit, block) + xfp_groups_libraries(candidate, 1) +
	       threads * (thread + xfp_groups_thread(candidate, 1, unit->cols));
}

/* Maximum bytes of pack over the formats that an undecided unit may get. */
static uint64_t max_pack_bytes(const struct xfp_parameters *measured, const struct xfp_ledger_unit *unit,
			       const struct xfp_estimate *estimate, bool decided, uint64_t block, unsigned threads)
{
	struct xfp_candidate list[XFP_MAX_CANDIDATES] = {
		{ .mode = estimate->mode, .k = estimate->k, .group = estimate->group, .library = estimate->library }
	};
	uint64_t max = pack_bytes(&list[0], unit, block, threads);
	uint32_t count;

	if (unit->plan != XFP_PLAN_FIT || decided)
		return max;
	for (int more = 0; more < 2; more++) {
		if (more && !estimate->extended)
			continue;
		count = xfp_candidates_of(more ? XFP_FIT_EXTENDED_LIBRARY : XFP_FIT_LIBRARY, measured, list);
		for (uint32_t i = 0; i < count; i++) {
			uint64_t bytes = pack_bytes(&list[i], unit, block, threads);

			max = bytes > max ? bytes : max;
		}
	}
	return max;
}

/*
 * Number of weights in one matrix beyond `sigma_milli`. xfp_outlier_share estimates stored outliers; a low threshold
 * finds more before the cap applies. In an embedding of 614 million Student-t weights whose rows and columns differ in
 * scale, the scan held 1.9 % at 4 sigma (candidates from 3.5 sigma), and at most 9 %, assumed at 2.5 sigma: .6 / c^3
 * covers both.
 */
static double beyond(const struct xfp_estimate_input *all, uint32_t number, uint32_t sigma_milli)
{
	const struct xfp_ledger_unit *unit = &all->ledger->units[number];
	double c = sigma_milli / 1000.0, share = xfp_outlier_share(sigma_milli, XFP_MAXIMUM);
	double heavy = c > 1 ? .6 / (c * c * c) : c > 0 ? .6 : 0;

	return (share > heavy ? share : heavy) * (double)(unit->rows * unit->cols);
}

/* Bytes of outliers: more are found than kept. */
static uint64_t outlier_bytes(const struct xfp_estimate_input *all, uint32_t number, const struct coefficients *k)
{
	const struct xfp_parameters *parameters = all->parameters;
	const struct xfp_ledger_unit *unit = &all->ledger->units[number];
	uint32_t sigma = xfp_estimate_sigma(parameters->outlier_sigma, XFP_MAXIMUM);
	double cap = (double)parameters->outlier_cap / XFP_NANO * (double)(unit->rows * unit->cols);
	double kept = beyond(all, number, sigma);

	if (unit->plan != XFP_PLAN_FIT)
		return 0;
	if (k->suspect)
		return (uint64_t)(k->suspect * beyond(all, number, sigma - sigma / 8) + k->outlier * kept);
	if (all->units[number].decided)
		kept = (double)all->units[number].choice.candidate.outliers / unit->experts;
	return (uint64_t)(k->outlier * (kept < cap ? kept : cap));
}

uint64_t xfp_footprint_step(const struct xfp_estimate_input *all, uint32_t number, enum xfp_stamp step,
			    unsigned threads)
{
	const struct coefficients *k = &steps[step == XFP_STAMP_EXTENDED           ? XFP_STAMP_FIT
					      : step == XFP_STAMP_EXTENDED_LIBRARY ? XFP_STAMP_LIBRARY
										   : step];
	const struct xfp_ledger_unit *unit = &all->ledger->units[number];
	struct xfp_matrix_source source = xfp_ledger_source(all->ledger, unit->first_matrix);
	struct xfp_estimate estimate = xfp_estimate(all, number, XFP_MAXIMUM);
	const struct xfp_policy policy = xfp_policy_of_unit(all->parameters, unit);
	const struct xfp_parameters measured = xfp_policy_parameters(all->parameters, &policy);
	uint64_t rows = xfp_rows_block(&source), block = rows * unit->cols * (xfp_dtype_bits(unit->dtype) / 8);
	uint64_t stack = unit->cols * k->stack_column + k->matrix, bytes = k->fixed;

	if (step == XFP_STAMP_PACKED)
		bytes += max_pack_bytes(&measured, unit, &estimate, all->units[number].decided, rows, threads);
	else if (step == XFP_STAMP_SURVEY)
		bytes += survey_bytes(&measured, unit, threads, xfp_estimate_feedback(all, number));
	else if (step != XFP_STAMP_OUTLIERS)
		bytes += fit_bytes(&measured, unit, step, rows, threads, xfp_estimate_feedback(all, number));
	if (unit->plan == XFP_PLAN_FP8 || estimate.mode == XFP_MODE_FP8)
		stack += unit->rows * k->stack_row;
	bytes += block + unit->rows * k->row;
	/* Each thread of the scan has its own block in addition to the read buffer, and with several matrices their
	 * outliers are collected concurrently. */
	if ((step == XFP_STAMP_OUTLIERS || step == XFP_STAMP_SURVEY) && threads > 1)
		bytes += threads * block;
	bytes += threads * (k->thread + unit->cols * k->thread_column) + unit->cols * k->column;
	bytes += unit->experts * stack + (step == XFP_STAMP_SURVEY ? 0 : outlier_bytes(all, number, k));
	if (step == XFP_STAMP_OUTLIERS && threads > 1 && unit->experts > 1)
		bytes += (threads - 1) * outlier_bytes(all, number, k);

	return bytes + xfp_matrix_reader_bytes(&source);
}

/* ---- all units --------------------------------------------------------------------------------- */

/* Peak bytes of the unit's remaining steps. `together`: its fits run concurrently, as make does if there are fewer
 * units than jobs. */
static uint64_t unit_bytes(const struct xfp_estimate_input *all, uint32_t number, unsigned threads, bool together)
{
	const struct xfp_unit_state *state = &all->units[number];
	bool fit = all->ledger->units[number].plan == XFP_PLAN_FIT;
	bool extended = fit && xfp_estimate(all, number, XFP_MAXIMUM).extended;
	uint64_t max = 0, fits = 0;

	for (enum xfp_stamp s = XFP_STAMP_SURVEY; s < XFP_STAMPS; s++) {
		uint64_t bytes;

		if (!xfp_steps[s].weights || (s != XFP_STAMP_PACKED && (!fit || state->decided)) ||
		    !xfp_step_wanted(all->parameters, s, extended) || state->in_store >> s & 1)
			continue;
		bytes = xfp_footprint_step(all, number, s, threads);
		if (together && (s == XFP_STAMP_FIT || s == XFP_STAMP_LIBRARY))
			bytes = fits += bytes + (fits ? SHELL_FIXED + steps[s].text : 0);
		max = bytes > max ? bytes : max;
	}
	return max;
}

static uint64_t string_bytes(const char *text)
{
	return text ? strlen(text) + STRING_FIXED : 0;
}

static uint64_t recipe_bytes(const struct xfp_recipe *recipe)
{
	uint64_t bytes = recipe ? sizeof *recipe + STRING_FIXED : 0;

	for (uint32_t i = 0; recipe && i < recipe->part_count; i++)
		bytes += sizeof *recipe->parts + 2 * STRING_FIXED +
			 recipe->parts[i].component_count * sizeof *recipe->parts->components;
	return bytes;
}

static uint64_t ledger_bytes(const struct xfp_ledger *ledger)
{
	uint64_t bytes = ledger->tensor_count * sizeof *ledger->tensors + ledger->unit_count * sizeof *ledger->units +
			 ledger->matrix_count * sizeof *ledger->matrices + ledger->file_count * sizeof *ledger->files;

	for (uint32_t i = 0; i < ledger->tensor_count; i++)
		bytes += string_bytes(ledger->tensors[i].name) + string_bytes(ledger->tensors[i].reason) +
			 recipe_bytes(ledger->tensors[i].recipe);
	for (uint32_t i = 0; i < ledger->unit_count; i++)
		bytes += string_bytes(ledger->units[i].name) + string_bytes(ledger->units[i].role);
	for (uint32_t i = 0; i < ledger->file_count; i++)
		bytes += string_bytes(ledger->files[i].name) + string_bytes(ledger->files[i].path);
	return bytes;
}

static int falling(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y) - (x > y);
}

/* Memory of the largest units in flight at the same time, including program pages. */
static enum xfp_status units_in_flight(const struct xfp_estimate_input *all, unsigned jobs, struct xfp_memory *memory,
				       struct xfp_error *err)
{
	uint64_t *bytes = calloc(all->ledger->unit_count + (size_t)2, sizeof *bytes), max = 0, text[XFP_STAMPS] = { 0 };
	unsigned threads = xfp_stage_threads(jobs, all->todo);
	uint32_t count = 0;

	if (!bytes)
		return xfp_no_memory(err);
	for (uint32_t i = 0; i < all->ledger->unit_count; i++) {
		if (all->units[i].done)
			continue;
		bytes[count] = unit_bytes(all, i, threads, jobs > all->todo);
		if (bytes[count] > max) {
			max = bytes[count];
			memory->largest = i;
		}
		count++;
	}
	/* A layer is a job like a unit. */
	if (all->layer)
		bytes[count++] = all->layer + LAYER_FIXED + ledger_bytes(all->ledger);
	qsort(bytes, count, sizeof *bytes, falling);
	for (int s = 0; s < XFP_STAMPS; s++)
		text[s] = xfp_step_wanted(all->parameters, (enum xfp_stamp)s, false) ? steps[s].text : 0;
	qsort(text, XFP_STAMPS, sizeof *text, falling);
	if (count)
		memory->units = memory->front + MAKE_FIXED + all->ledger->unit_count * MAKE_UNIT;
	for (uint32_t i = 0; i < jobs && i < count; i++)
		memory->units += bytes[i] + MAKE_FIXED + SHELL_FIXED + (i < XFP_STAMPS ? text[i] : 0);
	free(bytes);
	return XFP_OK;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Bytes of the bundle writer's blocks that the largest member fills. */
static uint64_t block_bytes(const struct xfp_estimate_input *all)
{
	uint64_t largest = 0;

	for (uint32_t i = 0; i < all->ledger->unit_count; i++)
		largest = larger(largest, xfp_estimate(all, i, XFP_MAXIMUM).bytes);
	for (uint32_t i = 0; i < all->ledger->tensor_count; i++)
		if (all->ledger->tensors[i].fate == XFP_FATE_KEPT)
			largest = larger(largest, all->ledger->tensors[i].bytes);
	return largest < BUNDLE_BLOCKS ? largest : BUNDLE_BLOCKS;
}

enum xfp_status xfp_footprint_memory(const struct xfp_estimate_input *all, unsigned jobs, bool bundle,
				     struct xfp_memory *memory, struct xfp_error *err)
{
	uint64_t own = FRONT_FIXED + GUARD_FIXED;
	double ledger = (double)ledger_bytes(all->ledger);
	enum xfp_status status;

	*memory = (struct xfp_memory){ .largest = UINT32_MAX };
	memory->inspect = own + INSPECT_FIXED + (uint64_t)(INSPECT_LEDGERS * ledger);
	memory->front = own + (uint64_t)ledger + all->ledger->unit_count * sizeof *all->units +
			all->ledger->matrix_count * sizeof **all->units->source;
	status = units_in_flight(all, jobs, memory, err);
	if (bundle)
		memory->bundle = memory->front + BUNDLE_FIXED + block_bytes(all) + (uint64_t)(BUNDLE_LEDGERS * ledger) +
				 all->ledger->matrix_count * sizeof(struct xfp_idx_matrix);
	memory->peak = larger(larger(memory->inspect, own + (uint64_t)(READING_LEDGERS * ledger)),
			      larger(memory->units, memory->bundle));
	return status;
}
