/* SPDX-License-Identifier: Apache-2.0 */
#include "marks.h"

#include <stdlib.h>
#include <string.h>

/* Positions in rising order, by way of a bit for every weight. */
static enum xfp_status order(uint64_t *position, uint64_t count, uint64_t weights, struct xfp_error *err)
{
	uint64_t words = weights / 64 + 1, *set = calloc(words, sizeof *set), done = 0;

	if (!set)
		return xfp_fail(err, XFP_FAILED, "out of memory");
	for (uint64_t i = 0; i < count; i++)
		set[position[i] / 64] |= 1ull << position[i] % 64;
	for (uint64_t i = 0; i < words; i++)
		for (uint64_t bits = set[i]; bits; bits &= bits - 1)
			position[done++] = i * 64 + (uint64_t)__builtin_ctzll(bits);
	free(set);
	return done == count ? XFP_OK : xfp_fail(err, XFP_DAMAGED, "an outlier is listed twice");
}

static void find_rows(struct xfp_marks *marks, uint64_t rows, uint64_t cols)
{
	uint64_t at = 0;

	for (uint64_t row = 0; row <= rows; row++) {
		while (at < marks->count && marks->position[at] < row * cols)
			at++;
		marks->first[row] = at;
	}
}

enum xfp_status xfp_marks_load(struct xfp_artifact *artifact, const struct xfp_outliers *outliers, uint32_t matrix,
			       struct xfp_marks *marks, struct xfp_error *err)
{
	enum xfp_status status;

	marks->count = outliers->first[matrix + 1] - outliers->first[matrix];
	marks->position = malloc((marks->count + 1) * sizeof *marks->position);
	marks->first = malloc((outliers->rows + 1) * sizeof *marks->first);
	status = marks->position && marks->first ? XFP_OK : xfp_fail(err, XFP_FAILED, "out of memory");
	if (!status)
		status = xfp_outliers_positions(artifact, outliers, matrix, marks->position, err);
	if (!status && marks->count)
		status = order(marks->position, marks->count, outliers->rows * outliers->cols, err);
	if (status)
		xfp_marks_free(marks);
	else
		find_rows(marks, outliers->rows, outliers->cols);
	return status;
}

void xfp_marks_free(struct xfp_marks *marks)
{
	free(marks->position);
	free(marks->first);
	memset(marks, 0, sizeof *marks);
}
