/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/ui/tokenizer_note.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "model/tokenizer/tokenizer.h"

#define TOKENIZER "tokenizer.json"
#define LARGEST ((size_t)256 << 20) /* largest file copied into a bundle */

/* The path of the tokenizer.json that goes into the bundle; NULL if there is none. The caller frees it. */
static char *find_tokenizer(const struct xfp_ledger *ledger)
{
	for (uint32_t i = 0; i < ledger->extra_count; i++)
		if (!strcmp(ledger->extras[i], TOKENIZER))
			return xfp_ledger_extra_path(ledger, i);
	return NULL;
}

void xfp_note_tokenizer(const char *program, const char *model, const struct xfp_ledger *ledger)
{
	struct xfp_tokenizer *tokenizer = NULL;
	char *path = find_tokenizer(ledger), *json = NULL;
	struct xfp_error err = { .text = "" };
	size_t size;

	if (!path)
		fprintf(stderr,
			"%s: note: %s: has no " TOKENIZER
			", so xfp generate and xfp eval --text will not work with the bundle\n",
			program, xfp_printable(model).text);
	else if (xfp_slurp(path, LARGEST, &json, &size, &err) || xfp_tokenizer_open(json, size, path, &tokenizer, &err))
		fprintf(stderr,
			"%s: note: %s; xfp generate and xfp eval --text will not work with the bundle: only byte-level "
			"BPE and its relatives are supported\n",
			program, err.text);
	xfp_tokenizer_free(tokenizer);
	free(json);
	free(path);
}
