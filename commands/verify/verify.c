/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c - `xfp verify` and xfp-verify: check a finished bundle independently of the conversion.
 *
 * input    a bundle; with --source the checkpoint it was made from
 * output   faults, on stderr; a table per class, or JSON; the verdict, last
 * status   3 when the bundle is damaged, 4 when it does not match its source or its floors
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/system/command_line.h"
#include "base/system/mapped.h"
#include "base/system/output.h"
#include "base/text/screen.h"
#include "checkpoints/hub.h"
#include "commands/ui/commands.h"
#include "commands/ui/meter.h"
#include "commands/ui/report.h"
#include "commands/verify/verify.h"
#include "schemas/json_print.h"
#include "schemas/layout/classes.h"
#include "stages/settings/settings.h"
#include "stages/work/verified.h"

struct verify_request {
	const char *program, *bundle, *source, *work;
	bool json, quiet;
	struct xfp_meter *meter;
	struct xfp_settings floors;
	const struct xfp_recorded *recorded; /* NULL: unreadable */
};

/* Counts of a bundle's units. */
struct verify_tally {
	uint32_t units, held, unmet, foreign; /* held: units with a floor above 0 */
	uint32_t outputs;                     /* calibrated units with a floor above 0 */
};

/* ---- options ----------------------------------------------------------------------------------- */

/* A unit's floor: the option for its class, else the general option, else the floor in the bundle. A unit requested as
 * fp8 or with fixed bits was promised no floor (the latter records one nevertheless), so only an option naming its
 * class applies. */
static double floor_of(const struct verify_request *request, const struct xfp_unit_info *unit)
{
	const struct xfp_settings *given = &request->floors;
	bool routed = unit->class_ == XFP_CLASS_ROUTED_EXPERT;

	if (given->has_floor[unit->class_])
		return (double)given->floor[unit->class_] / XFP_NANO;
	if ((given->layer & (routed ? XFP_SETTING_BIT(LAZY) : XFP_SETTING_BIT(STRICT))) &&
	    (unit->mode != XFP_MODE_FP8 || unit->floor > 0))
		return (double)(routed ? given->lazy : given->strict) / XFP_NANO;
	return request->recorded && xfp_recorded_policy(request->recorded, unit).fixed ? 0 : unit->floor;
}

/* Whether a unit meets a floor. Recorded medians of outputs are rounded: the bundle's own floor was compared with the
 * exact one when the bundle was made. `outputs` NULL: not calibrated. */
static bool is_met(const struct xfp_unit_info *unit, const struct xfp_output_measure *outputs, double median,
		   double floor)
{
	if (outputs && floor == unit->floor)
		return unit->met && median >= floor - XFP_VERIFY_OUTPUT_SLACK;
	return median >= floor - XFP_VERIFY_SLACK;
}

/* ---- the work ---------------------------------------------------------------------------------- */

/* Progress, on a terminal. */
static void show(struct xfp_meter *meter, const char *what, uint64_t done, uint64_t total)
{
	xfp_meter_draw(meter, "%s %3" PRIu64 " %%", what, total ? done * 100 / total : 0);
}

static bool comparable(const struct xfp_bundle *bundle, const struct xfp_unit_info *unit, const bool *same)
{
	struct xfp_matrix_info matrix;

	for (uint32_t e = 0; e < unit->experts; e++)
		if (!xfp_bundle_matrix(bundle, unit->first_matrix + e, &matrix) || !same[matrix.tensor])
			return false;
	return true;
}

static void count_foreign(const struct xfp_bundle *bundle, const bool *same, struct verify_tally *tally)
{
	struct xfp_unit_info unit;

	for (uint32_t u = 0; xfp_bundle_unit(bundle, u, &unit); u++)
		tally->foreign += !comparable(bundle, &unit, same);
}

/* Whether the bundle was probably made from another checkpoint. */
static bool another_checkpoint(const struct verify_tally *tally)
{
	return tally->foreign > tally->units / 2;
}

static enum xfp_status verify_units(const struct verify_request *request, const struct xfp_bundle *bundle,
				    const struct xfp_checkpoint *source, const bool *same, json_t **units,
				    struct verify_tally *tally, struct xfp_faults *faults, struct xfp_error *err)
{
	const struct xfp_recorded *recorded = request->recorded;
	enum xfp_status status = XFP_OK;
	struct xfp_bundle_info info;
	struct xfp_unit_info unit;
	uint64_t done = 0;

	xfp_bundle_describe(bundle, &info);
	for (uint32_t u = 0; !status && xfp_bundle_unit(bundle, u, &unit); u++) {
		double floor = floor_of(request, &unit);
		const struct xfp_output_measure *outputs = xfp_recorded_outputs(recorded, u);
		struct xfp_quality quality;
		double median;
		json_t *one;
		bool met;

		show(request->meter, "weights", done, info.weights);
		status = xfp_verify_unit(bundle, u, source && comparable(bundle, &unit, same) ? source : NULL, &quality,
					 faults, err);
		if (status)
			break;
		median = outputs ? outputs->median : quality.median;
		met = is_met(&unit, outputs, median, floor);
		tally->held += floor > 0;
		tally->outputs += floor > 0 && outputs;
		tally->unmet += !met;
		tally->foreign += quality.foreign;
		if (!met)
			status = xfp_faults_add(faults, err, XFP_UNMET,
						"unit %s (%s): its median cosine%s is %.9g, below its floor %.9g",
						xfp_printable(unit.name).text, xfp_printable(unit.role).text,
						outputs ? " of outputs" : "", median, floor);
		one = XFP_JSON({ "name", xfp_json_text(unit.name) }, { "role", xfp_json_text(unit.role) },
			       { "class", xfp_json_text(unit.class_name) }, { "mode", xfp_json_text(unit.mode_name) },
			       { "k", xfp_json_count(unit.k) }, { "cos_median", json_real(quality.median) },
			       { "cos_p5", json_real(quality.p5) }, { "error", json_real(quality.error) },
			       { "floor", json_real(floor) }, { "met", json_boolean(met) });
		if (recorded && recorded->outputs)
			xfp_json_put(&one, "outputs", xfp_report_outputs(recorded, u));
		xfp_json_add(units, one);
		done += unit.weights;
	}
	return status;
}

static enum xfp_status print_json(const struct verify_request *request, const struct xfp_faults *faults, json_t *units,
				  struct xfp_error *err)
{
	json_t *texts = json_array();

	for (uint32_t i = 0; i < faults->count; i++)
		xfp_json_add(&texts, xfp_json_text(faults->text[i]));
	return xfp_json_print(XFP_JSON({ "ok", json_boolean(!faults->status) },
				       { "source", json_boolean(request->source != NULL) }, { "faults", texts },
				       { "units", json_incref(units) }),
			      err);
}

static void print_success(const struct verify_request *request, const struct verify_tally *tally)
{
	xfp_screen_printf(stdout, "\n%s: every byte is unchanged;\n%s", request->bundle,
			  request->source ? "the weights are those of the checkpoint;\n" : "");
	if (tally->held)
		printf("%s floors are met (%" PRIu32 " of %" PRIu32 " units have one)\n",
		       request->floors.layer ? "the" : "recorded", tally->held, tally->units);
	else
		puts("no unit has a floor");
	if (tally->outputs)
		printf("floors of %" PRIu32 " units apply to outputs, which were measured when the bundle was made\n",
		       tally->outputs);
}

/* Summarize all faults in one line. */
static enum xfp_status blame(const struct verify_request *request, const struct verify_tally *tally,
			     const struct xfp_faults *faults, struct xfp_error *err)
{
	const char *s = faults->count == 1 ? "" : "s";

	xfp_faults_rest(faults);
	if (faults->status == XFP_BAD_INPUT)
		return xfp_fail(err, faults->status, "%s: damaged (%" PRIu32 " fault%s); copy or convert it again",
				request->bundle, faults->count, s);
	if (faults->status == XFP_FAILED)
		return xfp_fail(err, faults->status,
				"%s: two reads gave different results (%" PRIu32
				" fault%s); check the disk and memory of this machine",
				request->bundle, faults->count, s);
	if (another_checkpoint(tally))
		return xfp_fail(err, faults->status,
				"%s: %s is not the checkpoint that it was made from (%" PRIu32 " of %" PRIu32
				" units differ)",
				request->bundle, request->source, tally->foreign, tally->units);
	if (tally->unmet)
		return xfp_fail(err, faults->status,
				"%s: floors are not met: %" PRIu32 " of %" PRIu32 " units are below theirs (%" PRIu32
				" fault%s in all)",
				request->bundle, tally->unmet, tally->units, faults->count, s);
	return xfp_fail(err, faults->status, "%s: differs from the checkpoint (%" PRIu32 " fault%s)", request->bundle,
			faults->count, s);
}

/* *judged: the status is a verdict on the bundle, not an error with the checkpoint given. */
static enum xfp_status verify(struct verify_request *request, bool *judged, struct xfp_error *err)
{
	struct xfp_recorded recorded = { .family = NULL };
	struct xfp_faults faults = { .program = request->program, .meter = request->meter };
	struct xfp_checkpoint *source = NULL;
	struct xfp_bundle *bundle = NULL;
	json_t *units = json_array();
	struct xfp_bundle_info info;
	struct verify_tally tally = { 0 };
	bool *same = NULL;
	char *path = NULL;
	enum xfp_status status = units ? XFP_OK : xfp_no_memory(err);

	*judged = true;
	xfp_mapped_begin(request->program, request->bundle, NULL);
	if (status || (status = xfp_bundle_open(request->bundle, &bundle, err)))
		goto done;
	xfp_bundle_describe(bundle, &info);
	tally.units = info.units;
	if (!xfp_recorded_read(bundle, request->bundle, &recorded, NULL))
		request->recorded = &recorded;
	if (request->source && ((status = xfp_model_find(request->source, &path, err)) ||
				(status = xfp_checkpoint_open(path, &source, err)))) {
		*judged = false;
		goto done;
	}
	if (!(same = calloc(info.tensors + (size_t)1, sizeof *same))) {
		status = xfp_no_memory(err);
		goto done;
	}
	show(request->meter, "bytes", 0, 1);
	if ((status = xfp_verify_bytes(bundle, &faults, err)))
		goto done;
	if (!faults.status) { /* damaged weights are not compared */
		if (source) {
			if ((status = xfp_verify_tensors(bundle, source, same, &faults, err)))
				goto done;
			count_foreign(bundle, same, &tally);
		}
		/* weights of another model are not compared, either */
		if (!another_checkpoint(&tally) &&
		    (status = verify_units(request, bundle, source, same, &units, &tally, &faults, err)))
			goto done;
	}
	xfp_meter_clear(request->meter);
	if (request->json)
		status = print_json(request, &faults, units, err);
	else if (!request->quiet && (!faults.status || faults.status == XFP_UNMET) && !another_checkpoint(&tally))
		xfp_report_table(stdout, bundle, request->recorded);
	if (!request->json && !request->quiet && !faults.status)
		print_success(request, &tally);
	xfp_output_flush(); /* the verdict comes last, even if both streams are the same file */
	if (!status && faults.status)
		status = blame(request, &tally, &faults, err);
done:
	xfp_meter_clear(request->meter);
	free(path);
	free(same);
	json_decref(units);
	xfp_faults_free(&faults);
	request->recorded = NULL;
	xfp_recorded_free(&recorded);
	xfp_checkpoint_close(source);
	xfp_bundle_close(bundle);
	xfp_mapped_end();
	return status;
}

/* Verify and, with --work, record the outcome. If there is no run to record it for, print so; that is not a fault of
 * the bundle. */
static enum xfp_status verify_and_record(struct verify_request *request, struct xfp_error *err)
{
	struct xfp_verification verification;
	struct xfp_error why = { .text = "" };
	enum xfp_status status, recorded;
	bool judged;

	if (request->work)
		verification = xfp_verification_begin(request->work, request->bundle);
	status = verify(request, &judged, err);
	if (!request->work)
		return status;
	recorded = judged ? xfp_verification_record(&verification, status, err->text, &why)
			  : xfp_fail(&why, XFP_BAD_INPUT, "%s: cannot be compared with the bundle", request->source);
	if (recorded == XFP_FAILED && !status)
		return xfp_fail(err, XFP_FAILED, "cannot record the outcome: %s", why.text);
	if (recorded)
		fprintf(stderr, "%s: outcome not recorded: %s\n", request->program, why.text);
	return status;
}

int xfp_main_verify(int argc, char **argv)
{
	struct verify_request request = { .program = argv[0] };
	const struct xfp_option options[] = {
		{ .name = "source",
		  .path = true,
		  .value = "MODEL",
		  .text = "compare with this checkpoint, too",
		  .into = &request.source },
		xfp_setting_option(XFP_SETTING_STRICT, NULL,
				   "required median cosine of a unit, instead of its own floor", &request.floors),
		xfp_setting_option(XFP_SETTING_LAZY, NULL, "the same for routed experts", &request.floors),
		xfp_setting_option(XFP_SETTING_FLOOR, "CLASS=X", "the same for one class; can be repeated",
				   &request.floors),
		{ .name = "work",
		  .value = "DIR",
		  .text = "record the outcome in the work folder of the conversion",
		  .into = &request.work },
		{ .name = "quiet", .letter = 'q', .text = "print only faults", .set = &request.quiet },
		{ .name = "json", .text = "print one JSON object", .set = &request.json },
		{ 0 },
	};
	struct xfp_command_line line = {
		.usage = "xfp verify [-q] [--source MODEL] [--min-cos-strict X] [--min-cos-lazy X]\n"
			 "                  [--floor CLASS=X] [--work DIR] [--json] BUNDLE\n"
			 "   or: xfp-verify [OPTION ...] BUNDLE",
		.operand = "BUNDLE",
		.summary = "Checks every byte of a bundle, decodes all weights and compares them with the floors.",
		.options = options,
	};
	struct xfp_error err = { .status = XFP_OK };
	struct xfp_meter meter = { 0 };
	int status;

	if (!xfp_command_line_read(&line, argc, argv, &status))
		return status;
	if (!(request.bundle = xfp_command_line_bundle(&line)))
		return XFP_USAGE;
	if (!request.quiet)
		xfp_meter_begin(&meter);
	request.meter = &meter;
	status = (int)verify_and_record(&request, &err);
	if (status)
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
	return status;
}
