/* SPDX-License-Identifier: Apache-2.0 */
#include "model/evaluate/evaluation.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* If memory for the message runs out, the warning is dropped. */
void xfp_evaluation_warn(const struct xfp_evaluation *e, const char *format, ...)
{
	va_list arguments;
	char *message;

	va_start(arguments, format);
	if (vasprintf(&message, format, arguments) >= 0) {
		e->callbacks.warning(e->callbacks.context, message);
		free(message);
	}
	va_end(arguments);
}
