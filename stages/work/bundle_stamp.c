/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/work/bundle_stamp.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cache/key.h"
#include "stages/work/work.h"

#define STAMP_BYTES 512 /* maximum length of its text */

static void format_stamp(const struct xfp_bundle_stamp *stamp, char text[STAMP_BYTES])
{
	const struct xfp_identity *id = &stamp->identity;
	char self[33];
	int end = snprintf(text, STAMP_BYTES, "%s %s %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 " ",
			   stamp->key, stamp->sha256, stamp->index, id->size, id->device, id->inode, id->mtime_ns,
			   id->ctime_ns);

	xfp_key_of_text(text, self);
	snprintf(text + end, STAMP_BYTES - (size_t)end, "%s\n", self);
}

enum xfp_status xfp_bundle_stamp_write(const char *work, const struct xfp_bundle_stamp *stamp, struct xfp_error *err)
{
	char *path = xfp_path(work, XFP_BUNDLE_STAMP), text[STAMP_BYTES];
	enum xfp_status status;

	if (!path)
		return xfp_no_memory(err);
	format_stamp(stamp, text);
	status = xfp_write_file(path, text, strlen(text), false, err);
	free(path);
	return status;
}

static bool parse_stamp(const char *text, size_t size, struct xfp_bundle_stamp *stamp)
{
	struct xfp_identity *id = &stamp->identity;
	char again[STAMP_BYTES];

	if (sscanf(text, "%32s %64s %32s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64, stamp->key,
		   stamp->sha256, stamp->index, &id->size, &id->device, &id->inode, &id->mtime_ns, &id->ctime_ns) != 8)
		return false;
	/* Only the canonical text is accepted. */
	format_stamp(stamp, again);
	return size == strlen(again) && !memcmp(text, again, size);
}

enum xfp_status xfp_bundle_stamp_read(const char *work, struct xfp_bundle_stamp *stamp, bool *sound,
				      struct xfp_error *err)
{
	char *path = xfp_path(work, XFP_BUNDLE_STAMP), *text = NULL;
	struct xfp_error problem = { .text = "" };
	enum xfp_status status = XFP_OK;
	size_t size = 0;

	*sound = false;
	if (!path)
		return xfp_no_memory(err);
	if (!access(path, F_OK))
		status = xfp_slurp(path, STAMP_BYTES - 1, &text, &size, &problem);
	if (text)
		*sound = parse_stamp(text, size, stamp);
	free(text);
	free(path);
	return status == XFP_FAILED ? xfp_fail(err, status, "%s", problem.text) : XFP_OK;
}
