/* SPDX-License-Identifier: Apache-2.0 */
/*
 * surveys.c - xfp cache export and xfp cache import: surveys as a file, for other caches.
 */
#include "cache/surveys.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/printable.h"
#include "base/text/screen.h"
#include "base/text/size.h"
#include "cache/lock.h"
#include "commands/cache/cache.h"
#include "conversion/run_state.h"
#include "stages/work/run_record.h"

/* ---- export ------------------------------------------------------------------------------------ */

/* List the surveys that the stamps of a work folder name; units of fixed thresholds have none. */
static enum xfp_status list_surveys(const char *work, const struct xfp_ledger *ledger, struct xfp_survey_place *list,
				    uint32_t *count, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	*count = 0;
	for (uint32_t i = 0; !status && i < ledger->unit_count; i++) {
		struct xfp_survey_place *place = &list[*count];

		place->unit = ledger->units[i].name;
		if (!(status = xfp_stamp_find(work, i, XFP_STAMP_SURVEY, place->key, err)) && *place->key)
			++*count;
	}
	if (!status && !*count)
		status = xfp_fail(err, XFP_BAD_INPUT,
				  "%s: has no surveys; conversions with a goal or with --outlier-sigma auto make them",
				  work);
	return status;
}

static enum xfp_status export_surveys(const struct xfp_cache_call *call, const char *folder, const char *work,
				      const struct xfp_ledger *ledger, uint32_t *count, struct xfp_error *err)
{
	struct xfp_survey_place *list = calloc(ledger->unit_count + (size_t)1, sizeof *list);
	struct xfp_store store = { 0 };
	enum xfp_status status = list ? list_surveys(work, ledger, list, count, err) : xfp_no_memory(err);
	int lock = -1;

	if (!status)
		status = xfp_store_open_readonly(folder, &store, err);
	if (!status)
		status = xfp_lock_shared(&store, call->program, &lock, err);
	if (!status)
		status = xfp_surveys_export(&store, list, count, call->output, err);
	xfp_lock_release(lock);
	xfp_store_close(&store);
	free(list);
	return status;
}

static enum xfp_status report_export(const struct xfp_cache_call *call, const char *folder, uint32_t count,
				     struct xfp_error *err)
{
	char size[32];
	struct stat st;

	if (stat(call->output, &st))
		st.st_size = 0;
	if (call->json)
		return xfp_json_print(XFP_JSON({ "cache", xfp_json_text(folder) },
					       { "file", xfp_json_text(call->output) },
					       { "surveys", xfp_json_count(count) },
					       { "bytes", xfp_json_count((uint64_t)st.st_size) }),
				      err);
	xfp_screen_printf(stdout, "%s: %" PRIu32 " surveys, %s\n", call->output, count,
			  xfp_human((double)st.st_size, "B", size));
	return XFP_OK;
}

static int run_export(const struct xfp_cache_call *call, struct xfp_error *err)
{
	char *work = NULL, *ledger_path = NULL;
	struct xfp_run_record record = { 0 };
	struct xfp_ledger *ledger = NULL;
	enum xfp_status status = XFP_OK;
	const char *folder = call->folder;
	uint32_t count = 0;

	if (!call->surveys || !call->output || !call->operand)
		status = xfp_fail(err, XFP_USAGE, "expected --surveys, -o FILE and a bundle or its work folder");
	if (!status)
		status = xfp_work_folder_of(call->operand, "name that folder", &work, err);
	if (!status && !(ledger_path = xfp_path(work, XFP_LEDGER_FILE)))
		status = xfp_no_memory(err);
	if (!status)
		status = xfp_ledger_read(ledger_path, &ledger, err);
	/* The run knows its cache. */
	if (!status && !call->named) {
		status = xfp_run_record_read(work, &record, err);
		folder = record.cache ? record.cache : folder;
	}
	if (!status)
		status = export_surveys(call, folder, work, ledger, &count, err);
	if (!status)
		status = report_export(call, folder, count, err);
	xfp_run_record_free(&record);
	xfp_ledger_free(ledger);
	free(ledger_path);
	free(work);
	return status;
}

static size_t export_options(struct xfp_cache_call *call, struct xfp_option own[XFP_CACHE_OPTIONS])
{
	size_t count = 0;

	own[count++] = (struct xfp_option){ .name = "surveys",
					    .text = "export the surveys of the conversion's units",
					    .set = &call->surveys };
	own[count++] = (struct xfp_option){ .name = "output",
					    .letter = 'o',
					    .value = "FILE",
					    .text = "the file to write",
					    .path = true,
					    .into = &call->output };
	return count;
}

const struct xfp_cache_command xfp_cache_export = {
	.name = "export",
	.usage = "xfp cache export --surveys [--cache DIR] [--json] -o FILE OUT.xfp|WORK",
	.text = "write the surveys of a conversion to a file, for others",
	.summary = "Writes the surveys of a conversion to a file. On another machine, xfp cache import reads it, and\n"
		   "conversions of the same weights to any size or floor then measure no survey again.\n"
		   "The cache is the conversion's, unless --cache names one.",
	.operand = "RUN",
	.options = export_options,
	.run = run_export,
};

/* ---- import ------------------------------------------------------------------------------------ */

struct import_report {
	const struct xfp_cache_call *call;
	json_t *differing;
};

static void differs(const char *key, const char *unit, void *context)
{
	struct import_report *report = context;

	if (report->call->json)
		xfp_json_add(&report->differing,
			     XFP_JSON({ "key", xfp_json_text(key) }, { "unit", xfp_json_text(unit) }));
	else
		xfp_screen_printf(stderr, "%s: unit %s: the cache keeps its own survey %s, which has other numbers\n",
				  report->call->program, unit, key);
}

static enum xfp_status report_import(const struct import_report *report, const struct xfp_surveys_imported *result,
				     struct xfp_error *err)
{
	const struct xfp_cache_call *call = report->call;

	if (call->json)
		return xfp_json_print(XFP_JSON({ "cache", xfp_json_text(call->folder) },
					       { "file", xfp_json_text(call->operand) },
					       { "surveys", xfp_json_count(result->total) },
					       { "imported", xfp_json_count(result->imported) },
					       { "known", xfp_json_count(result->known) },
					       { "differing", json_incref(report->differing) }),
				      err);
	xfp_screen_printf(stdout, "%s: %" PRIu32 " surveys, %" PRIu32 " imported into %s, %" PRIu32 " there already\n",
			  call->operand, result->total, result->imported, call->folder, result->known);
	return XFP_OK;
}

static int run_import(const struct xfp_cache_call *call, struct xfp_error *err)
{
	struct import_report report = { call, call->json ? json_array() : NULL };
	struct xfp_surveys_imported result = { .differs = differs, .context = &report };
	struct xfp_survey_reader reader = { 0 };
	struct xfp_manifest *manifest = NULL;
	struct xfp_store store = { 0 };
	enum xfp_status status = XFP_OK;
	int lock = -1;

	if (!call->operand)
		status = xfp_fail(err, XFP_USAGE, "expected a file that xfp cache export wrote");
	/* A file that cannot be used creates no cache. */
	if (!status)
		status = xfp_survey_file_open(call->operand, &reader, err);
	if (!status)
		status = xfp_store_open(call->folder, &store, err);
	if (!status && store.read_only)
		status = xfp_fail(err, XFP_FAILED, "%s: the cache is read-only; choose another with --cache",
				  call->folder);
	if (!status)
		status = xfp_lock_shared(&store, call->program, &lock, err);
	if (!status)
		status = xfp_manifest_open(&store, &manifest, NULL, err);
	if (!status)
		status = xfp_surveys_import(&store, manifest, &reader, &result, err);
	if (!status)
		status = report_import(&report, &result, err);
	if (!status && result.differing)
		status = xfp_fail(err, XFP_UNMET,
				  "%s: %" PRIu32
				  " surveys differ from those in %s, which stay; xfp convert --check-survey "
				  "finds out which are wrong",
				  call->operand, result.differing, call->folder);
	xfp_manifest_close(manifest);
	xfp_lock_release(lock);
	xfp_store_close(&store);
	xfp_survey_file_close(&reader);
	json_decref(report.differing);
	return status;
}

const struct xfp_cache_command xfp_cache_import = {
	.name = "import",
	.usage = "xfp cache import [--cache DIR] [--json] FILE",
	.text = "read surveys that xfp cache export wrote",
	.summary = "Reads a file of surveys into a cache, which is created if it does not exist. Damage is detected;\n"
		   "wrong numbers of a publisher are trusted.\n"
		   "Status 4 if the cache has a survey with other numbers, which stays.",
	.operand = "FILE",
	.run = run_import,
};
