/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/plan/probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/system/filesystem.h"
#include "base/system/temporary.h"
#include "conversion/todo.h"
#include "kernels/common/number.h"
#include "schemas/outliers.h"
#include "schemas/policy.h"
#include "stages/quantize/scan.h"
#include "stages/work/fits.h"

#define PROBE_WEIGHTS ((uint64_t)1 << 23) /* of a large unit */
#define MIN_ROWS 64                       /* a stage works on blocks of rows */
#define MAX_ROWS 32768                    /* short rows are expensive per weight */
#define TINY_ROWS 16
#define TINY_COLS 64
#define MIN_SHARE 20 /* a class with less than 1/20 of the weights is not measured separately */

/* ---- shapes to measure --------------------------------------------------------------------------- */

static uint64_t probe_rows(uint64_t cols)
{
	uint64_t rows = PROBE_WEIGHTS / (cols ? cols : 1);

	return rows < MIN_ROWS ? MIN_ROWS : rows > MAX_ROWS ? MAX_ROWS : rows;
}

/* The largest class, by weights, that is not in `chosen`. */
static int largest_class(const struct xfp_probe_kind of[XFP_CLASSES], uint32_t chosen)
{
	int largest = -1;

	for (int i = 0; i < XFP_CLASSES; i++)
		if (!(chosen >> i & 1) && of[i].weights && (largest < 0 || of[i].weights > of[largest].weights))
			largest = i;
	return largest;
}

/* Choose the classes with the most weights. If units have their own thresholds (`several`), the floors determine which
 * candidates are measured. `any`: the largest unit of any kind, used if no unit is fitted. */
static void choose_kinds(const struct xfp_probe_kind of[XFP_CLASSES], const struct xfp_ledger_unit *any, bool several,
			 struct xfp_probe *probe)
{
	uint64_t all = 0;
	uint32_t chosen = 0;
	int next;

	for (int i = 0; i < XFP_CLASSES; i++)
		all += of[i].weights;
	while (probe->kinds < (several ? XFP_PLAN_KINDS : 1) && (next = largest_class(of, chosen)) >= 0 &&
	       (!chosen || of[next].weights >= all / MIN_SHARE)) {
		probe->kind[probe->kinds++] = of[next];
		chosen |= 1u << next;
	}
	if (!probe->kinds)
		probe->kind[probe->kinds++].like = any;
	for (uint32_t i = 0; i < probe->kinds; i++) {
		struct xfp_probe_kind *kind = &probe->kind[i];

		kind->cols = kind->like ? kind->like->cols : TINY_COLS;
		kind->rows = probe_rows(kind->cols);
		if (kind->rows * kind->cols > probe->elements)
			probe->elements = kind->rows * kind->cols;
	}
	probe->dtype = probe->kind[0].like ? probe->kind[0].like->dtype : XFP_BF16;
}

/* Collect the shapes with the most weights to convert, and the steps that these units need. */
static void look(const struct xfp_conversion *c, struct xfp_probe *probe)
{
	const struct xfp_estimate_input input = xfp_conversion_estimate_input(c);
	struct xfp_probe_kind of[XFP_CLASSES] = { { 0 } };
	const struct xfp_ledger_unit *any = NULL;

	for (uint32_t i = 0; i < c->units.ledger->unit_count; i++) {
		const struct xfp_ledger_unit *unit = &c->units.ledger->units[i];
		struct xfp_probe_kind *kind = &of[unit->class_];
		uint64_t weights = xfp_unit_weights(unit);

		if (c->units.state[i].done)
			continue;
		if (unit->plan != XFP_PLAN_FIT) /* kept units are read and written in the same way */
			probe->fp8 = true;
		else if (xfp_estimate(&input, i, XFP_EXPECTED).extended)
			probe->extended = true;
		if (!any || weights > xfp_unit_weights(any))
			any = unit;
		if (unit->plan != XFP_PLAN_FIT)
			continue;
		kind->weights += weights;
		if (!kind->like || weights > xfp_unit_weights(kind->like))
			kind->like = unit;
	}
	choose_kinds(of, any, c->parameters.outlier_sigma == XFP_SIGMA_AUTO, probe);
	probe->units = XFP_PROBE_LARGE + probe->kinds + probe->fp8;
}

static uint64_t next_bits(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* A random weight with the tails of trained weights, which affect the survey's result: approximately normal (sum of
 * four 16-bit uniforms) with a random scale; each scale is 1.4 times the previous and half as frequent. */
static float next_weight(uint64_t *state)
{
	uint64_t x = next_bits(state);
	int64_t sum = (int64_t)((x & 0xffff) + (x >> 16 & 0xffff) + (x >> 32 & 0xffff) + (x >> 48)) - 131070;
	float weight = (float)sum * 0x1p-21f;

	for (x = next_bits(state) & 0xfff; x & 1; x >>= 1)
		weight *= 1.4f;
	return weight;
}

static enum xfp_status write_weights(const struct xfp_probe *probe, struct xfp_error *err)
{
	uint64_t count = probe->elements, state = 1;
	size_t element = xfp_dtype_bits(probe->dtype) / 8;
	char *bytes = malloc(count * element);
	enum xfp_status status;

	if (!bytes)
		return xfp_no_memory(err);
	for (uint64_t i = 0; i < count; i++) {
		float weight = next_weight(&state);
		uint16_t half = probe->dtype == XFP_F16 ? xfp_float_to_half(weight) : xfp_float_to_bf16(weight);
		double wide = weight;

		memcpy(bytes + i * element,
		       element == sizeof half     ? (void *)&half
		       : element == sizeof weight ? (void *)&weight
						  : (void *)&wide,
		       element);
	}
	status = xfp_write_file(probe->data, bytes, count * element, false, err);
	free(bytes);
	return status;
}

/* All units refer to the beginning of one weight file. */
void xfp_probe_units(const struct xfp_probe *probe, struct xfp_ledger_unit *units, struct xfp_ledger_matrix *matrices)
{
	static char tensor[] = "weights", role[] = "probe";

	for (uint32_t i = 0; i < probe->units; i++) {
		bool tiny = i < XFP_PROBE_TINY, fp8 = i == XFP_PROBE_LARGE + probe->kinds;
		const struct xfp_probe_kind *kind = &probe->kind[tiny || fp8 ? 0 : i - XFP_PROBE_LARGE];
		uint64_t rows = tiny ? TINY_ROWS : kind->rows, cols = kind->cols;

		/* Each unit needs a different matrix, or it would be found in the cache. */
		if (tiny)
			cols = cols > TINY_COLS + i ? TINY_COLS + i : cols;
		else if (i > XFP_PROBE_LARGE)
			rows -= i - XFP_PROBE_LARGE;
		units[i] = (struct xfp_ledger_unit){ .name = tensor,
						     .role = role,
						     .class_ = kind->like ? kind->like->class_ : XFP_CLASS_OTHER,
						     .plan = fp8 ? XFP_PLAN_FP8 : XFP_PLAN_FIT,
						     .dtype = probe->dtype,
						     .experts = 1,
						     .rows = rows,
						     .cols = cols,
						     .first_matrix = i };
		matrices[i] =
			(struct xfp_ledger_matrix){ .rows = rows, .cols = cols, .row_stride = cols, .col_stride = 1 };
	}
}

/* Time the scan of all weights that a survey does before sampling, in this process. */
static enum xfp_status time_scan(struct xfp_probe *probe, const struct xfp_parameters *parameters,
				 const struct xfp_ledger *ledger, struct xfp_error *err)
{
	struct xfp_outliers known = { 0 };
	struct xfp_peaks peaks = { 0 };
	clock_t began = clock(); /* CPU time of all threads */
	enum xfp_status status =
		xfp_scan_unit(ledger, &ledger->units[XFP_PROBE_LARGE], parameters, &known, &peaks, err);

	probe->scan_seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
	xfp_outliers_free(&known);
	return status;
}

static enum xfp_status write_ledger(const struct xfp_conversion *c, struct xfp_probe *probe, struct xfp_error *err)
{
	static char tensor[] = "weights", none[] = "";
	struct xfp_source_file file = { .name = tensor, .path = probe->data };
	struct xfp_ledger_tensor weights = { .name = tensor,
					     .reason = none,
					     .dtype = probe->dtype,
					     .rank = 1,
					     .shape = { probe->elements },
					     .bytes = probe->elements * (xfp_dtype_bits(probe->dtype) / 8),
					     .tied = UINT32_MAX };
	struct xfp_ledger_unit units[XFP_PROBE_UNITS];
	struct xfp_ledger_matrix matrices[XFP_PROBE_UNITS];
	struct xfp_ledger ledger = { .model = probe->folder,
				     .family = none,
				     .format = none,
				     .files = &file,
				     .tensors = &weights,
				     .units = units,
				     .matrices = matrices,
				     .file_count = 1,
				     .tensor_count = 1,
				     .unit_count = probe->units,
				     .matrix_count = probe->units };
	char *path = xfp_path(probe->work, XFP_LEDGER_FILE);
	enum xfp_status status;
	struct stat st;

	if (!path || stat(probe->data, &st)) {
		free(path);
		return xfp_fail_errno(err, errno, "%s", probe->data);
	}
	file.identity = xfp_identity_at(probe->data, &st);
	xfp_probe_units(probe, units, matrices);
	status = xfp_ledger_write(path, &ledger, err);
	free(path);
	if (!status && c->parameters.outlier_sigma == XFP_SIGMA_AUTO)
		status = time_scan(probe, &c->parameters, &ledger, err);
	return status;
}

static enum xfp_status write_text(const char *folder, const char *name, const char *text, struct xfp_error *err)
{
	char *path = xfp_path(folder, name);
	enum xfp_status status =
		path && text ? xfp_write_file(path, text, strlen(text), false, err) : xfp_no_memory(err);

	free(path);
	return status;
}

/* If units have their own thresholds, the floor determines what is measured, so each sort gets its own floor. Otherwise
 * everything is measured, and the floor only decides about the extended set. */
static void set_floors(const struct xfp_parameters *asked, const struct xfp_probe *probe,
		       struct xfp_parameters *parameters)
{
	for (int i = 0; i < XFP_CLASSES; i++) {
		parameters->floor[i] = probe->extended ? XFP_NANO : 0;
		parameters->format[i] = (struct xfp_format){ .form = XFP_FORM_AUTO };
	}
	for (uint32_t i = 0; asked->outlier_sigma == XFP_SIGMA_AUTO && i < probe->kinds; i++) {
		const struct xfp_ledger_unit *like = probe->kind[i].like;
		const struct xfp_policy policy = like ? xfp_policy_of_unit(asked, like) : (struct xfp_policy){ 0 };

		if (!like || like->plan != XFP_PLAN_FIT)
			continue;
		parameters->floor[like->class_] = policy.floor;
		if (policy.format.form == XFP_FORM_BITS)
			parameters->format[like->class_] = policy.format;
	}
}

static enum xfp_status write_settings(const struct xfp_conversion *c, const struct xfp_probe *probe,
				      struct xfp_error *err)
{
	struct xfp_parameters parameters = c->parameters;
	char todo[128] = "FIT_UNITS =";
	enum xfp_status status;

	set_floors(&c->parameters, probe, &parameters);
	parameters.lm_head = XFP_LM_HEAD_QUANT;
	parameters.overrides = NULL;
	parameters.override_count = 0;
	parameters.on_miss = XFP_MISS_BEST;
	parameters.calibration = (struct xfp_calibrated){ .tokens = 0 };
	status = xfp_work_write_parameters(probe->work, &parameters, err);
	if (!status)
		status = xfp_fits_write(probe->work, XFP_NO_UNIT, &parameters, err);
	for (uint32_t i = 0; i < probe->units; i++) {
		size_t used = strlen(todo);

		snprintf(todo + used, sizeof todo - used, "%s u%06u",
			 i == XFP_PROBE_LARGE + probe->kinds ? "\nPACK_UNITS =" : "", i);
	}
	strcat(todo, "\n");
	if (!status)
		status = write_text(probe->work, XFP_TODO_FILE, todo, err);
	return status;
}

enum xfp_status xfp_probe_make(const struct xfp_conversion *c, struct xfp_probe *probe, struct xfp_error *err)
{
	enum xfp_status status;

	look(c, probe);
	if (!(probe->folder = xfp_temporary_folder(err)))
		return XFP_FAILED;
	probe->log = c->place.log;
	probe->data = xfp_path(probe->folder, "weights");
	probe->work = xfp_path(probe->folder, "work");
	probe->cache = xfp_path(probe->folder, "cache");
	if (!probe->data || !probe->work || !probe->cache)
		return xfp_no_memory(err);
	(void)((status = xfp_mkdirs(probe->work, err)) || (status = write_weights(probe, err)) ||
	       (status = write_ledger(c, probe, err)) || (status = write_settings(c, probe, err)));
	return status;
}

void xfp_probe_remove(struct xfp_probe *probe)
{
	xfp_temporary_remove(probe->folder);
	free(probe->data);
	free(probe->work);
	free(probe->cache);
}
