/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec.h - the interface of a codec: find the bytes of a rectangle of stored rows, and decode its elements.
 *
 * A codec is pure. The decoder asks it for the bytes of each component that some rows and columns need, fetches them,
 * and calls it to decode row by row. Codecs compute in f32, by the formula in the codec's file, and round once to the
 * tensor's dtype.
 */
#ifndef XFP_CODEC_H
#define XFP_CODEC_H

#include <stddef.h>

#include "base/xfp_error.h"
#include "schemas/recipe/recipe.h"

struct xfp_rectangle {
	uint64_t row, rows, col, cols;
};

/* Bytes of a component: `lines` runs of `run` bytes, `stride` apart. `run` 0: nothing. */
struct xfp_window {
	uint64_t offset, run, stride, lines;
	bool apart; /* never read the gaps, even small ones: other rectangles contain them */
};

/* The fetched bytes of a rectangle: line i of a component's window is at bytes[role] + i * pitch[role]. */
struct xfp_fetched {
	struct xfp_rectangle of;
	const unsigned char *bytes[XFP_COMPONENTS];
	uint64_t pitch[XFP_COMPONENTS];
};

struct xfp_codec_methods {
	/* Check that the components exist, with supported dtypes, and sizes that match rows, cols and valid parameters.
	 * Then no window exceeds a component, and decoding stays within the windows. */
	bool (*fits)(const struct xfp_recipe_part *part, enum xfp_dtype dtype);
	/* Granularity of fetched rectangles: they begin at multiples, and end there or at the part's end. Powers of
	 * 2. */
	void (*grain)(const struct xfp_recipe_part *part, uint64_t *rows, uint64_t *cols);
	struct xfp_window (*window)(const struct xfp_recipe_part *part, enum xfp_component_role role,
				    const struct xfp_rectangle *of);
	/* Decode elements [col, col + cols) of a stored row, within the fetched rectangle. */
	void (*decode)(const struct xfp_recipe_part *part, enum xfp_dtype dtype, const struct xfp_fetched *from,
		       uint64_t row, uint64_t col, uint64_t cols, void *out);
	/* Decode a rectangle instead of rows, for codes stored by columns, where one row costs nearly as much as many.
	 * Rows are `pitch` bytes apart in `out`. The decoder then fetches the rows of one grain at a time, and only
	 * once if they are requested in order. NULL: decode row by row. */
	void (*decode_block)(const struct xfp_recipe_part *part, enum xfp_dtype dtype, const struct xfp_fetched *from,
			     const struct xfp_rectangle *of, unsigned char *out, uint64_t pitch);
	/* Check a component that was just fetched; sets *wrong to a static text if it is invalid. The status reports
	 * failures of the check itself. NULL: any contents can be decoded. */
	enum xfp_status (*check)(const struct xfp_recipe_part *part, enum xfp_component_role role,
				 const struct xfp_fetched *from, const char **wrong, struct xfp_error *err);
};

extern const struct xfp_codec_methods xfp_codec_plain, xfp_codec_fp8, xfp_codec_mxfp4, xfp_codec_nvfp4, xfp_codec_int;
extern const struct xfp_codec_methods xfp_codec_gptq, xfp_codec_awq, xfp_codec_awq_gemv, xfp_codec_awq_gemv_fast;
extern const struct xfp_codec_methods xfp_codec_exl2;
extern const struct xfp_codec_methods xfp_codec_gguf, xfp_codec_reversed;

const struct xfp_codec_methods *xfp_codec_methods(enum xfp_codec codec);

/* Return the window of a rectangle in a component whose lines are rows of `line` bytes, with `unit` bytes per `columns`
 * columns. */
static inline struct xfp_window xfp_window_of_rows(const struct xfp_rectangle *of, uint64_t line, uint64_t unit,
						   uint64_t columns)
{
	uint64_t first = of->col / columns, end = (of->col + of->cols + columns - 1) / columns;

	return (struct xfp_window){ of->row * line + first * unit, (end - first) * unit, line, of->rows, false };
}

#endif
