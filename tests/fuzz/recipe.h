/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recipe.h - valid and invalid bundles for the fuzzer, described by a few dozen bytes.
 *
 * Random changes of a bundle's bytes would only show that SHA-256 works, and a bundle with every part takes 30 KiB. So
 * the fuzzer mutates a recipe, which lists units, tensors and files, and their faults. Tables, contents, headers and
 * digests are built from it, so that an invalid index has valid digests.
 *
 * A recipe is a head of 16 bytes and items of 16 bytes each. Missing bytes are 0, so any bytes are a recipe:
 *
 *   head    0: flags (enum fuzz_flag); 1-8: seed of everything random; 9-10: bytes of xfp.json;
 *           11: records too many (enum fuzz_more)
 *   item    0: what it is, modulo FUZZ_KINDS; the others are of struct fuzz_unit, _tensor, _file or _patch
 */
#ifndef XFP_FUZZ_RECIPE_H
#define XFP_FUZZ_RECIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/unit/bundle_image.h"

#define FUZZ_ITEM 16
#define FUZZ_UNITS 4
#define FUZZ_EXPERTS 4
#define FUZZ_MATRICES (FUZZ_UNITS * FUZZ_EXPERTS)
#define FUZZ_RAW 4
#define FUZZ_TENSORS (FUZZ_UNITS + FUZZ_RAW)
#define FUZZ_PARTS (FUZZ_UNITS * XFP_PARTS + FUZZ_RAW)
#define FUZZ_FILES 4
#define FUZZ_PATCHES 8
#define FUZZ_STRINGS 12288
#define FUZZ_MAX_BYTES ((uint64_t)1 << 38) /* of a member: above 64 GiB sizes are stored differently */
#define FUZZ_WRITTEN ((uint64_t)1 << 16)   /* of a member; the rest is a hole, and its digest wrong */

enum fuzz_flag {
	FUZZ_AS_IS = 1,  /* the file itself follows the head, */
	FUZZ_DIGESTS = 2 /* except for the digests of its index and parameters, which are computed */
};

enum fuzz_more { FUZZ_MORE_MATRICES = 1, FUZZ_MORE_PARTS = 2, FUZZ_MORE_STRINGS = 4 };

/* Names of units, tensors and files, by their number modulo FUZZ_NAMES. */
enum fuzz_name {
	FUZZ_NAME_PLAIN,
	FUZZ_NAME_FOLDER,
	FUZZ_NAME_WIDE,
	FUZZ_NAME_CONTROL,
	FUZZ_NAME_LONG,
	FUZZ_NAME_EMPTY, /* of a file, one that leads elsewhere */
	FUZZ_NAME_SAME,  /* the name of the previous record */
	FUZZ_NAMES
};

enum fuzz_kind { FUZZ_UNIT, FUZZ_TENSOR, FUZZ_FILE, FUZZ_PATCH, FUZZ_KINDS };

/* Items of a recipe. Numbers are reduced modulo their range. */
struct fuzz_unit {
	uint8_t kind, mode, k, group, library, dtype, experts;
	uint8_t rows, rows_shift; /* rows << (rows_shift - 192), if that is positive */
	uint8_t cols[2], cols_shift;
	uint8_t flags; /* enum fuzz_unit_flag, and outliers << 4: none, few, as many as rows, more, all weights */
	uint8_t exponent, class_, name;
};

enum fuzz_unit_flag {
	FUZZ_BALANCED = 1,
	FUZZ_TRANSPOSED = 2,
	FUZZ_FUSED = 4 /* in the same tensor as the previous unit, with its shape */
};

struct fuzz_tensor {
	uint8_t kind, dtype, rank, fate, tied, class_;
	uint8_t dim[8]; /* the dimension minus 1; 255: 0 */
	uint8_t shift;  /* of the first dimension, also minus 192 */
	uint8_t name;
};

struct fuzz_file {
	uint8_t kind, name, bytes[2], shift, reserved[11];
};

/* A changed number: which one, when, and how. */
struct fuzz_patch {
	uint8_t kind;
	uint8_t when;   /* enum fuzz_when */
	uint8_t table;  /* enum xfp_index_table, or one of enum fuzz_place */
	uint8_t width;  /* log2 of bytes */
	uint8_t how;    /* enum fuzz_how */
	uint8_t record; /* of the table */
	uint8_t at[2];  /* times the width: from the start of the record or the place */
	uint8_t value[8];
};

enum fuzz_when {
	FUZZ_EARLY, /* before members are laid out: their sizes follow the changed tables */
	FUZZ_LATE,  /* before the digests of json and index are computed */
	FUZZ_SPOIL, /* after all digests are computed */
	FUZZ_TIMES
};

enum fuzz_place {
	FUZZ_HEADER = XFP_TABLES, /* of the index */
	FUZZ_CONTENT,             /* of part `record`; its digest is still right */
	FUZZ_JSON,
	FUZZ_PLACES,
	/* of FUZZ_SPOIL, in this order: */
	FUZZ_FRONT = 0, /* bytes from the start of the file */
	FUZZ_BACK,      /* from its end */
	FUZZ_MEMBER,    /* from the header of part `record` */
	FUZZ_LENGTH,    /* of the file: value[0] - 128 times 512 bytes, or value[1] - 128 bytes more */
	FUZZ_SPOILS
};

enum fuzz_how { FUZZ_SET, FUZZ_ADD, FUZZ_XOR, FUZZ_SHIFT, FUZZ_ABSURD, FUZZ_COPY, FUZZ_HOWS };

/* The tables of an index, and what to do with them. */
struct fuzz_bundle {
	uint64_t seed;
	struct xfp_idx_header header;
	struct xfp_idx_unit units[FUZZ_UNITS];
	struct xfp_idx_matrix matrices[FUZZ_MATRICES + 1];
	struct xfp_idx_part parts[FUZZ_PARTS + 1];
	struct xfp_idx_tensor tensors[FUZZ_TENSORS];
	struct xfp_idx_file files[FUZZ_FILES];
	char strings[FUZZ_STRINGS];
	uint32_t count[XFP_TABLES];
	uint8_t names[XFP_TABLES][FUZZ_TENSORS + 1]; /* of units, tensors and files: enum fuzz_name */
	uint64_t json_bytes;
	struct fuzz_patch patches[FUZZ_PATCHES];
	unsigned patch_count;
	bool huge;  /* some member has more bytes than anyone should read */
	bool wrong; /* must be rejected: a unit has no weights, a name occurs twice ... */
};

static inline uint64_t fuzz_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* Everything except the offsets of members and the digests. Impossible or surplus items are omitted. */
void fuzz_read_recipe(const uint8_t *recipe, size_t size, struct fuzz_bundle *bundle);

void fuzz_add_strings(struct fuzz_bundle *bundle);

/* Its tables for bundle_image.h. */
struct image_tables fuzz_tables(struct fuzz_bundle *bundle);

/* Apply the patches of that time to tables, header and strings. */
void fuzz_patch_tables(struct fuzz_bundle *bundle, enum fuzz_when when);
/* Apply one patch to `size` bytes. */
void fuzz_patch_bytes(const struct fuzz_patch *patch, uint8_t *bytes, uint64_t size);

/* Write the first `size` bytes of a part's contents, for a unit or for tensor `number`. */
void fuzz_fill_part(const struct fuzz_bundle *bundle, uint32_t part, uint8_t *out, uint64_t size);

/* The file built from a recipe. */
struct fuzz_file_made {
	char path[32];
	uint64_t bytes;
	uint64_t random; /* random numbers for using it; a different seed for every recipe */
	bool whole;      /* nothing is wrong with it */
	bool wrong;      /* it cannot be opened */
	bool spoiled;    /* some byte does not match its digest */
	bool huge;
};

/* Build the file of a recipe; it stays until the next call. Returns false if the file cannot be built. */
bool fuzz_make(const uint8_t *recipe, size_t size, struct fuzz_file_made *made);

/* Open it and use everything in it; abort if the library breaks a promise. */
void fuzz_walk(const struct fuzz_file_made *made);

/* Mutate a recipe of at most `capacity` bytes; returns its new size. */
size_t fuzz_mutate(uint8_t *recipe, size_t size, size_t capacity, uint64_t seed);

/* Seed number n, of at most FUZZ_SEED bytes; 0 after the last one. */
#define FUZZ_SEED (FUZZ_ITEM * 12)
size_t fuzz_seed(unsigned n, uint8_t recipe[FUZZ_SEED]);

#endif
