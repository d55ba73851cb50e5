/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/work/decided.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/system/filesystem.h"
#include "schemas/digest.h"

/* Add a text with its NUL, which separates it from the next. */
static void add(struct xfp_digest *decided, const char *text)
{
	xfp_digest_update(decided, text, strlen(text) + 1);
}

struct xfp_digest *xfp_decided_begin(const struct xfp_parameters *parameters)
{
	char *text = xfp_parameters_to_json(parameters);
	struct xfp_digest *decided = text ? xfp_digest_new() : NULL;

	if (decided)
		add(decided, text);
	free(text);
	return decided;
}

struct xfp_identity *xfp_decided_files(const struct xfp_ledger *ledger)
{
	struct xfp_identity *files = calloc(ledger->extra_count + (size_t)1, sizeof *files);

	for (uint32_t i = 0; files && i < ledger->extra_count; i++) {
		char *path = xfp_ledger_extra_path(ledger, i);
		struct stat st;

		if (!path) {
			free(files);
			return NULL;
		}
		if (!stat(path, &st))
			files[i] = xfp_identity_at(path, &st);
		free(path);
	}
	return files;
}

void xfp_decided_file(struct xfp_digest *decided, const char *name, const struct xfp_identity *identity)
{
	char text[128];

	snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64, identity->device,
		 identity->inode, identity->size, identity->mtime_ns, identity->ctime_ns);
	add(decided, name);
	add(decided, text);
}

void xfp_decided_unit(struct xfp_digest *decided, const char *choice, const char *packed)
{
	add(decided, choice);
	add(decided, packed);
}

void xfp_decided_end(struct xfp_digest *decided, char hex[33])
{
	uint8_t bytes[16];

	xfp_digest_final(decided, bytes);
	xfp_hex(bytes, 16, hex);
}
