/* SPDX-License-Identifier: Apache-2.0 */
/*
 * classes.h - enumerations stored by all xfp formats: tensor classes, fates, storage modes.
 *
 * The numbers are stored in ledgers, artifacts and bundles and never change. The runtime reads them too, so this header
 * and its source need nothing but C.
 */
#ifndef XFP_CLASSES_H
#define XFP_CLASSES_H

#include <stdbool.h>

/* The function of a tensor in the network. */
enum xfp_class {
	XFP_CLASS_ATTENTION,
	XFP_CLASS_LINEAR_ATTENTION,
	XFP_CLASS_DENSE_MLP,
	XFP_CLASS_SHARED_EXPERT,
	XFP_CLASS_ROUTED_EXPERT,
	XFP_CLASS_LM_HEAD,
	XFP_CLASS_EMBEDDING,
	XFP_CLASS_ROUTER,
	XFP_CLASS_NORM,
	XFP_CLASS_VISION,
	XFP_CLASS_MTP,
	XFP_CLASS_OTHER,
	XFP_CLASSES
};

/* The fate of a source tensor. Every tensor has exactly one fate, with a reason. */
enum xfp_fate {
	XFP_FATE_QUANTIZED, /* at least one of its units is stored in a quantized mode */
	XFP_FATE_KEPT,      /* stored unchanged */
	XFP_FATE_TIED,      /* not stored: its bytes equal those of another tensor, which is stored */
	XFP_FATE_DROPPED,   /* not stored: a buffer, or computed by every engine */
	XFP_FATES
};

/* The storage mode of a unit (or of one matrix of it). */
enum xfp_mode {
	XFP_MODE_KEEP, /* rows in the source dtype */
	XFP_MODE_FP8,  /* e4m3 codes with one f32 scale per row */
	XFP_MODE_V2,   /* k-bit indices into one codebook per row */
	XFP_MODE_V2A,  /* k-bit indices into a library shared by the unit; groups with scale and midpoint */
	XFP_MODE_V2C,  /* like v2a, but with compact groups of one byte each */
	XFP_MODES
};

const char *xfp_class_name(enum xfp_class value);
/* The names of all classes, for messages: "attention, linear_attention, ...". */
#define XFP_CLASS_LIST 400
const char *xfp_class_list(char list[XFP_CLASS_LIST]);
const char *xfp_fate_name(enum xfp_fate value);
const char *xfp_mode_name(enum xfp_mode value);
bool xfp_class_parse(const char *name, enum xfp_class *value);
bool xfp_mode_parse(const char *name, enum xfp_mode *value);

#endif
