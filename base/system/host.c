/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/host.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Read the host's name unchanged; "" if it has none. */
static void read_name(char name[XFP_HOST_NAME])
{
	if (gethostname(name, XFP_HOST_NAME))
		*name = 0;
	name[XFP_HOST_NAME - 1] = 0;
}

bool xfp_host_name(char name[XFP_HOST_NAME])
{
	read_name(name);
	for (char *c = name; *c; c++)
		if (*c <= ' ')
			*c = '-';
	return *name;
}

ssize_t xfp_boot_id(char *text, size_t size)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, size);

	if (fd >= 0)
		close(fd);
	return length;
}

void xfp_host_tag(char tag[XFP_HOST_TAG])
{
	char name[XFP_HOST_NAME], text[2 * XFP_HOST_NAME];
	uint32_t hash = 2166136261u; /* FNV-1a */
	ssize_t more;
	size_t length;

	read_name(name);
	length = strlen(name);
	memcpy(text, name, length);
	more = xfp_boot_id(text + length, sizeof text - length);
	length += more > 0 ? (size_t)more : 0;
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)text[i]) * 16777619u;
	for (char *c = name; *c; c++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_", *c))
			*c = '_';
	if (!*name || *name == '.')
		*name = '_';
	snprintf(tag, XFP_HOST_TAG, "%s-%08x", name, hash);
}
