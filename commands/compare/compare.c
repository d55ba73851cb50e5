/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.c - xfp compare: measure every mode and every k next to common formats, on the user's model.
 *
 * inspect writes the ledger into a temporary folder. Units are then measured one after the other, each
 * by all threads, in this process. No cache is read or written.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/system/clock.h"
#include "base/system/command_line.h"
#include "base/text/screen.h"
#include "commands/compare/compare.h"
#include "commands/ui/commands.h"
#include "commands/ui/meter.h"
#include "commands/ui/pace.h"
#include "commands/ui/plot.h"
#include "conversion/measure/inspect_model.h"
#include "schemas/policy.h"
#include "stages/quantize/threads.h"

/* ---- selecting units --------------------------------------------------------------------------- */

/* Turn a TENSOR argument into an override that asks inspect to fit it. Kept matrices then become units named in full,
 * and an output head is fitted. The pattern is borrowed. */
static struct xfp_override override_of(const struct xfp_compare_request *request, uint32_t i)
{
	return (struct xfp_override){ .pattern = request->patterns[i],
				      .format = { XFP_FORM_BITS, request->parameters.bits } };
}

static enum xfp_status add_overrides(struct xfp_compare_request *request, struct xfp_error *err)
{
	for (uint32_t i = 0; i < request->pattern_count; i++) {
		struct xfp_override override = override_of(request, i);

		override.pattern = strdup(override.pattern);
		if (!override.pattern || !xfp_parameters_add_override(&request->parameters, &override)) {
			free(override.pattern);
			return xfp_no_memory(err);
		}
	}
	return XFP_OK;
}

/* Every TENSOR must match a unit. Errors are those of the override. */
static enum xfp_status check_overrides(const struct xfp_comparison *comparison, struct xfp_error *err)
{
	const struct xfp_compare_request *request = &comparison->request;
	enum xfp_status status = XFP_OK;

	for (uint32_t i = 0; !status && i < request->pattern_count; i++) {
		struct xfp_override override = override_of(request, i);
		struct xfp_parameters one = { .overrides = &override, .override_count = 1 };
		struct xfp_error own = { .text = "" };
		char *text = xfp_override_text(&override), *prefix = NULL;
		size_t skip = 0;

		if (text && (prefix = xfp_formatted("--override '%s': ", xfp_printable(text).text))) {
			status = xfp_policy_check(&one, comparison->ledger, &own);
			if (status && !strncmp(own.text, prefix, strlen(prefix)))
				skip = strlen(prefix);
			if (status)
				xfp_fail(err, status, "TENSOR '%s': %s", xfp_printable(override.pattern).text,
					 own.text + skip);
		} else {
			status = xfp_no_memory(err);
		}
		free(prefix);
		free(text);
	}
	return status;
}

static bool is_wanted(const struct xfp_compare_request *request, const struct xfp_ledger_unit *unit)
{
	bool wanted = !request->pattern_count;

	for (uint32_t i = 0; !wanted && i < request->pattern_count; i++) {
		struct xfp_override override = override_of(request, i);

		wanted = xfp_override_matches(&override, unit->name, unit->role, unit->class_);
	}
	return wanted && unit->plan == XFP_PLAN_FIT;
}

/* ---- the ledger -------------------------------------------------------------------------------- */

/* Print the messages of tools. */
static void print_line(const struct xfp_notice *notice, void *context)
{
	(void)context;
	if (notice->kind == XFP_NOTICE_MESSAGE)
		xfp_screen_printf(stderr, "xfp compare: %s\n", notice->text);
	else if (notice->kind == XFP_NOTICE_TOOL)
		xfp_screen_printf(stderr, "%s\n", notice->text);
}

static enum xfp_status inspect(struct xfp_comparison *comparison, struct xfp_signals *signals, struct xfp_error *err)
{
	const struct xfp_compare_request *request = &comparison->request;

	return xfp_inspect_model("xfp compare", request->model, (char *)(uintptr_t)request->family,
				 &request->parameters, signals, (struct xfp_notify){ .report = print_line },
				 &comparison->ledger, err);
}

/* ---- all units --------------------------------------------------------------------------------- */

/* Progress. Without a terminal only the start is reported, since no state is kept that could be queried later. The cost
 * of a unit is its number of sampled rows times their length. */
struct progress {
	struct xfp_meter meter;
	uint32_t number, count;
	uint64_t done, total; /* columns */
	double started;
};

static void begin(const struct xfp_comparison *c, const struct progress *progress)
{
	if (!progress->meter.terminal && !c->request.quiet)
		fprintf(stderr,
			"xfp compare: measuring %" PRIu32 " unit%s in every mode and in %d common formats; this "
			"takes a while\n",
			progress->count, progress->count == 1 ? "" : "s", XFP_PEERS);
}

static void show(struct progress *progress, const char *name)
{
	const struct xfp_pace pace = { (double)progress->total, 0, (double)progress->done,
				       xfp_now() - progress->started, 0 };
	double left = xfp_pace_remaining(&pace);
	char rest[48] = "";

	progress->number++;
	if (left >= 0)
		xfp_remaining_text(left, rest);
	xfp_meter_draw(&progress->meter, "%3.0f%% %" PRIu32 " of %" PRIu32 "%s%s: %.48s", 100 * pace.fresh / pace.total,
		       progress->number, progress->count, *rest ? ", " : "", rest, xfp_printable(name).text);
}

static enum xfp_status measure_units(struct xfp_comparison *c, struct xfp_signals *signals, struct xfp_error *err)
{
	const struct xfp_ledger *ledger = c->ledger;
	struct progress progress = { .started = xfp_now() };
	enum xfp_status status = XFP_OK;

	xfp_meter_begin(&progress.meter);
	progress.meter.terminal &= !c->request.quiet;
	for (uint32_t u = 0; u < ledger->unit_count; u++)
		if (is_wanted(&c->request, &ledger->units[u])) {
			progress.count++;
			progress.total += ledger->units[u].cols;
		}
	if (!progress.count)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: has no weights that a conversion would fit",
				xfp_printable(c->request.model).text);
	begin(c, &progress);
	if (!(c->units = calloc(progress.count, sizeof *c->units)))
		return xfp_no_memory(err);
	for (uint32_t u = 0; !status && u < ledger->unit_count; u++) {
		const struct xfp_ledger_unit *unit = &ledger->units[u];

		if (!is_wanted(&c->request, unit))
			continue;
		show(&progress, unit->name);
		status = xfp_compare_unit(ledger, unit, &c->request, signals, &c->units[c->count], err);
		if (!status && !c->units[c->count].count) {
			xfp_meter_clear(&progress.meter);
			fprintf(stderr, "xfp: %s: has NaN or infinite weights, and is left out\n",
				xfp_printable(unit->name).text);
			free(c->units[c->count].list);
			c->left_out++;
		} else {
			c->count++;
		}
		progress.done += unit->cols;
	}
	xfp_meter_clear(&progress.meter);
	if (!status && !c->count)
		status = xfp_fail(err, XFP_BAD_INPUT, "no unit matches the selection");
	return status;
}

static enum xfp_status compare(struct xfp_comparison *c, struct xfp_signals *signals, struct xfp_error *err)
{
	const struct xfp_compare_request *request = &c->request;
	enum xfp_status status = request->plot ? xfp_plot_check("--output", request->plot, err) : XFP_OK;

	if (!status)
		status = add_overrides(&c->request, err);
	if (!status)
		status = inspect(c, signals, err);
	if (!status)
		status = check_overrides(c, err);
	if (!status)
		status = measure_units(c, signals, err);
	/* XFP_CHANGED is reserved for stages, which repeat the unit. A comparison has nothing to repeat. */
	if (status == XFP_CHANGED)
		status = XFP_FAILED;
	/* If files changed during the run, the figures would mix two models. */
	if (!status)
		status = xfp_ledger_check_files(c->ledger, err);
	if (!status)
		status = xfp_compare_sum(c, err);
	if (!status && request->plot)
		status = xfp_compare_plot(c, request->plot, err);
	if (!status && request->json)
		return xfp_compare_print_json(c, err);
	if (!status && request->csv)
		return xfp_compare_print_csv(c, err);
	if (!status)
		xfp_compare_print(c);
	return status;
}

static void comparison_free(struct xfp_comparison *c)
{
	for (uint32_t u = 0; u < c->count; u++)
		free(c->units[u].list);
	free(c->units);
	free(c->all.list);
	xfp_ledger_free(c->ledger);
	xfp_compare_request_free(&c->request);
}

/* OpenMP threads spin while they wait, unless the environment says otherwise at program start; on a busy machine
 * spinning takes time from the thread they wait for. So set the variable and execute the program again. If that fails,
 * continue, only slower. */
static void wait_passively(int argc, char **argv)
{
	char **words;

	if (xfp_threads() == 1 || getenv("OMP_WAIT_POLICY") || setenv("OMP_WAIT_POLICY", "passive", 1) ||
	    !(words = calloc((size_t)argc + 2, sizeof *words)))
		return;
	words[0] = (char *)(uintptr_t) "xfp";
	words[1] = (char *)(uintptr_t) "compare";
	memcpy(words + 2, argv + 1, (size_t)(argc - 1) * sizeof *words);
	execv("/proc/self/exe", words);
	free(words);
}

int xfp_main_compare(int argc, char **argv)
{
	struct xfp_comparison comparison = { 0 };
	struct xfp_error err = { .text = "" };
	struct xfp_signals signals = { 0 };
	const char *name = argv[0];
	enum xfp_status status;

	wait_passively(argc, argv);
	status = xfp_compare_parse(argc, argv, &comparison.request, &err);
	if (!status && !comparison.request.printed) {
		xfp_signals_block(&signals);
		status = compare(&comparison, &signals, &err);
		if (status && !signals.interrupted && *err.text)
			fprintf(stderr, "%s: %s\n", name, err.text);
		comparison_free(&comparison);
		xfp_signals_release(&signals);
		return (int)status;
	}
	if (status)
		fprintf(stderr, "%s: %s\n", name, err.text);
	if (status == XFP_USAGE)
		xfp_point_to_help(name);
	xfp_compare_request_free(&comparison.request);
	return (int)status;
}
