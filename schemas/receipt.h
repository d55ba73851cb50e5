/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receipt.h - what a bundle's index needs of a unit, and what came of the unit, in a file of the work folder.
 *
 * With --drop-cache a unit's fits go once it is packed, and its packed artifact once its parts are in the bundle. From
 * then on the receipt stands for all of them. It has the form of an artifact, digest included, and is kept in
 * WORK/u000012-receipt. Its key is of what everything in it follows from (cache/key.h): the unit's weights, its
 * parameters and the algorithms. While that is the current one, so is the receipt.
 *
 *   attributes   those of packed.h; chosen and nonfinite (0 or 1); files: 32 hex digits, of where the weights were
 *                read and who those files were, so that the receipt alone can tell that they are still the same;
 *                keys: of the artifacts that it stands for, in the order of the stages' table, a space between two,
 *                "-" for none
 *   /matrix, /digest, /bytes   as in packed.h
 *   /choice      a group with the attributes of choice.h; absent for a unit without a choice
 */
#ifndef XFP_RECEIPT_H
#define XFP_RECEIPT_H

#include "schemas/choice.h"
#include "schemas/packed.h"

#define XFP_RECEIPT_KIND "receipt"
#define XFP_RECEIPT_VERSION 1

struct xfp_receipt {
	struct xfp_packed packed;
	struct xfp_choice choice; /* where there is one: */
	bool chosen;
	bool nonfinite;
	char files[33];
	char *keys; /* allocated */
};

enum xfp_status xfp_receipt_write(struct xfp_artifact *a, const struct xfp_receipt *receipt, struct xfp_error *err);
enum xfp_status xfp_receipt_read(struct xfp_artifact *a, struct xfp_receipt *receipt, struct xfp_error *err);
void xfp_receipt_free(struct xfp_receipt *receipt);

#endif
