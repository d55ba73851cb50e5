/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel-verify/trial/reference.h"

#include <string.h>

#include "kernels/common/decode.h"
#include "kernels/common/lane_index.h"
#include "kernels/common/number.h"
#include "kernels/common/scale.h"
#include "kernels/multiply/matvec.h"
#include "kernels/multiply/matvec_tables.h"

static uint16_t half_at(const void *from, size_t number)
{
	uint16_t half;

	memcpy(&half, (const uint8_t *)from + number * 2, sizeof half);
	return half;
}

/* Columns [first, first + 512) of a row in stored form, without outliers. */
#define PIECE 512

static float stored(const struct xfp_matvec *w, size_t row, size_t c, uint8_t index)
{
	size_t g = row * w->row_groups + (c >> w->group);
	const uint8_t *from = w->index + row * w->row_bytes;
	const float *entry;
	float value;

	switch (w->mode) {
	case XFP_MATVEC_F32:
		memcpy(&value, from + c * 4, 4);
		return value;
	case XFP_MATVEC_F16:
		return xfp_half_to_float(half_at(from, c));
	case XFP_MATVEC_BF16:
		return xfp_bf16_to_float(half_at(from, c));
	case XFP_MATVEC_FP8:
		memcpy(&value, (const uint8_t *)w->code + row * 4, 4);
		return xfp_e4m3_to_float(from[c]) * value;
	case XFP_MATVEC_V2:
		return xfp_half_to_float(half_at(w->code, (row << w->k) + index));
	case XFP_MATVEC_V2A:
		entry = xfp_tables_entry(w->tables) + ((size_t)w->byte[g] << w->k);
		return xfp_scaled_value(entry[index], xfp_half_to_float(half_at(w->pair, 2 * g)),
					xfp_half_to_float(half_at(w->pair, 2 * g + 1)));
	default:
		entry = xfp_tables_entry(w->tables) + ((size_t)w->byte[g] << w->k);
		return entry[index] * (0x1p14f * xfp_balance_down(w->row[row]));
	}
}

/* A piece is a multiple of the chunks of every k. */
static void unpack_piece(const struct xfp_matvec *w, size_t row, size_t c, uint8_t *index)
{
	if (w->mode >= XFP_MATVEC_V2 && c % PIECE == 0)
		xfp_lane_index_unpack(w->k, w->index + row * w->row_bytes + c / 32 * 4 * w->k,
				      w->cols - c < PIECE ? w->cols - c : PIECE, index);
}

void xfp_matvec_reference_row(const struct xfp_matvec *w, size_t row, float *x)
{
	uint8_t index[PIECE] = { 0 };

	for (size_t c = 0; c < w->cols; c++) {
		unpack_piece(w, row, c, index);
		x[c] = stored(w, row, c, index[c % PIECE]);
	}
}

bool xfp_matvec_reference(const struct xfp_matvec *w, size_t row, const float *natural, double *y, double *magnitude)
{
	const struct xfp_outlier_rows *o = &w->outliers;
	struct xfp_outlier_row at;
	uint8_t index[PIECE] = { 0 };

	*y = *magnitude = 0;
	for (size_t c = 0; c < w->cols; c++) {
		double product;

		unpack_piece(w, row, c, index);
		product = (double)stored(w, row, c, index[c % PIECE]) * natural[c];
		*y += product;
		*magnitude += product < 0 ? -product : product;
	}
	xfp_outlier_rows_begin(o, row, &at);
	if (!xfp_outlier_rows_next(o, row, &at))
		return false;
	for (uint32_t i = at.first; i < at.end; i++) {
		size_t c = xfp_outlier_column(o, i) - w->first_column;
		double product;

		if (c >= w->cols)
			continue;
		product = (double)xfp_half_to_float(half_at(o->residual, i)) * natural[c];
		*y += product;
		*magnitude += product < 0 ? -product : product;
	}
	*y *= w->unit;
	*magnitude *= w->unit;
	return true;
}
