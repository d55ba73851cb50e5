/* SPDX-License-Identifier: Apache-2.0 */
#include "base/xfp_error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"

enum xfp_status xfp_fail_args(struct xfp_error *err, enum xfp_status status, const char *format, va_list args)
{
	if (!err)
		return status;
	err->status = status;
	vsnprintf(err->text, sizeof err->text, format, args);
	xfp_escape_message(err->text, sizeof err->text);
	return status;
}

enum xfp_status xfp_fail(struct xfp_error *err, enum xfp_status status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	xfp_fail_args(err, status, format, args);
	va_end(args);
	return status;
}

enum xfp_status xfp_no_memory(struct xfp_error *err)
{
	return xfp_fail(err, XFP_FAILED, "out of memory");
}

enum xfp_status xfp_no_memory_for(struct xfp_error *err, const char *path)
{
	return xfp_fail(err, XFP_FAILED, "%s: out of memory", path);
}

enum xfp_status xfp_fail_errno(struct xfp_error *err, int errnum, const char *format, ...)
{
	va_list args;
	size_t used;

	if (err) {
		err->status = XFP_FAILED;
		va_start(args, format);
		vsnprintf(err->text, sizeof err->text, format, args);
		va_end(args);
		xfp_escape_message(err->text, sizeof err->text);
		used = strlen(err->text);
		snprintf(err->text + used, sizeof err->text - used, ": %s%s", strerror(errnum),
			 errnum == EACCES ? "; change its permissions (see ls -ld), or choose another place" : "");
	}
	errno = errnum;
	return XFP_FAILED;
}

enum xfp_status xfp_context(struct xfp_error *err, enum xfp_status status, const char *format, ...)
{
	char text[sizeof err->text];
	va_list args;

	if (!err)
		return status;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	strncat(text, ": ", sizeof text - strlen(text) - 1);
	strncat(text, err->text, sizeof text - strlen(text) - 1);
	memcpy(err->text, text, sizeof text);
	xfp_escape_message(err->text, sizeof err->text);
	err->status = status;
	return status;
}
