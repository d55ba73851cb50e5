/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far it is, on a terminal. Layers are much alike, so that one tells of the others, and how many weights were read
 * of one tells how far the next is.
 */
#include <stdio.h>

#include "base/system/clock.h"
#include "commands/eval/eval.h"
#include "commands/ui/pace.h"

#define DRAW_SECONDS .4
#define LONG_SECONDS 60 /* a run that takes longer is announced */

static void draw(struct xfp_eval_progress *p, double now)
{
	double inside = p->usual ? (double)p->read / (double)p->usual : 0;
	const struct xfp_pace pace = { .total = p->layers,
				       .cached = p->before,
				       .fresh = p->done - p->before + (inside < 1 ? inside : 1),
				       .elapsed = now - p->started };
	double left = xfp_pace_left(&pace);
	char rest[48] = "", where[48] = "output head";

	if (left >= 0)
		xfp_left_text(left, rest);
	if (p->done + 1 < p->layers)
		snprintf(where, sizeof where, "layer %u of %u", (unsigned)p->done + 1, (unsigned)p->layers - 1);
	xfp_meter_draw(&p->meter, "%3.0f%% %s%s%s", 100 * (pace.cached + pace.fresh) / pace.total, where,
		       *rest ? ", " : "", rest);
	p->drawn = now;
}

static bool watch(void *context, uint64_t numbers)
{
	struct xfp_eval *e = context;
	double now;

	e->progress.read += numbers;
	if (e->progress.meter.terminal && (now = xfp_now()) - e->progress.drawn >= DRAW_SECONDS)
		draw(&e->progress, now);
	return !xfp_signals_came(&e->signals);
}

void xfp_eval_progress_begin(struct xfp_eval *e)
{
	xfp_meter_begin(&e->progress.meter);
	e->progress.started = xfp_now();
	e->progress.layers = e->judged.description->layers + 1; /* the output head counts as one */
	e->progress.before = e->progress.done = e->kept;
	xfp_weights_watch(e->judged.weights, watch, e);
	if (xfp_eval_has_source(e))
		xfp_weights_watch(e->source.weights, watch, e);
}

/* Seconds of the whole run: layers that follow take as long as the first one, and the output heads as long as their
 * share of the weights that the first one read. */
static double expected_seconds(const struct xfp_eval *e, double now)
{
	const struct xfp_eval_progress *p = &e->progress;
	const struct xfp_description *d = e->judged.description;
	size_t parts = (e->tokens.sequences + e->room.sequences - 1) / e->room.sequences;
	double heads = (double)d->hidden * d->vocabulary * (double)parts * (xfp_eval_has_source(e) ? 2 : 1);
	double rest = d->layers - p->done + (p->read ? heads / (double)p->read : 1);

	return now - p->started + rest * (now - p->layer_started);
}

static void report_expected(struct xfp_eval *e, double now)
{
	double seconds = expected_seconds(e, now);
	char text[48];

	if (seconds <= LONG_SECONDS)
		return;
	xfp_meter_clear(&e->progress.meter);
	fprintf(stderr, "xfp eval: this takes about %s, at the rate of layer %u\n", xfp_about_text(seconds, text),
		(unsigned)e->progress.before);
}

void xfp_eval_progress_layer(struct xfp_eval *e, uint32_t done)
{
	double now = xfp_now();

	if (done > e->progress.before)
		e->progress.usual = e->progress.read;
	e->progress.done = done;
	if (done == e->progress.before + 1)
		report_expected(e, now);
	e->progress.layer_started = now;
	e->progress.read = 0;
}

void xfp_eval_progress_end(struct xfp_eval *e)
{
	xfp_meter_clear(&e->progress.meter);
}
