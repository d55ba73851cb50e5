/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/path.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

/* The offset of the last component of path[0, length). */
static size_t last_component(const char *path, size_t length)
{
	while (length && path[length - 1] != '/')
		length--;
	return length;
}

/* Whether ".." after path[0, length) only removes its last component: that is a real folder, or the root. */
static bool can_go_up(char *path, size_t length)
{
	size_t last = last_component(path, length);
	char after = path[length];
	struct stat st;
	bool folder;

	if (length - last == 2 && !strncmp(path + last, "..", 2))
		return false;
	path[length] = '\0';
	folder = !lstat(path, &st) && S_ISDIR(st.st_mode);
	path[length] = after;
	return folder;
}

void xfp_path_clean(char *path)
{
	size_t root = *path == '/', used = root;
	char *from = path + root;

	if (!*path)
		return;
	while (*from) {
		size_t length = strcspn(from, "/");
		char *next = from + length + strspn(from + length, "/");

		if (!length || (length == 1 && *from == '.')) {
			;
		} else if (length == 2 && !strncmp(from, "..", 2) && used > root && can_go_up(path, used)) {
			used = last_component(path, used);
			used -= used > root;
		} else if (length != 2 || strncmp(from, "..", 2) != 0 || used > root || !root) {
			if (used > root)
				path[used++] = '/';
			memmove(path + used, from, length);
			used += length;
		}
		from = next;
	}
	if (!used)
		path[used++] = '.';
	/* There is space for two more characters: the part removed is at least "./". */
	if (*path == '-' && from - path >= (ptrdiff_t)used + 2) {
		memmove(path + 2, path, used);
		memcpy(path, "./", 2);
		used += 2;
	}
	path[used] = '\0';
}

const char *xfp_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}
