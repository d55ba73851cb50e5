/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/system/host.h"

uint32_t xfp_process_space(void)
{
	char text[256];
	uint32_t tag = 2166136261u; /* FNV-1a */
	ssize_t length, more;

	length = xfp_boot_id(text, sizeof text / 2);
	if (length <= 0)
		return 0;
	more = readlink("/proc/self/ns/pid", text + length, sizeof text - (size_t)length);
	if (more <= 0)
		return 0;
	for (ssize_t i = 0; i < length + more; i++)
		tag = (tag ^ (unsigned char)text[i]) * 16777619u;
	return tag ? tag : 1;
}

bool xfp_process_is_dead(pid_t pid)
{
	char path[64], text[512], *state;
	ssize_t got = -1;
	int fd;

	if (kill(pid, 0) && errno == ESRCH)
		return true;
	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = read(fd, text, sizeof text - 1);
		close(fd);
	}
	if (got <= 0)
		return false;
	text[got] = 0;
	/* The format is "PID (NAME) STATE ...", and NAME may contain parentheses. */
	state = strrchr(text, ')');
	return state && state[1] == ' ' && (state[2] == 'Z' || state[2] == 'X');
}
