/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/convert/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "commands/ui/pace.h"
#include "conversion/progress.h"

#define DRAW_SECONDS .4
#define LINE_SECONDS 10
#define LINE_PERCENT 10
#define MAX_FAILURES 10
#define INSIDE_COLUMNS 32
#define MIN_BAR 5
#define MAX_BAR 40
#define BUNDLE_TEXT "writing the bundle"

void xfp_progress_init(struct xfp_progress *progress, struct xfp_conversion *c)
{
	*progress = (struct xfp_progress){ .c = c };
	c->notify = (struct xfp_notify){ xfp_print_notice, progress };
	xfp_meter_begin(&progress->meter);
}

void xfp_progress_begin(struct xfp_progress *progress)
{
	if (!progress->begun)
		progress->printed = xfp_now();
	progress->begun = true;
}

void xfp_progress_event(struct xfp_progress *progress, const struct xfp_event *event)
{
	const uint32_t failures = progress->c->events.failures;

	if (!event->status || event->status == XFP_DAMAGED || event->status == XFP_WANT_EXTENDED ||
	    failures > MAX_FAILURES)
		return;
	xfp_progress_clear(progress);
	fprintf(stderr, "xfp: %s: %s\n", event->stage, event->message);
	if (failures == MAX_FAILURES)
		fprintf(stderr, "xfp: more failures are in the log\n");
}

static void draw(struct xfp_progress *progress, int percent, const char *text)
{
	struct winsize size = { 0 };
	int width = !ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col > 10 ? size.ws_col : 80;
	int bar = width - 9 - (int)strlen(text), full;

	bar = bar > MAX_BAR ? MAX_BAR : bar;
	full = bar * percent / 100;
	if (bar >= MIN_BAR)
		xfp_meter_draw(&progress->meter, "[%.*s%*s] %3d%% %.*s", full,
			       "########################################", bar - full, "", percent, width - bar - 9,
			       text);
	else
		xfp_meter_draw(&progress->meter, "%3d%% %.*s", percent, width - 6, text);
}

void xfp_progress_show(struct xfp_progress *progress)
{
	double now = xfp_now();
	struct xfp_units_progress units;
	struct xfp_pace pace;
	int percent;
	char text[256];

	if (progress->c->request->quiet || !progress->begun)
		return;
	units = xfp_units_progress(progress->c);
	pace = (struct xfp_pace){ units.total, units.cached, units.fresh, units.elapsed, units.guessed };
	percent = pace.total > 0 ? (int)((pace.cached + pace.fresh) / pace.total * 100 + 1e-6) : 100;
	if (!progress->meter.terminal && now - progress->printed < LINE_SECONDS &&
	    percent - progress->percent < LINE_PERCENT && (percent < 100 || progress->percent == 100))
		return;
	xfp_pace_text(&pace, text, sizeof text - INSIDE_COLUMNS);
	/* In a large model, the finished weights rarely change, so show the stage as well. */
	if (units.layer)
		snprintf(text + strlen(text), INSIDE_COLUMNS, ", layer %u of %u %.0f%%", (unsigned)units.layer,
			 (unsigned)progress->c->layers.count, 100 * units.share);
	else if (units.stage)
		snprintf(text + strlen(text), INSIDE_COLUMNS, ", %s %.1f%%", units.stage, 100 * units.share);
	if (progress->meter.terminal)
		draw(progress, percent, text);
	else
		fprintf(stderr, "xfp: %d%%, %s\n", percent, text);
	progress->printed = now;
	progress->percent = percent;
}

void xfp_progress_clear(struct xfp_progress *progress)
{
	xfp_meter_clear(&progress->meter);
}

static void show_bundle(struct xfp_progress *progress, double share)
{
	char done[16] = "";

	if (share > 0)
		snprintf(done, sizeof done, ", %.1f%%", 100 * share);
	if (progress->meter.terminal)
		xfp_meter_draw(&progress->meter, BUNDLE_TEXT "%s", done);
	else
		fprintf(stderr, "xfp: " BUNDLE_TEXT "%s\n", done);
	progress->printed = xfp_now();
}

void xfp_progress_bundle_begin(struct xfp_progress *progress)
{
	if (!progress->c->request->quiet)
		show_bundle(progress, 0);
}

void xfp_progress_bundle(struct xfp_progress *progress)
{
	if (!progress->c->request->quiet &&
	    xfp_now() - progress->printed >= (progress->meter.terminal ? DRAW_SECONDS : LINE_SECONDS))
		show_bundle(progress, xfp_bundle_progress(progress->c));
}
