/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_plugins.c - a stage of a unit loads no code at run time.
 *
 * HDF5 looks for filters in shared objects when a file asks for one. xfp's files ask for none, and one that does
 * shall be refused. The linker sends calls of dlopen here, so what is linked statically needs no loader either.
 */
#include <stddef.h>

void *__wrap_dlopen(const char *path, int mode); /* the linker's name for it */

void *__wrap_dlopen(const char *path, int mode)
{
	(void)path;
	(void)mode;
	return NULL;
}
