/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_image.h - create a bundle's file from the tables of a valid or invalid index, without the writer: for tests of
 * the reader.
 *
 * The file is as large as the part and file tables say, even terabytes. The caller writes the contents; unwritten parts
 * are holes.
 */
#ifndef XFP_TEST_BUNDLE_IMAGE_H
#define XFP_TEST_BUNDLE_IMAGE_H

#include "schemas/layout/bundle_layout.h"

/* An index under construction. */
struct image_tables {
	struct xfp_idx_header *header;
	struct xfp_idx_unit *units;
	struct xfp_idx_matrix *matrices;
	struct xfp_idx_part *parts;
	struct xfp_idx_tensor *tensors;
	struct xfp_idx_file *files;
	char *strings;
	uint32_t count[XFP_TABLES];
	uint64_t json_bytes;
};

/* The location of everything. */
struct image {
	uint8_t *map; /* mapping of the whole file; MAP_FAILED: not mapped */
	uint64_t bytes;
	uint64_t idx, idx_bytes;     /* content of the member */
	uint64_t *file_at, *part_at; /* offsets of their headers */
	uint64_t *padded;            /* size of a part's content according to its header */
};

/* The records of a table, and its size in bytes. */
uint8_t *image_table(const struct image_tables *tables, enum xfp_index_table table, size_t *record);

/* Fill in the header for these tables. */
void image_make_header(const struct image_tables *tables);

/* Compute offsets of parts and files, and the rest of `image` except for the map. False if a member has more than
 * `max` bytes. */
bool image_find_places(const struct image_tables *tables, uint64_t max, struct image *image);
void image_free(struct image *image);

/* Extend the file to that size as one hole, and map it. */
bool image_map(struct image *image, int file);

/* Write the JSON (blanks), headers of files and parts, the current index, and finally the digests of JSON and index. */
void image_write_json(const struct image_tables *tables, const struct image *image);
void image_write_member_headers(const struct image_tables *tables, const struct image *image);
void image_write_index(const struct image_tables *tables, const struct image *image);
void image_write_sum(uint8_t *map, uint64_t bytes, uint64_t json_bytes, uint64_t idx, uint64_t idx_bytes);

#endif
