/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec.h - what a codec implements to be read: which bytes a rectangle of stored rows comes from, and its elements.
 *
 * A codec is pure. The decoder asks it which bytes of each component it needs for some rows and columns, fetches
 * them, and has it decode row by row. In f32, by the formula that the codec's file states, rounded once to
 * the tensor's dtype.
 */
#ifndef XFP_CODEC_H
#define XFP_CODEC_H

#include <stddef.h>

#include "checkpoints/recipe/recipe.h"

struct xfp_rectangle {
	uint64_t row, rows, col, cols;
};

/* Bytes of a component: `lines` runs of `run` bytes, `stride` from one to the next. `run` 0: none. */
struct xfp_window {
	uint64_t offset, run, stride, lines;
};

/* The bytes of a rectangle: line i of a component's window is at bytes[role] + i * pitch[role]. */
struct xfp_fetched {
	struct xfp_rectangle of;
	const unsigned char *bytes[XFP_COMPONENTS];
	uint64_t pitch[XFP_COMPONENTS];
};

struct xfp_codec_methods {
	/* Whether the components are there, of dtypes that it knows and of the sizes that follow from rows, cols and
	 * parameters, which make sense: no window reaches past a component, and decoding past no window. */
	bool (*fits)(const struct xfp_recipe_part *part, enum xfp_dtype dtype);
	/* Rectangles that are fetched begin at multiples of these, and end there or at the part's end. Powers of 2. */
	void (*grain)(const struct xfp_recipe_part *part, uint64_t *rows, uint64_t *cols);
	struct xfp_window (*window)(const struct xfp_recipe_part *part, enum xfp_component_role role,
				    const struct xfp_rectangle *of);
	/* Elements [col, col + cols) of a stored row, inside of what was fetched. */
	void (*decode)(const struct xfp_recipe_part *part, enum xfp_dtype dtype, const struct xfp_fetched *from,
		       uint64_t row, uint64_t col, uint64_t cols, void *out);
};

extern const struct xfp_codec_methods xfp_codec_plain, xfp_codec_fp8, xfp_codec_mxfp4;

const struct xfp_codec_methods *xfp_codec_methods(enum xfp_codec codec);

/* The window of a rectangle in a component whose lines are rows, `line` bytes each, of `unit` bytes for each
 * `columns` of them. */
static inline struct xfp_window xfp_window_of_rows(const struct xfp_rectangle *of, uint64_t line, uint64_t unit,
						   uint64_t columns)
{
	uint64_t first = of->col / columns, end = (of->col + of->cols + columns - 1) / columns;

	return (struct xfp_window){ of->row * line + first * unit, (end - first) * unit, line, of->rows };
}

#endif
