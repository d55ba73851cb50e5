/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/ingest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/text.h"
#include "conversion/drop_cache.h"
#include "conversion/progress.h"
#include "conversion/state/layers.h"
#include "conversion/state/sources.h"
#include "stages/work/fit_note.h"
#include "stages/work/verified.h"

/* ---- artifacts of stages ----------------------------------------------------------------------- */

/* Ingest the artifact that a unit's stamp names. */
static enum xfp_status ingest_stamp(struct xfp_conversion *c, uint32_t number, enum xfp_stamp stamp,
				    struct xfp_error *err)
{
	const struct xfp_step *step = &xfp_steps[stamp];
	bool fitted = c->units.ledger->units[number].plan == XFP_PLAN_FIT;
	enum xfp_status status, sources;
	char key[33];

	/* A dropped artifact, or one that another run removed, needs no index entry. */
	if (!xfp_stamp_read(c->request->work, number, stamp, key) || !xfp_store_has(&c->place.store, key))
		return XFP_OK;
	/* Most leftovers of an interrupted run are already ingested. */
	if (c->events.leftovers && xfp_manifest_has(c->place.manifest, key) && !xfp_sources_find(c, number, NULL) &&
	    c->units.state[number].known)
		return XFP_OK;
	status = xfp_manifest_ingest(c->place.manifest, &c->place.store, key, err);
	/* The source digests must be known even if the manifest cannot be written. */
	if (status != XFP_DAMAGED && (fitted ? step->digests : stamp == XFP_STAMP_PACKED)) {
		sources = xfp_sources_record(c, number, step->kind, step->version, key, status ? NULL : err);
		status = sources == XFP_DAMAGED || !status ? sources : status;
	}
	if (status != XFP_DAMAGED)
		return status;
	c->events.damaged = true;
	return XFP_OK;
}

/* Ingest the output of a stage, including the extended set, or the scales of a survey, if it exists. */
static enum xfp_status ingest_stage(struct xfp_conversion *c, uint32_t number, enum xfp_stamp stamp,
				    struct xfp_error *err)
{
	enum xfp_stamp second = stamp == XFP_STAMP_SURVEY ? XFP_STAMP_SCALES : xfp_step_extended(stamp);
	enum xfp_status status = ingest_stamp(c, number, stamp, err);

	return status || second == XFP_STAMPS ? status : ingest_stamp(c, number, second, err);
}

/* Ingest the inputs of a layer, which its stamp names. */
static enum xfp_status ingest_layer(struct xfp_conversion *c, uint32_t layer, struct xfp_error *err)
{
	enum xfp_status status, digests;
	char key[33];

	if (!xfp_stamp_read(c->request->work, XFP_LAYER | layer, XFP_STAMP_INPUTS, key) ||
	    !xfp_store_has(&c->place.store, key))
		return XFP_OK;
	status = xfp_manifest_ingest(c->place.manifest, &c->place.store, key, err);
	/* As for units: digests must be known even if the manifest cannot be written. */
	digests = status == XFP_DAMAGED ? status : xfp_layers_record(c, layer, key, status ? NULL : err);
	if (status == XFP_DAMAGED || digests == XFP_DAMAGED) {
		c->events.damaged = true;
		return XFP_OK;
	}
	return status ? status : digests;
}

static enum xfp_status ingest_layer_event(struct xfp_conversion *c, const struct xfp_event *event,
					  struct xfp_error *err)
{
	uint32_t layer = event->unit & ~XFP_LAYER;
	bool started = !strcmp(event->outcome, "started");

	if (layer >= c->layers.count)
		return XFP_OK;
	c->layers.at_work = started ? layer + 1 : 0;
	if (event->status == XFP_DAMAGED) {
		c->events.damaged = true;
	} else if (event->status == XFP_CHANGED) {
		c->events.changed = true;
		xfp_layers_invalidate(c, layer);
	} else if (event->status) {
		if (!c->events.failures++)
			c->events.failure = (enum xfp_status)event->status;
		c->events.failed_layer = c->events.failed_layer ? c->events.failed_layer : layer + 1;
	} else if (!started) {
		enum xfp_status status = ingest_layer(c, layer, err);

		xfp_drop_layers(c);
		return status;
	}
	return XFP_OK;
}

/* Report a unit whose inputs are always zero, and count matrices that no token reached; once, even if the unit has
 * several fits. */
static void ingest_note(struct xfp_conversion *c, const struct xfp_event *event)
{
	const struct xfp_ledger_unit *unit = &c->units.ledger->units[event->unit];
	struct xfp_unit_state *state = &c->units.state[event->unit];
	struct xfp_fit_note note;

	if (c->events.leftovers || state->noted || !xfp_fit_note_read(event, &note))
		return;
	state->noted = true;
	c->events.unreached += note.unreached;
	c->events.unreached_units += note.unreached > 0;
	if (note.zero)
		XFP_NOTIFY(c, .kind = XFP_NOTICE_ZERO_INPUTS, .name = unit->name, .count = note.zero,
			   .total = unit->experts);
}

static enum xfp_status ingest_event(struct xfp_conversion *c, const struct xfp_event *event, struct xfp_error *err)
{
	bool made = !strcmp(event->outcome, "made"), ours = event->unit < c->units.ledger->unit_count;
	struct xfp_unit_state *state = ours ? &c->units.state[event->unit] : NULL;
	enum xfp_status status;
	enum xfp_stamp stamp;

	if (xfp_is_layer(event->unit))
		return ingest_layer_event(c, event, err);
	if (event->status == XFP_DAMAGED) {
		c->events.damaged = true;
		return XFP_OK;
	}
	if (event->status == XFP_CHANGED && ours) {
		c->events.changed = true;
		xfp_sources_invalidate(c, event->unit);
		xfp_layers_invalidate_all(c); /* they were read before the change */
		return XFP_OK;
	}
	if (event->status && event->status != XFP_WANT_EXTENDED && !c->events.failures++)
		c->events.failure = (enum xfp_status)event->status;
	if (event->status || !ours || (!made && strcmp(event->outcome, "hit")))
		return XFP_OK;
	if ((stamp = xfp_step_named(event->stage)) == XFP_STAMPS)
		return XFP_OK;
	if (made) {
		ingest_note(c, event);
		state->made |= 1u << stamp;
		state->seconds += event->seconds;
	}
	if ((status = ingest_stage(c, event->unit, stamp, err)) || stamp != XFP_STAMP_PACKED)
		return status;
	xfp_drop_fits_of(c, event->unit);
	xfp_drop_layer_of(c, event->unit);
	return XFP_OK;
}

/* Record the verification of a bundle from an earlier run. It is not a step of this run, nor a failure of it. */
static enum xfp_status ingest_verified(struct xfp_conversion *c, const struct xfp_event *event, struct xfp_error *err)
{
	struct xfp_verified verified;

	if (!xfp_verified_parse(event, &verified))
		return XFP_OK;
	return xfp_manifest_verified(c->place.manifest, c->request->out, verified.sha256, verified.when,
				     verified.status, err);
}

/* Report a failed manifest write, once. The manifest is only an index, so the run continues. */
static void report_outdated(struct xfp_conversion *c, const struct xfp_error *why)
{
	if (!c->events.manifest_outdated)
		XFP_NOTIFY(c, .kind = XFP_NOTICE_MANIFEST_OUTDATED, .text = why->text);
	c->events.manifest_outdated = true;
}

enum xfp_status xfp_ingest(struct xfp_conversion *c, struct xfp_error *err)
{
	char *text, *rest, *line;
	struct xfp_error behind = { 0 };
	enum xfp_status status;

	if ((status = xfp_events_read(c->request->work, &c->events.reader, &text, err)) || !text)
		return status;
	rest = text;
	status = xfp_manifest_begin(c->place.manifest, &behind);
	while ((line = strsep(&rest, "\n"))) {
		struct xfp_event event;
		enum xfp_status taken;

		if (!xfp_event_parse(line, &event)) {
			c->events.torn |= *line != 0;
			continue;
		}
		if (xfp_event_is_verify(&event)) {
			taken = ingest_verified(c, &event, status ? NULL : &behind);
		} else {
			taken = ingest_event(c, &event, status ? NULL : &behind);
			if (!c->events.leftovers) {
				xfp_units_progress_event(c, &event);
				XFP_NOTIFY(c, .kind = XFP_NOTICE_STAGE, .event = &event);
			}
		}
		status = status ? status : taken;
	}
	if (xfp_manifest_commit(c->place.manifest, status ? NULL : &behind) || status)
		report_outdated(c, &behind);
	free(text);
	return XFP_OK;
}

void xfp_ingest_units(struct xfp_conversion *c)
{
	struct xfp_error behind = { 0 };
	enum xfp_status status = xfp_manifest_begin(c->place.manifest, &behind);

	for (uint32_t u = 0; u < c->units.ledger->unit_count; u++)
		for (enum xfp_stamp s = XFP_STAMP_SURVEY; !c->units.state[u].known && s < XFP_STAMPS; s++) {
			enum xfp_status taken = ingest_stamp(c, u, s, status ? NULL : &behind);

			status = status ? status : taken;
		}
	for (uint32_t i = 0; i < c->layers.count; i++)
		if (!c->layers.state[i].known) {
			enum xfp_status taken = ingest_layer(c, i, status ? NULL : &behind);

			status = status ? status : taken;
		}
	if (xfp_manifest_commit(c->place.manifest, status ? NULL : &behind) || status)
		report_outdated(c, &behind);
	if (c->events.torn)
		XFP_NOTIFY(c, .kind = XFP_NOTICE_EVENTS_TORN);
	c->events.torn = false;
}

enum xfp_status xfp_ingest_restart(struct xfp_conversion *c, struct xfp_error *err)
{
	xfp_events_reader_free(&c->events.reader);
	return xfp_events_remove(c->request->work, err);
}
