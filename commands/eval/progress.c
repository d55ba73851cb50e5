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

void xfp_eval_progress_layer(struct xfp_eval *e, uint32_t done)
{
	if (done > e->progress.before)
		e->progress.usual = e->progress.read;
	e->progress.read = 0;
	e->progress.done = done;
}

void xfp_eval_progress_end(struct xfp_eval *e)
{
	xfp_meter_clear(&e->progress.meter);
}
