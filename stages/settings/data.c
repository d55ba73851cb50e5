/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/settings/data.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/text/suffix.h"

bool xfp_names_file(const char *name, const char *suffix)
{
	return strchr(name, '/') || xfp_stem(name, suffix);
}

char *xfp_tool_folder(void)
{
	char self[PATH_MAX];
	ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
	char *slash;

	if (size <= 0)
		return NULL;
	self[size] = '\0';
	slash = strrchr(self, '/');
	return slash == self ? strdup("/") : strndup(self, (size_t)(slash - self));
}

static bool is_folder(const char *path)
{
	struct stat st;

	return path && !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* FOLDER/BELOW in canonical form if it contains families; else NULL. */
static char *root_at(const char *folder, const char *below)
{
	char *path = folder ? xfp_path(folder, below) : NULL, *root = path ? realpath(path, NULL) : NULL;
	char *families = root ? xfp_path(root, XFP_FAMILIES) : NULL;

	if (!is_folder(families)) {
		free(root);
		root = NULL;
	}
	free(families);
	free(path);
	return root;
}

enum xfp_status xfp_data_folder(const char *name, char **folder, struct xfp_error *err)
{
	static const char *const below[] = { "../share/xfp", ".", ".." };
	const char *data = getenv("XFP_DATADIR");
	char *tools = xfp_tool_folder(), *root = data && *data ? strdup(data) : NULL;
	enum xfp_status status = XFP_OK;

	for (size_t i = 0; !root && i < sizeof below / sizeof below[0]; i++)
		root = root_at(tools, below[i]);
	*folder = xfp_path(root ? root : XFP_PKGDATADIR, name);
	if (!*folder) {
		status = xfp_no_memory(err);
	} else if (!is_folder(*folder)) {
		status = xfp_fail(err, XFP_FAILED,
				  "%s: no such folder; set XFP_DATADIR to the folder that holds pipelines/, as in the "
				  "source tree or under share/xfp",
				  *folder);
		free(*folder);
		*folder = NULL;
	}
	free(root);
	free(tools);
	return status;
}
