/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/convert/summary.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "base/system/mapped.h"
#include "base/text/screen.h"
#include "base/text/size.h"
#include "commands/convert/goal_print.h"
#include "commands/ui/composition_print.h"
#include "commands/ui/report.h"
#include "schemas/json_print.h"

#define MAX_MISSES 5 /* units that the summary names */
#define LABELS 7     /* columns of "sha256 " and the like */

/* Print the table per class. */
static json_t *classes_json(const struct xfp_conversion *c, json_t **composition, struct xfp_error *err)
{
	struct xfp_recorded recorded = { .family = NULL };
	struct xfp_bundle *bundle = NULL;
	struct xfp_composition sums;
	bool has_record;
	json_t *list;

	if (xfp_bundle_open(c->request->out, &bundle, err))
		return NULL;
	has_record = !xfp_recorded_read(bundle, c->request->out, &recorded, NULL);
	sums = xfp_composition_of_bundle(bundle);
	sums.stored = xfp_composition_stored(c->units.ledger);
	if (!(list = xfp_report_classes(bundle, has_record ? &recorded : NULL)) ||
	    !(*composition = xfp_composition_json(&sums)))
		xfp_no_memory(err);
	xfp_recorded_free(&recorded);
	xfp_bundle_close(bundle);
	return list;
}

static enum xfp_status print_json(const struct xfp_conversion *c, const struct xfp_result *result,
				  const struct xfp_run_tally *tally, double seconds, struct xfp_error *err)
{
	json_t *composition = NULL, *classes = classes_json(c, &composition, err), *root;

	if (!classes || !composition) {
		json_decref(classes);
		json_decref(composition);
		return XFP_FAILED;
	}
	root = XFP_JSON({ "bundle", xfp_json_text(c->request->out) }, { "sha256", xfp_json_text(result->sha256) },
			{ "bytes", xfp_json_count(result->bytes) }, { "whole", composition },
			{ "unchanged", json_boolean(result->unchanged) },
			{ "weights", xfp_json_count(c->units.weights) }, { "units", xfp_json_count(tally->units) },
			{ "repacked", xfp_json_count(tally->repacked) }, { "fitted", xfp_json_count(tally->fitted) },
			{ "cached", xfp_json_count(tally->units - tally->repacked) },
			{ "source_precision", xfp_json_count(tally->kept + tally->nonfinite) },
			{ "below_floor", xfp_json_count(tally->missed) }, { "seconds", json_real(seconds) },
			{ "stage_seconds", json_real(tally->seconds) },
			{ "dropped_bytes", xfp_json_count(result->freed) }, { "work", xfp_json_text(c->request->work) },
			{ "goal", xfp_goal_json(c) }, { "classes", classes });
	return xfp_json_print(root, err);
}

static void print_missed(uint32_t count, const char *why)
{
	if (count)
		printf("%" PRIu32 " unit%s below %s floor: %s\n", count, count == 1 ? " is" : "s are",
		       count == 1 ? "its" : "their", why);
}

/* Print the units that differ from the request. */
static void print_misses(const struct xfp_run_tally *tally)
{
	if (tally->kept)
		printf("%" PRIu32 " unit%s at source precision: no candidate met %s floor\n", tally->kept,
		       tally->kept == 1 ? " stays" : "s stay", tally->kept == 1 ? "its" : "their");
	if (tally->nonfinite)
		printf("%" PRIu32 " unit%s at source precision: NaN or infinity\n", tally->nonfinite,
		       tally->nonfinite == 1 ? " stays" : "s stay");
	print_missed(tally->best, "no candidate met it; the best one was used");
	print_missed(tally->fixed, "the bits were fixed");
	print_missed(tally->sampled, "the sampled experts met it, but all experts together do not");
}

static enum xfp_status print_text(const struct xfp_conversion *c, const struct xfp_result *result,
				  const struct xfp_run_tally *tally, double seconds, struct xfp_error *err)
{
	struct xfp_bundle *bundle = NULL;
	enum xfp_status status = xfp_bundle_open(c->request->out, &bundle, err);
	struct xfp_recorded recorded = { .family = NULL };
	struct xfp_composition composition;
	char bytes[32];
	bool has_record;

	if (status)
		return status;
	has_record = !xfp_recorded_read(bundle, c->request->out, &recorded, NULL);
	composition = xfp_composition_of_bundle(bundle);
	composition.stored = xfp_composition_stored(c->units.ledger);
	composition.compact = c->parameters.modes >> XFP_MODE_V2C & 1;
	xfp_screen_printf(stdout, "%s%s\n", c->request->out, result->unchanged ? " is up to date" : "");
	xfp_composition_print(stdout, "", &composition);
	putchar('\n');
	xfp_report_table(stdout, bundle, has_record ? &recorded : NULL);
	printf("\nsha256 %s\n", result->sha256);
	printf("%" PRIu32 " units: %" PRIu32 " fitted, %" PRIu32 " packed now, %" PRIu32 " from the cache, in %.1f s\n",
	       tally->units, tally->fitted, tally->repacked, tally->units - tally->repacked, seconds);
	print_misses(tally);
	if (!c->drop.stands_alone)
		xfp_goal_print(c, LABELS);
	xfp_report_misses(stdout, bundle, has_record ? &recorded : NULL, MAX_MISSES);
	xfp_recorded_free(&recorded);
	xfp_bundle_close(bundle);
	if (result->dropped)
		printf("cache  dropped, %s freed\n", xfp_human((double)result->freed, "B", bytes));
	xfp_screen_printf(stdout, "log    %s/%s\n", c->request->work, XFP_LOG_FILE);
	return XFP_OK;
}

enum xfp_status xfp_print_summary(const struct xfp_conversion *c, const struct xfp_result *result, double seconds,
				  struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	struct xfp_run_tally tally;

	xfp_mapped_begin(c->request->program, c->request->out, NULL);
	tally = xfp_count_run(c);
	dprintf(c->place.log,
		"%" PRIu32 " units: %" PRIu32 " fitted, %" PRIu32 " packed now, %" PRIu32 " from the cache\n",
		tally.units, tally.fitted, tally.repacked, tally.units - tally.repacked);
	if (c->request->json)
		status = print_json(c, result, &tally, seconds, err);
	else if (!c->request->quiet)
		status = print_text(c, result, &tally, seconds, err);
	xfp_mapped_end();
	return status;
}
