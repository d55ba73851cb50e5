/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - xfp cache check: verify a cache and, on request, remove damaged artifacts.
 */
#include "cache/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/text/screen.h"
#include "base/text/size.h"
#include "commands/cache/cache.h"
#include "schemas/parameters.h"

#define MAX_SHOWN 20 /* most lines printed per kind of harmless finding */

static const char *const names[XFP_FINDINGS] = {
	[XFP_FINDING_DAMAGED] = "damaged",   [XFP_FINDING_UNREADABLE] = "unreadable",
	[XFP_FINDING_MANIFEST] = "manifest", [XFP_FINDING_OTHER] = "other version",
	[XFP_FINDING_MISSING] = "gone",      [XFP_FINDING_UNKNOWN] = "not in the manifest",
	[XFP_FINDING_DIFFERS] = "differs",   [XFP_FINDING_STRAY] = "unknown file",
	[XFP_FINDING_DEBRIS] = "leftover",
};

struct check_report {
	const struct xfp_cache_call *call;
	const struct xfp_store *store;
	struct xfp_manifest *writable; /* for --remove; NULL without it, or without a manifest */
	struct xfp_cache_progress progress;
	struct xfp_check_result result;
	uint64_t removed;
	bool complained; /* a warning about the manifest was printed */
	json_t *findings;
};

/* ---- findings ---------------------------------------------------------------------------------- */

static bool is_removed(const struct check_report *s, const struct xfp_finding *finding)
{
	return s->call->remove && finding->what == XFP_FINDING_DAMAGED;
}

static json_t *finding_json(const struct check_report *s, const struct xfp_finding *finding)
{
	return XFP_JSON({ "what", xfp_json_text(names[finding->what]) }, { "key", xfp_json_text(finding->key) },
			{ "path", xfp_json_text(finding->path) }, { "kind", xfp_json_text(finding->kind) },
			{ "unit", xfp_json_text(finding->unit) }, { "message", xfp_json_text(finding->message) },
			{ "removed", json_boolean(is_removed(s, finding)) });
}

/* The row is removed before the file, as everywhere. If another process has just replaced the file with a good one,
 * that one is recomputed, too. */
static enum xfp_status remove_damaged(struct check_report *s, const char *key, struct xfp_error *err)
{
	enum xfp_status status = s->writable ? xfp_manifest_remove_artifact(s->writable, key, err) : XFP_OK;

	if (status)
		return status;
	xfp_store_remove(s->store, key);
	if (xfp_store_has(s->store, key))
		return xfp_fail(err, XFP_FAILED, "%s: artifact %s cannot be removed", s->store->folder, key);
	s->removed++;
	return XFP_OK;
}

static enum xfp_status found(const struct xfp_finding *finding, void *context, struct xfp_error *err)
{
	struct check_report *s = context;
	uint64_t count = s->result.found[finding->what];
	bool bad = finding->what <= XFP_FINDING_MANIFEST;

	if (s->call->json) {
		xfp_json_add(&s->findings, finding_json(s, finding));
	} else if (bad || count <= MAX_SHOWN) {
		xfp_cache_progress_clear(&s->progress);
		printf("%s: %s%s%s%s\n", xfp_printable(finding->path).text, finding->message,
		       *finding->unit ? " (" : "", xfp_printable(finding->unit).text, *finding->unit ? ")" : "");
	} else if (count == MAX_SHOWN + 1) {
		printf("and more that are %s\n", names[finding->what]);
	}
	return is_removed(s, finding) ? remove_damaged(s, finding->key, err) : XFP_OK;
}

static void progress(uint64_t done, uint64_t total, void *context)
{
	struct check_report *s = context;

	xfp_cache_progress_show(done, total, &s->progress);
}

/* ---- the manifest ------------------------------------------------------------------------------ */

static enum xfp_status complain(struct check_report *s, const char *message, struct xfp_error *err)
{
	char *path = xfp_path(s->store->folder, XFP_STORE_MANIFEST);
	struct xfp_finding finding = { XFP_FINDING_MANIFEST, "", path, "", "", message };
	enum xfp_status status;

	if (!path)
		return xfp_no_memory(err);
	s->result.found[finding.what]++;
	status = found(&finding, s, err);
	s->complained = true;
	free(path);
	return status;
}

static enum xfp_status check_manifest(struct check_report *s, const struct xfp_cache *cache, struct xfp_error *err)
{
	char *complaints = NULL, *rest, *line;
	enum xfp_status status = XFP_OK;

	if (cache->state == XFP_MANIFEST_DAMAGED)
		return complain(s, "damaged", err);
	if (!cache->manifest || (status = xfp_check_manifest(cache->manifest, &complaints, err)))
		return status;
	rest = complaints;
	while (!status && (line = strsep(&rest, "\n")))
		if (*line)
			status = complain(s, line, err);
	free(complaints);
	return status;
}

/* ---- summary ----------------------------------------------------------------------------------- */

static void print_remedies(const struct check_report *s)
{
	const uint64_t *n = s->result.found;
	uint64_t behind = n[XFP_FINDING_MISSING] + n[XFP_FINDING_UNKNOWN] + n[XFP_FINDING_DIFFERS];
	const char *folder = s->call->folder;

	if (s->removed)
		printf("%" PRIu64 " damaged and removed; the next conversion that needs them recomputes them\n",
		       s->removed);
	else if (n[XFP_FINDING_DAMAGED])
		xfp_screen_printf(stdout,
				  "%" PRIu64 " damaged. Remedy: xfp cache check%s --remove --cache %s\n"
				  "(a conversion that needs one detects the damage and recomputes it)\n",
				  n[XFP_FINDING_DAMAGED], s->call->read ? " --read-data" : "", folder);
	if (n[XFP_FINDING_UNREADABLE])
		printf("%" PRIu64 " cannot be read; check their permissions and the disk\n", n[XFP_FINDING_UNREADABLE]);
	if (n[XFP_FINDING_MANIFEST])
		xfp_screen_printf(stdout, "the manifest is damaged. Remedy: xfp cache rebuild --cache %s\n", folder);
	else if (behind)
		xfp_screen_printf(
			stdout,
			"the manifest is out of date, which is harmless; xfp cache rebuild --cache %s updates it\n",
			folder);
	if (n[XFP_FINDING_OTHER] + n[XFP_FINDING_DEBRIS])
		xfp_screen_printf(stdout,
				  "to remove artifacts of other versions and leftovers: xfp cache gc --cache %s\n",
				  folder);
}

static void print_sum(const struct check_report *s)
{
	const struct xfp_check_result *r = &s->result;
	char bytes[32], read[32];

	printf("%" PRIu64 " artifacts, %s", r->artifacts, xfp_human((double)r->bytes, "B", bytes));
	if (r->read)
		printf("; %" PRIu64 " of them read, %s", r->read, xfp_human((double)r->read_bytes, "B", read));
	puts(r->found[XFP_FINDING_DAMAGED] || r->found[XFP_FINDING_UNREADABLE] || r->found[XFP_FINDING_MANIFEST]
		     ? ""
		     : ": no damage found");
}

static enum xfp_status print_json(struct check_report *s, const struct xfp_cache *cache, struct xfp_error *err)
{
	const struct xfp_check_result *r = &s->result;

	return xfp_json_print(
		XFP_JSON({ "cache", xfp_json_text(s->store->folder) },
			 { "manifest", xfp_json_text(s->complained ? "damaged" : xfp_cache_state_name(cache->state)) },
			 { "artifacts", xfp_json_count(r->artifacts) }, { "bytes", xfp_json_count(r->bytes) },
			 { "read", xfp_json_count(r->read) }, { "read_bytes", xfp_json_count(r->read_bytes) },
			 { "damaged", xfp_json_count(r->found[XFP_FINDING_DAMAGED]) },
			 { "unreadable", xfp_json_count(r->found[XFP_FINDING_UNREADABLE]) },
			 { "removed", xfp_json_count(s->removed) }, { "findings", json_incref(s->findings) }),
		err);
}

/* ---- the command ------------------------------------------------------------------------------- */

static enum xfp_status open_for_removal(struct check_report *s, const struct xfp_cache *cache, struct xfp_error *err)
{
	if (!s->call->remove)
		return XFP_OK;
	if (s->store->read_only)
		return xfp_fail(err, XFP_FAILED, "%s: is read-only, so nothing can be removed from it",
				s->store->folder);
	return cache->manifest ? xfp_manifest_open(s->store, &s->writable, NULL, err) : XFP_OK;
}

static int run(const struct xfp_cache_call *call, struct xfp_error *err)
{
	const struct xfp_check_rules rules = { call->read, call->part, call->of, call->percent };
	struct check_report s = { .call = call };
	struct xfp_check_hooks hooks = { found, progress, &s };
	struct xfp_cache cache;
	enum xfp_status status = xfp_cache_open(call->folder, &cache, err);

	if (status)
		return status;
	s.store = &cache.store;
	s.findings = call->json ? json_array() : NULL;
	xfp_cache_progress_begin(&s.progress, call->program);
	if (!(status = check_manifest(&s, &cache, err)) && !(status = open_for_removal(&s, &cache, err)))
		status = xfp_check_cache(&cache.store, &cache.census, cache.manifest && !s.complained, &rules, &hooks,
					 &s.result, err);
	xfp_cache_progress_clear(&s.progress);
	xfp_manifest_close(s.writable);
	if (!status && call->json) {
		status = print_json(&s, &cache, err);
	} else if (!status) {
		if (cache.state != XFP_MANIFEST_DAMAGED)
			xfp_cache_mention_state(call, &cache);
		print_sum(&s);
		print_remedies(&s);
	}
	if (!status && (s.result.found[XFP_FINDING_DAMAGED] > s.removed || s.result.found[XFP_FINDING_MANIFEST]))
		status = XFP_BAD_INPUT;
	else if (!status && s.result.found[XFP_FINDING_UNREADABLE])
		status = XFP_FAILED;
	json_decref(s.findings);
	xfp_cache_close(&cache);
	return status;
}

/* Parse "2/7", the second of seven parts, or "2.5%", a random sample of that share. */
static bool parse_subset(const char *text, struct xfp_cache_call *call)
{
	char number[32] = "";
	unsigned part, of;
	uint32_t millionths;
	size_t length;
	int end = 0;

	if (*text >= '0' && *text <= '9' && sscanf(text, "%u/%u%n", &part, &of, &end) == 2 && !text[end]) {
		call->part = part;
		call->of = of;
		return part >= 1 && part <= of && of <= 1000000;
	}
	length = strlen(text);
	if (length < 2 || length >= sizeof number || text[length - 1] != '%')
		return false;
	memcpy(number, text, length - 1);
	if (!xfp_decimal_parse(number, 1000000, &millionths) || !millionths || millionths > 100000000)
		return false;
	call->percent = millionths / 1e6;
	return true;
}

static enum xfp_status parse_subset_option(const struct xfp_option *option, const char *where, const char *value,
					   struct xfp_error *err)
{
	struct xfp_cache_call *call = option->context;

	call->read = true;
	if (parse_subset(value, call))
		return XFP_OK;
	return xfp_fail(err, XFP_USAGE,
			"%s '%s': expected a part such as 2/7, the second of seven, or a percentage such as 5%%", where,
			xfp_printable(value).text);
}

static size_t options(struct xfp_cache_call *call, struct xfp_option own[XFP_CACHE_OPTIONS])
{
	size_t count = 0;

	own[count++] = (struct xfp_option){ .name = "read-data",
					    .text = "read every artifact and check its digest",
					    .set = &call->read };
	own[count++] = (struct xfp_option){ .name = "read-data-subset",
					    .value = "PART",
					    .complete = "1/2|1/7|5%",
					    .text = "read only a part: 2/7 is the second of seven, 5% a random sample",
					    .parse = parse_subset_option,
					    .context = call };
	own[count++] = (struct xfp_option){ .name = "remove",
					    .text = "remove damaged artifacts; they are computed again when needed",
					    .set = &call->remove };
	return count;
}

const struct xfp_cache_command xfp_cache_check = {
	.name = "check",
	.usage = "xfp cache check [--cache DIR] [--read-data] [--read-data-subset PART] [--remove] [--json]",
	.text = "check artifacts and manifest for damage",
	.summary = "Checks names, sizes and headers of the artifacts, and the manifest; reads their data on request.\n"
		   "Status 3 if something is damaged.",
	.options = options,
	.run = run,
};
