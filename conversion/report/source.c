/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.c - the checkpoint that a bundle was made from: found again by the digests of its weights, which the bundle
 * records for every matrix.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "checkpoints/hub.h"
#include "conversion/measure/inspect_model.h"
#include "conversion/report/inputs.h"
#include "stages/quantize/rows.h"

static enum xfp_status refuse(const struct xfp_report_source *source, const char *what, const char *name,
			      struct xfp_error *err)
{
	return xfp_fail(err, XFP_BAD_INPUT, "--source %s: not the checkpoint that the bundle was made from: %s %s",
			xfp_printable(source->given).text, xfp_printable(name).text, what);
}

/* ---- units ------------------------------------------------------------------------------------- */

static bool is_unit(const struct xfp_ledger_unit *unit, const struct xfp_unit_info *info)
{
	return !strcmp(unit->name, info->name) && !strcmp(unit->role, info->role) && unit->rows == info->rows &&
	       unit->cols == info->cols && unit->experts == info->experts && unit->dtype == (enum xfp_dtype)info->dtype;
}

/* Find the bundle's units in the ledger. Both have the same order, unless options added units. */
static enum xfp_status find_units(const struct xfp_report *report, struct xfp_report_source *source,
				  struct xfp_error *err)
{
	uint32_t count = source->ledger->unit_count, next = 0;

	if (!(source->units = calloc(report->info.units + (size_t)1, sizeof *source->units)))
		return xfp_no_memory(err);
	for (uint32_t u = 0; u < report->info.units; u++) {
		const struct xfp_unit_info *info = &report->units[u].info;
		uint32_t tried = 0;

		while (tried < count && !is_unit(&source->ledger->units[next % count], info)) {
			next++;
			tried++;
		}
		if (tried == count)
			return refuse(source, "is not a unit of it, or has another shape", info->name, err);
		source->units[u] = next++ % count;
		source->matrices += info->experts;
	}
	return XFP_OK;
}

/* ---- digests ----------------------------------------------------------------------------------- */

/* Read a matrix. XFP_CHANGED: its weights have another digest. */
static enum xfp_status check_matrix(const struct xfp_matrix_source *from, const uint8_t digest[16],
				    struct xfp_error *err)
{
	struct xfp_rows rows = { .raw = NULL };
	enum xfp_status status = xfp_rows_open_again(from, digest, &rows, err);

	while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count)
		;
	xfp_rows_close(&rows);
	return status;
}

static enum xfp_status check_unit(const struct xfp_report *report, const struct xfp_report_source *source, uint32_t u,
				  struct xfp_error *err)
{
	const struct xfp_ledger_unit *unit = &source->ledger->units[source->units[u]];
	enum xfp_status status = XFP_OK;

	for (uint32_t e = 0; !status && e < unit->experts; e++) {
		const struct xfp_matrix_source from = xfp_ledger_source(source->ledger, unit->first_matrix + e);
		struct xfp_matrix_info matrix;

		xfp_bundle_matrix(report->bundle, report->units[u].info.first_matrix + e, &matrix);
		if ((status = check_matrix(&from, matrix.source, err)) == XFP_CHANGED)
			status = refuse(source, "has other weights", from.tensor, err);
	}
	return status;
}

static bool arrived(struct xfp_signals *signals)
{
	bool is;

#pragma omp critical(report_signals)
	is = signals && xfp_signals_arrived(signals);
	return is;
}

/* Check all units in parallel. Of several failures the first in order is reported. */
static enum xfp_status check_units(const struct xfp_report *report, const struct xfp_report_source *source,
				   struct xfp_signals *signals, struct xfp_error *err)
{
	uint32_t failed = UINT32_MAX;
	enum xfp_status status = XFP_OK;

#pragma omp parallel for schedule(dynamic)
	for (uint32_t u = 0; u < report->info.units; u++) {
		struct xfp_error own = { .text = "" };
		enum xfp_status result = arrived(signals) ? xfp_fail(&own, XFP_FAILED, "interrupted")
							  : check_unit(report, source, u, &own);

		if (result) {
#pragma omp critical(report_failure)
			if (u < failed) {
				failed = u;
				status = result;
				*err = own;
			}
		}
	}
	return status;
}

/* ---- the checkpoint ---------------------------------------------------------------------------- */

enum xfp_status xfp_report_read_source(const char *program, const char *given, const struct xfp_report *report,
				       struct xfp_signals *signals, struct xfp_notify notify,
				       struct xfp_report_source *source, struct xfp_error *err)
{
	enum xfp_status status;
	char *path = NULL;

	*source = (struct xfp_report_source){ .given = given };
	if (!report->recorded)
		return xfp_fail(err, XFP_BAD_INPUT,
				"--source: the bundle has settings of another version of xfp; convert the model again");
	if (!(status = xfp_model_find(given, &path, err)) &&
	    !(status = xfp_inspect_model(program, path, report->recorded->family, &report->recorded->parameters,
					 signals, notify, &source->ledger, err)) &&
	    !(status = find_units(report, source, err)) && !(status = check_units(report, source, signals, err)))
		status = xfp_ledger_check_files(source->ledger, err);
	free(path);
	return status;
}

void xfp_report_source_free(struct xfp_report_source *source)
{
	xfp_ledger_free(source->ledger);
	free(source->units);
	*source = (struct xfp_report_source){ .ledger = NULL };
}
