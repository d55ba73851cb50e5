/* SPDX-License-Identifier: Apache-2.0 */
/*
 * raw.c - store all metadata of a GGUF as a GGUF without tensors, for tools that need metadata that no other file has.
 *
 * Keys are copied byte for byte and in order, except those that number the parts of a split file.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "checkpoints/format.h"
#include "checkpoints/gguf/synthesized.h"

#define SPLIT "split."

static bool stays(const struct xfp_gguf_value *value)
{
	return value->key.length < strlen(SPLIT) || memcmp(value->key.bytes, SPLIT, strlen(SPLIT)) != 0;
}

enum xfp_status xfp_gguf_make_metadata(const struct xfp_gguf_file *file, struct xfp_checkpoint *c,
				       struct xfp_error *err)
{
	const struct xfp_gguf_metadata *metadata = &file->metadata;
	size_t size = 24, at = 24;
	uint64_t count = 0;
	char *bytes;

	for (uint32_t i = 0; i < metadata->count; i++)
		if (stays(&metadata->values[i])) {
			size += metadata->values[i].pair_bytes;
			count++;
		}
	if (!(bytes = malloc(size + 1)))
		return xfp_no_memory_for(err, c->folder);
	memcpy(bytes, XFP_GGUF_MAGIC, 4);
	xfp_store32(bytes + 4, file->version);
	xfp_store64(bytes + 8, 0);
	xfp_store64(bytes + 16, count);
	for (uint32_t i = 0; i < metadata->count; i++) {
		const struct xfp_gguf_value *value = &metadata->values[i];

		if (!stays(value))
			continue;
		memcpy(bytes + at, value->pair, value->pair_bytes);
		at += value->pair_bytes;
	}
	bytes[size] = 0;
	return xfp_checkpoint_make(c, "metadata.gguf", bytes, size, err);
}
