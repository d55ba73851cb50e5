/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look.h - a checkpoint as far as it can be made out, whether a conversion would take it or not.
 */
#ifndef XFP_INSPECT_LOOK_H
#define XFP_INSPECT_LOOK_H

#include "checkpoints/checkpoint.h"
#include "schemas/ledger.h"
#include "stages/inspect/classify.h"
#include "stages/inspect/family_choose.h"

struct xfp_look_wish {
	const char *model;    /* as the user gave it */
	const char *family;   /* a name or a file, NULL: by config.json */
	const char *families; /* folder, NULL: the default */
	const struct xfp_parameters *policy;
};

struct xfp_look {
	struct xfp_checkpoint *checkpoint;
	struct xfp_model_config *config;
	struct xfp_family_choice family; /* `family` of it is NULL where none was found out */
	/* Its tensors are the checkpoint's, in the same order. NULL: they could not be classified. */
	struct xfp_ledger *ledger;
	struct xfp_findings findings; /* with `ledger` */
	struct xfp_error refused;     /* why a conversion would refuse it; XFP_OK: it would not */
};

/* Fails where there is nothing to look at, and where a conversion would fail for other reasons than its input's. The
 * caller frees it either way. */
enum xfp_status xfp_look_at(const struct xfp_look_wish *wish, struct xfp_look *look, struct xfp_error *err);
void xfp_look_free(struct xfp_look *look);

/* Elements of a tensor, of any dtype. */
uint64_t xfp_look_weights(const struct xfp_source_tensor *tensor);
/* What the files spend on each; 0 where there is none. */
double xfp_look_bits(uint64_t stored, uint64_t weights);

#endif
