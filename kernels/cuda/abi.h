/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi.h - what the host hands to kernels, and where things lie in device memory. For C and for CUDA.
 *
 * Addresses are numbers of 64 bits, which is what the driver deals in. Everything that kernels read in vectors begins
 * at a multiple of 16 bytes.
 *
 * The device image. Rows of indices are those of the bundle (kernels/common/lane_index.h), but every chunk has all of
 * its sixteen lanes: the last one is packed anew where the row, or the slice, ends within it. So a chunk is
 * 16 * words * 4 bytes, sixteen columns after sixteen columns are one step, and columns past the end have index 0 and
 * meet an x of 0. Up to k = 4, xfp_repack_kK then brings the bits of every chunk into the device order, in place:
 *
 * A chunk has `words` lines of 64 bytes, and a line four times 16 bytes, which have as many groups of 32 columns each:
 * 4 c ... 4 c + 3 at k = 3, where they are c of all three lines together, 2 c and 2 c + 1 at k = 2, c at k = 4. Of
 * those 16 bytes, word t is for columns 4 t ... 4 t + 3 and 16 + 4 t ... 16 + 4 t + 3 of the groups, a nibble each, the
 * first column's lowest. k = 4: the nibble is the index. k = 2: the index of the first group in bits 0 and 1, of the
 * second one in bits 2 and 3. k = 3: line w has the index of group 4 c + w in bits 0 to 2, and bit w of that of group 4
 * c + 3 in bit 3. So words are selectors of `prmt`, and the same four threads of a warp that multiply a row can have a
 * word each of every group, or 16 bytes of a group each.
 *
 * Groups are those of whole chunks, too: where a chunk has several, a row has as many for each, and
 * what is past its end is 0. Rows of fp8 codes are padded to XFP_CUDA_FP8_COLUMNS, those of numbers to 16 bytes.
 *
 * A codebook (a row's, in v2; one of the library's in v2a and v2c) is, up to k = 4, two planes: the high bytes of its
 * fp16 entries, then the low ones, which is what one instruction looks four weights up in. From k = 5 on it is the
 * entries as they are.
 *
 * For the integer path, numbers v = floor((entry - least) / step + 1/2) of codebooks are two planes of bytes as well:
 * of 14 bits at k = 4, where the low plane has seven, and of 16 below. `least` is the smallest entry, and step, f32, is
 * nearest to the 16383rd or 65535th part of what the largest is above it. In v2 a row has such planes and such a pair.
 * In v2c there are planes of the 256 products of codebooks and ratios, which the groups' bytes name, with one pair: at
 * k = 4 all high planes before all low ones, below table after table.
 *
 * Prepared vectors. x', f32, is x with the unit's balance. Its planes are of fp16 numbers: hi = RN16(x' 2^e), and
 * lo = RN16(x' 2^e - hi), with an e for each vector that puts the largest |x'| between 2^15 and 2^16, as near to that
 * as fp16 goes. Where x has 16 bits and there is no balance, there is no second plane: of bf16, hi is exact from 2^-32
 * of the largest on, and of fp16 always, but for what is below 2^-40 of the largest.
 *
 * For the integer path they are integers q, x' 2^i rounded to even, with the largest i that leaves |q| <= 0x7f7f7f: as
 * three digits of base 256 that are from -128 to 127 each. Of 32 columns, the lowest digits come first; 4 t ... 4 t + 3
 * and 16 + 4 t ... 16 + 4 t + 3 are bytes 8 t ... 8 t + 7.
 */
#ifndef XFP_CUDA_ABI_H
#define XFP_CUDA_ABI_H

#include <assert.h>
#include <stdint.h>

#define XFP_CUDA_THREADS 256u          /* of a block */
#define XFP_CUDA_WARPS 8u              /* of a block: they share the columns of a tile */
#define XFP_CUDA_PREPARE_THREADS 1024u /* of a block of xfp_prepare_TYPE */
#define XFP_CUDA_TILE_ROWS 16u         /* of a block */
#define XFP_CUDA_COLUMNS 512u          /* prepared vectors are padded with zeros to a multiple of so many columns */
#define XFP_CUDA_FP8_COLUMNS 64u       /* of a chunk of fp8 codes */
#define XFP_CUDA_KEPT_COLUMNS 256u     /* of a chunk of numbers that were kept */
#define XFP_CUDA_EACH_VECTORS 16u      /* of a block */
#define XFP_CUDA_M1_PLANES 8u          /* of a block's vectors */
#define XFP_CUDA_M4_PLANES 32u
#define XFP_CUDA_WIDE_PLANES 128u /* of a block */
#define XFP_CUDA_WIDE_ROWS 128u   /* likewise */
#define XFP_CUDA_WIDE_STAGES 3u   /* of 64 columns, that a block has in shared memory: */
#define XFP_CUDA_WIDE_STRIDE 160u /* bytes of each plane */
#define XFP_CUDA_WIDE_STAGE_BYTES (XFP_CUDA_WIDE_PLANES * XFP_CUDA_WIDE_STRIDE)

/* The rings of a block (ring.h), for indices of k bits: chunks per warp, and bytes. A chunk of a warp has 1 KB of
 * indices (3 KB if k = 3), three bytes per column and vector, and in v2c a name per row and group of 32 columns. */
#ifndef XFP_CUDA_RING
#define XFP_CUDA_RING 3u
#endif
#define XFP_CUDA_RING_SLOTS(k) ((k) == 3 ? 2u : XFP_CUDA_RING)
#define XFP_CUDA_CHUNK_COLUMNS(k) ((k) == 2 ? 256u : (k) == 3 ? 512u : 128u)
#define XFP_CUDA_RING_BYTES(k, vectors, names)     \
	(XFP_CUDA_RING_SLOTS(k) * XFP_CUDA_WARPS * \
	 (XFP_CUDA_CHUNK_COLUMNS(k) * (2 * (k) + 3 * (vectors)) + ((names) ? XFP_CUDA_CHUNK_COLUMNS(k) / 2 : 0)))

/* The cost of finishing a tile (few.h), in chunks. */
#ifndef XFP_CUDA_END
#define XFP_CUDA_END 2u
#endif
#define XFP_CUDA_TILE_END(k) ((k) == 3 ? XFP_CUDA_END / 2 : XFP_CUDA_END)

/* Workers (few.h), at most. The workspace has an entry for the tile that a worker is the first of several to have:
 * int64 sums of sixteen rows times four vectors, whose low bits count the workers that have added theirs. All entries
 * are 0 between launches. */
#define XFP_CUDA_WORKERS 6144u
#define XFP_CUDA_SHARED_SUMS 512u /* bytes of an entry */
#define XFP_CUDA_COUNT_BITS 8

/* Blocks of the kernels for few vectors that a multiprocessor holds, by their registers. `names`: v2c. */
#define XFP_CUDA_FEW_BLOCKS(k, vectors, names) \
	((vectors) == 4 || ((vectors) == 2 && ((k) == 3 || (names))) || ((k) == 3 && (names)) ? 2 : 3)

/* Of a workspace: counters, of tiles that are shared by several blocks, and room for each of those blocks. */
#ifndef XFP_CUDA_COUNTERS
#define XFP_CUDA_COUNTERS 256u
#endif
#define XFP_CUDA_PART_BYTES 2048u
#define XFP_CUDA_MOST_PARTS (2 * XFP_CUDA_COUNTERS - 2) /* all tiles' together */
#define XFP_CUDA_SUMS_OFFSET (4 * XFP_CUDA_COUNTERS)    /* of a workspace: shared sums, and then those parts */
#define XFP_CUDA_PARTS_OFFSET (XFP_CUDA_SUMS_OFFSET + XFP_CUDA_WORKERS * XFP_CUDA_SHARED_SUMS)

/* The most columns of the integer path. A warp's sums are of 32 bits, and add up a byte times a digit: 255 * 128 * 2^16
 * < 2^31. All of a row's are below 2^16 * 2^16 * 2^23, with COUNT_BITS more 2^63. */
#define XFP_CUDA_INTEGER_COLUMNS (1u << 16)
#define XFP_CUDA_INTEGER_VECTORS 4u

/* What integers of a codebook mean: least + step v. */
struct xfp_cuda_pair {
	float step, least;
};

/* What those of a vector mean: 2^-exponent q; the sum of all q. */
struct xfp_cuda_whole {
	int64_t sum;
	int32_t exponent; /* i above */
	uint32_t finite;  /* whether all x' are; if not, the rest means nothing */
};

/*
 * One matrix: a unit has an array of them, one per expert. An address of 0 means that the part does not exist.
 *
 * Tile order: a tile is XFP_CUDA_TILE_ROWS rows; the last one is padded with rows of zeros. A tile has chunk after
 * chunk, and a chunk row after row. So a warp that multiplies a tile reads consecutive bytes, also from one tile to the
 * next.
 */
struct xfp_cuda_matrix {
	uint64_t index;    /* indices, in tile order; fp8 codes or kept numbers: rows, row_bytes apart */
	uint64_t pair;     /* struct xfp_cuda_pair, in v2 row by row; 0: it has no integers */
	uint64_t integer;  /* v2: its planes, row by row */
	uint64_t code;     /* v2: codebooks, row by row; fp8: f32 scales, row by row */
	uint64_t group;    /* v2a: fp16 scale (the low half) and midpoint, v2c: bytes; rows row_groups apart. v2c32:
			     * a byte per 32 columns, in tile order */
	uint64_t number;   /* v2a: a byte per group, the number of its codebook; rows row_groups apart */
	uint64_t row;      /* v2c: f32 factors, row by row */
	uint64_t pointer;  /* outliers: uint32 [rows + 1], where those of a row begin */
	uint64_t column;   /* their columns, uint32, ascending in a row and below cols */
	uint64_t residual; /* fp16 */
	double unit;       /* what a row's sum is multiplied by: 2^-s, or 1 */
};

/* What is multiplied by. The same for all its matrices. */
struct xfp_cuda_weights {
	uint64_t matrix;  /* struct xfp_cuda_matrix [experts] */
	uint64_t library; /* v2a, v2c: codebooks as above */
	uint64_t ratio;   /* v2c: f32 [256 / codebooks] */
	uint64_t tables;  /* v2c: planes of the integer path */
	uint32_t rows, cols;
	uint32_t chunks;                /* of a row */
	uint32_t row_bytes, row_groups; /* from a row to the next */
	uint32_t group;                 /* v2a, v2c: log2 of a group's columns, at least 4 */
	uint32_t codebooks;             /* v2a, v2c: of the library, a power of two */
	uint32_t experts;
};

/* Prepared vectors, `cols` being a multiple of XFP_CUDA_COLUMNS: natural[count][cols]; planes[count][each][cols], hi
 * before lo; digits[count][cols / 32][3][32]; whole[count]; scale[count], 2^-e. */
struct xfp_cuda_vectors {
	uint64_t natural, planes, digits, whole, scale;
	uint32_t cols, count;
	uint32_t each; /* planes of a vector: 1 or 2 */
	uint32_t unused;
};

/* y[m * stride + row], as enum xfp_float says. */
struct xfp_cuda_result {
	uint64_t data, stride;
	uint32_t type, count;
};

/* Parameters of the kernels that multiply, in their order: */
struct xfp_cuda_multiply {
	struct xfp_cuda_weights weights;
	struct xfp_cuda_vectors vectors;
	struct xfp_cuda_result result;
	struct xfp_cuda_matrix matrix; /* unused for a list, which reads weights.matrix */
	uint64_t products;             /* struct xfp_product [product_count], of a list; else 0: */
	uint64_t workspace;            /* for tiles that several blocks or warps share; see parts.h and few.h */
	uint32_t product_count;
	uint32_t first, count;  /* vectors [first, first + count) go to the same of the result; a list's block y
					* has result first + y */
	uint32_t part_chunks;   /* of a row, that a block takes */
	uint32_t part_products; /* of one result of a list: the last part takes what more there are */
	uint32_t run;           /* few.h: the cost of a worker's run, in chunks */
};

/* Of xfp_repack_kK: chunks that follow one another, from the bundle's order to the device's. */
struct xfp_cuda_repack {
	uint64_t index, chunks;
};

/* And of xfp_prepare_TYPE, of XFP_CUDA_PREPARE_THREADS threads: vectors of `cols` elements, `stride` apart, to
 * `vectors`. `down`: f32 factors of columns, or 0. One block a vector. */
struct xfp_cuda_prepare {
	uint64_t source, stride;
	uint64_t down;
	struct xfp_cuda_vectors vectors;
	uint32_t cols;
	uint32_t lead; /* columns of zeros in front of them */
};

/* Two compilers make the same of all this: nothing is left to padding. */
static_assert(sizeof(struct xfp_cuda_pair) == 2 * 4, "a pair of floats");
static_assert(sizeof(struct xfp_cuda_whole) == 8 + 2 * 4, "no padding");
static_assert(sizeof(struct xfp_cuda_matrix) == 11 * 8, "no padding");
static_assert(sizeof(struct xfp_cuda_weights) == 4 * 8 + 8 * 4, "no padding");
static_assert(sizeof(struct xfp_cuda_vectors) == 5 * 8 + 4 * 4, "no padding");
static_assert(sizeof(struct xfp_cuda_result) == 2 * 8 + 2 * 4, "no padding");
static_assert(sizeof(struct xfp_cuda_multiply) == sizeof(struct xfp_cuda_weights) + sizeof(struct xfp_cuda_vectors) +
							  sizeof(struct xfp_cuda_result) +
							  sizeof(struct xfp_cuda_matrix) + 2 * 8 + 6 * 4,
	      "no padding");
static_assert(sizeof(struct xfp_cuda_repack) == 2 * 8, "no padding");
static_assert(sizeof(struct xfp_cuda_prepare) == 3 * 8 + sizeof(struct xfp_cuda_vectors) + 2 * 4, "no padding");

/*
 * Kernels, by name. M is how many times eight columns, the second matrix of an instruction, there are for planes of
 * vectors: in m1, a block has up to 8 vectors of one plane or 4 of two, in m4 up to 32 or 16, and `wide` is for many:
 * up to 128 or 64 a block, of 128 rows; see wide.h. `list` is of a list of products, one vector each.
 *
 *   xfp_multiply_v2_kK_M      K = 2 ... 6        grid (row tiles, tiles of vectors, parts), or of a list (row tiles,
 *                                              results, parts); `wide` has one part
 *   xfp_multiply_v2a_kK_M
 *   xfp_multiply_v2c_kK_M                        groups of 16 columns
 *   xfp_multiply_v2c32_kK_M                      groups of 32 columns or more
 *   xfp_multiply_v2_kK_iN     K = 2, 3, 4        up to N = 1, 2, 4 vectors, on the integer path; grid (blocks, 1)
 *   xfp_multiply_v2c32_kK_iN
 *   xfp_multiply_fp8_M
 *   xfp_multiply_TYPE_M       TYPE f32, f16, bf16, of what is kept; M is `each`, 16 vectors a block, `list`,
 *                                              or, but for f32, `wide`
 *   xfp_prepare_TYPE                             grid (vectors, 1)
 *   xfp_repack_kK             K = 2, 3, 4        grid (chunks / XFP_CUDA_THREADS, rounded up, 1)
 *
 * All have XFP_CUDA_THREADS threads a block, but xfp_prepare_TYPE. Dynamic shared memory: xfp_cuda_shared_bytes.
 */

#endif
