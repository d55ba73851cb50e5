/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/finish.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/mapped.h"
#include "conversion/drop_cache.h"
#include "conversion/place.h"
#include "conversion/run_make.h"
#include "conversion/unchanged.h"
#include "runtime/xfp.h"
#include "stages/work/decided.h"

/* Artifacts must be removed about as fast as the bundle grows. */
#define MOVE_TICK_MS 20

/* ---- bundles of earlier runs -------------------------------------------------------------------- */

static enum xfp_status find_stamp(const struct xfp_conversion *c, bool standalone, struct xfp_result *result,
				  struct xfp_error *err)
{
	struct xfp_bundle_stamp stamp;
	enum xfp_status status;

	xfp_mapped_begin(c->request->program, c->request->out, NULL);
	status = xfp_bundle_stamp_matches(c, standalone, &stamp, &result->unchanged, err);
	xfp_mapped_end();
	if (!status && result->unchanged) {
		snprintf(result->sha256, sizeof result->sha256, "%s", stamp.sha256);
		result->bytes = stamp.identity.size;
	}
	return status;
}

static enum xfp_status check_stamp(const struct xfp_conversion *c, struct xfp_bundle_stamp *stamp,
				   struct xfp_error *err)
{
	enum xfp_status status;

	xfp_mapped_begin(c->request->program, c->request->out, NULL);
	status = xfp_bundle_stamp_fill(c->request->out, stamp, err);
	xfp_mapped_end();
	return status;
}

enum xfp_status xfp_bundle_is_current(const struct xfp_conversion *c, struct xfp_result *result, struct xfp_error *err)
{
	return find_stamp(c, false, result, err);
}

enum xfp_status xfp_bundle_is_standalone(const struct xfp_conversion *c, struct xfp_result *result,
					 struct xfp_error *err)
{
	return find_stamp(c, true, result, err);
}

enum xfp_status xfp_bundle_make_standalone(const struct xfp_conversion *c, const struct xfp_result *result,
					   struct xfp_error *err)
{
	struct xfp_bundle_stamp stamp;
	enum xfp_status status = xfp_bundle_stamp_key(c, true, stamp.key, err);

	snprintf(stamp.sha256, sizeof stamp.sha256, "%s", result->sha256);
	if (!status)
		status = check_stamp(c, &stamp, err);
	return status ? status : xfp_bundle_stamp_write(c->request->work, &stamp, err);
}

/* ---- writing it -------------------------------------------------------------------------------- */

/* Read the digest from xfp-bundle's event line, whose seal is valid. */
static bool find_sha256(const struct xfp_conversion *c, char sha256[65])
{
	struct xfp_events_reader reader = { .final = true };
	char *text = NULL, *rest, *line;
	struct xfp_event event;
	bool found = false;

	if (xfp_events_read(c->request->work, &reader, &text, NULL))
		text = NULL;
	for (rest = text; (line = strsep(&rest, "\n"));)
		if (line[0] == '-' && xfp_event_parse(line, &event) && event.unit == XFP_NO_UNIT &&
		    !strcmp(event.stage, XFP_BUNDLE_STAGE) && !strcmp(event.outcome, "made") &&
		    strspn(event.message, "0123456789abcdef") == 64) {
			snprintf(sha256, 65, "%.64s", event.message);
			found = true;
		}
	free(text);
	xfp_events_reader_free(&reader);
	return found;
}

/* Digest of the decisions that xfp-bundle must find in the work folder. The inputs of layers depend on config.json, the
 * tokens on the tokenizer: their files must be those that the calibration began with. */
static enum xfp_status decided(const struct xfp_conversion *c, char hex[33], struct xfp_error *err)
{
	struct xfp_digest *digest = xfp_decided_begin(&c->parameters);
	struct xfp_identity *now = xfp_decided_files(c->units.ledger);
	const struct xfp_identity *files = c->layers.files ? c->layers.files : now;

	if (!digest || !now) {
		if (digest)
			xfp_digest_final(digest, NULL);
		free(now);
		return xfp_no_memory(err);
	}
	for (uint32_t i = 0; i < c->units.ledger->extra_count; i++)
		xfp_decided_file(digest, c->units.ledger->extras[i], &files[i]);
	free(now);
	for (uint32_t i = 0; i < c->units.ledger->unit_count; i++)
		xfp_decided_unit(digest, c->units.state[i].key[XFP_STAMP_CHOICE],
				 c->units.state[i].key[XFP_STAMP_PACKED]);
	xfp_decided_end(digest, hex);
	return XFP_OK;
}

/* State of the callback that runs while the bundle is written. */
struct bundle_tick {
	struct xfp_conversion *c;
	bool move;
	void (*tick)(void *context);
	void *context;
};

static void tick_bundle(void *own)
{
	const struct bundle_tick *tick = own;

	if (tick->move)
		xfp_drop_moved(tick->c);
	tick->tick(tick->context);
}

int xfp_bundle_make(struct xfp_conversion *c, void (*tick)(void *context), void *context, struct xfp_result *result,
		    struct xfp_error *err)
{
	char expected[33] = "";
	bool move = xfp_drops_units(c);
	struct bundle_tick all = { c, move, tick, context };
	const char *argv[] = { XFP_BUNDLE_PROGRAM,
			       "--work",
			       c->request->work,
			       "--cache",
			       c->request->cache,
			       "--expect",
			       expected,
			       "--",
			       c->request->out,
			       NULL,
			       NULL };
	char *path = xfp_path(c->request->work, XFP_BUNDLE_STAMP);
	struct xfp_bundle_stamp stamp;
	off_t before = xfp_log_size(&c->place);
	int status;

	if (!path)
		return (int)xfp_no_memory(err);
	unlink(path);
	free(path);
	/* Compute the stamp before writing: a small file that changes meanwhile then invalidates it. */
	if ((status = (int)xfp_bundle_stamp_key(c, false, stamp.key, err)) || (status = (int)decided(c, expected, err)))
		return status;
	if (move) {
		if ((status = (int)xfp_drop_moved_begin(c, err)))
			return status;
		argv[7] = "--move";
		argv[8] = "--";
		argv[9] = c->request->out;
		c->place.tick_ms = MOVE_TICK_MS;
	}
	status = xfp_run(&c->place, c->signals, argv, NULL, tick_bundle, &all, err);
	c->place.tick_ms = 0;
	if (move)
		xfp_drop_moved(c);
	if (status && !c->signals->interrupted) {
		xfp_log_show(c, before);
		xfp_log_keep(&c->place, before);
	}
	if (status)
		return status == XFP_DAMAGED ? status : (int)xfp_child_status(status);
	if (!find_sha256(c, stamp.sha256))
		return (int)xfp_fail(err, XFP_FAILED, "%s: xfp-bundle did not report its digest", c->request->out);
	if ((status = (int)check_stamp(c, &stamp, err)))
		return status;
	snprintf(result->sha256, sizeof result->sha256, "%s", stamp.sha256);
	result->bytes = stamp.identity.size;
	return (int)xfp_bundle_stamp_write(c->request->work, &stamp, err);
}

/* ---- the manifest ------------------------------------------------------------------------------ */

static const char *key_or_null(const char *key)
{
	return *key ? key : NULL;
}

/* Key of the first fit of a unit that is kept. */
static const char *first_fit(const struct xfp_unit_state *state)
{
	return *state->key[XFP_STAMP_FIT] ? state->key[XFP_STAMP_FIT] : state->key[XFP_STAMP_LIBRARY];
}

bool xfp_record_units(struct xfp_conversion *c)
{
	struct xfp_error behind = { 0 };
	enum xfp_status status = XFP_OK;

	if (!c->place.run || c->events.record_lost)
		return !c->events.record_lost;
	status = xfp_manifest_begin(c->place.manifest, &behind);
	for (uint32_t i = 0; !status && i < c->units.ledger->unit_count; i++) {
		const struct xfp_ledger_unit *unit = &c->units.ledger->units[i];
		struct xfp_unit_state *state = &c->units.state[i];
		bool direct = unit->plan != XFP_PLAN_FIT, kept = state->choice.candidate.mode == XFP_MODE_KEEP;
		enum xfp_mode mode = unit->plan == XFP_PLAN_FP8    ? XFP_MODE_FP8
				     : unit->plan == XFP_PLAN_KEEP ? XFP_MODE_KEEP
								   : (enum xfp_mode)state->choice.candidate.mode;
		struct xfp_run_unit record = {
			.number = i,
			.name = unit->name,
			.class_ = xfp_class_name(unit->class_),
			.role = unit->role,
			.experts = unit->experts,
			.rows = unit->rows,
			.cols = unit->cols,
			.choice = direct ? NULL : &state->choice,
			.mode = xfp_mode_name(mode),
			.survey = key_or_null(state->key[XFP_STAMP_SURVEY]),
			.scales = key_or_null(state->key[XFP_STAMP_SCALES]),
			.outliers = key_or_null(state->key[XFP_STAMP_OUTLIERS]),
			.fit = key_or_null(kept ? first_fit(state) : state->choice.fit),
			.choice_key = key_or_null(state->key[XFP_STAMP_CHOICE]),
			.packed = key_or_null(state->key[XFP_STAMP_PACKED]),
			.fitted = state->made & (1u << XFP_STAMP_FIT | 1u << XFP_STAMP_LIBRARY),
			.repacked = state->made & 1u << XFP_STAMP_PACKED,
			.seconds = state->seconds,
		};

		if (state->done && !state->recorded &&
		    !(status = xfp_manifest_run_unit(c->place.manifest, c->place.run, &record, &behind)))
			state->recorded = true;
	}
	if (xfp_manifest_commit(c->place.manifest, status ? NULL : &behind) || status) {
		c->events.record_lost = true;
		XFP_NOTIFY(c, .kind = XFP_NOTICE_RECORD_LOST, .text = behind.text);
	}
	return !c->events.record_lost;
}

/* ---- sums --------------------------------------------------------------------------------------- */

static void count_missed(const struct xfp_choice *choice, struct xfp_run_tally *tally)
{
	if (choice->met)
		return;
	tally->missed++;
	if (choice->fixed)
		tally->fixed++;
	else if (choice->sample && choice->sample_median >= (double)choice->floor / XFP_NANO)
		tally->sampled++;
	else
		tally->best++;
}

/* Count from the bundle, since the choices no longer exist. */
static void count_bundle(const struct xfp_conversion *c, struct xfp_run_tally *tally)
{
	struct xfp_bundle *bundle = NULL;
	struct xfp_unit_info unit;

	if (xfp_bundle_open(c->request->out, &bundle, NULL))
		return;
	for (uint32_t u = 0; xfp_bundle_unit(bundle, u, &unit); u++) {
		tally->missed += !unit.met;
		tally->best += !unit.met;
		tally->kept += unit.mode == XFP_MODE_KEEP;
	}
	xfp_bundle_close(bundle);
}

struct xfp_run_tally xfp_count_run(const struct xfp_conversion *c)
{
	struct xfp_run_tally tally = { .units = c->units.ledger->unit_count };

	for (uint32_t i = 0; i < tally.units; i++) {
		tally.repacked += c->units.state[i].made >> XFP_STAMP_PACKED & 1;
		tally.fitted += !!(c->units.state[i].made & (1u << XFP_STAMP_FIT | 1u << XFP_STAMP_LIBRARY));
		tally.seconds += c->units.state[i].seconds;
		if (c->drop.stands_alone || c->units.ledger->units[i].plan != XFP_PLAN_FIT)
			continue;
		count_missed(&c->units.state[i].choice, &tally);
		if (c->units.state[i].choice.candidate.mode == XFP_MODE_KEEP)
			++*(c->units.state[i].nonfinite ? &tally.nonfinite : &tally.kept);
	}
	if (c->drop.stands_alone)
		count_bundle(c, &tally);
	return tally;
}
