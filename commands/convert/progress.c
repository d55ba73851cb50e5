/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/convert/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "commands/ui/pace.h"
#include "stages/work/pulse.h"

#define DRAW_SECONDS .4
#define LINE_SECONDS 10
#define LINE_PERCENT 10
#define MOST_FAILURES 10
#define INSIDE_COLUMNS 32
#define LEAST_BAR 5
#define MOST_BAR 40
#define BUNDLE_TEXT "writing the bundle"

/* What of a unit's time has passed after each of its steps, about: where there is no library, and where there is. */
static const struct {
	double share, library;
} shares[XFP_STAMPS] = {
	[XFP_STAMP_SURVEY] = { .1, .1 }, [XFP_STAMP_OUTLIERS] = { .2, .2 }, [XFP_STAMP_FIT] = { .8, .4 },
	[XFP_STAMP_LIBRARY] = { 0, .7 }, [XFP_STAMP_PACKED] = { 1, 1 },
};

double xfp_stage_share(uint32_t modes, const char *stage)
{
	enum xfp_stamp step = xfp_step_named(stage);

	if (step == XFP_STAMPS)
		return 0;
	return modes & XFP_LIBRARY_MODES ? shares[step].library : shares[step].share;
}

double xfp_stage_more(uint32_t modes, const char *stage, double before)
{
	double share = xfp_stage_share(modes, stage);

	return share > before ? share - before : 0;
}

void xfp_progress_init(struct xfp_progress *progress, struct xfp_conversion *c)
{
	*progress = (struct xfp_progress){ .c = c };
	xfp_meter_begin(&progress->meter);
}

void xfp_progress_begin(struct xfp_progress *progress)
{
	struct xfp_conversion *c = progress->c;

	for (uint32_t i = 0; i < c->ledger->unit_count; i++) {
		c->units[i].working = false;
		if (c->units[i].done && c->units[i].progress < 1) {
			progress->cached += (1 - c->units[i].progress) * (double)xfp_unit_weights(&c->ledger->units[i]);
			c->units[i].progress = 1;
		}
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
	if (event->unit >= c->ledger->unit_count)
		return;
	unit = &c->units[event->unit];
	unit->at_work = xfp_step_named(event->stage);
	unit->working = !strcmp(event->outcome, "started") && unit->at_work < XFP_STAMPS;
	if (event->status || !strcmp(event->outcome, "started"))
		return;
	share = xfp_stage_share(c->options.parameters.modes, event->stage);
	if (share <= unit->progress)
		return;
	*(strcmp(event->outcome, "made") ? &progress->cached : &progress->fresh) +=
		(share - unit->progress) * (double)xfp_unit_weights(&c->ledger->units[event->unit]);
	unit->progress = share;
}

static void draw(struct xfp_progress *progress, int percent, const char *text)
{
	struct winsize size = { 0 };
	int width = !ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col > 10 ? size.ws_col : 80;
	int bar = width - 9 - (int)strlen(text), full;

	bar = bar > MOST_BAR ? MOST_BAR : bar;
	full = bar * percent / 100;
	if (bar >= LEAST_BAR)
		xfp_meter_draw(&progress->meter, "[%.*s%*s] %3d%% %.*s", full,
			       "########################################", bar - full, "", percent, width - bar - 9,
			       text);
	else
		xfp_meter_draw(&progress->meter, "%3d%% %.*s", percent, width - 6, text);
}

/* The stage that is at work on the largest unit of those that have said how far they are. */
struct inside {
	const char *stage;
	double share, weights;
};

/* What stages have done of the units that they are in, too. */
static struct xfp_pace pace_of(const struct xfp_progress *progress, double now, struct inside *inside)
{
	const struct xfp_conversion *c = progress->c;
	struct xfp_pace pace = { (double)c->weights, progress->cached, progress->fresh, now - progress->started, 0 };
	int pulses = xfp_pulses_open(c->options.work);

	for (uint32_t i = 0; i < c->ledger->unit_count; i++) {
		const struct xfp_unit_state *unit = &c->units[i];
		double weights = (double)xfp_unit_weights(&c->ledger->units[i]), more = 0;

		if (unit->working && unit->progress < 1) {
			const char *stage = xfp_steps[unit->at_work].stage;
			double share = xfp_pulses_read(pulses, i, stage);

			more = xfp_stage_more(c->options.parameters.modes, stage, unit->progress) * share * weights;
			if (share > 0 && weights > inside->weights)
				*inside = (struct inside){ stage, share, weights };
		}
		pace.fresh += more;
		pace.guessed += unit->progress < 1 ? unit->progress * weights + more : 0;
	}
	if (pulses >= 0)
		close(pulses);
	return pace;
}

void xfp_progress_show(struct xfp_progress *progress)
{
	double now = xfp_now();
	struct inside inside = { 0 };
	struct xfp_pace pace;
	int percent;
	char text[256];

	if (progress->c->options.quiet || !progress->begun)
		return;
	pace = pace_of(progress, now, &inside);
	percent = pace.total > 0 ? (int)((pace.cached + pace.fresh) / pace.total * 100 + 1e-6) : 100;
	if (!progress->meter.terminal && now - progress->printed < LINE_SECONDS &&
	    percent - progress->percent < LINE_PERCENT && (percent < 100 || progress->percent == 100))
		return;
	xfp_pace_text(&pace, text, sizeof text - INSIDE_COLUMNS);
	/* Of a large model the weights move seldom. */
	if (inside.stage)
		snprintf(text + strlen(text), INSIDE_COLUMNS, ", %s %.1f%%", inside.stage, 100 * inside.share);
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

static void say_bundle(struct xfp_progress *progress, double share)
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
	if (!progress->c->options.quiet)
		say_bundle(progress, 0);
}

void xfp_progress_bundle(struct xfp_progress *progress)
{
	const struct xfp_conversion *c = progress->c;
	int pulses;
	double share;

	if (c->options.quiet ||
	    xfp_now() - progress->printed < (progress->meter.terminal ? DRAW_SECONDS : LINE_SECONDS))
		return;
	pulses = xfp_pulses_open(c->options.work);
	share = xfp_pulses_read(pulses, c->ledger->unit_count, XFP_BUNDLE_STAGE);
	if (pulses >= 0)
		close(pulses);
	say_bundle(progress, share);
}
