/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/ui/meter.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void xfp_meter_begin(struct xfp_meter *meter)
{
	*meter = (struct xfp_meter){ .terminal = isatty(STDERR_FILENO) };
}

void xfp_meter_draw(struct xfp_meter *meter, const char *format, ...)
{
	va_list arguments;

	if (!meter->terminal)
		return;
	fputs("\r\033[K", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fflush(stderr);
	meter->shown = true;
}

void xfp_meter_clear(struct xfp_meter *meter)
{
	if (meter->shown)
		fputs("\r\033[K", stderr);
	meter->shown = false;
}
