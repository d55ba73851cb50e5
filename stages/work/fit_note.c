/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/work/fit_note.h"

#include <inttypes.h>
#include <stdio.h>

#include "stages/work/stages.h"

#define FORMAT(number) "unreached=%" number " zero=%" number

void xfp_fit_note_write(const struct xfp_fit_note *note, struct xfp_event *event)
{
	if (note->unreached || note->zero)
		snprintf(event->message, sizeof event->message, FORMAT(PRIu32), note->unreached, note->zero);
}

bool xfp_fit_note_read(const struct xfp_event *event, struct xfp_fit_note *note)
{
	const enum xfp_stamp step = xfp_step_named(event->stage);

	*note = (struct xfp_fit_note){ 0 };
	return step != XFP_STAMPS && xfp_steps[step].fit && !event->status &&
	       sscanf(event->message, FORMAT(SCNu32), &note->unreached, &note->zero) == 2;
}
