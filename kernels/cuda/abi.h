/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi.h - the interface between host and kernels: parameters, and layouts in device memory. For C and CUDA.
 *
 * Addresses are 64-bit integers, as in the driver's interface. Everything that kernels read in vectors begins at a
 * multiple of 16 bytes.
 *
 * The device image. Rows of indices are those of the bundle (kernels/common/lane_index.h), but every chunk has all
 * sixteen lanes: the last chunk is repacked if the row, or the slice, ends within it. So a chunk is 16 * words * 4
 * bytes, each step is sixteen consecutive columns, and columns past the end have index 0 and are multiplied by x = 0.
 * For k up to 4, xfp_repack_kK then converts every chunk to the device order, in place:
 *
 * A chunk has `words` lines of 64 bytes. A line is four times 16 bytes, each of which belongs to as many groups of 32
 * columns: at k = 3 groups 4 c ... 4 c + 3, with part c of all three lines; at k = 2 groups 2 c and 2 c + 1; at k = 4
 * group c. Word t of those 16 bytes belongs to columns 4 t ... 4 t + 3 and 16 + 4 t ... 16 + 4 t + 3 of the groups, one
 * nibble each, the first column lowest. k = 4: the nibble is the index. k = 2: bits 0 and 1 are the index of the first
 * group, bits 2 and 3 that of the second. k = 3: line w has the index of group 4 c + w in bits 0 to 2, and bit w of the
 * index of group 4 c + 3 in bit 3. So words are selectors of `prmt`, and the four threads of a warp that multiply a row
 * can each load a word of every group, or 16 bytes of one group.
 *
 * Groups are padded to whole chunks, too: if a chunk contains several groups, a row has all of them for each chunk, and
 * those past its end are 0. Rows of fp8 codes are padded to XFP_CUDA_FP8_COLUMNS, rows of kept numbers to 16 bytes.
 *
 * A codebook (of a row in v2, of the library in v2a and v2c) is two planes for k up to 4: the high bytes of its fp16
 * entries, then the low bytes. One instruction looks up four weights in a plane. From k = 5 on it is the unchanged
 * entries.
 *
 * For the integer path, the numbers v = floor((entry - least) / step + 1/2) of codebooks are two planes of bytes as
 * well: 14-bit numbers at k = 4, with seven bits in the low plane, and 16-bit numbers below. `least` is the smallest
 * entry; step, f32, is nearest to 1/16383 or 1/65535 of the range. In v2 each row has such planes and such a pair. In
 * v2c there are planes of the 256 products of codebooks and ratios, selected by the groups' bytes, with one pair: at k
 * = 4 all high planes before all low planes, below that table after table.
 *
 * Prepared vectors. x', f32, is x with the unit's balance applied. Its planes are fp16 numbers: hi = RN16(x' 2^e), and
 * lo = RN16(x' 2^e - hi). Each vector has an e that puts the largest |x'| between 2^15 and 2^16, as far as fp16 allows.
 * If x has 16 bits and there is no balance, the second plane is omitted: for bf16, hi is exact from 2^-32 of the
 * largest on; for fp16 always, except below 2^-40 of the largest.
 *
 * For the integer path, prepared vectors are integers q, x' 2^i rounded to even, with the largest i such that
 * |q| <= 0x7f7f7f, as three digits of base 256 from -128 to 127. Per 32 columns, the lowest digits come first; columns
 * 4 t ... 4 t + 3 and 16 + 4 t ... 16 + 4 t + 3 are bytes 8 t ... 8 t + 7.
 */
#ifndef XFP_CUDA_ABI_H
#define XFP_CUDA_ABI_H

#include <assert.h>
#include <stdint.h>

#define XFP_CUDA_THREADS 256u          /* threads per block */
#define XFP_CUDA_WARPS 8u              /* warps per block; they share the columns of a tile */
#define XFP_CUDA_PREPARE_THREADS 1024u /* threads per block of xfp_prepare_TYPE */
#define XFP_CUDA_TILE_ROWS 16u         /* rows per block */
#define XFP_CUDA_COLUMNS 512u          /* prepared vectors are zero-padded to a multiple of this */
#define XFP_CUDA_FP8_COLUMNS 64u       /* columns per chunk of fp8 codes */
#define XFP_CUDA_KEPT_COLUMNS 256u     /* columns per chunk of kept numbers */
#define XFP_CUDA_EACH_VECTORS 16u      /* vectors per block, form `each` */
#define XFP_CUDA_M1_PLANES 8u          /* planes of vectors per block */
#define XFP_CUDA_M4_PLANES 32u
#define XFP_CUDA_WIDE_PLANES 128u /* planes per block */
#define XFP_CUDA_WIDE_ROWS 128u   /* rows per block */
#define XFP_CUDA_WIDE_STAGES 3u   /* stages of 64 columns in shared memory */
#define XFP_CUDA_WIDE_STRIDE 160u /* bytes per plane of a stage */
#define XFP_CUDA_WIDE_STAGE_BYTES (XFP_CUDA_WIDE_PLANES * XFP_CUDA_WIDE_STRIDE)

/* The rings of a block (ring.h), for indices of k bits: chunks per warp, and bytes. A chunk of a warp has 1 KB of
 * indices (3 KB if k = 3), three bytes per column and vector, and in v2c a byte per row and group of 32 columns. */
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

/* Maximum number of workers (few.h). The workspace has an entry for each tile that is split, owned by the first of its
 * workers: int64 sums of sixteen rows times four vectors, whose low bits count the workers that have added theirs. All
 * entries are 0 between launches. */
#define XFP_CUDA_WORKERS 6144u
#define XFP_CUDA_SHARED_SUMS 512u /* bytes per entry */
#define XFP_CUDA_COUNT_BITS 8

/* Blocks of the kernels for few vectors per multiprocessor, as limited by registers. `names`: v2c. */
#define XFP_CUDA_FEW_BLOCKS(k, vectors, names) \
	((vectors) == 4 || ((vectors) == 2 && ((k) == 3 || (names))) || ((k) == 3 && (names)) ? 2 : 3)

/* Parts of a workspace: counters of the tiles that several blocks share, and memory for each of those blocks. */
#ifndef XFP_CUDA_COUNTERS
#define XFP_CUDA_COUNTERS 256u
#endif
#define XFP_CUDA_PART_BYTES 2048u
#define XFP_CUDA_MAX_PARTS (2 * XFP_CUDA_COUNTERS - 2) /* of all tiles together */
#define XFP_CUDA_SUMS_OFFSET (4 * XFP_CUDA_COUNTERS)   /* in a workspace: shared sums, then the parts */
#define XFP_CUDA_PARTS_OFFSET (XFP_CUDA_SUMS_OFFSET + XFP_CUDA_WORKERS * XFP_CUDA_SHARED_SUMS)

/* Maximum columns of the integer path. A warp's 32-bit sums add bytes times digits: 255 * 128 * 2^16 < 2^31. The sums
 * of a row are below 2^16 * 2^16 * 2^23; with COUNT_BITS more, 2^63. */
#define XFP_CUDA_INTEGER_COLUMNS (1u << 16)
#define XFP_CUDA_INTEGER_VECTORS 4u

/* The scale pair of a codebook's integers: an entry is least + step v. */
struct xfp_cuda_pair {
	float step, least;
};

/* The scale of a vector's integers: an element is 2^-exponent q; and the sum of all q. */
struct xfp_cuda_input_scale {
	int64_t sum;
	int32_t exponent; /* i above */
	uint32_t finite;  /* nonzero if all x' are finite; otherwise the rest is undefined */
};

/*
 * One matrix: a unit has an array of them, one per expert. An address of 0 means that the part does not exist.
 *
 * Tile order: a tile is XFP_CUDA_TILE_ROWS rows; the last one is padded with rows of zeros. A tile consists of chunks
 * in order, and a chunk of rows in order. So a warp that multiplies a tile reads consecutive bytes, also from one tile
 * to the next.
 */
struct xfp_cuda_matrix {
	uint64_t index;    /* indices, in tile order; fp8 codes or kept numbers: rows, row_bytes apart */
	uint64_t pair;     /* struct xfp_cuda_pair, in v2 row by row; 0 without integers */
	uint64_t integer;  /* v2: planes of the integers, row by row */
	uint64_t code;     /* v2: codebooks, row by row; fp8: f32 scales, row by row */
	uint64_t group;    /* v2a: fp16 scale (low half) and midpoint, v2c: bytes; row_groups per row. v2c32:
			     * a byte per 32 columns, in tile order */
	uint64_t number;   /* v2a: a byte per group, the number of its codebook; row_groups per row */
	uint64_t row;      /* v2c: f32 factors, row by row */
	uint64_t pointer;  /* outliers: uint32 [rows + 1], start of each row */
	uint64_t column;   /* their columns, uint32, ascending in a row and below cols */
	uint64_t residual; /* fp16 */
	double unit;       /* factor of a row's sum: 2^-s, or 1 */
};

/* Weights: parameters that are the same for all matrices of a unit. */
struct xfp_cuda_weights {
	uint64_t matrix;  /* struct xfp_cuda_matrix [experts] */
	uint64_t library; /* v2a, v2c: codebooks as above */
	uint64_t ratio;   /* v2c: f32 [256 / codebooks] */
	uint64_t tables;  /* v2c: planes of the integer path */
	uint32_t rows, cols;
	uint32_t chunks;                /* chunks per row */
	uint32_t row_bytes, row_groups; /* distance between rows */
	uint32_t group;                 /* v2a, v2c: log2 of the columns per group, at least 4 */
	uint32_t codebooks;             /* v2a, v2c: codebooks in the library, a power of two */
	uint32_t experts;
};

/* Prepared vectors; `cols` is a multiple of XFP_CUDA_COLUMNS: natural[count][cols]; planes[count][each][cols], hi
 * before lo; digits[count][cols / 32][3][32]; whole[count]; scale[count], 2^-e. */
struct xfp_cuda_vectors {
	uint64_t natural, planes, digits, whole, scale;
	uint32_t cols, count;
	uint32_t each; /* planes per vector: 1 or 2 */
	uint32_t unused;
};

/* Results: y[m * stride + row], of type enum xfp_float. */
struct xfp_cuda_result {
	uint64_t data, stride;
	uint32_t type, count;
};

/* Parameters of the multiplication kernels. */
struct xfp_cuda_multiply {
	struct xfp_cuda_weights weights;
	struct xfp_cuda_vectors vectors;
	struct xfp_cuda_result result;
	struct xfp_cuda_matrix matrix; /* unused for a list, which reads weights.matrix */
	uint64_t products;             /* struct xfp_product [product_count], of a list; otherwise 0 */
	uint64_t workspace;            /* for tiles shared by blocks or warps; see parts.h and few.h */
	uint32_t product_count;
	uint32_t first, count;  /* vectors and results [first, first + count); block y of a list
					* has result first + y */
	uint32_t part_chunks;   /* chunks of a row per block */
	uint32_t part_products; /* products per part of a list's result; the last part has the rest */
	uint32_t run;           /* few.h: cost of a worker's run, in chunks */
};

/* Parameters of xfp_repack_kK: consecutive chunks, converted from the bundle's order to the device's. */
struct xfp_cuda_repack {
	uint64_t index, chunks;
};

/* Parameters of xfp_prepare_TYPE, with XFP_CUDA_PREPARE_THREADS threads and one block per vector: vectors of `cols`
 * elements, `stride` apart, are written to `vectors`. `down`: f32 factors of columns, or 0. */
struct xfp_cuda_prepare {
	uint64_t source, stride;
	uint64_t down;
	struct xfp_cuda_vectors vectors;
	uint32_t cols;
	uint32_t lead; /* columns of zeros before them */
};

/* Host and device compilers must agree on the layout: there is no padding. */
static_assert(sizeof(struct xfp_cuda_pair) == 2 * 4, "a pair of floats");
static_assert(sizeof(struct xfp_cuda_input_scale) == 8 + 2 * 4, "no padding");
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
 * Kernels, by name. M selects the number of planes of vectors. An instruction multiplies eight columns, one per plane:
 * m1 has up to 8 vectors of one plane per block, or 4 of two; m4 up to 32 or 16; `wide` up to 128 or 64, with 128 rows
 * per block, see wide.h. `list` multiplies a list of products, one vector each.
 *
 *   xfp_multiply_v2_kK_M      K = 2 ... 6        grid (row tiles, tiles of vectors, parts); for a list (row tiles,
 *                                              results, parts); `wide` has one part
 *   xfp_multiply_v2a_kK_M
 *   xfp_multiply_v2c_kK_M                        groups of 16 columns
 *   xfp_multiply_v2c32_kK_M                      groups of 32 columns or more
 *   xfp_multiply_v2_kK_iN     K = 2, 3, 4        up to N = 1, 2, 4 vectors, on the integer path; grid (blocks, 1)
 *   xfp_multiply_v2c32_kK_iN
 *   xfp_multiply_fp8_M
 *   xfp_multiply_TYPE_M       TYPE f32, f16, bf16, for kept tensors; M is `each`, 16 vectors per block, `list`,
 *                                              or, except for f32, `wide`
 *   xfp_prepare_TYPE                             grid (vectors, 1)
 *   xfp_repack_kK             K = 2, 3, 4        grid (chunks / XFP_CUDA_THREADS, rounded up, 1)
 *
 * All except xfp_prepare_TYPE have XFP_CUDA_THREADS threads per block. Dynamic shared memory: xfp_cuda_shared_bytes.
 */

#endif
