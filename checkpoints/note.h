/* SPDX-License-Identifier: Apache-2.0 */
/*
 * note.h - notes for the user, and files that are not carried along. Private to checkpoints/.
 */
#ifndef XFP_CHECKPOINT_NOTE_H
#define XFP_CHECKPOINT_NOTE_H

#include "checkpoints/checkpoint.h"

/* Note a file that is not carried along; silently ignored if out of memory. */
void xfp_checkpoint_leave_out(struct xfp_checkpoint *checkpoint, const char *name);
/* Append a note in printf form; silently drops it when out of memory. */
void xfp_checkpoint_note(struct xfp_checkpoint *checkpoint, const char *format, ...) XFP_PRINTF(2, 3);

#endif
