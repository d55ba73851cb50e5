/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_batches.h - batches of rows with codebooks, which take turns on a segment of the vectors' columns that stays
 * in the L1 cache. Kernels include it after they define
 *
 *   ROW              a struct with a struct stored_row `stored`, and `fit`: false if the row must be multiplied in f32
 *   CALL             a struct of values that are the same for all rows: the vectors `x`, and those of begin_call
 *   begin_call       set the other members of a call
 *   begin_row        set the other members of a row; sums are zero
 *   multiply_part    multiply columns [column, end) of a row
 *   finish           write a row's results
 *   SEGMENT_COLUMNS  columns of a segment, a multiple of the chunks and blocks of every k
 *   COLUMNS          columns of the matrix `w` times `x` that the kernel multiplies; the others are multiplied in f32
 *   IN_FLOATS        the function that multiplies in f32
 */
#ifndef XFP_MATVEC_BATCHES_H
#define XFP_MATVEC_BATCHES_H

#define ROWS 8

/* `log2` is w->group; 5 is a constant. */
INLINE void multiply_batches(enum xfp_matvec_mode mode, unsigned k, unsigned tile, unsigned log2, ARGUMENTS)
{
	size_t columns = COLUMNS;
	CALL call = { .x = x };
	struct rest_columns rest;

	divide_columns(w, x, columns, &rest);
	begin_call(mode, k, w, &call);
	for (size_t r = first, batch; r < first + rows; r += batch) {
		ROW row[ROWS];

		batch = first + rows - r < ROWS ? first + rows - r : ROWS;
		for (size_t i = 0; i < batch; i++) {
			row[i].stored = stored_row(mode, w, r + i);
			begin_row(mode, k, tile, w, r + i, &row[i]);
		}
		for (size_t c = 0, end; c < columns; c = end) {
			end = columns - c < SEGMENT_COLUMNS(tile) ? columns : c + SEGMENT_COLUMNS(tile);
			for (size_t i = 0; i < batch; i++)
				if (row[i].fit)
					multiply_part(mode, k, tile, log2, &call, &row[i], c, end);
		}
		for (size_t i = 0; i < batch; i++) {
			float *to = y + (r + i - first);

			if (!row[i].fit) {
				IN_FLOATS(w, x, r + i, 1, add, to, stride);
				continue;
			}
			finish(tile, &row[i], w->unit, x, add, to, stride);
			if (rest.w.cols)
				IN_FLOATS(&rest.w, &rest.x, r + i, 1, true, to, stride);
		}
	}
}

#endif
