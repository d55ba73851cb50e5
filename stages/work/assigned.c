/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/work/assigned.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "cache/seal.h"

#define RECORD 80u
#define SEALED (RECORD - 17) /* the rest are the seal's digits and the newline */

static void put_record(uint32_t unit, const struct xfp_assignment *a, char record[RECORD + 1])
{
	char form[XFP_ASSIGNMENT_TEXT], bits[24] = "-", text[SEALED + 1], seal[17];

	if (a->bits)
		xfp_bits_format(a->bits, bits);
	snprintf(text, sizeof text, "u%06" PRIu32 " %s %s", unit, xfp_assignment_text(a, form), bits);
	snprintf(record, RECORD + 1, "%-*s", (int)SEALED, text);
	xfp_seal_line(record, SEALED, seal);
	snprintf(record + SEALED, 18, "%s\n", seal);
}

static bool parse_record(uint32_t unit, const char record[RECORD], struct xfp_assignment *assignment)
{
	char text[SEALED + 1], form[XFP_ASSIGNMENT_TEXT], bits[24], again[RECORD + 1];
	struct xfp_assignment a;
	uint32_t number, set = 0;

	memcpy(text, record, SEALED);
	text[SEALED] = 0;
	if (sscanf(text, "u%" SCNu32 " %39s %23s", &number, form, bits) != 3 || number != unit ||
	    !xfp_assignment_parse(form, &a) || (strcmp(bits, "-") && !xfp_bits_parse(bits, &set)))
		return false;
	a.bits = set;
	put_record(unit, &a, again);
	*assignment = a;
	return !memcmp(record, again, RECORD);
}

/* ---- writing ----------------------------------------------------------------------------------- */

static bool is_there(const char *path, const char *text, size_t size)
{
	char *found = NULL;
	size_t length = 0;
	bool same = !xfp_slurp(path, size + 1, &found, &length, NULL) && length == size && !memcmp(found, text, size);

	free(found);
	return same;
}

enum xfp_status xfp_assigned_write(const char *work, const struct xfp_parameters *parameters, struct xfp_error *err)
{
	size_t size = parameters->assigned_count * (size_t)RECORD;
	char *path = xfp_path(work, XFP_ASSIGNED_FILE), *text = malloc(size + 1);
	enum xfp_status status = path && text ? XFP_OK : xfp_no_memory(err);

	for (uint32_t u = 0; !status && u < parameters->assigned_count; u++)
		put_record(u, &parameters->assigned[u], text + u * (size_t)RECORD);
	if (!status && !parameters->assigned_count)
		status = xfp_remove_file(path, err);
	else if (!status && !is_there(path, text, size))
		status = xfp_write_file(path, text, size, false, err);
	free(path);
	free(text);
	return status;
}

/* ---- reading ----------------------------------------------------------------------------------- */

static enum xfp_status damaged(const char *path, uint32_t unit, struct xfp_error *err)
{
	return xfp_fail(err, XFP_DAMAGED,
			"%s: damaged at unit u%06" PRIu32 "; run xfp convert again, which rewrites "
			"it",
			path, unit);
}

/* Open the file; -1: it does not exist, or *status is the error. */
static int open_file(const char *path, enum xfp_status *status, struct xfp_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	*status = fd < 0 && errno != ENOENT ? xfp_fail_errno(err, errno, "%s", path) : XFP_OK;
	return fd;
}

enum xfp_status xfp_assigned_read(const char *work, uint32_t unit, struct xfp_assignment *assignment, bool *found,
				  struct xfp_error *err)
{
	char *path = xfp_path(work, XFP_ASSIGNED_FILE), record[RECORD];
	enum xfp_status status;
	ssize_t got;
	int fd;

	*found = false;
	if (!path)
		return xfp_no_memory(err);
	fd = open_file(path, &status, err);
	if (fd >= 0) {
		got = pread(fd, record, RECORD, (off_t)unit * RECORD);
		if (got < 0)
			status = xfp_fail_errno(err, errno, "%s", path);
		else if (got != RECORD || !parse_record(unit, record, assignment))
			status = damaged(path, unit, err);
		*found = !status;
		close(fd);
	}
	free(path);
	return status;
}

enum xfp_status xfp_assigned_read_all(const char *work, uint32_t count, struct xfp_parameters *parameters,
				      struct xfp_error *err)
{
	char *path = xfp_path(work, XFP_ASSIGNED_FILE), *text = NULL;
	struct xfp_assignment *list = NULL;
	enum xfp_status status = XFP_OK;
	size_t size = 0;

	if (!path)
		return xfp_no_memory(err);
	if (access(path, F_OK) && errno == ENOENT)
		goto done;
	status = xfp_slurp(path, count * (size_t)RECORD + 1, &text, &size, err);
	if (status == XFP_BAD_INPUT || (!status && size != count * (size_t)RECORD))
		status = damaged(path, (uint32_t)(size / RECORD), err);
	else if (!status && !(list = malloc((count + (size_t)1) * sizeof *list)))
		status = xfp_no_memory(err);
	for (uint32_t u = 0; !status && u < count; u++)
		if (!parse_record(u, text + u * (size_t)RECORD, &list[u]))
			status = damaged(path, u, err);
	if (!status) {
		parameters->assigned = list;
		parameters->assigned_count = count;
		list = NULL;
	}
done:
	free(list);
	free(text);
	free(path);
	return status;
}
