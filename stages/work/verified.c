/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/work/verified.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/system/clock.h"
#include "base/text/utc.h"
#include "stages/work/bundle_stamp.h"

/* ---- recording --------------------------------------------------------------------------------- */

static bool identity_of(const char *path, struct xfp_identity *identity)
{
	struct stat st;
	bool present = !stat(path, &st);

	*identity = present ? xfp_identity_of(&st) : (struct xfp_identity){ 0 };
	return present;
}

struct xfp_verification xfp_verification_begin(const char *work, const char *bundle)
{
	struct xfp_verification v = { .work = work, .bundle = bundle, .started = xfp_now() };

	v.present = identity_of(bundle, &v.identity);
	return v;
}

/* Check that the file is the one that the stamp describes and, if it passed, that it is unchanged since it was written.
 */
static enum xfp_status check_file(const struct xfp_verification *v, const struct xfp_bundle_stamp *stamp, bool passed,
				  struct xfp_error *err)
{
	const struct xfp_identity *written = &stamp->identity;
	struct xfp_identity now;

	if (!v->present || v->identity.device != written->device || v->identity.inode != written->inode)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: not the file that the run of %s wrote", v->bundle, v->work);
	if (passed && (!xfp_identity_equal(&v->identity, written) || !identity_of(v->bundle, &now) ||
		       !xfp_identity_equal(&now, written)))
		return xfp_fail(err, XFP_BAD_INPUT, "%s: changed since the run of %s wrote it", v->bundle, v->work);
	return XFP_OK;
}

enum xfp_status xfp_verification_record(const struct xfp_verification *v, enum xfp_status verdict, const char *text,
					struct xfp_error *err)
{
	struct xfp_event event = { .unit = XFP_NO_UNIT, .stage = XFP_VERIFY_STAGE, .status = (int)verdict };
	struct xfp_bundle_stamp stamp;
	enum xfp_status status;
	char when[32];
	bool sound;

	if ((status = xfp_bundle_stamp_read(v->work, &stamp, &sound, err)))
		return status;
	if (!sound)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: not the work folder of a run that wrote a bundle", v->work);
	if ((status = check_file(v, &stamp, !verdict, err)))
		return status;
	if (!strcmp(xfp_utc(time(NULL), when), "-"))
		return xfp_fail(err, XFP_FAILED, "cannot read the clock of this machine");
	strcpy(event.outcome, verdict ? "failed" : "made");
	event.seconds = xfp_now() - v->started;
	snprintf(event.message, sizeof event.message, "%s %s%s%.900s", stamp.sha256, when, verdict ? " " : "",
		 verdict ? text : "");
	return xfp_event_append(v->work, &event, err);
}

/* ---- reading ----------------------------------------------------------------------------------- */

bool xfp_event_is_verify(const struct xfp_event *event)
{
	return event->unit == XFP_NO_UNIT && !strcmp(event->stage, XFP_VERIFY_STAGE);
}

bool xfp_verified_parse(const struct xfp_event *event, struct xfp_verified *verified)
{
	int end = 0;

	*verified = (struct xfp_verified){ .status = event->status };
	if (!xfp_event_is_verify(event) ||
	    sscanf(event->message, "%64[0-9a-f] %20[0-9TZ:-]%n", verified->sha256, verified->when, &end) != 2 ||
	    strlen(verified->sha256) != 64 || strlen(verified->when) != 20)
		return false;
	verified->text = event->message + end;
	if (*verified->text && *verified->text++ != ' ')
		return false;
	return true;
}
