/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey_file.h - a file of surveys, which another cache can use: xfp-surveys(5) describes its layout.
 *
 * It comes from strangers, so it holds plain records, not artifacts: libhdf5 parses only files that xfp wrote itself.
 * The file ends with a SHA-256 of everything before it. Like keys, the bytes depend on no path, host or time; they are
 * the same whenever the same artifacts are exported.
 */
#ifndef XFP_SURVEY_FILE_H
#define XFP_SURVEY_FILE_H

#include "base/sha256.h"
#include "base/system/file.h"
#include "schemas/surveyed.h"

/* A survey and the label of its artifact. */
struct xfp_survey_entry {
	char *key_text, *unit; /* allocated */
	double seconds;
	struct xfp_surveyed surveyed;
};
void xfp_survey_entry_free(struct xfp_survey_entry *entry);

/* Whether a key text is that of a survey by this version of xfp. */
bool xfp_survey_is_current(const char *key_text);

struct xfp_survey_writer {
	struct xfp_pending pending;
	struct xfp_sha256 sha;
};
/* Write a file: begin, append `count` surveys, finish, which publishes it. The caller must discard the writer in the
 * end, after a failure, too. XFP_USAGE: `path` holds something else that must not be replaced. */
enum xfp_status xfp_survey_file_begin(const char *path, uint32_t count, struct xfp_survey_writer *writer,
				      struct xfp_error *err);
enum xfp_status xfp_survey_file_append(struct xfp_survey_writer *writer, const struct xfp_survey_entry *entry,
				       struct xfp_error *err);
enum xfp_status xfp_survey_file_finish(struct xfp_survey_writer *writer, struct xfp_error *err);
void xfp_survey_file_discard(struct xfp_survey_writer *writer);

struct xfp_survey_reader {
	const char *path; /* borrowed */
	char *bytes;
	const uint8_t *at, *end; /* the records that were not read yet */
	uint32_t count, left;
};
/* Read a file and check its digest. XFP_BAD_INPUT: another kind of file, damaged, or of another version of xfp. The
 * caller must close the reader after a success. */
enum xfp_status xfp_survey_file_open(const char *path, struct xfp_survey_reader *reader, struct xfp_error *err);
/* Read the next of `count` surveys; the caller frees it. Sizes are checked, and that the key text names these matrices.
 * Numbers are not: reading the artifact made from it does that. */
enum xfp_status xfp_survey_file_next(struct xfp_survey_reader *reader, struct xfp_survey_entry *entry,
				     struct xfp_error *err);
void xfp_survey_file_close(struct xfp_survey_reader *reader);

#endif
