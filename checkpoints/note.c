/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/note.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void append(char ***list, uint32_t *count, char *text)
{
	char **grown = text ? realloc(*list, ((size_t)*count + 1) * sizeof *grown) : NULL;

	if (!grown) {
		free(text);
		return;
	}
	*list = grown;
	grown[(*count)++] = text;
}

void xfp_checkpoint_leave_out(struct xfp_checkpoint *c, const char *name)
{
	append(&c->left_out, &c->left_out_count, strdup(name));
}

void xfp_checkpoint_note(struct xfp_checkpoint *c, const char *format, ...)
{
	va_list args;
	char *text;
	int length;

	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	append(&c->notes, &c->note_count, length < 0 ? NULL : text);
}
