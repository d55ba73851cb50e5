/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receipts.h - the receipts of a work folder (schemas/receipt.h): WORK/u000012-receipt, for units whose artifacts are
 * gone or may be removed.
 */
#ifndef XFP_RECEIPTS_H
#define XFP_RECEIPTS_H

#include "schemas/receipt.h"
#include "stages/work/work.h"

/* Publish the receipt under its key, together with the key's text. It is not durable yet. */
enum xfp_status xfp_receipt_publish(const char *work, uint32_t unit, const char *name, const struct xfp_key *key,
				    const struct xfp_receipt *receipt, struct xfp_error *err);
/* Read the receipt and its key; `*key` is "" if there is none. XFP_DAMAGED: damaged, or of another version. XFP_FAILED:
 * it cannot be read. */
enum xfp_status xfp_receipt_find(const char *work, uint32_t unit, struct xfp_receipt *receipt, char key[33],
				 struct xfp_error *err);
bool xfp_receipt_exists(const char *work, uint32_t unit);
void xfp_receipt_remove(const char *work, uint32_t unit);
/* Make the existing receipts of units [first, end) durable. */
enum xfp_status xfp_receipts_sync(const char *work, uint32_t first, uint32_t end, struct xfp_error *err);

/* Convert the keys that a receipt replaces to and from its text. */
char *xfp_receipt_keys_text(char (*key)[33]);
bool xfp_receipt_keys(const struct xfp_receipt *receipt, char (*key)[33]);

#endif
