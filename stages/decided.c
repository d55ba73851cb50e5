/* SPDX-License-Identifier: Apache-2.0 */
#include "decided.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With its NUL, so that no two texts run into each other. */
static void add(struct xfp_digest *decided, const char *text)
{
	xfp_digest_update(decided, text, strlen(text) + 1);
}

struct xfp_digest *xfp_decided_begin(const struct xfp_parameters *parameters)
{
	char *text = xfp_parameters_to_json(parameters);
	struct xfp_digest *decided = text ? xfp_digest_new() : NULL;

	if (decided)
		add(decided, text);
	free(text);
	return decided;
}

void xfp_decided_unit(struct xfp_digest *decided, const char *choice, const char *packed)
{
	add(decided, choice);
	add(decided, packed);
}

void xfp_decided_end(struct xfp_digest *decided, char hex[33])
{
	uint8_t bytes[16];

	xfp_digest_final(decided, bytes);
	for (int i = 0; i < 16; i++)
		snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
}
