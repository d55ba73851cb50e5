/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receipt.h - the result of a unit, and its data for a bundle's index, in a file of the work folder.
 *
 * With --drop-cache a unit's fits are removed once it is packed, and its packed artifact once its parts are in the
 * bundle. From then on the receipt replaces all of them. It has the form of an artifact, including the digest, and is
 * stored as WORK/u000012-receipt. Its key covers everything that its content depends on (cache/key.h): the unit's
 * weights, its parameters and the algorithms. The receipt is valid while its key is the current one.
 *
 *   attributes   those of packed.h; chosen and nonfinite (0 or 1); files: 32 hex digits, a digest of the locations of
 *                the weights and the identities of their files, so that the receipt alone can detect changes;
 *                keys: of the artifacts that it replaces, in the order of the stages' table, separated by spaces,
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
	struct xfp_choice choice; /* if there is one: */
	bool chosen;
	bool nonfinite;
	char files[33];
	char *keys; /* allocated */
};

enum xfp_status xfp_receipt_write(struct xfp_artifact *a, const struct xfp_receipt *receipt, struct xfp_error *err);
enum xfp_status xfp_receipt_read(struct xfp_artifact *a, struct xfp_receipt *receipt, struct xfp_error *err);
void xfp_receipt_free(struct xfp_receipt *receipt);

#endif
