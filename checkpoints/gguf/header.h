/* SPDX-License-Identifier: Apache-2.0 */
/*
 * header.h - one GGUF file: its header, read and checked. Private to checkpoints/gguf/.
 *
 *   4  "GGUF"      4  version, 2 or 3      8  number of tensors      8  number of keys
 *   keys:          text KEY, u32 kind, value; of an array u32 kind, u64 count, elements
 *   tensors:       text NAME, u32 rank, u64 sizes, the one that varies fastest first, u32 type, u64 offset
 *   padding to a multiple of general.alignment, or 32; data, from which offsets count
 *
 * A text is u64 length and bytes; all is little-endian. Tensors lie one behind the other, each padded likewise; what
 * pads the last may be missing.
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
	uint32_t number; /* of the type */
	uint32_t rank;
	uint64_t shape[XFP_GGUF_RANK]; /* row-major, as everywhere else: the other way round than in the file */
	uint64_t offset;               /* of its data, from the start of the file, or of the archive that it is in */
	uint64_t bytes;
};

struct xfp_gguf_file {
	struct xfp_gguf_metadata metadata; /* in `header` */
	unsigned char *header;
	uint64_t header_bytes;
	uint32_t version;
	struct xfp_gguf_tensor *tensors; /* in the file's order */
	uint32_t count;
	struct xfp_identity identity;
	char *shown;     /* what messages call it */
	uint32_t number; /* among the checkpoint's files, for whoever opens one */
};

/* Anything wrong with the file is XFP_BAD_INPUT. */
enum xfp_status xfp_gguf_read(const struct xfp_place *place, struct xfp_gguf_file *out, struct xfp_error *err);
void xfp_gguf_free(struct xfp_gguf_file *file); /* one that was never filled in must be zero */

#endif
