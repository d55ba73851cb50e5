/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/surveys.h"

#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "cache/key.h"

/* Read the artifact at `path`; the caller frees the entry. */
static enum xfp_status read_artifact(const char *path, const char *key, struct xfp_survey_entry *entry,
				     struct xfp_error *err)
{
	struct xfp_artifact_label label = { 0 };
	struct xfp_artifact artifact = { 0 };
	enum xfp_status status = xfp_artifact_open(path, XFP_SURVEY_KIND, XFP_SURVEY_VERSION, key, &artifact, err);

	*entry = (struct xfp_survey_entry){ 0 };
	if (status)
		return status;
	if (!(status = xfp_surveyed_read(&artifact, &entry->surveyed, err)) &&
	    !(status = xfp_artifact_get_label(&artifact, &label, err))) {
		entry->key_text = (char *)label.key_text;
		entry->unit = (char *)label.unit;
		entry->seconds = label.seconds;
		label.key_text = label.unit = NULL;
	}
	xfp_artifact_label_free(&label);
	xfp_artifact_close(&artifact);
	if (status)
		xfp_survey_entry_free(entry);
	return status;
}

/* ---- export ------------------------------------------------------------------------------------ */

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct xfp_survey_place *)a)->key, ((const struct xfp_survey_place *)b)->key);
}

static enum xfp_status export_one(const struct xfp_store *store, const struct xfp_survey_place *place,
				  struct xfp_survey_writer *writer, struct xfp_error *err)
{
	char *path = xfp_store_path(store, place->key);
	struct xfp_survey_entry entry = { 0 };
	enum xfp_status status = path ? XFP_OK : xfp_no_memory(err);

	if (!status && !xfp_store_has(store, place->key))
		status = xfp_fail(err, XFP_FAILED,
				  "%s: the survey of unit %s is missing (removed by --drop-cache or gc?); run xfp "
				  "convert again, or name another cache with --cache",
				  store->folder, xfp_printable(place->unit).text);
	if (!status)
		status = read_artifact(path, place->key, &entry, err);
	if (!status && !xfp_survey_is_current(entry.key_text))
		status = xfp_fail(err, XFP_BAD_INPUT,
				  "%s: the survey of unit %s is of another version of xfp; run xfp convert again", path,
				  xfp_printable(place->unit).text);
	if (!status)
		status = xfp_survey_file_append(writer, &entry, err);
	xfp_survey_entry_free(&entry);
	free(path);
	return status == XFP_DAMAGED ? XFP_BAD_INPUT : status;
}

enum xfp_status xfp_surveys_export(const struct xfp_store *store, struct xfp_survey_place *list, uint32_t *count,
				   const char *path, struct xfp_error *err)
{
	struct xfp_survey_writer writer = { .pending = { .fd = -1 } };
	enum xfp_status status;
	uint32_t distinct = 0;

	/* Units with the same weights share a survey. */
	qsort(list, *count, sizeof *list, by_key);
	for (uint32_t i = 0; i < *count; i++)
		if (!i || strcmp(list[i].key, list[distinct - 1].key))
			list[distinct++] = list[i];
	status = xfp_survey_file_begin(path, distinct, &writer, err);
	for (uint32_t i = 0; !status && i < distinct; i++)
		status = export_one(store, &list[i], &writer, err);
	if (!status)
		status = xfp_survey_file_finish(&writer, err);
	xfp_survey_file_discard(&writer);
	*count = distinct;
	return status;
}

/* ---- import ------------------------------------------------------------------------------------ */

/* Make the artifact of a survey, and read it: it is published only if its numbers are possible. */
static enum xfp_status publish(const struct xfp_store *store, struct xfp_survey_entry *entry, const char *key,
			       const char *file, struct xfp_error *err)
{
	const struct xfp_artifact_label label = { XFP_SURVEY_KIND, XFP_SURVEY_VERSION, key,
						  entry->key_text, entry->unit,        entry->seconds };
	struct xfp_survey_entry made = { 0 };
	struct xfp_artifact artifact = { 0 };
	struct xfp_pending pending = { .fd = -1 };
	enum xfp_status status = xfp_store_begin(store, key, &pending, err);

	if (!status)
		status = xfp_artifact_create(pending.path, &artifact, err);
	if (!status)
		status = xfp_surveyed_write(&artifact, &entry->surveyed, err);
	if (!status)
		status = xfp_artifact_finish(&artifact, &label, err);
	xfp_artifact_close(&artifact);
	if (!status && (status = read_artifact(pending.path, key, &made, err)) == XFP_DAMAGED)
		status = xfp_fail(err, XFP_BAD_INPUT,
				  "%s: impossible numbers in the survey of unit %s; do not trust "
				  "this file",
				  file, xfp_printable(entry->unit).text);
	if (!status)
		status = xfp_pending_publish(&pending, false, err);
	xfp_survey_entry_free(&made);
	xfp_pending_discard(&pending);
	return status;
}

/* Compare with the survey that the cache has under this key. XFP_DAMAGED: it has none, or a damaged one. */
static enum xfp_status compare(const struct xfp_store *store, const struct xfp_survey_entry *entry, const char *key,
			       struct xfp_surveys_imported *result, struct xfp_error *err)
{
	char *path = xfp_store_path(store, key);
	struct xfp_survey_entry ours = { 0 };
	enum xfp_status status = path ? XFP_DAMAGED : xfp_no_memory(err);

	if (path && xfp_store_has(store, key) && !(status = read_artifact(path, key, &ours, err))) {
		if (xfp_surveyed_equal(&ours.surveyed, &entry->surveyed)) {
			result->known++;
		} else {
			result->differing++;
			result->differs(key, entry->unit, result->context);
		}
	}
	xfp_survey_entry_free(&ours);
	free(path);
	return status;
}

static enum xfp_status import_one(const struct xfp_store *store, struct xfp_manifest *manifest,
				  struct xfp_survey_entry *entry, const char *file, struct xfp_surveys_imported *result,
				  struct xfp_error *err)
{
	enum xfp_status status;
	char key[33];

	xfp_key_of_text(entry->key_text, key);
	if ((status = compare(store, entry, key, result, err)) != XFP_DAMAGED)
		return status;
	if ((status = publish(store, entry, key, file, err)))
		return status;
	result->imported++;
	return xfp_manifest_repair(manifest, store, key, err);
}

enum xfp_status xfp_surveys_import(const struct xfp_store *store, struct xfp_manifest *manifest,
				   struct xfp_survey_reader *reader, struct xfp_surveys_imported *result,
				   struct xfp_error *err)
{
	struct xfp_survey_entry *entry = calloc(1, sizeof *entry);
	enum xfp_status status = entry ? xfp_manifest_begin(manifest, err) : xfp_no_memory(err), committed;

	result->total = reader->count;
	while (!status && reader->left) {
		if ((status = xfp_survey_file_next(reader, entry, err)))
			break;
		status = import_one(store, manifest, entry, reader->path, result, err);
		xfp_survey_entry_free(entry);
	}
	free(entry);
	committed = xfp_manifest_commit(manifest, status ? NULL : err);
	return status ? status : committed;
}
