/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - what a unit or a kept tensor becomes on a device: where everything lies in its image, which kernels multiply
 * it, and what those take. Pure host code, which needs no driver.
 *
 * An image is, in this order, each part at a multiple of XFP_CUDA_PART_ALIGN: struct xfp_cuda_matrix of every expert;
 * the library, its ratios, and the integers of their products; the balance as factors; and for every expert what
 * kernels/cuda/abi.h says a matrix has. Its column 0 is a group's first, so that a slice which begins inside a group
 * has `lead` columns before its own, which meet an x of 0.
 */
#ifndef XFP_CUDA_PLAN_H
#define XFP_CUDA_PLAN_H

#include "kernels/cuda/abi.h"
#include "runtime/xfp.h"

#define XFP_CUDA_PART_ALIGN 256u /* bytes: of an image, and of what is in it */

/* How a matrix is stored, as kernels are named; those with codebooks last. */
enum xfp_cuda_method {
	XFP_CUDA_F32,
	XFP_CUDA_F16,
	XFP_CUDA_BF16,
	XFP_CUDA_FP8,
	XFP_CUDA_V2,
	XFP_CUDA_V2A,
	XFP_CUDA_V2C,
	XFP_CUDA_V2C32, /* groups of 32 columns or more; V2C: of 16 */
	XFP_CUDA_METHODS
};

/* Which of a method's kernels; see abi.h. */
enum xfp_cuda_form {
	XFP_CUDA_M1,
	XFP_CUDA_M4,
	XFP_CUDA_WIDE,
	XFP_CUDA_LIST,
	XFP_CUDA_EACH,
	XFP_CUDA_I1, /* of integers: one vector, */
	XFP_CUDA_I2, /* two, */
	XFP_CUDA_I4, /* and up to four */
	XFP_CUDA_FORMS
};

/* Whether the form is of integers, and the most vectors that such a form takes. */
static inline bool xfp_cuda_of_integers(enum xfp_cuda_form form)
{
	return form >= XFP_CUDA_I1 && form <= XFP_CUDA_I4;
}

static inline unsigned xfp_cuda_integer_form_vectors(enum xfp_cuda_form form)
{
	return 1u << (form - XFP_CUDA_I1);
}

/* Where the parts of one expert are, from the start of the image; 0: it has none. */
struct xfp_cuda_expert {
	uint8_t k;
	bool integers; /* up to four vectors are multiplied as integers: its k has them, and its codebooks are finite */
	int exponent;
	uint64_t outliers; /* that are in the slice */
	uint64_t index, pair, integer, code, group, number, row, pointer, column, residual;
};

struct xfp_cuda_plan {
	const struct xfp_bundle *bundle;
	const char *name;              /* of the unit or tensor */
	const void *tensor;            /* its bytes, of what was kept as a whole; NULL: a unit */
	uint32_t first_matrix;         /* of a unit */
	uint64_t full_rows, full_cols; /* of a whole matrix */
	struct xfp_slice slice;
	uint32_t lead;       /* columns before the slice's own */
	uint64_t first_col;  /* the image's first: slice.first_col - lead */
	uint32_t rows, cols; /* of the image */

	enum xfp_cuda_method method;
	unsigned dtype; /* of what was kept */
	unsigned k;     /* the largest; 0 without codebooks */
	bool same_k;    /* of all experts */
	unsigned group; /* log2 of a group's columns; 0 without */
	unsigned codebooks;
	const uint8_t *balance; /* of the image's columns; NULL: all are 0 */

	uint32_t experts;
	struct xfp_cuda_expert *expert;
	uint64_t library, ratio, tables, down; /* 0: none */
	uint64_t bytes;                        /* of all */
};

/* Of a unit, or of a tensor that is one, or was kept; `slice` NULL: all. XFP_USAGE as of xfp_linear_open, and where a
 * kernel cannot have so many rows or columns; XFP_BAD_INPUT when a slice has to be looked for among outliers that are
 * damaged; XFP_FAILED without memory. On failure nothing is to be freed. */
enum xfp_status xfp_cuda_plan_unit(const struct xfp_bundle *bundle, uint32_t unit, const struct xfp_slice *slice,
				   struct xfp_cuda_plan *plan, struct xfp_error *err);
enum xfp_status xfp_cuda_plan_tensor(const struct xfp_bundle *bundle, uint32_t tensor, const struct xfp_slice *slice,
				     struct xfp_cuda_plan *plan, struct xfp_error *err);
void xfp_cuda_plan_free(struct xfp_cuda_plan *plan);

/* Whether an expert with this k has integers, if its codebooks are finite. */
bool xfp_cuda_has_integers(const struct xfp_cuda_plan *plan, unsigned k);

/* What kernels are told of the experts that have this k, for an image at an address. */
struct xfp_cuda_weights xfp_cuda_plan_weights(const struct xfp_cuda_plan *plan, unsigned k, uint64_t base);
struct xfp_cuda_matrix xfp_cuda_plan_matrix(const struct xfp_cuda_plan *plan, uint32_t expert, uint64_t base);

/* Whether indices are in the device's order, of which the image that the host makes has nothing yet: they are repacked
 * on the device. */
static inline bool xfp_cuda_repacks(unsigned k)
{
	return k && k <= 4;
}

/* ---- kernels ----------------------------------------------------------------------------------- */

#define XFP_CUDA_MOST_Y 65535u /* blocks of a grid in its second dimension */

/* How vectors are multiplied: by which kernel, how many in one launch, and its grid. */
struct xfp_cuda_way {
	enum xfp_cuda_form form;
	uint32_t count;
	uint32_t x, y;
};

/* For `count` vectors, at least one, of one or two planes each. `integers`: the most vectors that a product of integers
 * takes at a time, 0 if the matrix has no integers. Forms of integers have as many blocks as xfp_cuda_share says. */
struct xfp_cuda_way xfp_cuda_way_for(enum xfp_cuda_method method, uint32_t rows, size_t count, unsigned each,
				     unsigned integers);
/* Vectors of the largest form of integers whose blocks fit into that much shared memory: 0, 1, 2 or 4. Blocks of
 * 101,376 bytes, as of compute capability 8.6, have no room for four vectors if k = 2, nor for two if k = 3. */
unsigned xfp_cuda_integer_vectors(enum xfp_cuda_method method, unsigned k, uint32_t shared_bytes);
bool xfp_cuda_has_form(enum xfp_cuda_method method, unsigned k, enum xfp_cuda_form form);

#define XFP_CUDA_KERNEL_NAME 32
void xfp_cuda_kernel_name(enum xfp_cuda_method method, unsigned k, enum xfp_cuda_form form,
			  char name[XFP_CUDA_KERNEL_NAME]);

/* Dynamic shared memory of a block, in bytes; `codebooks` of the library. */
uint32_t xfp_cuda_shared_bytes(enum xfp_cuda_method method, unsigned k, unsigned codebooks, enum xfp_cuda_form form);
/* The most that a kernel may ask for, whatever the library. */
uint32_t xfp_cuda_shared_most(enum xfp_cuda_method method, unsigned k, enum xfp_cuda_form form);

/* Blocks that share a matrix's rows. */
static inline uint32_t xfp_cuda_tiles(uint32_t rows)
{
	return rows / XFP_CUDA_TILE_ROWS + !!(rows % XFP_CUDA_TILE_ROWS);
}

/* Of a matrix in tile order, with those that fill up its last tile. */
static inline uint64_t xfp_cuda_tiled_rows(uint32_t rows)
{
	return (uint64_t)xfp_cuda_tiles(rows) * XFP_CUDA_TILE_ROWS;
}

/* How a tile's work is shared out over blocks; see split.c. All tiles together have at most XFP_CUDA_MOST_PARTS, unless
 * they have one each. */
struct xfp_cuda_split {
	uint32_t parts;         /* of a tile */
	uint32_t part_chunks;   /* of a row, in each but the last */
	uint32_t part_products; /* of one result of a list, likewise */
};

/* With indices of k bits. A list has so many results and products; else there are as many results as tiles of vectors,
 * and one product. */
struct xfp_cuda_split xfp_cuda_split(const struct xfp_cuda_plan *plan, unsigned k, size_t results, size_t products);
/* Parts of a tile when one vector is multiplied by expert 0. As integers 1: warps share chunks of all tiles instead. */
uint32_t xfp_cuda_parts_of_one(const struct xfp_cuda_plan *plan, unsigned k);

/* How warps share all chunks of a matrix (kernels/cuda/few.h): the cost of a warp's run in chunks, and blocks. */
struct xfp_cuda_share {
	uint32_t run, blocks;
};
struct xfp_cuda_share xfp_cuda_share(const struct xfp_cuda_plan *plan, unsigned k, uint32_t resident);

/* Columns of a prepared vector. */
static inline uint64_t xfp_cuda_prepared_cols(uint64_t cols)
{
	return (cols + XFP_CUDA_COLUMNS - 1) / XFP_CUDA_COLUMNS * XFP_CUDA_COLUMNS;
}

#endif
