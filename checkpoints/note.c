/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/format.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void xfp_checkpoint_note(struct xfp_checkpoint *c, const char *format, ...)
{
	char **grown = realloc(c->notes, ((size_t)c->note_count + 1) * sizeof *grown);
	va_list args;
	char *text;
	int length;

	if (!grown)
		return;
	c->notes = grown;
	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	if (length >= 0)
		c->notes[c->note_count++] = text;
}
