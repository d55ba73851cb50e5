/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/printable.h"
#include "cache/key.h"
#include "cache/manifest_db.h"
#include "schemas/artifact.h"

struct checking {
	const struct xfp_store *store;
	const struct xfp_census *census;
	bool known;
	const struct xfp_check_rules *rules;
	const struct xfp_check_hooks *hooks;
	struct xfp_check_result *result;
	uint64_t seed, highest; /* the sample: items whose digest with the seed is at most `highest` */
	uint64_t done, total;   /* for the progress callback */
};

static enum xfp_status report_finding(const struct checking *c, const struct xfp_finding *finding,
				      struct xfp_error *err)
{
	c->result->found[finding->what]++;
	return c->hooks->found(finding, c->hooks->context, err);
}

/* ---- which artifacts are read ------------------------------------------------------------------ */

static uint64_t sample_hash(const struct checking *c, const char *key)
{
	return XXH3_64bits_withSeed(key, 32, c->seed);
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Draw a different sample each time, so that many small checks eventually cover everything. */
static enum xfp_status draw(struct checking *c, struct xfp_error *err)
{
	const struct xfp_census *census = c->census;
	double share = c->rules->percent * census->count / 100;
	uint64_t *hashes;
	size_t count = (size_t)share;

	c->highest = UINT64_MAX;
	if (!c->rules->read || !c->rules->percent || !census->count)
		return XFP_OK;
	count += (double)count < share;
	if (getrandom(&c->seed, sizeof c->seed, 0) != sizeof c->seed)
		return xfp_fail_errno(err, errno, "cannot read random numbers");
	if (!(hashes = malloc(census->count * sizeof *hashes)))
		return xfp_no_memory(err);
	for (uint32_t i = 0; i < census->count; i++)
		hashes[i] = sample_hash(c, census->items[i].key);
	qsort(hashes, census->count, sizeof *hashes, ascending);
	c->highest = hashes[(count < census->count ? count : census->count) - 1];
	free(hashes);
	return XFP_OK;
}

static bool is_read(const struct checking *c, const struct xfp_census_item *item)
{
	char front[9];

	if (!c->rules->read || !item->present)
		return false;
	if (!c->rules->of)
		return c->rules->percent == 0 || sample_hash(c, item->key) <= c->highest;
	/* Keys are digests, so their first digits are effectively random. */
	memcpy(front, item->key, 8);
	front[8] = 0;
	return strtoul(front, NULL, 16) % c->rules->of == c->rules->part - 1;
}

/* ---- one artifact ------------------------------------------------------------------------------ */

/* Check the digest, label and key of an artifact. *what is the kind of problem if the status is not XFP_OK. */
static enum xfp_status read_whole(const struct checking *c, const struct xfp_census_item *item, const char *path,
				  enum xfp_finding_kind *what, struct xfp_error *err)
{
	struct xfp_artifact_label label;
	struct xfp_artifact artifact;
	enum xfp_status status = xfp_artifact_open(path, NULL, 0, item->key, &artifact, err);
	char key[33];

	if (status)
		return status;
	status = xfp_artifact_get_label(&artifact, &label, err);
	xfp_artifact_close(&artifact);
	if (status)
		return status;
	xfp_key_of_text(label.key_text, key);
	if (strcmp(key, item->key)) {
		status = xfp_fail(err, XFP_DAMAGED,
				  "%s: damaged artifact (its key does not match its key text); it will be "
				  "made again",
				  path);
	} else if (!xfp_manifest_supports(label.kind, label.version)) {
		*what = XFP_FINDING_OTHER;
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: made by another version of xfp (%s %" PRIu32 ")", path,
				  xfp_printable(label.kind).text, label.version);
	} else if (c->known && item->known && strcmp(item->kind, label.kind)) {
		*what = XFP_FINDING_DIFFERS;
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: kind %s, but the manifest says %s", path,
				  xfp_printable(label.kind).text, xfp_printable(item->kind).text);
	}
	xfp_artifact_label_free(&label);
	return status;
}

static enum xfp_status check_file(struct checking *c, const struct xfp_census_item *item, const char *path,
				  struct xfp_error *err)
{
	struct xfp_finding finding = { .key = item->key, .path = path, .kind = item->kind, .unit = item->unit };
	enum xfp_finding_kind what = XFP_FINDING_DAMAGED;
	bool read = is_read(c, item);
	struct xfp_error why = { 0 };
	enum xfp_status status;
	size_t skip = strlen(path) + 2;

	status = read ? read_whole(c, item, path, &what, &why) : xfp_artifact_check_header(path, &why);
	/* Another process may remove the artifact in the meantime. */
	if ((status == XFP_FAILED || status == XFP_DAMAGED) && access(path, F_OK))
		return XFP_OK;
	c->result->artifacts++;
	c->result->bytes += item->bytes;
	c->result->read += read;
	c->result->read_bytes += read ? item->bytes : 0;
	if (!status && c->known && item->known && item->bytes != item->known_bytes) {
		what = XFP_FINDING_DIFFERS;
		status = xfp_fail(&why, XFP_BAD_INPUT, "%s: %" PRIu64 " bytes, but the manifest says %" PRIu64, path,
				  item->bytes, item->known_bytes);
	}
	if (!status)
		return XFP_OK;
	finding.what = status == XFP_FAILED ? XFP_FINDING_UNREADABLE : what;
	finding.message = !strncmp(why.text, path, skip - 2) ? why.text + skip : why.text;
	return report_finding(c, &finding, err);
}

static enum xfp_status check_item(struct checking *c, const struct xfp_census_item *item, struct xfp_error *err)
{
	struct xfp_finding finding = { .key = item->key, .kind = item->kind, .unit = item->unit };
	char *path = xfp_store_path(c->store, item->key);
	enum xfp_status status = XFP_OK;

	if (!path)
		return xfp_no_memory(err);
	finding.path = path;
	if (item->present)
		status = check_file(c, item, path, err);
	if (!status && c->known && item->known && !item->present) {
		finding.what = XFP_FINDING_MISSING;
		finding.message = "missing, but listed in the manifest";
		status = report_finding(c, &finding, err);
	} else if (!status && c->known && !item->known) {
		finding.what = XFP_FINDING_UNKNOWN;
		finding.message = "not in the manifest";
		status = report_finding(c, &finding, err);
	}
	free(path);
	return status;
}

/* ---- the cache --------------------------------------------------------------------------------- */

static enum xfp_status check_others(const struct checking *c, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t i = 0; !status && i < c->census->other_count; i++) {
		const struct xfp_census_other *other = &c->census->others[i];
		struct xfp_finding finding = { .key = "", .path = other->path, .kind = "", .unit = "" };

		if (other->what == XFP_STORE_UNKNOWN) {
			finding.what = XFP_FINDING_STRAY;
			finding.message = "not made by xfp";
		} else if (other->what == XFP_STORE_DEBRIS) {
			finding.what = XFP_FINDING_DEBRIS;
			finding.message = "left by a process that has ended";
		} else if (other->what == XFP_STORE_SUPERSEDED) {
			finding.what = XFP_FINDING_DEBRIS;
			finding.message = "an old manifest";
		} else {
			continue;
		}
		status = report_finding(c, &finding, err);
	}
	return status;
}

enum xfp_status xfp_check_cache(const struct xfp_store *store, const struct xfp_census *census, bool known,
				const struct xfp_check_rules *rules, const struct xfp_check_hooks *hooks,
				struct xfp_check_result *result, struct xfp_error *err)
{
	struct checking c = { store, census, known, rules, hooks, result, 0, 0, 0, 0 };
	enum xfp_status status = draw(&c, err);

	if (status)
		return status;
	for (uint32_t i = 0; i < census->count; i++)
		c.total += rules->read ? is_read(&c, &census->items[i]) * census->items[i].bytes : 1;
	for (uint32_t i = 0; !status && i < census->count; i++) {
		status = check_item(&c, &census->items[i], err);
		c.done += rules->read ? is_read(&c, &census->items[i]) * census->items[i].bytes : 1;
		if (hooks->progress)
			hooks->progress(c.done, c.total, hooks->context);
	}
	return status ? status : check_others(&c, err);
}
