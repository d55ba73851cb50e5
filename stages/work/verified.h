/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verified.h - the verification of a bundle, as an event in the work folder of the run that wrote it.
 *
 * The event has no unit; its stage is "verify", its outcome "made" or "failed", its status that of `xfp verify`, and
 * its message "SHA256 TIME" or, for a failure, "SHA256 TIME TEXT": of the bundle as it was written, the time of the
 * verification (UTC), and the result. `xfp status` shows it at once; the next run copies it to the manifest.
 */
#ifndef XFP_VERIFIED_H
#define XFP_VERIFIED_H

#include <stdbool.h>

#include "base/system/file.h"
#include "base/xfp_error.h"
#include "stages/work/events.h"
#include "stages/work/work.h"

#define XFP_VERIFY_STAGE "verify"

/* ---- recording --------------------------------------------------------------------------------- */

struct xfp_verification {
	const char *work, *bundle; /* borrowed */
	struct xfp_identity identity;
	bool present; /* whether the bundle existed at the start */
	double started;
};

/* Call before the bundle is opened. */
struct xfp_verification xfp_verification_begin(const char *work, const char *bundle);

/* Record a result: `verdict`, and `text` unless it is XFP_OK. XFP_BAD_INPUT: there is nothing to record, since no run
 * of that work folder wrote this file, or it passed but has changed since it was written. XFP_FAILED: it cannot be
 * recorded. A bundle that did not pass may have been changed in place: that is what is recorded. */
enum xfp_status xfp_verification_record(const struct xfp_verification *verification, enum xfp_status verdict,
					const char *text, struct xfp_error *err);

/* ---- reading ----------------------------------------------------------------------------------- */

struct xfp_verified {
	char sha256[65], when[21]; /* "2026-01-31T12:34:56Z" */
	int status;
	const char *text; /* points into the event; "" if the bundle passed */
};

bool xfp_event_is_verify(const struct xfp_event *event);
/* False if the event is not a verification, or is malformed. */
bool xfp_verified_parse(const struct xfp_event *event, struct xfp_verified *verified);

#endif
