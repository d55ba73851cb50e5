/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notice.h - the reports of a running conversion. Nothing in conversion/ prints: every report goes to one callback, and
 * commands/convert/notices.c formats and prints it.
 */
#ifndef XFP_NOTICE_H
#define XFP_NOTICE_H

#include <stdint.h>

#include "stages/work/events.h"
#include "stages/work/work.h"

enum xfp_notice_kind {
	XFP_NOTICE_STAGE,             /* a stage of a unit started or ended: event */
	XFP_NOTICE_UNITS_BEGIN,       /* make runs over the units that are not done */
	XFP_NOTICE_UNITS,             /* about twice a second while make runs */
	XFP_NOTICE_UNITS_END,         /* make has ended */
	XFP_NOTICE_BUNDLE_BEGIN,      /* xfp-bundle writes the bundle */
	XFP_NOTICE_BUNDLE,            /* repeatedly while xfp-bundle runs */
	XFP_NOTICE_BUNDLE_END,        /* xfp-bundle has ended */
	XFP_NOTICE_CACHE_KEPT,        /* --drop-cache could not remove the cache: text is the reason */
	XFP_NOTICE_AGAIN,             /* another round is needed: text is the reason, other the action */
	XFP_NOTICE_TOOL,              /* a line that a tool wrote to the log, with its name first: text */
	XFP_NOTICE_MESSAGE,           /* a message of xfp-inspect or xfp-calibrate, without the tool's name: text */
	XFP_NOTICE_WAITING,           /* another conversion uses the work folder */
	XFP_NOTICE_LAUNCHER_WAITS,    /* the launcher has not started a command for a while: text */
	XFP_NOTICE_LOCK_FAILED,       /* the shared cache lock could not be taken again: text is the reason */
	XFP_NOTICE_MANIFEST_REBUILT,  /* the manifest was rebuilt from count artifacts */
	XFP_NOTICE_MANIFEST_OUTDATED, /* the manifest could not be written: text is the reason */
	XFP_NOTICE_RECORD_LOST,       /* the manifest lacks the units of this run: text is the reason */
	XFP_NOTICE_EVENTS_TORN,       /* lines of the events file are damaged */
	XFP_NOTICE_MOVED_STALE,       /* units in the pending bundle are outdated and converted again */
	XFP_NOTICE_SOURCE_CORRECTED, /* the weights of a file differ from those in the manifest: name, tensor in text */
	XFP_NOTICE_BUNDLE_DAMAGED,   /* the bundle differs from what was written to it */
	XFP_NOTICE_LOW_FLOORS,       /* floors below the quality that models survive: text */
	XFP_NOTICE_TIED_FORMAT,      /* a tied matrix has two formats: name, text applies, other does not */
	XFP_NOTICE_BARE_RESERVE,     /* --reserve without a unit */
	XFP_NOTICE_IDLE_WEIGHT,      /* --weight without a goal */
	XFP_NOTICE_UNMATCHED_WEIGHT, /* --weight that matches no unit: name is its pattern */
	XFP_NOTICE_UNUSED_SURVEYS,   /* no unit has a survey, but the cache has count that no run has used */
	XFP_NOTICE_ZERO_INPUTS,      /* the inputs of count of the total matrices of unit name are always zero */
	XFP_NOTICE_UNREACHED,        /* no calibration token reached count expert matrices of total units */
	XFP_NOTICE_LAYERS_AGAIN,     /* count layers before layer total are computed again: their inputs were removed */
	XFP_NOTICE_CRC_READING,      /* checking the CRC-32 of file name: share that was read */
	XFP_NOTICE_CRC_CHECKED,      /* the check is done: count members in bytes, absent without CRC-32, seconds */
};

struct xfp_notice {
	enum xfp_notice_kind kind;
	const struct xfp_event *event;
	const char *name, *text, *other;
	uint64_t count, total, absent, bytes;
	double share, seconds;
};

/* Callback for the notices of a conversion; `take` may be NULL. */
struct xfp_notify {
	void (*report)(const struct xfp_notice *notice, void *context);
	void *context;
};

static inline void xfp_notify(const struct xfp_notify *notify, const struct xfp_notice notice)
{
	if (notify->report)
		notify->report(&notice, notify->context);
}
#define XFP_NOTIFY(c, ...) xfp_notify(&(c)->notify, (struct xfp_notice){ __VA_ARGS__ })

#endif
