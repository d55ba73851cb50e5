/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.h - declarations shared by walk.c and multiply.c.
 */
#ifndef XFP_FUZZ_WALK_H
#define XFP_FUZZ_WALK_H

#include <stdio.h>
#include <stdlib.h>

#include "runtime/xfp.h"
#include "tests/fuzz/recipe.h"

#define MAX_COLUMNS ((uint64_t)1 << 18) /* of a row that is decoded */

#define MUST(condition)                                                                                \
	do {                                                                                           \
		if (!(condition)) {                                                                    \
			fprintf(stderr, "%s:%d: does not hold: " #condition "\n", __FILE__, __LINE__); \
			abort();                                                                       \
		}                                                                                      \
	} while (0)

/* Check a message that blames the file. */
void fuzz_judge(const struct xfp_error *err, enum xfp_status status, const struct fuzz_file_made *made);

/* Products of vectors and a complete unit or kept tensor. */
void fuzz_multiply_unit(const struct xfp_bundle *bundle, uint32_t number, const struct fuzz_file_made *made);
void fuzz_multiply_tensor(const struct xfp_bundle *bundle, uint32_t number, const struct fuzz_file_made *made);

#endif
