/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/ui/tokenizer_note.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "model/tokenizer/files.h"

#define LARGEST ((size_t)256 << 20) /* largest file copied into a bundle */

/* Read a file that goes into the bundle. */
static enum xfp_status read_extra(void *context, const char *name, char **bytes, size_t *size, struct xfp_error *err)
{
	const struct xfp_ledger *ledger = context;
	enum xfp_status status = XFP_OK;

	*bytes = NULL;
	for (uint32_t i = 0; i < ledger->extra_count; i++)
		if (!strcmp(ledger->extras[i], name)) {
			char *path = xfp_ledger_extra_path(ledger, i);

			status = path ? xfp_slurp(path, LARGEST, bytes, size, err) : xfp_no_memory(err);
			free(path);
			break;
		}
	return status;
}

void xfp_note_tokenizer(const char *program, const char *model, const struct xfp_ledger *ledger)
{
	struct xfp_printable shown = xfp_printable(model);
	const struct xfp_tokenizer_files files = { read_extra, (void *)ledger, shown.text };
	struct xfp_tokenizer *tokenizer = NULL;
	struct xfp_error err = { .text = "" };

	if (xfp_tokenizer_open_files(&files, &tokenizer, &err))
		fprintf(stderr, "%s: note: %s; xfp generate and xfp eval --text will not work with the bundle\n",
			program, err.text);
	else if (!tokenizer)
		fprintf(stderr,
			"%s: note: %s: has no tokenizer.json, so xfp generate and xfp eval --text will not work with "
			"the bundle\n",
			program, shown.text);
	xfp_tokenizer_free(tokenizer);
}
