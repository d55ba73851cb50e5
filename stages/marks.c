/* SPDX-License-Identifier: Apache-2.0 */
#include "marks.h"

#include <stdlib.h>
#include <string.h>

static int ascending(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

enum xfp_status xfp_marks_load(struct xfp_artifact *artifact, const struct xfp_outliers *outliers, uint32_t matrix,
			       struct xfp_marks *marks, struct xfp_error *err)
{
	enum xfp_status status;

	marks->cols = outliers->cols;
	marks->count = outliers->first[matrix + 1] - outliers->first[matrix];
	marks->position = malloc((marks->count + 1) * sizeof *marks->position);
	if (!marks->position)
		return xfp_fail(err, XFP_FAILED, "out of memory");
	status = xfp_outliers_positions(artifact, outliers, matrix, marks->position, err);
	if (status)
		xfp_marks_free(marks);
	else
		qsort(marks->position, marks->count, sizeof *marks->position, ascending);
	return status;
}

void xfp_marks_free(struct xfp_marks *marks)
{
	free(marks->position);
	memset(marks, 0, sizeof *marks);
}

uint64_t xfp_marks_find(const struct xfp_marks *marks, uint64_t row)
{
	uint64_t low = 0, high = marks->count;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (marks->position[middle] < row * marks->cols)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
