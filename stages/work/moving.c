/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/work/moving.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "cache/seal.h"

#define LINE_BYTES 256

static void format(const struct xfp_moving *moving, char line[LINE_BYTES])
{
	char seal[17];
	int end = snprintf(line, LINE_BYTES, "%s %s %" PRIu32 " %s", moving->layout, moving->decided, moving->units,
			   *moving->sha256 ? moving->sha256 : "-");

	xfp_seal_line(line, (size_t)end, seal);
	snprintf(line + end, LINE_BYTES - (size_t)end, " %s\n", seal);
}

enum xfp_status xfp_moving_write(const char *work, const struct xfp_moving *moving, struct xfp_error *err)
{
	char *path = xfp_path(work, XFP_MOVING_FILE), line[LINE_BYTES];
	enum xfp_status status;

	if (!path)
		return xfp_no_memory(err);
	format(moving, line);
	status = xfp_write_file(path, line, strlen(line), true, err);
	free(path);
	return status;
}

static bool parse(const char *text, struct xfp_moving *moving)
{
	char again[LINE_BYTES];

	if (sscanf(text, "%32s %32s %" SCNu32 " %64s", moving->layout, moving->decided, &moving->units,
		   moving->sha256) != 4)
		return false;
	if (!strcmp(moving->sha256, "-"))
		*moving->sha256 = 0;
	/* Only the canonical text is accepted. */
	format(moving, again);
	return !strcmp(text, again);
}

enum xfp_status xfp_moving_read(const char *work, struct xfp_moving *moving, bool *found, struct xfp_error *err)
{
	char *path = xfp_path(work, XFP_MOVING_FILE), *text = NULL;
	struct xfp_error problem = { .text = "" };
	enum xfp_status status = XFP_OK;

	*moving = (struct xfp_moving){ .layout = "" };
	*found = false;
	if (!path)
		return xfp_no_memory(err);
	if (!access(path, F_OK) || errno != ENOENT)
		status = xfp_slurp(path, LINE_BYTES - 1, &text, NULL, &problem);
	*found = text && parse(text, moving);
	free(text);
	free(path);
	return status == XFP_FAILED ? xfp_fail(err, status, "%s", problem.text) : XFP_OK;
}

static void remove_file(const char *work, const char *name)
{
	char *path = xfp_path(work, name);

	if (path)
		unlink(path);
	free(path);
}

void xfp_moving_remove(const char *work)
{
	remove_file(work, XFP_MOVING_FILE);
	remove_file(work, XFP_MOVING_SEEN_FILE);
}

enum xfp_status xfp_moving_restart(const char *work, struct xfp_error *err)
{
	struct xfp_moving moving;
	bool found;
	enum xfp_status status = xfp_moving_read(work, &moving, &found, err);

	remove_file(work, XFP_MOVING_SEEN_FILE);
	if (status || !found || !moving.units || *moving.sha256)
		return status;
	moving.units = 0;
	return xfp_moving_write(work, &moving, err);
}

void xfp_moving_acknowledge(const char *work, uint32_t units)
{
	char *path = xfp_path(work, XFP_MOVING_SEEN_FILE), text[16];
	int size = snprintf(text, sizeof text, "%" PRIu32 "\n", units);

	if (path)
		xfp_write_file(path, text, (size_t)size, false, NULL);
	free(path);
}

bool xfp_moving_acknowledged(const char *work, uint32_t units)
{
	char *path = xfp_path(work, XFP_MOVING_SEEN_FILE), *text = NULL;
	bool seen = path && !xfp_slurp(path, 16, &text, NULL, NULL) && strtoul(text, NULL, 10) >= units;

	free(text);
	free(path);
	return seen;
}

void xfp_moving_discard(const char *work, const char *out)
{
	/* Remove the file first: a record without the file is harmless, since its readers look for the file. */
	xfp_pending_kept_remove(out);
	xfp_moving_remove(work);
}
