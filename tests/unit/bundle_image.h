/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_image.h - a bundle's file from the tables of an index, right or not, without the writer: for tests of the
 * reader.
 *
 * The file is as large as the part and file tables say, terabytes even. Contents are the caller's: what nobody writes
 * are holes.
 */
#ifndef XFP_TEST_BUNDLE_IMAGE_H
#define XFP_TEST_BUNDLE_IMAGE_H

#include "schemas/layout/bundle_layout.h"

/* An index in the making. */
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

/* Where everything is. */
struct image {
	uint8_t *map; /* of the whole file; MAP_FAILED: it is not mapped */
	uint64_t bytes;
	uint64_t idx, idx_bytes;     /* content of the member */
	uint64_t *file_at, *part_at; /* of their headers */
	uint64_t *padded;            /* bytes of a part's content, as its header says */
};

/* The records of a table, and the bytes of one. */
uint8_t *image_table(const struct image_tables *tables, enum xfp_index_table table, size_t *record);

/* The header that such tables have. */
void image_make_header(const struct image_tables *tables);

/* Offsets of parts and files, and the rest of `image`, but for the map. False when a member has more than `most`
 * bytes. */
bool image_find_places(const struct image_tables *tables, uint64_t most, struct image *image);
void image_free(struct image *image);

/* Make the file of that size, nothing but a hole, and map it. */
bool image_map(struct image *image, int file);

/* json, of blanks; headers of files and parts; the index as it is now; and last the digests of json and index. */
void image_write_json(const struct image_tables *tables, const struct image *image);
void image_write_member_headers(const struct image_tables *tables, const struct image *image);
void image_write_index(const struct image_tables *tables, const struct image *image);
void image_write_sum(uint8_t *map, uint64_t bytes, uint64_t json_bytes, uint64_t idx, uint64_t idx_bytes);

#endif
