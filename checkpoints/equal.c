/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/equal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"

#define BLOCK ((size_t)1 << 20)

enum xfp_status xfp_source_tensors_equal(const struct xfp_checkpoint *checkpoint, const struct xfp_source_tensor *a,
					 const struct xfp_source_tensor *b, bool *equal, struct xfp_error *err)
{
	const struct xfp_source_tensor *tensors[2] = { a, b };
	unsigned char *block[2] = { malloc(BLOCK), malloc(BLOCK) };
	enum xfp_status status = XFP_OK;
	const char *path[2];
	int fd[2] = { -1, -1 };
	struct stat st;

	for (int i = 0; i < 2; i++) {
		path[i] = checkpoint->files[tensors[i]->file].path;
		if (!block[i]) {
			status = xfp_no_memory(err);
			goto done;
		}
		if ((status = xfp_open_regular(path[i], &fd[i], &st, err)))
			goto done;
	}
	*equal = true;
	for (uint64_t at = 0; *equal && at < a->bytes; at += BLOCK) {
		size_t size = a->bytes - at < BLOCK ? (size_t)(a->bytes - at) : BLOCK;

		for (int i = 0; i < 2; i++)
			if ((status = xfp_pread(fd[i], block[i], size, tensors[i]->offset + at, path[i], err)))
				goto done;
		*equal = !memcmp(block[0], block[1], size);
	}
done:
	for (int i = 0; i < 2; i++) {
		free(block[i]);
		if (fd[i] >= 0)
			close(fd[i]);
	}
	return status;
}
