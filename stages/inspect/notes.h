/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notes.h - warnings and notes of inspect that are not in the ledger.
 *
 * Notes about tensors are merged: a thousand layers with the same defect are one note, with the layer and expert
 * numbers of the names shown as *.
 */
#ifndef XFP_NOTES_H
#define XFP_NOTES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/xfp_error.h"

struct xfp_note {
	bool warning; /* the result may not be what the user wants */
	bool idle;    /* about a rule that matches no tensor: not printed if nothing is quantized anyway */
	char *text;
	char *names; /* names of its tensors, with numbers as *; NULL: none */
	uint64_t tensors, weights;
	uint32_t order;
};

/* Empty if zeroed. */
struct xfp_notes {
	struct xfp_note *list;
	uint32_t count, capacity;
};

enum xfp_status xfp_notes_add(struct xfp_notes *notes, bool warning, struct xfp_error *err, const char *format, ...)
	XFP_PRINTF(4, 5);
/* Add a note about one tensor. */
enum xfp_status xfp_notes_add_tensor(struct xfp_notes *notes, bool warning, const char *tensor, uint64_t weights,
				     const char *text, struct xfp_error *err);
/* Merge notes with equal text and names; then complete the texts: "NAMES (12 tensors, 34 weights): text". */
enum xfp_status xfp_notes_finish(struct xfp_notes *notes, struct xfp_error *err);
void xfp_notes_free(struct xfp_notes *notes);

/* Change "model.layers.12.norm" to "model.layers.*.norm" in place. */
void xfp_star_numbers(char *name);

#endif
