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
	if (fd < 0 && errno != ENOENT && errno != ESTALE)
		status = xfp_fail_errno(err, errno, "%s: cannot open", path);
	else if (fd >= 0 && (size = read(fd, text, sizeof text)) < 0 && errno != ESTALE)
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
