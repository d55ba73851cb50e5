/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of the first layer predicts that of the others, and the number of weights read in one predicts the progress
 * within the next.
 */
#include "commands/eval/progress.h"

#include <stdio.h>

#include "base/system/clock.h"
#include "commands/ui/pace.h"
#include "model/evaluate/forecast.h"

#define DRAW_SECONDS .4
#define LONG_SECONDS 60 /* a forecast is printed for longer runs */

static void draw(struct xfp_eval_progress *progress, const struct xfp_evaluation *e, double now)
{
	const struct xfp_evaluation_progress *p = &e->progress;
	double inside = p->layer_read ? (double)p->read / (double)p->layer_read : 0;
	const struct xfp_pace pace = { .total = p->steps,
				       .cached = p->resumed,
				       .fresh = p->done - p->resumed + (inside < 1 ? inside : 1),
				       .elapsed = now - p->started };
	double left = xfp_pace_remaining(&pace);
	char rest[48] = "", where[48] = "output head";

	if (left >= 0)
		xfp_remaining_text(left, rest);
	if (p->done + 1 < p->steps)
		snprintf(where, sizeof where, "%s %u of %u", xfp_evaluation_is_encoder(e) ? "text" : "layer",
			 (unsigned)p->done + 1, (unsigned)p->steps - 1);
	xfp_meter_draw(&progress->meter, "%3.0f%% %s%s%s", 100 * (pace.cached + pace.fresh) / pace.total, where,
		       *rest ? ", " : "", rest);
	progress->drawn = now;
}

static void print_forecast(struct xfp_eval_progress *progress, const struct xfp_evaluation *e, double now)
{
	double seconds = now - e->progress.started + xfp_evaluation_remaining(e);
	char text[48];

	progress->forecast = true;
	if (seconds <= LONG_SECONDS)
		return;
	xfp_meter_clear(&progress->meter);
	fprintf(stderr, "xfp eval: this takes about %s, at the rate of layer %u\n", xfp_rough_time_text(seconds, text),
		(unsigned)e->progress.resumed);
}

void xfp_eval_progress(struct xfp_eval_progress *progress, const struct xfp_evaluation *e)
{
	double now = xfp_now();

	if (!xfp_evaluation_is_encoder(e) && !progress->forecast && e->progress.done == e->progress.resumed + 1)
		print_forecast(progress, e, now);
	if (progress->meter.terminal && now - progress->drawn >= DRAW_SECONDS)
		draw(progress, e, now);
}
