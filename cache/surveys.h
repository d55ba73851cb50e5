/* SPDX-License-Identifier: Apache-2.0 */
/*
 * surveys.h - surveys as a file for other caches: export them, and import them under their own keys.
 *
 * A survey's key names the weights and the options, not paths, so a conversion of the same weights finds an imported
 * survey wherever it was made. The caller shares the lock of the cache.
 */
#ifndef XFP_SURVEYS_H
#define XFP_SURVEYS_H

#include "cache/manifest.h"
#include "cache/survey_file.h"

/* A unit's survey, to be exported. */
struct xfp_survey_place {
	const char *unit; /* its name, for messages */
	char key[33];
};

/* Write these surveys to a file, in the order of their keys, each once; *count is their number. `list` is sorted.
 * XFP_FAILED: one is not in the cache. XFP_BAD_INPUT: one is damaged, or of another version of xfp. */
enum xfp_status xfp_surveys_export(const struct xfp_store *store, struct xfp_survey_place *list, uint32_t *count,
				   const char *path, struct xfp_error *err);

struct xfp_surveys_imported {
	uint32_t total, imported;
	uint32_t known;     /* in the cache already, with the same numbers */
	uint32_t differing; /* in the cache with other numbers, which stay */
	/* Called for each of the latter. */
	void (*differs)(const char *key, const char *unit, void *context);
	void *context;
};

/* Import the surveys of a file that was just opened into a writable cache. After a failure, what was imported stays,
 * and the import may be repeated. */
enum xfp_status xfp_surveys_import(const struct xfp_store *store, struct xfp_manifest *manifest,
				   struct xfp_survey_reader *reader, struct xfp_surveys_imported *result,
				   struct xfp_error *err);

#endif
