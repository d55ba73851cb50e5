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
 *                 of the file table; a NAME that is long or not plain ASCII is replaced by its number,
 *                 "+NNNNNN" (xfp_file_member)
 *   u/NNNNNN.EXT  parts of unit NNNNNN, in the order of enum xfp_part
 *   t/NNNNNN.raw  source tensor NNNNNN (its number in the index), kept as a whole
 *   xfp.sum       "SHA256  xfp.json\nSHA256  xfp.idx\n" in lower-case hex, as sha256sum writes it,
 *                 over the two members' content
 *
 * Every u/ and t/ member's data starts at a multiple of 4096 bytes of the file. To that end every data
 * member is zero-padded until its end plus the next member's header is a multiple of 4096 (the index
 * has the true size; xfp_padded_bytes), and xfp.idx until the first data member is aligned (to a
 * multiple of 512 without data members). Tar headers have one
 * canonical form (xfp_tar_header), the archive ends with exactly two zero blocks, and padding is
 * zero, so every byte of the file is either covered by a SHA-256 or has only one valid value.
 *
 * The index is little-endian; tables follow the header in the order of enum xfp_index_table, each at a
 * multiple of 8 bytes, without gaps but zero padding. Strings are (offset, length) into the last
 * table: UTF-8 without NUL, then one NUL that the length does not count, stored in the order in which
 * header and records refer to them. No two tensors and no two files have the same
 * name, and no two units the same name and role. The part table is in the order of the members.
 * No field is optional; unused numbers are zero.
 */
#ifndef XFP_BUNDLE_LAYOUT_H
#define XFP_BUNDLE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XFP_BUNDLE_VERSION 1
#define XFP_IDX_MAGIC "xfp-idx" /* 8 bytes with its NUL */
#define XFP_DATA_ALIGN 4096u
#define XFP_ROW_ALIGN 16u    /* rows of packed indices are zero-padded to a multiple of this */
#define XFP_NONE UINT32_MAX  /* "no such record" */
#define XFP_MAX_EXPONENT 250 /* |s|; the exponents needed for any dtype are smaller */

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
 * Parts of a unit. A matrix's bytes are consecutive in each part, at the offset in its record; the unit has a single
 * BALANCE, and a single CODE for v2a and v2c, with offset 0. N rows, K columns, M matrices (experts):
 *
 *   part    ext   mode v2                                      mode fp8            mode keep
 *   INDEX   idx   M*N rows of xfp_index_row_bytes(K, k)        M*N*K e4m3 codes    M*N*K source elements
 *   CODE    cb    M*N*2^k fp16 entries, ascending in a row     M*N f32 row scales  -
 *   GROUP   grp   -                                            -                   -
 *   BALANCE bal   K bytes d, one vector for the unit; absent   -                   -
 *                 if all are 0, as without balance
 *   OUTLIER out   for each matrix that has outliers, see       -                   -
 *                 below; absent if none has
 *
 * A row of indices is cut into chunks of sixteen lanes, the last of which may have fewer; each lane has
 * one to five uint32 that hold the indices of 8 to 32 columns without gaps (see the table in
 * kernels/common/lane_index.h). Columns past the
 * end of the row and the padding are zero.
 *
 * Outliers are sorted by row, then by column, without duplicates. A matrix with n outliers has row pointers if n > N,
 * and a list if n <= N, since pointers would then need more space:
 *
 *   n > N    N+1 uint32: row r has outliers pointer[r] to pointer[r + 1] - 1; the first is 0, the last n
 *   n <= N   n uint32: the row of each, so that N is below 2^32
 *
 * and then in either case n columns (uint16; uint32 if K > 65536), zero-padded to 4 bytes, then n fp16
 * residuals, then zero padding to 16 bytes.
 *
 * The library modes cut each row into groups of G = 2^group columns; a row's last one is shorter if K is not a
 * multiple of G. A library of L = 2^library codebooks serves the whole unit, so all its matrices have its k.
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
 * fp16 numbers may have any value: an infinity or NaN decodes to weights that are not finite, which xfp-verify(1)
 * reports, as it does for an fp8 scale.
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
	uint8_t class_, mode, k, met; /* mode and k of its matrices; the largest k if they differ */
	uint8_t dtype;                /* dtype of the source */
	uint8_t group, library;       /* v2a, v2c: log2 of columns of a group, of codebooks of the library; else 0 */
	uint8_t reserved;
	uint32_t experts, first_matrix;
	uint64_t rows, cols;
	uint32_t part[XFP_PARTS]; /* record in the part table, or XFP_NONE */
	uint32_t reserved2;
	uint64_t bytes; /* size of all its parts */
	uint64_t outliers;
	double cos_median, cos_p5; /* cosine of the reconstruction with the source, over all rows */
	double error;              /* squared error / squared norm */
	double floor;              /* the requested floor */
};

struct xfp_idx_matrix {
	uint32_t unit, expert;
	uint8_t mode, k;
	int16_t exponent;                      /* s */
	uint32_t tensor;                       /* source tensor that it is a view of */
	uint64_t base, row_stride, col_stride; /* the view, in elements (checkpoints/checkpoint.h) */
	uint64_t outliers;
	uint64_t offset[XFP_PARTS]; /* offset in each of the unit's parts; 0 for shared or absent ones */
	uint8_t source[16];         /* XXH3-128 of its source rows */
};

struct xfp_idx_part {
	uint32_t number; /* number of the unit, or of the tensor for raw */
	uint8_t kind;    /* enum xfp_part, or XFP_PARTS for a raw tensor */
	uint8_t reserved;
	uint16_t volume;       /* 0 */
	uint64_t offset, size; /* offset in the bundle file; true size */
	uint8_t sha256[32];    /* SHA-256 of `size` bytes */
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

/* Size in bytes of a row of `cols` k-bit indices in lanes: 4k for 32 columns, padded to XFP_ROW_ALIGN. */
static inline uint64_t xfp_index_row_bytes(uint64_t cols, unsigned k)
{
	return ((cols + 31) / 32 * 4 * k + XFP_ROW_ALIGN - 1) & ~(uint64_t)(XFP_ROW_ALIGN - 1);
}

/* The number of groups of a row, each of 2^group columns. */
static inline uint64_t xfp_row_groups(uint64_t cols, unsigned group)
{
	return (cols + ((uint64_t)1 << group) - 1) >> group;
}

/* The number of ratios of a v2c library of 2^library codebooks. */
static inline unsigned xfp_library_ratios(unsigned library)
{
	return 256u >> library;
}

/* Whether this number of outliers is stored as a list, not as rows with pointers. */
static inline bool xfp_outliers_listed(uint64_t rows, uint64_t count)
{
	return count <= rows;
}

/* Size in bytes of one matrix's row pointers, or of the rows in its list. */
static inline uint64_t xfp_outlier_row_bytes(uint64_t rows, uint64_t count)
{
	return (xfp_outliers_listed(rows, count) ? count : rows + 1) * 4;
}

/* Size in bytes of one matrix's outliers; 0 if it has none. */
static inline uint64_t xfp_outlier_bytes(uint64_t rows, uint64_t cols, uint64_t count)
{
	uint64_t columns = count * (cols > 65536 ? 4 : 2);

	return count ? (xfp_outlier_row_bytes(rows, count) + ((columns + 3) & ~(uint64_t)3) + count * 2 + 15) &
			       ~(uint64_t)15
		     : 0;
}

/* The sizes of the parts that a unit stores once, by mode, k, group, library and columns; `balanced`: it has BALANCE.
 * False if mode, k, group or library is invalid. */
bool xfp_unit_part_bytes(const struct xfp_idx_unit *unit, bool balanced, uint64_t bytes[XFP_PARTS]);

/* The sizes of the parts of one matrix, by mode, k and outliers of `matrix` and the unit's shape, dtype, k, group and
 * library; 0 for parts of the unit. False if mode, k, exponent, dtype or a size is invalid. */
bool xfp_matrix_part_bytes(const struct xfp_idx_unit *unit, const struct xfp_idx_matrix *matrix,
			   uint64_t bytes[XFP_PARTS]);

/* Whether a name of the file table is valid: relative, without empty, "." or ".." components. */
bool xfp_file_name_valid(const char *name);

/* Size of a data member's content in the archive, including zero padding, given its true size and the size of the next
 * member's header. */
static inline uint64_t xfp_padded_bytes(uint64_t size, uint64_t next_header)
{
	return ((size + next_header + XFP_DATA_ALIGN - 1) & ~(uint64_t)(XFP_DATA_ALIGN - 1)) - next_header;
}

/* Size of the content of xfp.idx, including zero padding: the member starts at `offset`, and is followed by `files`
 * bytes of files/ members and then a data member's header (0: none). */
static inline uint64_t xfp_idx_member_bytes(uint64_t offset, uint64_t index_bytes, uint64_t files, uint64_t header)
{
	uint64_t unit = header ? XFP_DATA_ALIGN : 512, around = offset + files + header;

	return ((index_bytes + around + unit - 1) & ~(unit - 1)) - around;
}

/* Write the canonical tar header of a regular file: mode 0644, owner 0 without a name, time 0. `block` receives
 * xfp_tar_header_bytes(size) bytes: 512, or 1536 for a member of 8 GiB or more, whose size is stored in a pax extended
 * header first. */
#define XFP_TAR_BLOCK 512u
size_t xfp_tar_header_bytes(uint64_t size);
void xfp_tar_header(const char *name, uint64_t size, uint8_t *block);

/* The member name of a part: "u/000012.idx" or "t/000003.raw". */
void xfp_part_member(uint32_t number, unsigned kind, char name[24]);

/* The member name of a file: "files/config.json", or "files/+000003" if the name is over 80 bytes or has other
 * characters than A-Z a-z 0-9 . _ - and '/'. */
#define XFP_FILE_MEMBER_BYTES 96
void xfp_file_member(uint32_t number, const char *file, char name[XFP_FILE_MEMBER_BYTES]);

/* The content of xfp.sum. */
#define XFP_SUM_BYTES 149u
void xfp_sum_text(const uint8_t json[32], const uint8_t idx[32], char text[XFP_SUM_BYTES + 1]);

#endif
