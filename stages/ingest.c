/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outliers.h"
#include "packed.h"

/* ---- digests of the source --------------------------------------------------------------------- */

/* What the unit's first stage read: the survey or the outliers, which have the same tables, of a unit that is fitted,
 * the packed artifact of one that goes to fp8 or is kept. */
static enum xfp_status read_sources(const struct xfp_conversion *c, const struct xfp_ledger_unit *unit, const char *key,
				    uint8_t (*source)[16], struct xfp_error *err)
{
	char *path = xfp_store_path(&c->store, key);
	struct xfp_artifact artifact = { 0 };
	struct xfp_outliers outliers = { 0 };
	struct xfp_packed packed = { 0 };
	enum xfp_status status;
	uint32_t count;

	if (!path)
		return xfp_fail(err, XFP_FAILED, "out of memory");
	if (unit->plan != XFP_PLAN_FIT) {
		status = xfp_artifact_open(path, XFP_PACKED_KIND, XFP_PACKED_VERSION, key, &artifact, err);
		if (!status)
			status = xfp_packed_read(&artifact, &packed, err);
		count = packed.matrices;
	} else {
		status = xfp_artifact_open(path, NULL, 0, key, &artifact, err);
		if (!status)
			status = xfp_outliers_read(&artifact, &outliers, err);
		count = outliers.matrices;
	}
	if (!status && count != unit->experts)
		status = xfp_fail(err, XFP_DAMAGED, "%s: not of this unit", path);
	for (uint32_t m = 0; !status && m < count; m++)
		memcpy(source[m], outliers.source ? outliers.source[m] : packed.matrix[m].source, sizeof source[m]);
	xfp_artifact_close(&artifact);
	xfp_outliers_free(&outliers);
	xfp_packed_free(&packed);
	free(path);
	return status;
}

static enum xfp_status remember_sources(struct xfp_conversion *c, uint32_t number, const char *key,
					struct xfp_error *err)
{
	const struct xfp_ledger_unit *unit = &c->ledger->units[number];
	struct xfp_unit_state *state = &c->units[number];
	enum xfp_status status;

	if (state->known)
		return XFP_OK;
	if (!state->source && !(state->source = calloc(unit->experts, sizeof *state->source)))
		return xfp_fail(err, XFP_FAILED, "out of memory");
	if ((status = read_sources(c, unit, key, state->source, err)))
		return status;
	state->known = true;
	for (uint32_t m = 0; !status && m < unit->experts; m++) {
		uint32_t index = unit->first_matrix + m;
		const struct xfp_ledger_matrix *matrix = &c->ledger->matrices[index];
		const struct xfp_ledger_file *file = &c->ledger->files[c->ledger->tensors[matrix->tensor].file];
		struct xfp_matrix_source source = xfp_ledger_source(c->ledger, index);
		char region[160];

		xfp_region_format(&source, region);
		status = xfp_manifest_put_source(c->manifest, file->path, &file->identity, region, state->source[m],
						 err);
	}
	return status;
}

/* ---- events ------------------------------------------------------------------------------------ */

static void note_made(struct xfp_unit_state *state, const struct xfp_event *event)
{
	static const struct {
		const char *stage;
		enum xfp_stamp stamp;
	} stages[] = {
		{ "survey", XFP_STAMP_SURVEY },     { "outlier-extract", XFP_STAMP_OUTLIERS },
		{ "lloyd-fit", XFP_STAMP_FIT },     { "libfit", XFP_STAMP_LIBRARY },
		{ "autoselect", XFP_STAMP_CHOICE }, { "pack", XFP_STAMP_PACKED },
	};

	for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++)
		if (!strcmp(event->stage, stages[i].stage))
			state->made |= 1u << stages[i].stamp;
	state->seconds += event->seconds;
}

static bool tells_sources(const struct xfp_conversion *c, const struct xfp_event *event)
{
	if (c->ledger->units[event->unit].plan != XFP_PLAN_FIT)
		return !strcmp(event->stage, "pack");
	return !strcmp(event->stage, "survey") || !strcmp(event->stage, "outlier-extract");
}

static enum xfp_status take(struct xfp_conversion *c, const struct xfp_event *event, struct xfp_error *err)
{
	bool made = !strcmp(event->outcome, "made"), ours = event->unit < c->ledger->unit_count;
	enum xfp_status status = XFP_OK;

	if (event->status == XFP_DAMAGED) {
		c->damaged = true;
		return XFP_OK;
	}
	if (event->status && event->status != XFP_WANT_MORE && !c->failures++)
		c->failure = (enum xfp_status)event->status;
	if (event->status || strlen(event->key) != 32 || !ours || (!made && strcmp(event->outcome, "hit")))
		return XFP_OK;
	/* One that was dropped, or removed by another run: there is nothing to index. */
	if (!xfp_store_has(&c->store, event->key))
		return XFP_OK;
	if (made)
		note_made(&c->units[event->unit], event);
	status = c->leftovers ? xfp_manifest_ingest(c->manifest, &c->store, event->key, err)
			      : xfp_manifest_ingest_fresh(c->manifest, &c->store, event->key, err);
	/* What the unit was made of must be known even where the manifest cannot be written. */
	if (status != XFP_DAMAGED && tells_sources(c, event)) {
		enum xfp_status sources = remember_sources(c, event->unit, event->key, status ? NULL : err);

		status = sources == XFP_DAMAGED || !status ? sources : status;
	}
	if (status == XFP_DAMAGED) {
		c->damaged = true;
		status = XFP_OK;
	}
	return status;
}

enum xfp_status xfp_ingest(struct xfp_conversion *c, void (*each)(const struct xfp_event *event, void *context),
			   void *context, struct xfp_error *err)
{
	char *text, *rest, *line;
	struct xfp_error behind = { 0 };
	enum xfp_status status;

	if ((status = xfp_events_read(c->options.work, &c->events_read, &text, err)) || !text)
		return status;
	rest = text;
	status = xfp_manifest_begin(c->manifest, &behind);
	while ((line = strsep(&rest, "\n"))) {
		struct xfp_event event;
		enum xfp_status taken;

		if (!xfp_event_parse(line, &event))
			continue;
		taken = take(c, &event, status ? NULL : &behind);
		status = status ? status : taken;
		if (each)
			each(&event, context);
	}
	if (xfp_manifest_commit(c->manifest, status ? NULL : &behind) || status) {
		if (!c->manifest_behind)
			fprintf(stderr, "xfp: the manifest is behind: %s\n", behind.text);
		c->manifest_behind = true;
	}
	free(text);
	return XFP_OK;
}

enum xfp_status xfp_ingest_restart(struct xfp_conversion *c, struct xfp_error *err)
{
	char *path = xfp_path(c->options.work, XFP_EVENTS_FILE);
	enum xfp_status status = path ? xfp_remove_file(path, err) : xfp_fail(err, XFP_FAILED, "out of memory");

	c->events_read = 0;
	free(path);
	return status;
}
