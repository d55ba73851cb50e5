/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/convert/finish.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/system/mapped.h"
#include "base/text/screen.h"
#include "base/text/size.h"
#include "commands/convert/drop_cache.h"
#include "commands/convert/run_make.h"
#include "commands/convert/unchanged.h"
#include "commands/goal/goal.h"
#include "commands/ui/report.h"
#include "commands/ui/whole.h"
#include "runtime/xfp.h"
#include "schemas/json_print.h"
#include "stages/work/decided.h"

#define MOST_MISSES 5 /* units that the summary names */
#define LABELS 7      /* columns of "sha256 " and the like */

/* Artifacts are to go about as fast as the bundle grows. */
#define MOVE_TICK_MS 20

/* ---- what an earlier run wrote ------------------------------------------------------------------ */

static enum xfp_status find_stamp(const struct xfp_conversion *c, bool alone, struct xfp_result *result,
				  struct xfp_error *err)
{
	struct xfp_bundle_stamp stamp;
	enum xfp_status status;

	xfp_mapped_begin(c->options.program, c->options.out, NULL);
	status = xfp_bundle_stamp_matches(c, alone, &stamp, &result->unchanged, err);
	xfp_mapped_end();
	if (!status && result->unchanged) {
		snprintf(result->sha256, sizeof result->sha256, "%s", stamp.sha256);
		result->bytes = stamp.identity.size;
	}
	return status;
}

static enum xfp_status take_stamp(const struct xfp_conversion *c, struct xfp_bundle_stamp *stamp, struct xfp_error *err)
{
	enum xfp_status status;

	xfp_mapped_begin(c->options.program, c->options.out, NULL);
	status = xfp_bundle_stamp_take(c->options.out, stamp, err);
	xfp_mapped_end();
	return status;
}

enum xfp_status xfp_bundle_is_current(const struct xfp_conversion *c, struct xfp_result *result, struct xfp_error *err)
{
	return find_stamp(c, false, result, err);
}

enum xfp_status xfp_bundle_is_alone(const struct xfp_conversion *c, struct xfp_result *result, struct xfp_error *err)
{
	return find_stamp(c, true, result, err);
}

enum xfp_status xfp_bundle_stand_alone(const struct xfp_conversion *c, const struct xfp_result *result,
				       struct xfp_error *err)
{
	struct xfp_bundle_stamp stamp;
	enum xfp_status status = xfp_bundle_stamp_key(c, true, stamp.key, err);

	snprintf(stamp.sha256, sizeof stamp.sha256, "%s", result->sha256);
	if (!status)
		status = take_stamp(c, &stamp, err);
	return status ? status : xfp_bundle_stamp_write(c->options.work, &stamp, err);
}

/* ---- writing it -------------------------------------------------------------------------------- */

/* As xfp-bundle reported it, in a line whose seal fits. */
static bool find_sha256(const struct xfp_conversion *c, char sha256[65])
{
	uint64_t offset = c->events_read;
	char *text = NULL, *rest, *line;
	struct xfp_event event;
	bool found = false;

	if (xfp_events_read(c->options.work, &offset, &text, NULL))
		return false;
	for (rest = text; (line = strsep(&rest, "\n"));)
		if (xfp_event_parse(line, &event) && event.unit == XFP_NO_UNIT &&
		    !strcmp(event.stage, XFP_BUNDLE_STAGE) && !strcmp(event.outcome, "made") &&
		    strspn(event.message, "0123456789abcdef") == 64) {
			snprintf(sha256, 65, "%.64s", event.message);
			found = true;
		}
	free(text);
	return found;
}

/* What xfp-bundle is to find in the work folder. */
static enum xfp_status decided(const struct xfp_conversion *c, char hex[33], struct xfp_error *err)
{
	struct xfp_digest *digest = xfp_decided_begin(&c->options.parameters);
	struct xfp_identity *files = xfp_decided_files(c->ledger);

	if (!digest || !files) {
		if (digest)
			xfp_digest_final(digest, NULL);
		free(files);
		return xfp_no_memory(err);
	}
	for (uint32_t i = 0; i < c->ledger->extra_count; i++)
		xfp_decided_file(digest, c->ledger->extras[i], &files[i]);
	free(files);
	for (uint32_t i = 0; i < c->ledger->unit_count; i++)
		xfp_decided_unit(digest, c->units[i].key[XFP_STAMP_CHOICE], c->units[i].key[XFP_STAMP_PACKED]);
	xfp_decided_end(digest, hex);
	return XFP_OK;
}

/* What there is to do while it is written. */
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

int xfp_bundle_make(struct xfp_conversion *c, struct xfp_signals *signals, void (*tick)(void *context), void *context,
		    struct xfp_result *result, struct xfp_error *err)
{
	char expected[33] = "";
	bool move = xfp_drops_units(c);
	struct bundle_tick all = { c, move, tick, context };
	const char *argv[] = { XFP_BUNDLE_PROGRAM,
			       "--work",
			       c->options.work,
			       "--cache",
			       c->options.cache,
			       "--expect",
			       expected,
			       "--",
			       c->options.out,
			       NULL,
			       NULL };
	char *path = xfp_path(c->options.work, XFP_BUNDLE_STAMP);
	struct xfp_bundle_stamp stamp;
	off_t before = xfp_log_size(c);
	int status;

	if (!path)
		return (int)xfp_no_memory(err);
	unlink(path);
	free(path);
	/* Before it is written: a small file that changes meanwhile makes the stamp an old one. */
	if ((status = (int)xfp_bundle_stamp_key(c, false, stamp.key, err)) || (status = (int)decided(c, expected, err)))
		return status;
	if (move) {
		if ((status = (int)xfp_drop_moved_begin(c, err)))
			return status;
		argv[7] = "--move";
		argv[8] = "--";
		argv[9] = c->options.out;
		c->tick_ms = MOVE_TICK_MS;
	}
	status = xfp_run(c, signals, argv, NULL, tick_bundle, &all, err);
	c->tick_ms = 0;
	if (move)
		xfp_drop_moved(c);
	if (status && !signals->interrupted) {
		xfp_log_show(c, before);
		xfp_log_keep(c, before);
	}
	if (status)
		return status == XFP_DAMAGED ? status : (int)xfp_child_status(status);
	if (!find_sha256(c, stamp.sha256))
		return (int)xfp_fail(err, XFP_FAILED, "%s: xfp-bundle did not report it", c->options.out);
	if ((status = (int)take_stamp(c, &stamp, err)))
		return status;
	snprintf(result->sha256, sizeof result->sha256, "%s", stamp.sha256);
	result->bytes = stamp.identity.size;
	return (int)xfp_bundle_stamp_write(c->options.work, &stamp, err);
}

/* ---- the manifest ------------------------------------------------------------------------------ */

static const char *key_or_null(const char *key)
{
	return *key ? key : NULL;
}

/* Of the fits that a unit that is kept was not stored by. */
static const char *first_fit(const struct xfp_unit_state *state)
{
	return *state->key[XFP_STAMP_FIT] ? state->key[XFP_STAMP_FIT] : state->key[XFP_STAMP_LIBRARY];
}

bool xfp_record_units(struct xfp_conversion *c)
{
	struct xfp_error behind = { 0 };
	enum xfp_status status = XFP_OK;

	if (!c->run || c->record_lost)
		return !c->record_lost;
	status = xfp_manifest_begin(c->manifest, &behind);
	for (uint32_t i = 0; !status && i < c->ledger->unit_count; i++) {
		const struct xfp_ledger_unit *unit = &c->ledger->units[i];
		struct xfp_unit_state *state = &c->units[i];
		bool alone = unit->plan != XFP_PLAN_FIT, kept = state->choice.candidate.mode == XFP_MODE_KEEP;
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
			.choice = alone ? NULL : &state->choice,
			.mode = xfp_mode_name(mode),
			.outliers = key_or_null(state->key[XFP_STAMP_OUTLIERS]),
			.fit = key_or_null(kept ? first_fit(state) : state->choice.fit),
			.choice_key = key_or_null(state->key[XFP_STAMP_CHOICE]),
			.packed = key_or_null(state->key[XFP_STAMP_PACKED]),
			.fitted = state->made & (1u << XFP_STAMP_FIT | 1u << XFP_STAMP_LIBRARY),
			.repacked = state->made & 1u << XFP_STAMP_PACKED,
			.seconds = state->seconds,
		};

		if (state->done && !state->recorded &&
		    !(status = xfp_manifest_run_unit(c->manifest, c->run, &record, &behind)))
			state->recorded = true;
	}
	if (xfp_manifest_commit(c->manifest, status ? NULL : &behind) || status) {
		c->record_lost = true;
		fprintf(stderr, "xfp: what this run used is not in the manifest: %s\n", behind.text);
	}
	return !c->record_lost;
}

/* ---- the summary ------------------------------------------------------------------------------- */

struct run_tally {
	uint32_t units, repacked, fitted;
	uint32_t kept, nonfinite; /* at source precision for want of a candidate: below the floor, none at all */
	uint32_t missed;          /* below their floor: */
	uint32_t fixed, sampled;  /* with the bits that were asked for; with what met it by a sample; */
	uint32_t best;            /* with the best candidate */
	double seconds;           /* of stages, all together */
};

static void count_missed(const struct xfp_choice *choice, struct run_tally *tally)
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

/* The choices are not known any more; the bundle tells what came of them. */
static void count_bundle(const struct xfp_conversion *c, struct run_tally *tally)
{
	struct xfp_bundle *bundle = NULL;
	struct xfp_unit_info unit;

	if (xfp_bundle_open(c->options.out, &bundle, NULL))
		return;
	for (uint32_t u = 0; xfp_bundle_unit(bundle, u, &unit); u++) {
		tally->missed += !unit.met;
		tally->best += !unit.met;
		tally->kept += unit.mode == XFP_MODE_KEEP;
	}
	xfp_bundle_close(bundle);
}

static struct run_tally count(const struct xfp_conversion *c)
{
	struct run_tally tally = { .units = c->ledger->unit_count };

	for (uint32_t i = 0; i < tally.units; i++) {
		tally.repacked += c->units[i].made >> XFP_STAMP_PACKED & 1;
		tally.fitted += !!(c->units[i].made & (1u << XFP_STAMP_FIT | 1u << XFP_STAMP_LIBRARY));
		tally.seconds += c->units[i].seconds;
		if (c->stands_alone || c->ledger->units[i].plan != XFP_PLAN_FIT)
			continue;
		count_missed(&c->units[i].choice, &tally);
		if (c->units[i].choice.candidate.mode == XFP_MODE_KEEP)
			++*(c->units[i].nonfinite ? &tally.nonfinite : &tally.kept);
	}
	if (c->stands_alone)
		count_bundle(c, &tally);
	return tally;
}

/* The table per class. */
static json_t *classes_json(const struct xfp_conversion *c, json_t **whole, struct xfp_error *err)
{
	struct xfp_bundle *bundle = NULL;
	struct xfp_whole sums;
	json_t *list;

	if (xfp_bundle_open(c->options.out, &bundle, err))
		return NULL;
	sums = xfp_whole_of_bundle(bundle);
	sums.stored = xfp_whole_stored(c->ledger);
	if (!(list = xfp_report_classes(bundle)) || !(*whole = xfp_whole_json(&sums)))
		xfp_no_memory(err);
	xfp_bundle_close(bundle);
	return list;
}

static enum xfp_status print_json(const struct xfp_conversion *c, const struct xfp_result *result,
				  const struct run_tally *tally, double seconds, struct xfp_error *err)
{
	json_t *whole = NULL, *classes = classes_json(c, &whole, err), *root;

	if (!classes || !whole) {
		json_decref(classes);
		json_decref(whole);
		return XFP_FAILED;
	}
	root = XFP_JSON(
		{ "bundle", xfp_json_text(c->options.out) }, { "sha256", xfp_json_text(result->sha256) },
		{ "bytes", json_integer((json_int_t)result->bytes) }, { "whole", whole },
		{ "unchanged", json_boolean(result->unchanged) }, { "weights", json_integer((json_int_t)c->weights) },
		{ "units", json_integer((json_int_t)tally->units) },
		{ "repacked", json_integer((json_int_t)tally->repacked) },
		{ "fitted", json_integer((json_int_t)tally->fitted) },
		{ "cached", json_integer((json_int_t)(tally->units - tally->repacked)) },
		{ "source_precision", json_integer((json_int_t)(tally->kept + tally->nonfinite)) },
		{ "below_floor", json_integer((json_int_t)tally->missed) }, { "seconds", json_real(seconds) },
		{ "stage_seconds", json_real(tally->seconds) },
		{ "dropped_bytes", json_integer((json_int_t)result->freed) },
		{ "work", xfp_json_text(c->options.work) }, { "goal", xfp_goal_json(c) }, { "classes", classes });
	return xfp_json_print(root, err);
}

static void print_missed(uint32_t count, const char *why)
{
	if (count)
		printf("%" PRIu32 " unit%s below %s floor: %s\n", count, count == 1 ? " is" : "s are",
		       count == 1 ? "its" : "their", why);
}

/* Units that are not what was asked for. */
static void print_misses(const struct run_tally *tally)
{
	if (tally->kept)
		printf("%" PRIu32 " unit%s at source precision: no candidate met %s floor\n", tally->kept,
		       tally->kept == 1 ? " stays" : "s stay", tally->kept == 1 ? "its" : "their");
	if (tally->nonfinite)
		printf("%" PRIu32 " unit%s at source precision: NaN or infinity\n", tally->nonfinite,
		       tally->nonfinite == 1 ? " stays" : "s stay");
	print_missed(tally->best, "no candidate met it, the best one was taken");
	print_missed(tally->fixed, "the bits were fixed, whatever it is");
	print_missed(tally->sampled, "the sampled experts met it, all of them together do not");
}

static enum xfp_status print_text(const struct xfp_conversion *c, const struct xfp_result *result,
				  const struct run_tally *tally, double seconds, struct xfp_error *err)
{
	struct xfp_bundle *bundle = NULL;
	enum xfp_status status = xfp_bundle_open(c->options.out, &bundle, err);
	struct xfp_recorded recorded = { .family = NULL };
	struct xfp_whole whole;
	char bytes[32];
	bool told;

	if (status)
		return status;
	told = !xfp_recorded_read(bundle, c->options.out, &recorded, NULL);
	whole = xfp_whole_of_bundle(bundle);
	whole.stored = xfp_whole_stored(c->ledger);
	whole.compact = c->options.parameters.modes >> XFP_MODE_V2C & 1;
	xfp_screen_printf(stdout, "%s%s\n", c->options.out, result->unchanged ? " is up to date" : "");
	xfp_whole_print(stdout, "", &whole);
	putchar('\n');
	xfp_report_table(stdout, bundle);
	printf("\nsha256 %s\n", result->sha256);
	printf("%" PRIu32 " units: %" PRIu32 " fitted, %" PRIu32 " packed now, %" PRIu32 " from the cache, in %.1f s\n",
	       tally->units, tally->fitted, tally->repacked, tally->units - tally->repacked, seconds);
	print_misses(tally);
	if (!c->stands_alone)
		xfp_goal_print(c, LABELS);
	xfp_report_misses(stdout, bundle, told ? &recorded : NULL, MOST_MISSES);
	xfp_recorded_free(&recorded);
	xfp_bundle_close(bundle);
	if (result->dropped)
		printf("cache  dropped, %s freed\n", xfp_human((double)result->freed, "B", bytes));
	xfp_screen_printf(stdout, "log    %s/%s\n", c->options.work, XFP_LOG_FILE);
	return XFP_OK;
}

enum xfp_status xfp_print_summary(const struct xfp_conversion *c, const struct xfp_result *result, double seconds,
				  struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	struct run_tally tally;

	xfp_mapped_begin(c->options.program, c->options.out, NULL);
	tally = count(c);
	dprintf(c->log, "%" PRIu32 " units: %" PRIu32 " fitted, %" PRIu32 " packed now, %" PRIu32 " from the cache\n",
		tally.units, tally.fitted, tally.repacked, tally.units - tally.repacked);
	if (c->options.json)
		status = print_json(c, result, &tally, seconds, err);
	else if (!c->options.quiet)
		status = print_text(c, result, &tally, seconds, err);
	xfp_mapped_end();
	return status;
}
