/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/header.h"

#include <stdlib.h>

enum xfp_status xfp_header_add(struct xfp_header *header, struct xfp_header_entry *entry, struct xfp_error *err)
{
	if (header->count == header->capacity) {
		uint32_t capacity = header->capacity ? 2 * header->capacity : 16;
		struct xfp_header_entry *grown = realloc(header->entries, capacity * sizeof *grown);

		if (!grown) {
			free(entry->key);
			free(entry->values);
			return xfp_no_memory(err);
		}
		header->entries = grown;
		header->capacity = capacity;
	}
	header->entries[header->count++] = *entry;
	return entry->key && entry->values ? XFP_OK : xfp_no_memory(err);
}

void xfp_header_free(struct xfp_header *header)
{
	for (uint32_t i = 0; i < header->count; i++) {
		free(header->entries[i].key);
		free(header->entries[i].values);
	}
	free(header->entries);
	*header = (struct xfp_header){ 0 };
}
