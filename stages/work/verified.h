/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verified.h - that a bundle was verified, as an event in the work folder of the run that wrote it.
 *
 * The event is of no unit, its stage is "verify", its outcome "made" or "failed", its status that of `xfp verify`, and
 * its message "SHA256 TIME", in a failure "SHA256 TIME TEXT": of the bundle as it was written, when it was verified
 * (UTC), and the verdict. `xfp status` tells it at once; the next run takes it over into the manifest.
 */
#ifndef XFP_VERIFIED_H
#define XFP_VERIFIED_H

#include <stdbool.h>

#include "base/system/file.h"
#include "base/xfp_error.h"
#include "stages/work/work.h"

#define XFP_VERIFY_STAGE "verify"

/* ---- telling it -------------------------------------------------------------------------------- */

struct xfp_verification {
	const char *work, *bundle; /* borrowed */
	struct xfp_identity identity;
	bool there; /* the bundle was, when it began */
	double started;
};

/* Before the bundle is opened. */
struct xfp_verification xfp_verification_begin(const char *work, const char *bundle);

/* Once there is a verdict: XFP_OK, or `text` says what is wrong. XFP_BAD_INPUT when there is nothing to record, since
 * no run of that work folder wrote this file, or it passes but is no longer as it was written; XFP_FAILED when it
 * cannot be recorded. One that does not pass may have been changed in place: that is what is to be recorded. */
enum xfp_status xfp_verification_record(const struct xfp_verification *verification, enum xfp_status verdict,
					const char *text, struct xfp_error *err);

/* ---- being told -------------------------------------------------------------------------------- */

struct xfp_verified {
	char sha256[65], when[21]; /* "2026-01-31T12:34:56Z" */
	int status;
	const char *text; /* within the event; "" when the bundle passed */
};

bool xfp_event_is_verify(const struct xfp_event *event);
/* False when the event is no such one, or has another form. */
bool xfp_verified_parse(const struct xfp_event *event, struct xfp_verified *verified);

#endif
