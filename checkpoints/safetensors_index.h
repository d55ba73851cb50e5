/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors_index.h - model.safetensors.index.json, pytorch_model.bin.index.json: maps tensors to shards.
 * Private to checkpoints/.
 *
 *   {"metadata": {..}, "weight_map": {"TENSOR": "FILE", ..}}
 *
 * FILE is in the index's own folder: a value that could lead elsewhere is refused.
 */
#ifndef XFP_SAFETENSORS_INDEX_H
#define XFP_SAFETENSORS_INDEX_H

#include <stdbool.h>

#include "checkpoints/shards.h"

struct xfp_index_entry {
	char *tensor;
	uint32_t shard; /* index into `shards` */
	bool found;     /* for the user of the index; initially false */
};

struct xfp_index {
	struct xfp_index_entry *entries; /* sorted by tensor, unique */
	char **shards;                   /* sorted, unique */
	uint32_t entry_count, shard_count;
};

/* Read an index whose files must be of this form. */
enum xfp_status xfp_index_read(const struct xfp_place *place, const struct xfp_file_form *form, struct xfp_index *out,
			       struct xfp_error *err);
void xfp_index_free(struct xfp_index *index); /* initialize with zeros */
/* Return the entry of a tensor, or NULL if the index does not list it. */
struct xfp_index_entry *xfp_index_find(const struct xfp_index *index, const char *tensor);

#endif
