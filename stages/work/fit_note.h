/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit_note.h - what xfp-libfit reports of a unit's inputs in the message of its event: "unreached=N zero=N".
 */
#ifndef XFP_FIT_NOTE_H
#define XFP_FIT_NOTE_H

#include "stages/work/events.h"
#include "stages/work/work.h"

struct xfp_fit_note {
	uint32_t unreached; /* matrices that no calibration token reached */
	uint32_t zero;      /* matrices whose inputs are always zero */
};

/* Set the message, if there is something to report. */
void xfp_fit_note_write(const struct xfp_fit_note *note, struct xfp_event *event);
/* Read the message of the event of a fit; false if it reports nothing. */
bool xfp_fit_note_read(const struct xfp_event *event, struct xfp_fit_note *note);

#endif
