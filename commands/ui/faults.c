/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/ui/faults.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/screen.h"

/* ---- faults ---------------------------------------------------------------------------------- */

static int severity(enum xfp_status status)
{
	return status == XFP_BAD_INPUT ? 3 : status == XFP_FAILED ? 2 : status == XFP_UNMET;
}

enum xfp_status xfp_faults_add(struct xfp_faults *faults, struct xfp_error *err, enum xfp_status status,
			       const char *format, ...)
{
	char **text = realloc(faults->text, (faults->count + (size_t)1) * sizeof *text);
	va_list arguments;
	int length;

	if (!text)
		return xfp_no_memory(err);
	faults->text = text;
	va_start(arguments, format);
	length = vasprintf(&text[faults->count], format, arguments);
	va_end(arguments);
	if (length < 0)
		return xfp_no_memory(err);
	if (faults->count < XFP_FAULTS_SHOWN) {
		if (faults->meter)
			xfp_meter_clear(faults->meter);
		xfp_screen_printf(stderr, "%s: %s\n", faults->program, text[faults->count]);
	}
	faults->count++;
	if (severity(status) > severity(faults->status))
		faults->status = status;
	return XFP_OK;
}

void xfp_faults_rest(const struct xfp_faults *faults)
{
	if (faults->count > XFP_FAULTS_SHOWN)
		fprintf(stderr, "%s: and %" PRIu32 " more\n", faults->program, faults->count - XFP_FAULTS_SHOWN);
}

void xfp_faults_free(struct xfp_faults *faults)
{
	for (uint32_t i = 0; i < faults->count; i++)
		free(faults->text[i]);
	free(faults->text);
	faults->text = NULL;
	faults->count = 0;
}

/* ---- bytes ------------------------------------------------------------------------------------- */

/* Check a member again after the error `first`: real damage is found every time. */
static enum xfp_status confirm(const struct xfp_bundle *bundle, uint32_t member, const char *first,
			       struct xfp_faults *faults, struct xfp_error *err)
{
	const char *remedy = strrchr(first, ';'); /* the remedy for damage */
	struct xfp_error again;

	if (xfp_bundle_check_member(bundle, member, &again))
		return xfp_faults_add(faults, err, again.status, "%s", first);
	return xfp_faults_add(faults, err, XFP_FAILED,
			      "%.*s, but not when it was read again; check the disk and memory of this machine",
			      remedy ? (int)(remedy - first) : (int)strlen(first), first);
}

enum xfp_status xfp_verify_bytes(const struct xfp_bundle *bundle, struct xfp_faults *faults, struct xfp_error *err)
{
	uint32_t members = xfp_bundle_members(bundle);
	char **wrong = calloc(members + (size_t)1, sizeof *wrong); /* error of each; NULL if none */
	enum xfp_status status = XFP_OK;
	bool no_memory = !wrong;

#pragma omp parallel for schedule(dynamic)
	for (uint32_t i = 0; i < (wrong ? members : 0); i++) {
		struct xfp_error own;

		if (xfp_bundle_check_member(bundle, i, &own) && !(wrong[i] = strdup(own.text))) {
#pragma omp atomic write
			no_memory = true;
		}
	}
	if (no_memory)
		status = xfp_no_memory(err);
	/* In member order, regardless of thread timing. */
	for (uint32_t i = 0; wrong && i < members; i++) {
		if (!status && wrong[i])
			status = confirm(bundle, i, wrong[i], faults, err);
		free(wrong[i]);
	}
	free(wrong);
	return status;
}
