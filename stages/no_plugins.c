/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_plugins.c - prevent the unit stages from loading code at run time.
 *
 * HDF5 looks for filters in shared objects if a file needs one. xfp's files need none, and a file that does must be
 * rejected. The linker redirects calls of dlopen here, so statically linked code needs no loader either.
 */
#include <stddef.h>

void *__wrap_dlopen(const char *path, int mode); /* the linker's name for dlopen */

void *__wrap_dlopen(const char *path, int mode)
{
	(void)path;
	(void)mode;
	return NULL;
}
