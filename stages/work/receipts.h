/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receipts.h - the receipts of a work folder (schemas/receipt.h): WORK/u000012-receipt, of units whose artifacts are
 * gone or may go.
 */
#ifndef XFP_RECEIPTS_H
#define XFP_RECEIPTS_H

#include "schemas/receipt.h"
#include "stages/work/work.h"

/* Publish the receipt under its key; the text of the key goes with it. Not yet durable. */
enum xfp_status xfp_receipt_leave(const char *work, uint32_t unit, const char *name, const struct xfp_key *key,
				  const struct xfp_receipt *receipt, struct xfp_error *err);
/* The receipt and its key; `*key` is "" where there is none. One that is damaged, or of another version, is
 * XFP_DAMAGED; one that cannot be read is XFP_FAILED. */
enum xfp_status xfp_receipt_find(const char *work, uint32_t unit, struct xfp_receipt *receipt, char key[33],
				 struct xfp_error *err);
bool xfp_receipt_exists(const char *work, uint32_t unit);
void xfp_receipt_remove(const char *work, uint32_t unit);
/* Make those of units [first, end) durable, as far as there are any. */
enum xfp_status xfp_receipts_sync(const char *work, uint32_t first, uint32_t end, struct xfp_error *err);

/* The keys that a receipt stands for, from and to its text. */
char *xfp_receipt_keys_text(char (*key)[33]);
bool xfp_receipt_keys(const struct xfp_receipt *receipt, char (*key)[33]);

#endif
