/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspection.h - open and classify a checkpoint as far as possible, even if a conversion would refuse it.
 */
#ifndef XFP_INSPECTION_H
#define XFP_INSPECTION_H

#include "checkpoints/checkpoint.h"
#include "schemas/ledger.h"
#include "stages/inspect/classify.h"
#include "stages/inspect/family_choose.h"

struct xfp_inspection_request {
	const char *model;    /* as the user gave it */
	const char *family;   /* a name or a file; NULL: chosen by config.json */
	const char *families; /* folder of rule files; NULL: the default */
	const struct xfp_parameters *policy;
};

struct xfp_inspection {
	struct xfp_checkpoint *checkpoint;
	struct xfp_model_config *config;
	struct xfp_family_choice family; /* its `family` is NULL if none matched */
	/* Has the checkpoint's tensors, in the same order. NULL if they could not be classified. */
	struct xfp_ledger *ledger;
	struct xfp_findings findings; /* set if `ledger` is */
	struct xfp_error refused;     /* why a conversion would refuse it; XFP_OK if it would not */
};

/* Fails if there is no checkpoint, or if a conversion would fail for a reason other than its input. The caller frees
 * `inspection` in any case. */
enum xfp_status xfp_inspection_open(const struct xfp_inspection_request *request, struct xfp_inspection *inspection,
				    struct xfp_error *err);
void xfp_inspection_free(struct xfp_inspection *inspection);

/* Number of elements of a tensor of any dtype. */
uint64_t xfp_inspection_weights(const struct xfp_source_tensor *tensor);
/* Stored bits per weight; 0 if there are no weights. */
double xfp_inspection_bits(uint64_t stored, uint64_t weights);

#endif
