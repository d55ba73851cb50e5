/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - the device layout of a unit or a kept tensor: offsets in its image, the kernels that multiply it, and their
 * parameters. Pure host code, which needs no driver.
 *
 * An image consists of, in this order, each part at a multiple of XFP_CUDA_PART_ALIGN: struct xfp_cuda_matrix of every
 * expert; the library, its ratios, and their products as integers; the balance as factors; and for every expert the
 * parts of a matrix that kernels/cuda/abi.h lists. Column 0 of the image is the first of a group: a slice that begins
 * inside a group has `lead` columns before its own, which are multiplied by x = 0.
 */
#ifndef XFP_CUDA_PLAN_H
#define XFP_CUDA_PLAN_H

#include "kernels/cuda/abi.h"
#include "runtime/xfp.h"

#define XFP_CUDA_PART_ALIGN 256u /* alignment of an image and its parts, in bytes */

/* Storage methods, as kernels are named; those with codebooks last. */
enum xfp_cuda_method {
	XFP_CUDA_F32,
	XFP_CUDA_F16,
	XFP_CUDA_BF16,
	XFP_CUDA_FP8,
	XFP_CUDA_V2,
	XFP_CUDA_V2A,
	XFP_CUDA_V2C,
	XFP_CUDA_V2C32, /* groups of 32 columns or more; V2C has groups of 16 */
	XFP_CUDA_METHODS
};

/* Kernels of a method; see abi.h. */
enum xfp_cuda_form {
	XFP_CUDA_M1,
	XFP_CUDA_M4,
	XFP_CUDA_WIDE,
	XFP_CUDA_LIST,
	XFP_CUDA_EACH,
	XFP_CUDA_I1, /* integer path: one vector */
	XFP_CUDA_I2, /* two vectors */
	XFP_CUDA_I4, /* up to four vectors */
	XFP_CUDA_FORMS
};

/* Return whether a form belongs to the integer path, and how many vectors a form takes at most. */
static inline bool xfp_cuda_of_integers(enum xfp_cuda_form form)
{
	return form >= XFP_CUDA_I1 && form <= XFP_CUDA_I4;
}

static inline unsigned xfp_cuda_integer_form_vectors(enum xfp_cuda_form form)
{
	return 1u << (form - XFP_CUDA_I1);
}

/* Offsets of an expert's parts from the start of the image; 0 if a part is missing. */
struct xfp_cuda_expert {
	uint8_t k;
	bool integers; /* integer path: k is suitable and all codebooks are finite */
	int exponent;
	uint64_t outliers; /* outliers within the slice */
	uint64_t index, pair, integer, code, group, number, row, pointer, column, residual;
};

struct xfp_cuda_plan {
	const struct xfp_bundle *bundle;
	const char *name;              /* name of the unit or tensor */
	const void *tensor;            /* bytes of a kept tensor; NULL for a unit */
	uint32_t first_matrix;         /* first matrix of a unit */
	uint64_t full_rows, full_cols; /* shape of the whole matrix */
	struct xfp_slice slice;
	uint32_t lead;       /* columns before those of the slice */
	uint64_t first_col;  /* first column of the image: slice.first_col - lead */
	uint32_t rows, cols; /* shape of the image */

	enum xfp_cuda_method method;
	unsigned dtype; /* dtype of a kept tensor */
	unsigned k;     /* maximum bits per index; 0 without codebooks */
	bool same_k;    /* all experts have the same k */
	unsigned group; /* log2 of the columns per group; 0 without groups */
	unsigned codebooks;
	const uint8_t *balance; /* of the image's columns; NULL if all are 0 */

	uint32_t experts;
	struct xfp_cuda_expert *expert;
	uint64_t library, ratio, tables, down; /* offsets; 0 if missing */
	uint64_t bytes;                        /* size of the image */
};

/* Plan the image of a unit, or of a tensor that is one unit or was kept; `slice` NULL: all. XFP_USAGE as
 * xfp_linear_open, and if a kernel does not support that many rows or columns; XFP_BAD_INPUT if a slice contains
 * damaged outliers; XFP_FAILED if memory ran out. After a failure there is nothing to free. */
enum xfp_status xfp_cuda_plan_unit(const struct xfp_bundle *bundle, uint32_t unit, const struct xfp_slice *slice,
				   struct xfp_cuda_plan *plan, struct xfp_error *err);
enum xfp_status xfp_cuda_plan_tensor(const struct xfp_bundle *bundle, uint32_t tensor, const struct xfp_slice *slice,
				     struct xfp_cuda_plan *plan, struct xfp_error *err);
void xfp_cuda_plan_free(struct xfp_cuda_plan *plan);

/* Return whether experts with this k can use the integer path, if their codebooks are finite. */
bool xfp_cuda_has_integers(const struct xfp_cuda_plan *plan, unsigned k);

/* Return the kernel parameters for the experts with this k, for an image at a device address. */
struct xfp_cuda_weights xfp_cuda_plan_weights(const struct xfp_cuda_plan *plan, unsigned k, uint64_t base);
struct xfp_cuda_matrix xfp_cuda_plan_matrix(const struct xfp_cuda_plan *plan, uint32_t expert, uint64_t base);

/* Return whether indices are stored in the device's order. The host writes them in the bundle's order, and a kernel
 * repacks them. */
static inline bool xfp_cuda_repacks(unsigned k)
{
	return k && k <= 4;
}

/* ---- kernels ----------------------------------------------------------------------------------- */

#define XFP_CUDA_MAX_Y 65535u /* maximum blocks in a grid's second dimension */

/* How vectors are multiplied: kernel, vectors per launch, and grid. */
struct xfp_cuda_launch_shape {
	enum xfp_cuda_form form;
	uint32_t count;
	uint32_t x, y;
};

/* Select the kernel for `count` vectors (at least one) of one or two planes each. `integers` is the number of vectors
 * that the integer path takes at a time, 0 if the matrix cannot use it. xfp_cuda_share gives the blocks of its
 * forms. */
struct xfp_cuda_launch_shape xfp_cuda_choose_launch(enum xfp_cuda_method method, uint32_t rows, size_t count,
						    unsigned each, unsigned integers);
/* Return the vectors of the largest integer form whose blocks fit into that much shared memory: 0, 1, 2 or 4. With
 * 101,376 bytes (compute capability 8.6), blocks cannot hold four vectors if k = 2, or two if k = 3. */
unsigned xfp_cuda_integer_vectors(enum xfp_cuda_method method, unsigned k, uint32_t shared_bytes);
bool xfp_cuda_has_form(enum xfp_cuda_method method, unsigned k, enum xfp_cuda_form form);

#define XFP_CUDA_KERNEL_NAME 32
void xfp_cuda_kernel_name(enum xfp_cuda_method method, unsigned k, enum xfp_cuda_form form,
			  char name[XFP_CUDA_KERNEL_NAME]);

/* Return the dynamic shared memory of a block in bytes; `codebooks` is the size of the library. */
uint32_t xfp_cuda_shared_bytes(enum xfp_cuda_method method, unsigned k, unsigned codebooks, enum xfp_cuda_form form);
/* Return the maximum that a kernel may request, for any library. */
uint32_t xfp_cuda_max_shared_bytes(enum xfp_cuda_method method, unsigned k, enum xfp_cuda_form form);

/* Return the number of 16-row tiles. */
static inline uint32_t xfp_cuda_tiles(uint32_t rows)
{
	return rows / XFP_CUDA_TILE_ROWS + !!(rows % XFP_CUDA_TILE_ROWS);
}

/* Return the rows of a matrix in tile order, including the padding of the last tile. */
static inline uint64_t xfp_cuda_tiled_rows(uint32_t rows)
{
	return (uint64_t)xfp_cuda_tiles(rows) * XFP_CUDA_TILE_ROWS;
}

/* How a tile's work is divided among blocks; see split.c. All tiles together have at most XFP_CUDA_MAX_PARTS parts,
 * unless each has one. */
struct xfp_cuda_split {
	uint32_t parts;         /* parts per tile */
	uint32_t part_chunks;   /* chunks of a row in each part but the last */
	uint32_t part_products; /* products of one result in each part but the last */
};

/* Divide the work for indices of k bits. A list has `results` results and `products` products; otherwise `results` is
 * the number of vector tiles, and `products` is 1. */
struct xfp_cuda_split xfp_cuda_split(const struct xfp_cuda_plan *plan, unsigned k, size_t results, size_t products);
/* Return the parts per tile when one vector is multiplied by expert 0; 1 on the integer path, whose warps share the
 * chunks of all tiles. */
uint32_t xfp_cuda_parts_of_one(const struct xfp_cuda_plan *plan, unsigned k);

/* How warps share all chunks of a matrix (kernels/cuda/few.h): cost of a warp's run, in chunks, and number of
 * blocks. */
struct xfp_cuda_share {
	uint32_t run, blocks;
};
struct xfp_cuda_share xfp_cuda_share(const struct xfp_cuda_plan *plan, unsigned k, uint32_t resident);

/* Return the padded columns of a prepared vector. */
static inline uint64_t xfp_cuda_prepared_cols(uint64_t cols)
{
	return (cols + XFP_CUDA_COLUMNS - 1) / XFP_CUDA_COLUMNS * XFP_CUDA_COLUMNS;
}

#endif
