/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_ids.h - a growable list of token ids.
 */
#ifndef XFP_TOKEN_IDS_H
#define XFP_TOKEN_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed, it is empty; its owner frees `id`. */
struct xfp_token_ids {
	uint32_t *id;
	size_t count, capacity;
};

#endif
