/* SPDX-License-Identifier: Apache-2.0 */
/*
 * panel_rows.h - a tile times a panel (panel.h), on the sixteen lanes that matvec_table_plain.h, _avx2.h, _avx512.h or
 * _neon.h defines. PANEL_ROWS(width) is how many rows are multiplied by `width` times sixteen vectors at once: their
 * sums, the vectors and a weight must fit in registers.
 */
#ifndef XFP_PANEL_ROWS_H
#define XFP_PANEL_ROWS_H

#include "kernels/multiply/matvec_lanes.h"
#include "kernels/multiply/panel.h"

#ifndef PANEL_WIDTH
#define PANEL_WIDTH 1
#define PANEL_ROWS(width) 6
#endif
#define PANEL_SUMS (PANEL_WIDTH * PANEL_ROWS(PANEL_WIDTH)) /* the same for all widths */

INLINE void panel_part(unsigned rows, unsigned width, const float *w, size_t columns, const float *x, bool add,
		       float *sum, size_t stride)
{
	vf all[PANEL_SUMS];

	UNROLL
	for (unsigned i = 0; i < rows * width; i++)
		all[i] = vf_all(0);
	for (size_t c = 0; c < columns; c++, w++, x += (size_t)XFP_PANEL_LANES * width) {
		vf vector[PANEL_WIDTH];

		UNROLL
		for (unsigned v = 0; v < width; v++) {
			vector[v] = vf_load(x + (size_t)XFP_PANEL_LANES * v);
			m_hold(vector[v]);
		}
		UNROLL
		for (unsigned r = 0; r < rows; r++) {
			vf weight = vf_all(w[(size_t)r * XFP_TILE_STRIDE]);

			m_hold(weight);
			UNROLL
			for (unsigned v = 0; v < width; v++)
				all[r * width + v] = vf_fma(weight, vector[v], all[r * width + v]);
		}
	}
	UNROLL
	for (unsigned i = 0; i < rows * width; i++) {
		float *at = sum + i / width * stride + (size_t)XFP_PANEL_LANES * (i % width);

		vf_store(at, add ? vf_add(vf_load(at), all[i]) : all[i]);
	}
}

/* While rows are multiplied by a part of the panel, the next part is fetched to the L2 cache. */
INLINE void panel_columns(unsigned width, const float *tile, size_t rows, size_t columns, size_t part,
			  const float *panel, bool add, float *sum, size_t stride)
{
	const size_t at_once = PANEL_ROWS(width), column = (size_t)XFP_PANEL_LANES * width;

	for (size_t c = 0, some; c < columns; c += some, add = true) {
		const float *next = panel + (c + part) * column, *end = next + part * column;

		some = columns - c < part ? columns - c : part;
		if (c + 2 * part > columns)
			next = end;
		for (size_t r = 0; r < rows; r += at_once) {
			for (size_t i = 0; i < part * column * at_once && next < end; i += 16 * rows, next += 16)
				__builtin_prefetch(next, 0, 2);
			panel_part((unsigned)at_once, width, tile + r * XFP_TILE_STRIDE + c, some, panel + c * column,
				   add, sum + r * stride, stride);
		}
	}
}

#define PANEL_ARGUMENTS                                                                                            \
	const float *tile, size_t rows, size_t columns, size_t part, const float *panel, unsigned width, bool add, \
		float *sum, size_t stride
#define PANEL_PASSED tile, rows, columns, part, panel, width, add, sum, stride

static void multiply_panel(PANEL_ARGUMENTS)
{
	rows = (rows + XFP_TILE_ROWS - 1) / XFP_TILE_ROWS * XFP_TILE_ROWS;
	switch (width) {
#if PANEL_WIDTH == 4
	case 4:
		panel_columns(4, tile, rows, columns, part, panel, add, sum, stride);
		break;
	case 3:
		panel_columns(3, tile, rows, columns, part, panel, add, sum, stride);
		break;
	case 2:
		panel_columns(2, tile, rows, columns, part, panel, add, sum, stride);
		break;
#endif
	default:
		panel_columns(1, tile, rows, columns, part, panel, add, sum, stride);
	}
}

#endif
