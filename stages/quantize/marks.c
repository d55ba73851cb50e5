/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/quantize/marks.h"

#include <stdlib.h>
#include <string.h>

#define AT_ONCE 16384 /* positions per read: they are ordered by distance, and more than are kept */

/* Read all positions, either to count those of each row r in first[r + 1] or, if first[r] is the index of the row's
 * next column, to store them. */
static enum xfp_status walk(struct xfp_artifact *artifact, const struct xfp_outliers *outliers, uint32_t matrix,
			    struct xfp_marks *marks, uint64_t *position, bool put, struct xfp_error *err)
{
	uint64_t cols = outliers->cols;
	enum xfp_status status = XFP_OK;

	for (uint64_t from = 0; !status && from < marks->count; from += AT_ONCE) {
		uint64_t count = marks->count - from < AT_ONCE ? marks->count - from : AT_ONCE;

		status = xfp_outliers_positions(artifact, outliers, matrix, from, count, position, err);
		for (uint64_t i = 0; !status && i < count; i++) {
			uint64_t row = position[i] / cols;

			if (put)
				marks->column[marks->first[row]++] = (uint32_t)(position[i] - row * cols);
			else
				marks->first[row + 1]++;
		}
	}
	return status;
}

/* Sort each row's columns, using one bit per column. */
static enum xfp_status order(struct xfp_marks *marks, uint64_t rows, uint64_t *set, struct xfp_error *err)
{
	for (uint64_t row = 0; row < rows; row++) {
		uint64_t first = marks->first[row], end = marks->first[row + 1], lowest = UINT64_MAX, highest = 0;

		for (uint64_t i = first; i < end; i++) {
			uint64_t word = marks->column[i] / 64;

			set[word] |= 1ull << marks->column[i] % 64;
			lowest = word < lowest ? word : lowest;
			highest = word > highest ? word : highest;
		}
		for (uint64_t word = lowest; first < end && word <= highest; word++) {
			for (uint64_t bits = set[word]; bits; bits &= bits - 1)
				marks->column[first++] = (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(bits);
			set[word] = 0;
		}
		if (first < end)
			return xfp_fail(err, XFP_DAMAGED, "an outlier is listed twice");
	}
	return XFP_OK;
}

enum xfp_status xfp_marks_load(struct xfp_artifact *artifact, const struct xfp_outliers *outliers, uint32_t matrix,
			       struct xfp_marks *marks, struct xfp_error *err)
{
	uint64_t rows = outliers->rows, *buffer = NULL;
	enum xfp_status status = XFP_OK;

	marks->count = outliers->first[matrix + 1] - outliers->first[matrix];
	marks->column = malloc((marks->count + 1) * sizeof *marks->column);
	marks->first = calloc(rows + 1, sizeof *marks->first);
	if (marks->count)
		buffer = calloc(AT_ONCE + outliers->cols / 64 + 1, sizeof *buffer);
	if (!marks->column || !marks->first || (marks->count && !buffer))
		status = xfp_no_memory(err);
	if (!status)
		status = walk(artifact, outliers, matrix, marks, buffer, false, err);
	for (uint64_t row = 0; !status && row < rows; row++)
		marks->first[row + 1] += marks->first[row];
	if (!status)
		status = walk(artifact, outliers, matrix, marks, buffer, true, err);
	if (!status && marks->count) {
		/* Each element now equals the start of the next row. */
		memmove(marks->first + 1, marks->first, rows * sizeof *marks->first);
		marks->first[0] = 0;
		memset(buffer, 0, (outliers->cols / 64 + 1) * sizeof *buffer);
		status = order(marks, rows, buffer, err);
	}
	free(buffer);
	if (status)
		xfp_marks_free(marks);
	return status;
}

void xfp_marks_free(struct xfp_marks *marks)
{
	free(marks->column);
	free(marks->first);
	memset(marks, 0, sizeof *marks);
}
