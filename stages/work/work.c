/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/work/work.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "cache/seal.h"
#include "schemas/recipe/recipe.h"

/* 32 digits of the key, a space, 16 of the seal, a newline. */
#define STAMP_BYTES 50

/* ---- parameters ------------------------------------------------------------------------------- */

enum xfp_status xfp_work_write_parameters(const char *work, const struct xfp_parameters *parameters,
					  struct xfp_error *err)
{
	/* A stage's start must not slow down with the size of the model: assignments are in a separate file. */
	struct xfp_parameters own = *parameters;
	char *path = xfp_path(work, XFP_PARAMETERS_FILE), *plain, *text = NULL, seal[17];
	enum xfp_status status;

	own.assigned = NULL;
	own.assigned_count = 0;
	plain = xfp_parameters_to_json(&own);

	if (plain) {
		xfp_seal_line(plain, strlen(plain), seal);
		text = xfp_formatted("{\"seal\": \"%s\", \"parameters\":\n%s}\n", seal, plain);
	}
	status = path && text ? xfp_write_file(path, text, strlen(text), false, err) : xfp_no_memory(err);
	free(path);
	free(plain);
	free(text);
	return status;
}

/* Find the parameters in a sealed text and cut it down to them in place; NULL if the text has another form. */
static char *unwrap(char *text, char seal[17])
{
	int at = 0;
	size_t length = strlen(text);

	if (sscanf(text, "{\"seal\": \"%16[0-9a-f]\", \"parameters\":%n", seal, &at) != 1 || !at || text[at] != '\n' ||
	    length < (size_t)at + 3 || strcmp(text + length - 2, "}\n"))
		return NULL;
	text[length - 2] = 0;
	return text + at + 1;
}

enum xfp_status xfp_work_parameters(const char *work, struct xfp_parameters *parameters, struct xfp_error *err)
{
	char *path = xfp_path(work, XFP_PARAMETERS_FILE), *text = NULL, *plain = NULL, want[17] = "", seal[17] = "";
	struct xfp_error problem = { .text = "" };
	enum xfp_status status = path ? xfp_slurp(path, 1 << 20, &text, NULL, err) : xfp_no_memory(err);

	if (!status && (plain = unwrap(text, want)))
		xfp_seal_line(plain, strlen(plain), seal);
	if (!status && (!plain || strcmp(seal, want)))
		status = xfp_fail(err, XFP_DAMAGED,
				  "%s: damaged, or of another version of xfp; run xfp convert again, which rewrites it",
				  path);
	if (!status && (status = xfp_parameters_from_json(plain, path, 0, parameters, &problem)))
		xfp_fail(err, status, "%s; remove the file and run xfp convert again", problem.text);
	free(text);
	free(path);
	return status;
}

/* ---- units ------------------------------------------------------------------------------------ */

static bool parse_number(const char *digit, uint32_t *number)
{
	uint64_t value = 0;

	if (!*digit)
		return false;
	for (; *digit; digit++) {
		if (*digit < '0' || *digit > '9')
			return false;
		value = value * 10 + (uint64_t)(*digit - '0');
		if (value >= (XFP_NO_UNIT & ~XFP_LAYER))
			return false;
	}
	*number = (uint32_t)value;
	return true;
}

bool xfp_unit_parse(const char *text, uint32_t *unit)
{
	return parse_number(*text == 'u' ? text + 1 : text, unit);
}

bool xfp_layer_parse(const char *text, uint32_t *layer)
{
	return *text == 'l' && parse_number(text + 1, layer);
}

void xfp_unit_format(uint32_t unit, char text[16])
{
	snprintf(text, 16, "%c%06" PRIu32, xfp_is_layer(unit) ? 'l' : 'u', unit & ~XFP_LAYER);
}

void xfp_region_format(const struct xfp_matrix_source *source, char text[160])
{
	const struct xfp_view *view = &source->view;
	const struct xfp_recipe *recipe = source->recipe;
	char place[64];
	uint8_t sha256[32];

	snprintf(place, sizeof place, "%" PRIu64, source->offset);
	if (recipe) {
		size_t length = (size_t)snprintf(place, sizeof place, "%s ", xfp_codec_name(recipe->parts[0].codec));

		xfp_recipe_digest(recipe, source->files, sha256);
		xfp_hex(sha256, 16, place + length);
	}
	snprintf(text, 160, "%s %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, place,
		 xfp_dtype_name(source->dtype), view->base, view->rows, view->cols, view->row_stride, view->col_stride);
}

/* ---- stamps ----------------------------------------------------------------------------------- */

static char *stamp_path(const char *work, uint32_t unit, enum xfp_stamp stamp)
{
	char name[16];

	xfp_unit_format(unit, name);
	return xfp_formatted("%s/%s-%s", work, name, xfp_steps[stamp].stamp);
}

/* The seal of a stamp detects damage to key or seal, and a stamp under another's name. */
static void seal_stamp(uint32_t unit, enum xfp_stamp stamp, const char *key, char seal[17])
{
	char text[80], name[16];
	int size;

	xfp_unit_format(unit, name);
	size = snprintf(text, sizeof text, "%s-%s %s", name, xfp_steps[stamp].stamp, key);
	xfp_seal_line(text, (size_t)size, seal);
}

/* Parse the file's bytes; "" if they are not a stamp of this unit. */
static void parse_stamp(uint32_t unit, enum xfp_stamp stamp, char text[STAMP_BYTES + 1], ssize_t size, char key[33])
{
	char seal[17];

	*key = 0;
	if (size != STAMP_BYTES || text[32] != ' ' || text[STAMP_BYTES - 1] != '\n')
		return;
	text[32] = text[STAMP_BYTES - 1] = 0;
	seal_stamp(unit, stamp, text, seal);
	if (strspn(text, "0123456789abcdef") == 32 && !strcmp(seal, text + 33))
		memcpy(key, text, 33);
}

enum xfp_status xfp_stamp_find(const char *work, uint32_t unit, enum xfp_stamp stamp, char key[33],
			       struct xfp_error *err)
{
	char *path = stamp_path(work, unit, stamp), text[STAMP_BYTES + 1];
	enum xfp_status status = XFP_OK;
	ssize_t size = -1;
	int fd;

	*key = 0;
	if (!path)
		return xfp_no_memory(err);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT)
		status = xfp_fail_errno(err, errno, "%s: cannot open", path);
	else if (fd >= 0 && (size = read(fd, text, sizeof text)) < 0)
		status = xfp_fail_errno(err, errno, "%s: cannot read", path);
	if (fd >= 0)
		close(fd);
	free(path);
	parse_stamp(unit, stamp, text, size, key);
	return status;
}

bool xfp_stamp_read(const char *work, uint32_t unit, enum xfp_stamp stamp, char key[33])
{
	return !xfp_stamp_find(work, unit, stamp, key, NULL) && *key;
}

bool xfp_stamp_exists(const char *work, uint32_t unit, enum xfp_stamp stamp)
{
	char *path = stamp_path(work, unit, stamp);
	bool exists = path && !access(path, F_OK);

	free(path);
	return exists;
}

enum xfp_status xfp_stamp_write(const char *work, uint32_t unit, enum xfp_stamp stamp, const char *key,
				struct xfp_error *err)
{
	char *path = stamp_path(work, unit, stamp), text[STAMP_BYTES + 1], seal[17];
	enum xfp_status status;

	if (!path)
		return xfp_no_memory(err);
	seal_stamp(unit, stamp, key, seal);
	snprintf(text, sizeof text, "%s %s\n", key, seal);
	status = xfp_write_file(path, text, strlen(text), false, err);
	free(path);
	return status;
}

void xfp_stamp_remove(const char *work, uint32_t unit, enum xfp_stamp stamp)
{
	int end = xfp_is_layer(unit) ? XFP_STAMP_INPUTS + 1 : XFP_STAMPS;

	for (int later = stamp; later < end; later++) {
		char *path = stamp_path(work, unit, (enum xfp_stamp)later);

		if (path)
			unlink(path);
		free(path);
	}
}

/* ---- events ----------------------------------------------------------------------------------- */

#define LINE_BYTES 1400 /* below PIPE_BUF */

enum xfp_status xfp_event_append(const char *work, const struct xfp_event *event, struct xfp_error *err)
{
	char unit[16] = "-", line[LINE_BYTES], message[sizeof event->message], seal[17];
	char *path = xfp_path(work, XFP_EVENTS_FILE);
	enum xfp_status status;
	size_t size;
	int fd;

	if (!path)
		return xfp_no_memory(err);
	if (event->unit != XFP_NO_UNIT)
		xfp_unit_format(event->unit, unit);
	snprintf(message, sizeof message, "%s", event->message);
	for (char *c = message; *c; c++)
		if (*c == '\t' || *c == '\n')
			*c = ' ';
	/* Seconds as an integer number of microseconds: independent of the locale. */
	size = (size_t)snprintf(line, sizeof line, "%s\t%s\t%s\t%s\t%" PRIu64 "\t%d\t%s", unit, event->stage,
				event->outcome, *event->key ? event->key : "-", (uint64_t)(event->seconds * 1e6),
				event->status, message);
	xfp_seal_line(line, size, seal);
	snprintf(line + size, sizeof line - size, "\t%s\n", seal);
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0) {
		status = xfp_fail_errno(err, errno, "%s: cannot open", path);
	} else {
		/* A single write below PIPE_BUF: lines of concurrent stages do not mix. */
		status = xfp_write(fd, line, strlen(line), path, err);
		close(fd);
	}
	free(path);
	return status;
}

enum xfp_status xfp_events_read(const char *work, uint64_t *offset, char **text, struct xfp_error *err)
{
	char *path = xfp_path(work, XFP_EVENTS_FILE), *lines = NULL, *end = NULL;
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	enum xfp_status status = path ? XFP_OK : xfp_no_memory(err);
	struct stat st;
	ssize_t got;

	*text = NULL;
	if (path && ((fd < 0 && errno != ENOENT) || (fd >= 0 && fstat(fd, &st)))) {
		status = xfp_fail_errno(err, errno, "%s: cannot open", path);
	} else if (fd >= 0 && (*offset = (uint64_t)st.st_size < *offset ? 0 : *offset) < (uint64_t)st.st_size) {
		size_t left = (size_t)((uint64_t)st.st_size - *offset);

		if (!(lines = malloc(left + 1)))
			status = xfp_no_memory(err);
		else if ((got = pread(fd, lines, left, (off_t)*offset)) < 0)
			status = xfp_fail_errno(err, errno, "%s: cannot read", path);
		else
			end = got ? memrchr(lines, '\n', (size_t)got) : NULL;
	}
	if (fd >= 0)
		close(fd);
	free(path);
	if (!end) {
		free(lines);
		return status;
	}
	end[1] = '\0';
	*offset += (uint64_t)(end + 1 - lines);
	*text = lines;
	return XFP_OK;
}

static char *next_field(char **rest)
{
	char *field = *rest, *tab = field ? strchr(field, '\t') : NULL;

	if (tab)
		*tab = 0;
	*rest = tab ? tab + 1 : NULL;
	return field;
}

bool xfp_event_parse(const char *line, struct xfp_event *event)
{
	char copy[LINE_BYTES], *rest = copy, seal[17];
	char *unit, *stage, *outcome, *key, *micros, *status, *message, *tab;

	memset(event, 0, sizeof *event);
	if (snprintf(copy, sizeof copy, "%s", line) >= (int)sizeof copy || !(tab = strrchr(copy, '\t')))
		return false;
	xfp_seal_line(copy, (size_t)(tab - copy), seal);
	if (strcmp(seal, tab + 1))
		return false;
	*tab = 0;
	unit = next_field(&rest);
	stage = next_field(&rest);
	outcome = next_field(&rest);
	key = next_field(&rest);
	micros = next_field(&rest);
	status = next_field(&rest);
	message = rest;
	if (!message || strlen(stage) >= sizeof event->stage || strlen(outcome) >= sizeof event->outcome ||
	    strlen(key) >= sizeof event->key || strlen(message) >= sizeof event->message)
		return false;
	event->unit = XFP_NO_UNIT;
	if (xfp_layer_parse(unit, &event->unit))
		event->unit |= XFP_LAYER;
	else if (strcmp(unit, "-") && !xfp_unit_parse(unit, &event->unit))
		return false;
	strcpy(event->stage, stage);
	strcpy(event->outcome, outcome);
	strcpy(event->key, key);
	event->seconds = (double)strtoull(micros, NULL, 10) / 1e6;
	event->status = atoi(status);
	strcpy(event->message, message);
	/* These fields are printed, and anybody can compute the seal. */
	xfp_escape_message(event->stage, sizeof event->stage);
	xfp_escape_message(event->message, sizeof event->message);
	return true;
}
