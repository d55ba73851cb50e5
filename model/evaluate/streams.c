/* SPDX-License-Identifier: Apache-2.0 */
#include "model/evaluate/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "model/forward/parts.h"

struct xfp_stream {
	size_t width;
	float *x; /* NULL: in a file */
	int fd;
	char *path; /* for messages; the file was unlinked */
};

static enum xfp_status open_file(struct xfp_stream *stream, struct xfp_error *err)
{
	const char *folder = getenv("TMPDIR");

	if (!(stream->path = xfp_formatted("%s/xfp-XXXXXX", folder && *folder ? folder : "/tmp")))
		return xfp_no_memory(err);
	if ((stream->fd = mkostemp(stream->path, O_CLOEXEC)) < 0)
		return xfp_fail_errno(err, errno, "%s: cannot create a temporary file for activations", stream->path);
	unlink(stream->path);
	return XFP_OK;
}

enum xfp_status xfp_stream_open(size_t tokens, size_t width, bool in_memory, struct xfp_stream **out,
				struct xfp_error *err)
{
	struct xfp_stream *stream = calloc(1, sizeof *stream);
	enum xfp_status status = XFP_OK;

	*out = NULL;
	if (!stream)
		return xfp_no_memory(err);
	*stream = (struct xfp_stream){ .width = width, .fd = -1 };
	if (!in_memory)
		status = open_file(stream, err);
	else if (!(stream->x = xfp_floats(tokens, width)))
		status = xfp_no_memory(err);
	if (status)
		xfp_stream_close(stream);
	else
		*out = stream;
	return status;
}

void xfp_stream_close(struct xfp_stream *stream)
{
	if (!stream)
		return;
	if (stream->fd >= 0)
		close(stream->fd);
	free(stream->path);
	free(stream->x);
	free(stream);
}

enum xfp_status xfp_stream_read(const struct xfp_stream *stream, size_t first, size_t count, float *x,
				struct xfp_error *err)
{
	size_t row = stream->width * sizeof *x;

	if (!stream->x)
		return xfp_pread(stream->fd, x, count * row, first * row, stream->path, err);
	memcpy(x, stream->x + first * stream->width, count * row);
	return XFP_OK;
}

enum xfp_status xfp_stream_write(struct xfp_stream *stream, size_t first, size_t count, const float *x,
				 struct xfp_error *err)
{
	size_t row = stream->width * sizeof *x;

	if (!stream->x)
		return xfp_pwrite(stream->fd, x, count * row, first * row, stream->path, err);
	memcpy(stream->x + first * stream->width, x, count * row);
	return XFP_OK;
}
