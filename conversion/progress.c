/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/progress.h"

#include <string.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "stages/work/stage_progress.h"
#include "stages/work/stages.h"

/* Approximate share of a unit's time that has passed after each step, without and with libraries. */
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

/* ---- units --------------------------------------------------------------------------------------- */

void xfp_units_progress_begin(struct xfp_conversion *c)
{
	for (uint32_t i = 0; i < c->units.ledger->unit_count; i++) {
		struct xfp_unit_state *unit = &c->units.state[i];

		unit->working = false;
		if (unit->done && unit->progress < 1) {
			c->progress.cached +=
				(1 - unit->progress) * (double)xfp_unit_weights(&c->units.ledger->units[i]);
			unit->progress = 1;
		}
	}
	if (!c->progress.begun)
		c->progress.started = xfp_now();
	c->progress.begun = true;
}

void xfp_units_progress_event(struct xfp_conversion *c, const struct xfp_event *event)
{
	bool failed = event->status && event->status != XFP_DAMAGED && event->status != XFP_WANT_EXTENDED;
	bool started = !strcmp(event->outcome, "started");
	struct xfp_unit_state *unit;
	double share;

	if (failed || event->unit >= c->units.ledger->unit_count)
		return;
	unit = &c->units.state[event->unit];
	unit->at_work = xfp_step_named(event->stage);
	unit->working = started && unit->at_work < XFP_STAMPS;
	share = xfp_stage_share(c->parameters.modes, event->stage);
	if (event->status || started || share <= unit->progress)
		return;
	*(strcmp(event->outcome, "made") ? &c->progress.cached : &c->progress.fresh) +=
		(share - unit->progress) * (double)xfp_unit_weights(&c->units.ledger->units[event->unit]);
	unit->progress = share;
}

/* Add the progress of running stages to the finished work. */
struct xfp_units_progress xfp_units_progress(const struct xfp_conversion *c)
{
	struct xfp_units_progress p = { .total = (double)c->units.weights,
					.cached = c->progress.cached,
					.fresh = c->progress.fresh,
					.elapsed = xfp_now() - c->progress.started };
	struct xfp_stage_slots slots = xfp_stage_progress_open(c->request->work);
	double largest = 0;

	if ((p.layer = c->layers.at_work))
		p.share = xfp_stage_progress_read(&slots, xfp_layer_slot(c->units.ledger, p.layer - 1),
						  xfp_steps[XFP_STAMP_INPUTS].stage);

	for (uint32_t i = 0; i < c->units.ledger->unit_count; i++) {
		const struct xfp_unit_state *unit = &c->units.state[i];
		double weights = (double)xfp_unit_weights(&c->units.ledger->units[i]), more = 0;

		if (unit->working && unit->progress < 1) {
			const char *stage = xfp_steps[unit->at_work].stage;
			double share = xfp_stage_progress_read(&slots, i, stage);

			more = xfp_stage_more(c->parameters.modes, stage, unit->progress) * share * weights;
			if (share > 0 && weights > largest && !c->layers.at_work) {
				p.stage = stage;
				p.share = share;
				largest = weights;
			}
		}
		p.fresh += more;
		p.guessed += unit->progress < 1 ? unit->progress * weights + more : 0;
	}
	xfp_stage_progress_close(&slots);
	return p;
}

double xfp_bundle_progress(const struct xfp_conversion *c)
{
	struct xfp_stage_slots slots = xfp_stage_progress_open(c->request->work);
	double share = xfp_stage_progress_read(&slots, c->units.ledger->unit_count, XFP_BUNDLE_STAGE);

	xfp_stage_progress_close(&slots);
	return share;
}
