/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/survey_file.h"

#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/text/text.h"
#include "cache/key.h"

#define MAGIC "XFPSURV\n"
#define MAGIC_BYTES (sizeof MAGIC - 1)
#define VERSION 1u
#define HEADER_BYTES 24
#define DIGEST_BYTES 32
#define MAX_BYTES ((size_t)1 << 30) /* of a file: a thousand units of 4,096 columns take 20 MB */
#define MAX_TEXT 16384              /* bytes of a key text or of a unit's name */

_Static_assert(sizeof(struct xfp_candidate) == 56, "candidates are stored without padding");

void xfp_survey_entry_free(struct xfp_survey_entry *entry)
{
	free(entry->key_text);
	free(entry->unit);
	xfp_surveyed_free(&entry->surveyed);
	entry->key_text = entry->unit = NULL;
}

bool xfp_survey_is_current(const char *key_text)
{
	char lines[96];
	int length = snprintf(lines, sizeof lines, "kind %s\nalgorithm %d\nlayout %d\n", XFP_SURVEY_KIND,
			      XFP_ALGORITHM_SURVEY, XFP_SURVEY_VERSION);

	return !strncmp(key_text, lines, (size_t)length);
}

/* ---- writing ----------------------------------------------------------------------------------- */

/* Refuse to replace a file that is neither empty nor a file of surveys: a mistyped name may be that of a bundle. */
static enum xfp_status check_replaced(const char *path, struct xfp_error *err)
{
	char start[MAGIC_BYTES];
	ssize_t length = 0;
	struct stat st;
	int fd;
	enum xfp_status status = xfp_stat(path, &st, err);

	if (status || !st.st_mode)
		return status;
	if ((status = xfp_open_regular(path, &fd, &st, err)))
		return status;
	length = read(fd, start, sizeof start);
	close(fd);
	if (length && (length != sizeof start || memcmp(start, MAGIC, sizeof start)))
		return xfp_fail(err, XFP_USAGE, "%s: exists and is not a file of surveys; choose another output", path);
	return XFP_OK;
}

static enum xfp_status put(struct xfp_survey_writer *w, const void *data, size_t size, struct xfp_error *err)
{
	xfp_sha256_update(&w->sha, data, size);
	return xfp_write(w->pending.fd, data, size, w->pending.path, err);
}

enum xfp_status xfp_survey_file_begin(const char *path, uint32_t count, struct xfp_survey_writer *w,
				      struct xfp_error *err)
{
	uint8_t header[HEADER_BYTES] = MAGIC;
	enum xfp_status status = check_replaced(path, err);

	xfp_store32(header + 8, VERSION);
	xfp_store32(header + 12, XFP_ALGORITHM_SURVEY);
	xfp_store32(header + 16, XFP_SURVEY_VERSION);
	xfp_store32(header + 20, count);
	xfp_sha256_init(&w->sha);
	if (!status)
		status = xfp_pending_open(path, &w->pending, err);
	return status ? status : put(w, header, sizeof header, err);
}

static void put_number(FILE *out, uint64_t value, size_t size)
{
	fwrite(&value, 1, size, out); /* little-endian: bytes.h */
}

static void put_text(FILE *out, const char *text)
{
	put_number(out, strlen(text), 4);
	fputs(text, out);
}

enum xfp_status xfp_survey_file_append(struct xfp_survey_writer *w, const struct xfp_survey_entry *entry,
				       struct xfp_error *err)
{
	const struct xfp_surveyed *surveyed = &entry->surveyed;
	const struct xfp_outliers *known = &surveyed->known;
	size_t matrices = known->matrices;
	enum xfp_status status;
	struct xfp_text text;
	uint8_t size[4];
	FILE *out = xfp_text_begin(&text);

	if (out) {
		put_text(out, entry->key_text);
		put_text(out, entry->unit);
		fwrite(&entry->seconds, sizeof entry->seconds, 1, out);
		put_number(out, matrices, 4);
		put_number(out, known->rows, 8);
		put_number(out, known->cols, 8);
		put_number(out, known->sigma_milli, 4);
		put_number(out, surveyed->count, 4);
		fwrite(known->source, sizeof *known->source, matrices, out);
		fwrite(known->balance, sizeof *known->balance, known->cols, out);
		fwrite(known->exponent, sizeof *known->exponent, matrices, out);
		fwrite(known->mean, sizeof *known->mean, matrices, out);
		fwrite(known->sigma, sizeof *known->sigma, matrices, out);
		fwrite(surveyed->list, sizeof *surveyed->list, surveyed->count, out);
	}
	if (!xfp_text_end(&text))
		return xfp_no_memory_for(err, w->pending.final_path);
	xfp_store32(size, (uint32_t)text.size);
	status = put(w, size, sizeof size, err);
	if (!status)
		status = put(w, text.bytes, text.size, err);
	free(text.bytes);
	return status;
}

enum xfp_status xfp_survey_file_finish(struct xfp_survey_writer *w, struct xfp_error *err)
{
	uint8_t digest[DIGEST_BYTES];
	enum xfp_status status;

	xfp_sha256_final(&w->sha, digest);
	status = xfp_write(w->pending.fd, digest, sizeof digest, w->pending.path, err);
	return status ? status : xfp_pending_publish(&w->pending, true, err);
}

void xfp_survey_file_discard(struct xfp_survey_writer *w)
{
	xfp_pending_discard(&w->pending);
}

/* ---- reading ----------------------------------------------------------------------------------- */

static enum xfp_status check_header(const struct xfp_survey_reader *r, size_t size, struct xfp_error *err)
{
	const uint8_t *header = (const uint8_t *)r->bytes;
	uint8_t digest[DIGEST_BYTES];

	if (size < MAGIC_BYTES || memcmp(header, MAGIC, MAGIC_BYTES))
		return xfp_fail(err, XFP_BAD_INPUT, "%s: not a file of surveys, as xfp cache export writes", r->path);
	if (size >= 12 && xfp_load32(header + 8) != VERSION)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: format version %" PRIu32 "; this xfp reads version %u",
				r->path, xfp_load32(header + 8), VERSION);
	if (size >= HEADER_BYTES + DIGEST_BYTES)
		xfp_sha256(header, size - DIGEST_BYTES, digest);
	if (size < HEADER_BYTES + DIGEST_BYTES || memcmp(digest, header + size - DIGEST_BYTES, DIGEST_BYTES))
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s: truncated or damaged: its digest does not match; nothing was imported: copy it "
				"again",
				r->path);
	if (xfp_load32(header + 12) != XFP_ALGORITHM_SURVEY || xfp_load32(header + 16) != XFP_SURVEY_VERSION)
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s: surveys of another version of xfp (algorithm %" PRIu32 ", layout %" PRIu32
				"), which this one (algorithm %d, layout %d) would never find; nothing was imported",
				r->path, xfp_load32(header + 12), xfp_load32(header + 16), XFP_ALGORITHM_SURVEY,
				XFP_SURVEY_VERSION);
	return XFP_OK;
}

enum xfp_status xfp_survey_file_open(const char *path, struct xfp_survey_reader *r, struct xfp_error *err)
{
	struct xfp_survey_reader opened = { .path = path };
	size_t size;
	enum xfp_status status = xfp_slurp_regular(path, MAX_BYTES, &opened.bytes, &size, err);

	if (!status && !(status = check_header(&opened, size, err))) {
		opened.at = (const uint8_t *)opened.bytes + HEADER_BYTES;
		opened.end = (const uint8_t *)opened.bytes + size - DIGEST_BYTES;
		opened.count = opened.left = xfp_load32(opened.at - 4);
	}
	if (status)
		xfp_survey_file_close(&opened);
	else
		*r = opened;
	return status;
}

/* Take `count` elements from the records, or NULL if fewer bytes are left. */
static const uint8_t *take(struct xfp_survey_reader *r, uint64_t count, size_t size)
{
	const uint8_t *at = r->at;

	if (count > (size_t)(r->end - r->at) / size)
		return NULL;
	r->at += count * size;
	return at;
}

static bool get(struct xfp_survey_reader *r, void *into, uint64_t count, size_t size)
{
	const uint8_t *from = take(r, count, size);

	if (from)
		memcpy(into, from, count * size);
	return from;
}

/* Copy a text; *text stays NULL if memory runs out. False: the record is impossible. */
static bool get_text(struct xfp_survey_reader *r, char **text)
{
	uint32_t length;
	const uint8_t *from = get(r, &length, 1, sizeof length) && length <= MAX_TEXT ? take(r, length, 1) : NULL;

	if (!from || memchr(from, 0, length))
		return false;
	*text = strndup((const char *)from, length);
	return true;
}

/* *is: the key text is that of a survey of these matrices. */
static enum xfp_status check_key_text(const char *text, const struct xfp_outliers *known, bool *is,
				      struct xfp_error *err)
{
	struct xfp_key_source source = { .matrices = known->matrices,
					 .rows = known->rows,
					 .cols = known->cols,
					 .source = (const uint8_t(*)[16])known->source };
	const char *line = strstr(text, "\ndtype ");
	char dtype[16];

	*is = xfp_survey_is_current(text) && line && sscanf(line, "\ndtype %15s", dtype) == 1 &&
	      xfp_dtype_parse(dtype, &source.dtype);
	return *is ? xfp_key_is_of(text, &source, is, err) : XFP_OK;
}

/* *possible: the record has the size that its counts imply, and the right key text. */
static enum xfp_status get_record(struct xfp_survey_reader *r, struct xfp_survey_entry *e, bool *possible,
				  struct xfp_error *err)
{
	struct { /* as stored */
		uint32_t matrices, sigma_milli, count;
		uint64_t rows, cols;
	} shape;
	struct xfp_outliers *known = &e->surveyed.known;
	enum xfp_status status;

	if (!get_text(r, &e->key_text) || !get_text(r, &e->unit) || !get(r, &e->seconds, 1, sizeof e->seconds) ||
	    !get(r, &shape.matrices, 1, 4) || !get(r, &shape.rows, 1, 8) || !get(r, &shape.cols, 1, 8) ||
	    !get(r, &shape.sigma_milli, 1, 4) || !get(r, &shape.count, 1, 4) ||
	    !(e->seconds >= 0 && e->seconds <= DBL_MAX) || shape.count > XFP_MAX_SURVEYED || !shape.matrices ||
	    shape.matrices > (size_t)(r->end - r->at) || shape.cols > (size_t)(r->end - r->at))
		return XFP_OK;
	if (!e->key_text || !e->unit)
		return xfp_no_memory_for(err, r->path);
	if ((status = xfp_outliers_init(known, shape.matrices, shape.rows, shape.cols, err)))
		return status;
	known->sigma_milli = shape.sigma_milli;
	e->surveyed.count = shape.count;
	*possible = get(r, known->source, shape.matrices, sizeof *known->source) &&
		    get(r, known->balance, shape.cols, sizeof *known->balance) &&
		    get(r, known->exponent, shape.matrices, sizeof *known->exponent) &&
		    get(r, known->mean, shape.matrices, sizeof *known->mean) &&
		    get(r, known->sigma, shape.matrices, sizeof *known->sigma) &&
		    get(r, e->surveyed.list, shape.count, sizeof *e->surveyed.list);
	return *possible ? check_key_text(e->key_text, known, possible, err) : XFP_OK;
}

enum xfp_status xfp_survey_file_next(struct xfp_survey_reader *r, struct xfp_survey_entry *entry, struct xfp_error *err)
{
	struct xfp_survey_reader record = *r;
	enum xfp_status status = XFP_OK;
	bool possible = false;
	uint32_t size;

	*entry = (struct xfp_survey_entry){ 0 };
	if (get(r, &size, 1, sizeof size) && (record.at = take(r, size, 1))) {
		record.end = record.at + size;
		status = get_record(&record, entry, &possible, err);
		possible &= record.at == record.end;
	}
	/* The last record ends where the digest begins. */
	if (!status && (!possible || (r->left == 1 && r->at != r->end)))
		status = xfp_fail(err, XFP_BAD_INPUT,
				  "%s: impossible survey (number %" PRIu32 " of %" PRIu32 "); do not trust this file",
				  r->path, r->count - r->left + 1, r->count);
	r->left--;
	if (status)
		xfp_survey_entry_free(entry);
	return status;
}

void xfp_survey_file_close(struct xfp_survey_reader *r)
{
	free(r->bytes);
	*r = (struct xfp_survey_reader){ 0 };
}
