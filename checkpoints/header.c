/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/header.h"

#include <stdlib.h>
#include <string.h>

enum xfp_status xfp_header_add(struct xfp_header *header, uint32_t file, const char *key, const char *type,
			       const char *value, struct xfp_error *err)
{
	struct xfp_header_entry *entry;

	if (header->count == header->capacity) {
		uint32_t capacity = header->capacity ? 2 * header->capacity : 16;
		struct xfp_header_entry *grown = realloc(header->entries, capacity * sizeof *grown);

		if (!grown)
			return xfp_no_memory(err);
		header->entries = grown;
		header->capacity = capacity;
	}
	entry = &header->entries[header->count++];
	*entry = (struct xfp_header_entry){ .file = file, .key = strdup(key), .type = type, .value = strdup(value) };
	return entry->key && entry->value ? XFP_OK : xfp_no_memory(err);
}

void xfp_header_free(struct xfp_header *header)
{
	for (uint32_t i = 0; i < header->count; i++) {
		free(header->entries[i].key);
		free(header->entries[i].value);
	}
	free(header->entries);
	*header = (struct xfp_header){ 0 };
}
