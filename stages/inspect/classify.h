/* SPDX-License-Identifier: Apache-2.0 */
/*
 * classify.h - apply a family's rules to a checkpoint's headers, producing the ledger.
 *
 * Every tensor gets exactly one fate, with the reason; those that can be quantized become units. Anything else that the
 * user should know goes into the findings. Reasons contain no rule or line number, since they are stored in bundles: a
 * comment in a rule file must not change a bundle's bytes.
 */
#ifndef XFP_CLASSIFY_H
#define XFP_CLASSIFY_H

#include "checkpoints/checkpoint.h"
#include "schemas/ledger.h"
#include "schemas/parameters.h"
#include "stages/inspect/family.h"
#include "stages/inspect/model_config.h"
#include "stages/inspect/notes.h"

struct xfp_findings {
	struct xfp_notes notes;
	uint32_t *taken;               /* number of tensors that matched each rule of the family */
	const struct xfp_rule **rules; /* [ledger tensors] the rule that matched each, NULL: none */
};

/* Create the ledger. `policy` supplies the formats, overrides and lm_head setting that determine units and plans. Reads
 * no weights, with one exception: if config.json ties the lm_head to the embedding and both are stored, their bytes are
 * compared. A hidden_size that config.json lacks is filled in from the embedding's shape. The caller frees both
 * results; on failure there are none. */
enum xfp_status xfp_classify(const struct xfp_checkpoint *checkpoint, struct xfp_model_config *config,
			     const struct xfp_family *family, const struct xfp_parameters *policy,
			     struct xfp_ledger **ledger, struct xfp_findings *findings, struct xfp_error *err);
void xfp_findings_free(struct xfp_findings *findings);

#endif
