/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notices.c - prints the notices of a running conversion to stderr.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/printable.h"
#include "base/text/screen.h"
#include "base/text/size.h"
#include "commands/convert/progress.h"
#include "commands/ui/pace.h"

static void print_crcs(const struct xfp_notice *n)
{
	char size[32], took[32], absent[64] = "";

	if (!n->bytes)
		return;
	if (n->absent)
		snprintf(absent, sizeof absent, "; %" PRIu64 " have none", n->absent);
	fprintf(stderr,
		"xfp: checked the CRC-32 of %" PRIu64 " members (%s in %s%s); unchanged files are not read again for "
		"this\n",
		n->count, xfp_human((double)n->bytes, "B", size), xfp_duration_text(n->seconds, took), absent);
}

/* Notes of calibrated conversions. */
static void print_calibration(const char *program, const struct xfp_notice *n)
{
	const char *s = n->count == 1 ? "" : "s";

	if (n->kind == XFP_NOTICE_LAYERS_AGAIN)
		xfp_screen_printf(stderr,
				  "%s: note: the inputs of %" PRIu64 " layer%s before layer %" PRIu64
				  " were removed when their units were done, and are computed again\n",
				  program, n->count, s, n->total);
	else if (n->kind == XFP_NOTICE_UNREACHED)
		xfp_screen_printf(stderr,
				  "%s: note: no calibration token reached %" PRIu64 " expert matri%s of %" PRIu64
				  " unit%s; the inputs of the other experts take their place\n",
				  program, n->count, n->count == 1 ? "x" : "ces", n->total, n->total == 1 ? "" : "s");
	else if (n->total > 1)
		xfp_screen_printf(stderr,
				  "%s: note: %s: the inputs of %" PRIu64 " of its %" PRIu64
				  " matrices are always zero; these are fitted as without calibration\n",
				  program, xfp_printable(n->name).text, n->count, n->total);
	else
		xfp_screen_printf(stderr,
				  "%s: note: %s: its input is always zero; it is fitted as without calibration\n",
				  program, xfp_printable(n->name).text);
}

/* Notices that --quiet omits. */
static void print_plain(struct xfp_progress *progress, const struct xfp_notice *n)
{
	const struct xfp_request *request = progress->c->request;

	switch (n->kind) {
	case XFP_NOTICE_WAITING:
		xfp_screen_printf(stderr, "xfp: waiting for another conversion in %s\n", request->work);
		break;
	case XFP_NOTICE_LAUNCHER_WAITS:
		xfp_progress_clear(progress);
		fprintf(stderr, "xfp: %s\n", n->text);
		break;
	case XFP_NOTICE_MANIFEST_REBUILT:
		fprintf(stderr,
			"xfp: %s: the manifest was lost, damaged or of another version; it was rebuilt from %" PRIu64
			" artifacts\n",
			request->cache, n->count);
		break;
	case XFP_NOTICE_LOW_FLOORS:
		fprintf(stderr, "xfp: %s\n", n->text);
		break;
	case XFP_NOTICE_TIED_FORMAT:
		fprintf(stderr, "xfp: %s is both embedding and output head: %s applies, not %s\n",
			xfp_printable(n->name).text, n->text, n->other);
		break;
	case XFP_NOTICE_BARE_RESERVE:
		fputs("xfp: --reserve: a number without a unit is bytes: " XFP_SIZE_UNITS "\n", stderr);
		break;
	case XFP_NOTICE_IDLE_WEIGHT:
		fputs("xfp: --weight: has no effect without a goal, such as --target-size\n", stderr);
		break;
	case XFP_NOTICE_UNMATCHED_WEIGHT:
		fprintf(stderr, "xfp: --weight %s: matches no unit\n", xfp_printable(n->name).text);
		break;
	case XFP_NOTICE_UNUSED_SURVEYS:
		xfp_screen_printf(stderr,
				  "%s: note: %s: none of %" PRIu64 " unused survey%s is of these weights and options; "
				  "imported surveys need the publisher's checkpoint, --mode, --bits and --group-size\n",
				  request->program, request->cache, n->count, n->count == 1 ? "" : "s");
		break;
	case XFP_NOTICE_ZERO_INPUTS:
	case XFP_NOTICE_UNREACHED:
	case XFP_NOTICE_LAYERS_AGAIN:
		print_calibration(request->program, n);
		break;
	case XFP_NOTICE_CRC_READING:
		xfp_meter_draw(&progress->meter, "CRC-32 of %s: %3.0f %%", xfp_printable(n->name).text, 100 * n->share);
		break;
	case XFP_NOTICE_CRC_CHECKED:
		xfp_meter_clear(&progress->meter);
		print_crcs(n);
		break;
	default:
		break;
	}
}

void xfp_print_notice(const struct xfp_notice *n, void *context)
{
	struct xfp_progress *progress = context;
	const struct xfp_request *request = progress->c->request;

	switch (n->kind) {
	case XFP_NOTICE_STAGE:
		xfp_progress_event(progress, n->event);
		break;
	case XFP_NOTICE_UNITS_BEGIN:
		xfp_progress_begin(progress);
		break;
	case XFP_NOTICE_UNITS:
		xfp_progress_show(progress);
		break;
	case XFP_NOTICE_BUNDLE_BEGIN:
		xfp_progress_bundle_begin(progress);
		break;
	case XFP_NOTICE_BUNDLE:
		xfp_progress_bundle(progress);
		break;
	case XFP_NOTICE_UNITS_END:
	case XFP_NOTICE_BUNDLE_END:
		xfp_progress_clear(progress);
		break;
	case XFP_NOTICE_AGAIN:
		fprintf(stderr, "xfp: %s; %s\n", n->text, n->other);
		break;
	case XFP_NOTICE_CACHE_KEPT:
		fprintf(stderr, "xfp: the cache is not dropped: %s\n", n->text);
		break;
	case XFP_NOTICE_TOOL:
		xfp_screen_printf(stderr, "%s\n", n->text);
		break;
	case XFP_NOTICE_MESSAGE:
		xfp_screen_printf(stderr, "%s: %s\n", request->program, n->text);
		break;
	case XFP_NOTICE_LOCK_FAILED:
		fprintf(stderr, "xfp: %s\n", n->text);
		break;
	case XFP_NOTICE_MANIFEST_OUTDATED:
		fprintf(stderr, "xfp: the manifest could not be updated: %s\n", n->text);
		break;
	case XFP_NOTICE_RECORD_LOST:
		fprintf(stderr, "xfp: the manifest does not record what this run used: %s\n", n->text);
		break;
	case XFP_NOTICE_EVENTS_TORN:
		fprintf(stderr,
			"xfp: %s/%s: lines are damaged; times and messages of those steps are lost, nothing else\n",
			request->work, XFP_EVENTS_FILE);
		break;
	case XFP_NOTICE_MOVED_STALE:
		fprintf(stderr,
			"xfp: %s: units moved there from the cache are converted again, since settings, weights or "
			"the version of xfp changed\n",
			request->out);
		break;
	case XFP_NOTICE_SOURCE_CORRECTED:
		fprintf(stderr,
			"xfp: %s: tensor %s has other weights than %s recorded, although the file's times are "
			"unchanged; corrected, continuing with the current weights\n",
			n->name, xfp_printable(n->text).text, request->cache);
		break;
	case XFP_NOTICE_BUNDLE_DAMAGED:
		fprintf(stderr,
			"xfp: %s: differs from what was written, and no other program has written to it; the disk "
			"may be failing\n",
			request->out);
		break;
	default:
		if (!request->quiet)
			print_plain(progress, n);
	}
}
