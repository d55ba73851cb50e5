/* SPDX-License-Identifier: Apache-2.0 */
/*
 * many_members.h - bundles with a large index and no content: their weights are holes.
 */
#ifndef XFP_TEST_MANY_MEMBERS_H
#define XFP_TEST_MANY_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct many {
	uint32_t units;      /* units of mode v2 with balance and outliers: four parts each */
	uint32_t experts;    /* matrices per unit */
	uint32_t tensors;    /* kept tensors, one part each */
	uint64_t rows, cols; /* shape of a matrix */
	size_t prefix;       /* length of a prefix of all names, in addition to the usual prefix of tensors */
	bool backwards;      /* names in the order that takes longest to sort */
};

/* Write the bundle to an open file of this process, replacing its content. Returns the number of members, and the size
 * of the index. */
uint32_t many_members(int file, const struct many *many, uint64_t *index_bytes);

#endif
