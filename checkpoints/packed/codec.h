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

#include "base/xfp_error.h"
#include "schemas/recipe/recipe.h"

struct xfp_rectangle {
	uint64_t row, rows, col, cols;
};

/* Bytes of a component: `lines` runs of `run` bytes, `stride` from one to the next. `run` 0: none. */
struct xfp_window {
	uint64_t offset, run, stride, lines;
	bool apart; /* what is between them is left out however little it is: other rectangles will need it */
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
	/* In place of it where codes lie the other way round, so that a row alone costs nearly what many do: a
	 * rectangle, whose rows are `pitch` bytes apart in `out`. The decoder then fetches the rows of one grain at a
	 * time, and once if they are asked for in order. NULL: rows are decoded one by one. */
	void (*decode_block)(const struct xfp_recipe_part *part, enum xfp_dtype dtype, const struct xfp_fetched *from,
			     const struct xfp_rectangle *of, unsigned char *out, uint64_t pitch);
	/* What is wrong with a component that was just fetched: *wrong becomes static text where something is. A
	 * failure is one of looking at it. NULL: whatever is in components can be decoded. */
	enum xfp_status (*check)(const struct xfp_recipe_part *part, enum xfp_component_role role,
				 const struct xfp_fetched *from, const char **wrong, struct xfp_error *err);
};

extern const struct xfp_codec_methods xfp_codec_plain, xfp_codec_fp8, xfp_codec_mxfp4, xfp_codec_nvfp4, xfp_codec_int;
extern const struct xfp_codec_methods xfp_codec_gptq, xfp_codec_awq, xfp_codec_awq_gemv, xfp_codec_awq_gemv_fast;
extern const struct xfp_codec_methods xfp_codec_exl2;
extern const struct xfp_codec_methods xfp_codec_gguf, xfp_codec_reversed;

const struct xfp_codec_methods *xfp_codec_methods(enum xfp_codec codec);

/* The window of a rectangle in a component whose lines are rows, `line` bytes each, of `unit` bytes for each
 * `columns` of them. */
static inline struct xfp_window xfp_window_of_rows(const struct xfp_rectangle *of, uint64_t line, uint64_t unit,
						   uint64_t columns)
{
	uint64_t first = of->col / columns, end = (of->col + of->cols + columns - 1) / columns;

	return (struct xfp_window){ of->row * line + first * unit, (end - first) * unit, line, of->rows, false };
}

#endif
