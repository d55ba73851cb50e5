/* SPDX-License-Identifier: Apache-2.0 */
/*
 * many_members.h - bundles with a large index and nothing in them: their weights are holes.
 */
#ifndef XFP_TEST_MANY_MEMBERS_H
#define XFP_TEST_MANY_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct many {
	uint32_t units;      /* of mode v2, with balance and outliers: four parts each */
	uint32_t experts;    /* matrices of each */
	uint32_t tensors;    /* kept, one part each */
	uint64_t rows, cols; /* of a matrix */
	size_t prefix;       /* bytes that all names begin with, beside what names of tensors begin with anyway */
	bool backwards;      /* names in the order that takes longest to sort */
};

/* Write it to an open file of this process, whatever was in that. Its number of members, and the bytes of its index. */
uint32_t many_members(int file, const struct many *many, uint64_t *index_bytes);

#endif
