/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_layout.h - the bytes of a .xfp bundle, version 1. Shared by the writer (schemas/bundle.h)
 * and the one reader (runtime/xfp.h); needs nothing but C.
 *
 * A bundle is an uncompressed pax tar. Members, in this order:
 *
 *   xfp.json      parameters and algorithm versions, for people and for regeneration
 *   xfp.idx       the index below
 *   files/NAME    config, tokenizer and the other small files of the checkpoint, unchanged, in the order
 *                 of the file table; a NAME that is long or not plain ASCII is "+NNNNNN" instead, its
 *                 number (xfp_file_member)
 *   u/NNNNNN.EXT  parts of unit NNNNNN, in the order of enum xfp_part
 *   t/NNNNNN.raw  source tensor NNNNNN (its number in the index), kept as a whole
 *   xfp.sum       "SHA256  xfp.json\nSHA256  xfp.idx\n" in lower-case hex, as sha256sum writes it,
 *                 over the two members' content
 *
 * Every u/ and t/ member's data starts at a multiple of 4096 bytes of the file. To that end every data
 * member is zero-padded at its end by as little as makes its end plus the next member's header a
 * multiple of 4096 (the index has the true size; xfp_padded_bytes), and xfp.idx by as little as makes
 * the first data member fall right (to a multiple of 512 when there is none). Tar headers have one
 * canonical form (xfp_tar_header), the archive ends with exactly two zero blocks, and padding is
 * zero, so every byte of the file is either covered by a SHA-256 or has only one valid value.
 *
 * The index is little-endian; tables follow the header in the order of enum xfp_index_table, each at a
 * multiple of 8 bytes, without gaps but zero padding. Strings are (offset, length) into the last
 * table: UTF-8 without NUL, then one NUL that the length does not count, one after the other in the
 * order in which header and records refer to them. No two tensors and no two files have the same
 * name, and no two units the same name and role. The part table is in the order of the members.
 * Nothing is optional; unused numbers are zero.
 */
#ifndef XFP_BUNDLE_LAYOUT_H
#define XFP_BUNDLE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XFP_BUNDLE_VERSION 1
#define XFP_IDX_MAGIC "xfp-idx" /* with its NUL, 8 bytes */
#define XFP_DATA_ALIGN 4096u
#define XFP_ROW_ALIGN 16u    /* rows of packed indices are zero-padded to this */
#define XFP_NONE UINT32_MAX  /* "no such record" */
#define XFP_MAX_EXPONENT 250 /* |s|; what weights of any dtype need is less */

#define XFP_MEMBER_JSON "xfp.json"
#define XFP_MEMBER_IDX "xfp.idx"
#define XFP_MEMBER_SUM "xfp.sum"

enum xfp_index_table {
	XFP_TABLE_UNITS,
	XFP_TABLE_MATRICES,
	XFP_TABLE_PARTS,
	XFP_TABLE_TENSORS,
	XFP_TABLE_FILES,
	XFP_TABLE_STRINGS,
	XFP_TABLES
};

/*
 * Parts of a unit. A matrix's bytes are consecutive in each part, at the offset its record gives; BALANCE,
 * and CODE of v2a and v2c, are one for the unit, and their offset is 0. N rows, K columns, M matrices
 * (experts):
 *
 *   part    ext   mode v2                                      mode fp8            mode keep
 *   INDEX   idx   M*N rows of xfp_index_row_bytes(K, k)        M*N*K e4m3 codes    M*N*K source elements
 *   CODE    cb    M*N*2^k fp16 entries, ascending in a row     M*N f32 row scales  -
 *   GROUP   grp   -                                            -                   -
 *   BALANCE bal   K bytes d, one vector for the unit; absent   -                   -
 *                 when all are 0, as they are without balance
 *   OUTLIER out   for each matrix that has outliers, see       -                   -
 *                 below; absent when none has
 *
 * A row of indices is cut into chunks of sixteen lanes, the last of fewer, each lane one to five uint32 that hold the
 * indices of 8 to 32 columns without a gap: kernels/common/lane_index.h has the table, with reasons. Columns past the
 * end of the row and the padding are zero.
 *
 * Outliers are in the order of their rows and, in a row, of their columns, no two at the same place. A matrix with n of
 * them has, where n > N, row pointers; where n <= N, so that pointers would take more than they tell, a list:
 *
 *   n > N    N+1 uint32: row r has outliers pointer[r] to pointer[r + 1] - 1; the first is 0, the last n
 *   n <= N   n uint32: the row of each, so that N is below 2^32
 *
 * and behind that in either case n columns (uint16; uint32 where K > 65536), zero-padded to 4 bytes, then n fp16
 * residuals, then zero padding to 16 bytes.
 *
 * The library modes cut each row into groups of G = 2^group columns; a row's last one is shorter where K is no
 * multiple. A library of L = 2^library codebooks serves the whole unit, so all its matrices have its k.
 *
 *   part    mode v2a                                           mode v2c
 *   INDEX   as in v2                                           the same
 *   CODE    L*2^k fp16 entries, by codebook                    L*2^k fp16 entries, then R = 256/L fp16 ratios,
 *                                                              the first of them 0
 *   GROUP   for each matrix: N * ceil(K/G) pairs of fp16       for each matrix: N * ceil(K/G) bytes b, row by
 *           scale and fp16 midpoint, row by row; then as       row: codebook b / R, ratio b % R; then N bytes D,
 *           many bytes: the codebook's number, below L;        one per row; zero padding to 16 bytes
 *           then zero padding to 16 bytes
 *   BALANCE, OUTLIER as in v2
 *
 * Decoding: v2, v2a and v2c give x', and then  W[r][c] = (x' + residual(r, c)) * 2^(-d[c] / 4) * 2^-s  with the
 * matrix's exponent s: the sum in f32, 2^(-d/4) by the table of kernels/common/scale.h, each product rounded to f32.
 * With q = index(r, c) and the codebook e, scale, midpoint and ratio t of the group that c is in:
 *
 *   v2    x' = entry[r][q]
 *   v2a   x' = RN32(library[e][q] * scale + midpoint)
 *   v2c   x' = RN32(library[e][q] * ratio[t] * row)    row = 2^14 * 2^(-D[r]/4), by the same table
 *
 * Both round once: a product of two fp16 is exact in f32.
 *
 * fp16 numbers may be whatever fp16 has: one that is infinite or NaN decodes to weights that are not finite, which
 * xfp-verify(1) reports, as it does for an fp8 scale.
 */
enum xfp_part { XFP_PART_INDEX, XFP_PART_CODE, XFP_PART_GROUP, XFP_PART_BALANCE, XFP_PART_OUTLIER, XFP_PARTS };

#define XFP_PART_EXTENSIONS                      \
	{                                        \
		"idx", "cb", "grp", "bal", "out" \
	}

struct xfp_idx_string {
	uint32_t offset, length;
};

struct xfp_idx_header {
	char magic[8];
	uint32_t version;
	uint32_t header_bytes; /* sizeof this struct */
	uint64_t index_bytes;  /* header and tables, without the member's zero padding */
	uint64_t weights;      /* elements of all units */
	struct {
		uint64_t offset; /* from the start of the index */
		uint32_t count;  /* records; bytes for strings */
		uint32_t record; /* bytes of one record; 1 for strings */
	} table[XFP_TABLES];
	struct xfp_idx_string family;
};

struct xfp_idx_unit {
	struct xfp_idx_string name, role;
	uint8_t class_, mode, k, met; /* mode and k of its matrices, largest k where they differ */
	uint8_t dtype;                /* of the source */
	uint8_t group, library;       /* of v2a and v2c, log2: columns of a group, codebooks of the library; else 0 */
	uint8_t reserved;
	uint32_t experts, first_matrix;
	uint64_t rows, cols;
	uint32_t part[XFP_PARTS]; /* record in the part table, or XFP_NONE */
	uint32_t reserved2;
	uint64_t bytes; /* all its parts together */
	uint64_t outliers;
	double cos_median, cos_p5; /* of the reconstruction against the source, over all rows */
	double error;              /* squared error / squared norm */
	double floor;              /* what was promised */
};

struct xfp_idx_matrix {
	uint32_t unit, expert;
	uint8_t mode, k;
	int16_t exponent;                      /* s */
	uint32_t tensor;                       /* source tensor that it is a view of */
	uint64_t base, row_stride, col_stride; /* the view, in elements (checkpoints/checkpoint.h) */
	uint64_t outliers;
	uint64_t offset[XFP_PARTS]; /* in the unit's parts; 0 for those it shares and where it has none */
	uint8_t source[16];         /* XXH3-128 of its source rows */
};

struct xfp_idx_part {
	uint32_t number; /* of the unit, or of the tensor for raw */
	uint8_t kind;    /* enum xfp_part, or XFP_PARTS for a raw tensor */
	uint8_t reserved;
	uint16_t volume;       /* 0 */
	uint64_t offset, size; /* in the bundle file; true size */
	uint8_t sha256[32];    /* of `size` bytes */
};

struct xfp_idx_tensor {
	struct xfp_idx_string name, reason;
	uint8_t class_, dtype, fate, rank;
	uint32_t part; /* KEPT as a whole: its raw part; otherwise XFP_NONE */
	uint32_t tied; /* TIED: the tensor that it equals; otherwise XFP_NONE */
	uint32_t reserved;
	uint64_t shape[8];
	uint8_t source[16]; /* XXH3-128 of its bytes; zero unless it has a raw part */
};

struct xfp_idx_file {
	struct xfp_idx_string name; /* relative, '/' between folders, no "..": as in files/NAME */
	uint64_t offset, size;
	uint8_t sha256[32];
};

_Static_assert(sizeof(struct xfp_idx_header) == 136, "index header");
_Static_assert(sizeof(struct xfp_idx_unit) == 120, "unit record");
_Static_assert(sizeof(struct xfp_idx_matrix) == 104, "matrix record");
_Static_assert(sizeof(struct xfp_idx_part) == 56, "part record");
_Static_assert(sizeof(struct xfp_idx_tensor) == 112, "tensor record");
_Static_assert(sizeof(struct xfp_idx_file) == 56, "file record");

/* Bytes of a row of `cols` k-bit indices in lanes: 4k for 32 columns, padded to XFP_ROW_ALIGN. */
static inline uint64_t xfp_index_row_bytes(uint64_t cols, unsigned k)
{
	return ((cols + 31) / 32 * 4 * k + XFP_ROW_ALIGN - 1) & ~(uint64_t)(XFP_ROW_ALIGN - 1);
}

/* Groups of a row, each of 2^group columns. */
static inline uint64_t xfp_row_groups(uint64_t cols, unsigned group)
{
	return (cols + ((uint64_t)1 << group) - 1) >> group;
}

/* Ratios beside a v2c library of 2^library codebooks. */
static inline unsigned xfp_library_ratios(unsigned library)
{
	return 256u >> library;
}

/* Whether so many outliers are a list, rather than rows with pointers. */
static inline bool xfp_outliers_listed(uint64_t rows, uint64_t count)
{
	return count <= rows;
}

/* Bytes of one matrix's row pointers, or of the rows in its list. */
static inline uint64_t xfp_outlier_row_bytes(uint64_t rows, uint64_t count)
{
	return (xfp_outliers_listed(rows, count) ? count : rows + 1) * 4;
}

/* Bytes of one matrix's outliers, 0 when it has none. */
static inline uint64_t xfp_outlier_bytes(uint64_t rows, uint64_t cols, uint64_t count)
{
	uint64_t columns = count * (cols > 65536 ? 4 : 2);

	return count ? (xfp_outlier_row_bytes(rows, count) + ((columns + 3) & ~(uint64_t)3) + count * 2 + 15) &
			       ~(uint64_t)15
		     : 0;
}

/* What of its parts a unit has once, by mode, k, group, library and columns; `balanced` says whether it has BALANCE.
 * False when mode, k, group or library cannot be. */
bool xfp_unit_part_bytes(const struct xfp_idx_unit *unit, bool balanced, uint64_t bytes[XFP_PARTS]);

/* What the parts of one matrix take, by mode, k and outliers of `matrix` and the unit's shape, dtype, k, group and
 * library. What is the unit's is 0. False when mode, k, exponent, dtype or a size cannot be. */
bool xfp_matrix_part_bytes(const struct xfp_idx_unit *unit, const struct xfp_idx_matrix *matrix,
			   uint64_t bytes[XFP_PARTS]);

/* Whether a name of the file table is one: relative, no empty, "." or ".." component. */
bool xfp_file_name_valid(const char *name);

/* Size of a data member's content in the archive, zero padding included: its true size and the bytes of
 * the next member's header decide it. */
static inline uint64_t xfp_padded_bytes(uint64_t size, uint64_t next_header)
{
	return ((size + next_header + XFP_DATA_ALIGN - 1) & ~(uint64_t)(XFP_DATA_ALIGN - 1)) - next_header;
}

/* Size of the content of xfp.idx, zero padding included: at `offset` of the file, with `files` bytes of
 * files/ members behind it and then a data member's header (0: there is none). */
static inline uint64_t xfp_idx_member_bytes(uint64_t offset, uint64_t index_bytes, uint64_t files, uint64_t header)
{
	uint64_t unit = header ? XFP_DATA_ALIGN : 512, around = offset + files + header;

	return ((index_bytes + around + unit - 1) & ~(unit - 1)) - around;
}

/* The canonical tar header of a regular file: mode 0644, owner 0 without a name, time 0. `block`
 * receives xfp_tar_header_bytes(size) bytes: 512, or 1536 for a member of 8 GiB or more, whose
 * size goes into a pax extended header first. */
#define XFP_TAR_BLOCK 512u
size_t xfp_tar_header_bytes(uint64_t size);
void xfp_tar_header(const char *name, uint64_t size, uint8_t *block);

/* "u/000012.idx" or "t/000003.raw" of a part. */
void xfp_part_member(uint32_t number, unsigned kind, char name[24]);

/* "files/config.json", or "files/+000003" when the name is over 80 bytes or has other characters than
 * A-Z a-z 0-9 . _ - and '/'. */
#define XFP_FILE_MEMBER_BYTES 96
void xfp_file_member(uint32_t number, const char *file, char name[XFP_FILE_MEMBER_BYTES]);

/* Content of xfp.sum. */
#define XFP_SUM_BYTES 149u
void xfp_sum_text(const uint8_t json[32], const uint8_t idx[32], char text[XFP_SUM_BYTES + 1]);

#endif
