/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LINE_SECONDS 10
#define LINE_PERCENT 10
#define MOST_FAILURES 10
#define TEXT_COLUMNS 70

/* What of a unit's time has passed after each of its stages, about. */
static const struct {
	const char *stage;
	double share;
} steps[] = {
	{ "outlier-extract", .2 },
	{ "lloyd-fit", .8 },
	{ "pack", 1 },
};

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
	double step;

	if (event->status && event->status != XFP_DAMAGED && event->status != XFP_WANT_MORE) {
		if (c->failures > MOST_FAILURES)
			return;
		xfp_progress_clear(progress);
		fprintf(stderr, "xfp: %s: %s\n", event->stage, event->message);
		if (c->failures == MOST_FAILURES)
			fprintf(stderr, "xfp: more failures are in the log\n");
		return;
	}
	if (event->status || event->unit >= c->ledger->unit_count)
		return;
	unit = &c->units[event->unit];
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		if (strcmp(event->stage, steps[i].stage) || steps[i].share <= unit->progress)
			continue;
		step = (steps[i].share - unit->progress) * (double)xfp_unit_weights(&c->ledger->units[event->unit]);
		*(strcmp(event->outcome, "made") ? &progress->cached : &progress->fresh) += step;
		unit->progress = steps[i].share;
	}
}

/* "1.20 G of 2.90 G weights, 35.1 M/s, 300 M cached, ETA 0:12:40" */
static void describe(const struct xfp_progress *progress, char *text, size_t room)
{
	double total = (double)progress->c->weights, done = progress->cached + progress->fresh;
	double elapsed = xfp_now() - progress->started, rate = elapsed > 0 ? progress->fresh / elapsed : 0;
	char a[32], b[32], more[96] = "";
	int length = 0;

	if (rate > 0) {
		double left = (total - done) / rate;

		length = snprintf(more, sizeof more, ", %s/s", xfp_human(rate, "", a));
		if (left >= 1 && left < 1e7)
			length += snprintf(more + length, sizeof more - (size_t)length, ", ETA %d:%02d:%02d",
					   (int)left / 3600, (int)left / 60 % 60, (int)left % 60);
	}
	if (progress->cached > 0)
		snprintf(more + length, sizeof more - (size_t)length, ", %s cached",
			 xfp_human(progress->cached, "", a));
	snprintf(text, room, "%s of %s weights%s", xfp_human(done, "", a), xfp_human(total, "", b), more);
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
	char text[200];

	if (progress->c->options.quiet || !progress->begun)
		return;
	if (!progress->terminal && now - progress->printed < LINE_SECONDS && percent - progress->percent < LINE_PERCENT)
		return;
	describe(progress, text, sizeof text);
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
