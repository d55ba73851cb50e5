/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xfp_error.h - the error type and the error idiom of xfp.
 *
 * A function that can fail returns an enum xfp_status: XFP_OK (0) or the exit status of the
 * failure. Its last parameter is a `struct xfp_error *err`, owned by the caller, which
 * receives the message; `err` may be NULL if the caller does not need the text. On failure every
 * output parameter is unchanged, or released and NULL.
 *
 *     if ((status = xfp_thing_open(path, &thing, err)))
 *         goto done;                                     // err already has the message
 *     if (size < 8)
 *         status = xfp_fail(err, XFP_BAD_INPUT, "%s: shorter than its header; download it again", path);
 *
 * Messages name the file, the tensor if there is one, and what to do. They contain neither a newline nor the
 * program's name; the executable's main() adds both. Untrusted bytes, such as parts of a file that a library quotes,
 * cannot reach a terminal through a message: control characters and bytes that are not UTF-8 become "\xNN".
 */
#ifndef XFP_ERROR_H
#define XFP_ERROR_H

#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

enum xfp_status {
	XFP_OK = 0,
	XFP_FAILED = 1,    /* the operation failed: I/O, out of space, out of memory, internal */
	XFP_USAGE = 2,     /* the command line is wrong */
	XFP_BAD_INPUT = 3, /* a corrupt, hostile or unsupported checkpoint, artifact or bundle */
	XFP_UNMET = 4,     /* a quality floor or a comparison is not met */

	/* Reserved between stages and the pipeline, never an exit status of `xfp` itself. */
	XFP_DAMAGED = 75,       /* a damaged artifact was removed: run the unit again */
	XFP_WANT_EXTENDED = 76, /* no candidate meets the floor: measure the extended set */
	XFP_CHANGED = 77        /* a unit's weights do not match its key: run it again from its first stage */
};

struct xfp_error {
	enum xfp_status status;
	char text[1024];
};

#if defined(__GNUC__)
#define XFP_PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))
#else
#define XFP_PRINTF(text, first)
#endif

/* Store a message and its status; returns `status`. */
enum xfp_status xfp_fail(struct xfp_error *err, enum xfp_status status, const char *format, ...) XFP_PRINTF(3, 4);

/* xfp_fail with a va_list. */
enum xfp_status xfp_fail_args(struct xfp_error *err, enum xfp_status status, const char *format, va_list args)
	XFP_PRINTF(3, 0);

/* XFP_FAILED: out of memory. xfp_no_memory_for names the file or folder that the memory was needed for. */
enum xfp_status xfp_no_memory(struct xfp_error *err);
enum xfp_status xfp_no_memory_for(struct xfp_error *err, const char *path);

/* Like xfp_fail, with ": " and the text of `errnum` appended. Sets errno to it. */
enum xfp_status xfp_fail_errno(struct xfp_error *err, int errnum, const char *format, ...) XFP_PRINTF(3, 4);

/* Prefix an existing message with "context: "; returns its status. */
enum xfp_status xfp_context(struct xfp_error *err, enum xfp_status status, const char *format, ...) XFP_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#endif
