/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/convert/progress.h"
#include "base/system/clock.h"
#include "base/text/size.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LINE_SECONDS 10
#define LINE_PERCENT 10
#define MOST_FAILURES 10
#define TEXT_COLUMNS 70

/* What of a unit's time has passed after each of its steps, about: where there is no library, and where there is. */
static const struct {
	double share, library;
} shares[XFP_STAMPS] = {
	[XFP_STAMP_SURVEY] = { .1, .3 }, [XFP_STAMP_OUTLIERS] = { .2, .35 }, [XFP_STAMP_FIT] = { .8, .5 },
	[XFP_STAMP_LIBRARY] = { 0, .9 }, [XFP_STAMP_PACKED] = { 1, 1 },
};

double xfp_stage_share(uint32_t modes, const char *stage)
{
	enum xfp_stamp step = xfp_step_named(stage);

	if (step == XFP_STAMPS)
		return 0;
	return modes & XFP_LIBRARY_MODES ? shares[step].library : shares[step].share;
}

void xfp_progress_init(struct xfp_progress *progress, struct xfp_conversion *c)
{
	*progress = (struct xfp_progress){ .c = c, .terminal = isatty(STDERR_FILENO) };
}

void xfp_progress_begin(struct xfp_progress *progress)
{
	struct xfp_conversion *c = progress->c;

	for (uint32_t i = 0; i < c->ledger->unit_count; i++)
		if (c->units[i].done && c->units[i].progress < 1) {
			progress->cached += (1 - c->units[i].progress) * (double)xfp_unit_weights(&c->ledger->units[i]);
			c->units[i].progress = 1;
		}
	if (!progress->begun)
		progress->started = progress->printed = xfp_now();
	progress->begun = true;
}

void xfp_progress_event(const struct xfp_event *event, void *context)
{
	struct xfp_progress *progress = context;
	struct xfp_conversion *c = progress->c;
	struct xfp_unit_state *unit;
	double share;

	if (event->status && event->status != XFP_DAMAGED && event->status != XFP_WANT_EXTENDED) {
		if (c->failures > MOST_FAILURES)
			return;
		xfp_progress_clear(progress);
		fprintf(stderr, "xfp: %s: %s\n", event->stage, event->message);
		if (c->failures == MOST_FAILURES)
			fprintf(stderr, "xfp: more failures are in the log\n");
		return;
	}
	if (event->status || event->unit >= c->ledger->unit_count || !strcmp(event->outcome, "started"))
		return;
	unit = &c->units[event->unit];
	share = xfp_stage_share(c->options.parameters.modes, event->stage);
	if (share <= unit->progress)
		return;
	*(strcmp(event->outcome, "made") ? &progress->cached : &progress->fresh) +=
		(share - unit->progress) * (double)xfp_unit_weights(&c->ledger->units[event->unit]);
	unit->progress = share;
}

double xfp_pace_left(const struct xfp_pace *pace)
{
	double rate = pace->elapsed > 0 ? pace->fresh / pace->elapsed : 0;

	return rate > 0 ? (pace->total - pace->cached - pace->fresh) / rate : -1;
}

const char *xfp_clock_text(double seconds, char text[32])
{
	uint64_t s = (uint64_t)seconds;

	snprintf(text, 32, "%" PRIu64 ":%02u:%02u", s / 3600, (unsigned)(s / 60 % 60), (unsigned)(s % 60));
	return text;
}

void xfp_pace_text(const struct xfp_pace *pace, char *text, size_t room)
{
	double left = xfp_pace_left(pace);
	char a[32], b[32], more[128] = "";
	int length = 0;

	if (left >= 0) {
		length = snprintf(more, sizeof more, ", %s/s", xfp_human(pace->fresh / pace->elapsed, "", a));
		if (left >= 1 && left < 1e7)
			length += snprintf(more + length, sizeof more - (size_t)length, ", ETA %s",
					   xfp_clock_text(left, b));
	}
	if (pace->cached > 0)
		snprintf(more + length, sizeof more - (size_t)length, ", %s cached", xfp_human(pace->cached, "", a));
	snprintf(text, room, "%s of %s weights%s", xfp_human(pace->cached + pace->fresh, "", a),
		 xfp_human(pace->total, "", b), more);
}

static void draw(struct xfp_progress *progress, int percent, const char *text)
{
	struct winsize size = { 0 };
	int width = !ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col > 10 ? size.ws_col : 80;
	int bar = width - TEXT_COLUMNS > 40 ? 40 : width - TEXT_COLUMNS, full = bar * percent / 100;

	fputs("\r\033[K", stderr);
	if (bar >= 5)
		fprintf(stderr, "[%.*s%*s] ", full, "########################################", bar - full, "");
	fprintf(stderr, "%3d%% %.*s", percent, width - (bar >= 5 ? bar + 3 : 0) - 6, text);
	fflush(stderr);
	progress->shown = true;
}

void xfp_progress_show(struct xfp_progress *progress)
{
	double total = (double)progress->c->weights, now = xfp_now();
	int percent = total > 0 ? (int)((progress->cached + progress->fresh) / total * 100 + 1e-6) : 100;
	const struct xfp_pace pace = { total, progress->cached, progress->fresh, now - progress->started };
	char text[200];

	if (progress->c->options.quiet || !progress->begun)
		return;
	if (!progress->terminal && now - progress->printed < LINE_SECONDS &&
	    percent - progress->percent < LINE_PERCENT && (percent < 100 || progress->percent == 100))
		return;
	xfp_pace_text(&pace, text, sizeof text);
	if (progress->terminal)
		draw(progress, percent, text);
	else
		fprintf(stderr, "xfp: %d%%, %s\n", percent, text);
	progress->printed = now;
	progress->percent = percent;
}

void xfp_progress_clear(struct xfp_progress *progress)
{
	if (progress->shown)
		fputs("\r\033[K", stderr);
	progress->shown = false;
}

void xfp_progress_say(struct xfp_progress *progress, const char *text)
{
	if (progress->c->options.quiet)
		return;
	xfp_progress_clear(progress);
	fprintf(stderr, progress->terminal ? "%s" : "xfp: %s\n", text);
	progress->shown = progress->terminal;
}
