/* SPDX-License-Identifier: Apache-2.0 */
/*
 * header.h - read and check the header of one GGUF file. Private to checkpoints/gguf/.
 *
 *   4  "GGUF"      4  version, 2 or 3      8  number of tensors      8  number of keys
 *   keys:          text KEY, u32 kind, value; of an array u32 kind, u64 count, elements
 *   tensors:       text NAME, u32 rank, u64 sizes, the one that varies fastest first, u32 type, u64 offset
 *   padding to a multiple of general.alignment, or 32; data, from which offsets count
 *
 * A text is a u64 length and bytes; all numbers are little-endian. Tensors are adjacent, each with the same padding;
 * the padding of the last may be missing.
 */
#ifndef XFP_GGUF_HEADER_H
#define XFP_GGUF_HEADER_H

#include "base/xfp_error.h"
#include "checkpoints/gguf/metadata.h"
#include "checkpoints/packed/ggml.h"
#include "checkpoints/place.h"

#define XFP_GGUF_MAGIC "GGUF"
#define XFP_GGUF_HEADER_MAX ((uint64_t)512 << 20)
#define XFP_GGUF_RANK 4

struct xfp_gguf_tensor {
	char *name;
	const struct xfp_ggml_type *type;
	uint32_t number; /* number of the type */
	uint32_t rank;
	uint64_t shape[XFP_GGUF_RANK]; /* row-major, as everywhere else: reversed from the file */
	uint64_t offset;               /* offset of its data in the file, or in the archive that contains it */
	uint64_t bytes;
};

struct xfp_gguf_file {
	struct xfp_gguf_metadata metadata; /* points into `header` */
	unsigned char *header;
	uint64_t header_bytes;
	uint32_t version;
	struct xfp_gguf_tensor *tensors; /* in the file's order */
	uint32_t count;
	struct xfp_identity identity;
	char *shown;     /* name for messages */
	uint32_t number; /* number among the checkpoint's files */
};

/* Read a header. XFP_BAD_INPUT if anything is wrong with the file. */
enum xfp_status xfp_gguf_read(const struct xfp_place *place, struct xfp_gguf_file *out, struct xfp_error *err);
void xfp_gguf_free(struct xfp_gguf_file *file); /* initialize with zeros */

#endif
