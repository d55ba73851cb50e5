/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_map.h - the internal structure of an open bundle. Private to runtime/.
 */
#ifndef XFP_BUNDLE_MAP_H
#define XFP_BUNDLE_MAP_H

#include "runtime/xfp.h"
#include "schemas/layout/bundle_layout.h"

/* A record and its name; for units also the role, otherwise NULL. */
struct xfp_named {
	const char *name, *role;
	uint32_t number;
};

struct xfp_bundle {
	char *path;
	const uint8_t *map;
	uint64_t bytes; /* size of the file */
	const char *json;
	uint64_t json_bytes;

	const uint8_t *index; /* content of xfp.idx */
	uint64_t idx_offset, idx_bytes;
	const struct xfp_idx_header *header;
	const struct xfp_idx_unit *units;
	const struct xfp_idx_matrix *matrices;
	const struct xfp_idx_part *parts;
	const struct xfp_idx_tensor *tensors;
	const struct xfp_idx_file *files;
	const char *strings;

	uint64_t *padded;                                         /* content size of each part's member */
	struct xfp_named *unit_names, *tensor_names, *file_names; /* sorted */
};

static inline uint32_t xfp_bundle_count(const struct xfp_bundle *bundle, enum xfp_index_table table)
{
	return bundle->header->table[table].count;
}

static inline const char *xfp_bundle_string(const struct xfp_bundle *bundle, struct xfp_idx_string string)
{
	return bundle->strings + string.offset;
}

static inline bool xfp_bundle_all_zero(const uint8_t *data, uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
		if (data[i])
			return false;
	return true;
}

/* Compare names for sorting; a NULL role equals every role. */
int xfp_named_compare(const struct xfp_named *a, const struct xfp_named *b);

/* Return the name of the unit or tensor of the first part that is not completely inside the file; NULL if all are, or
 * if the index is invalid. Needs the header only: the index of a truncated file cannot be verified. */
const char *xfp_bundle_first_missing(const struct xfp_bundle *bundle);

/* Verify the header of the index and every record and string of its tables, and fill in the names. check_tables
 * includes check_strings. The caller checks the offsets of members. */
enum xfp_status xfp_bundle_check_header(struct xfp_bundle *bundle, struct xfp_error *err);
enum xfp_status xfp_bundle_check_strings(const struct xfp_bundle *bundle, struct xfp_error *err);
enum xfp_status xfp_bundle_check_tables(struct xfp_bundle *bundle, struct xfp_error *err);

#endif
