/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h - the identity of this host, for files that several hosts share.
 */
#ifndef XFP_HOST_H
#define XFP_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define XFP_HOST_NAME 65
#define XFP_HOST_TAG 80

/* The host's name; control characters and spaces are replaced by '-'. False: it has none. */
bool xfp_host_name(char name[XFP_HOST_NAME]);

/* A file name that identifies the host: its name, in letters, digits, '.', '-' and '_', then '-' and 8 hex digits of a
 * hash of the name's bytes and of the boot. Containers of one kernel differ if their host names do. */
void xfp_host_tag(char tag[XFP_HOST_TAG]);

/* Read the kernel's identifier of this boot; its length, or a negative number. */
ssize_t xfp_boot_id(char *text, size_t size);

#endif
