/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/read_through.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/sha256.h"
#include "base/system/file.h"

#define BLOCK ((uint64_t)1 << 20)

enum xfp_status xfp_read_through(const char *path, uint64_t offset, uint64_t bytes, struct xfp_signals *signals,
				 void (*sink)(void *context, const void *data, size_t size), void *context,
				 struct xfp_error *err)
{
	void *block = malloc(BLOCK);
	enum xfp_status status;
	struct stat st;
	int fd = -1;

	status = block ? xfp_open_regular(path, &fd, &st, err) : xfp_no_memory(err);
	if (!status && bytes == XFP_TO_THE_END)
		bytes = (uint64_t)st.st_size > offset ? (uint64_t)st.st_size - offset : 0;
	for (uint64_t done = 0; !status && done < bytes; done += BLOCK) {
		size_t size = bytes - done < BLOCK ? (size_t)(bytes - done) : (size_t)BLOCK;

		if (signals && xfp_signals_arrived(signals))
			status = xfp_fail(err, XFP_FAILED, "interrupted");
		else if (!(status = xfp_pread(fd, block, size, offset + done, path, err)))
			sink(context, block, size);
	}
	if (fd >= 0)
		close(fd);
	free(block);
	return status;
}

static void hash(void *context, const void *data, size_t size)
{
	xfp_sha256_update(context, data, size);
}

enum xfp_status xfp_sha256_file(const char *path, struct xfp_signals *signals, char hex[65], struct xfp_error *err)
{
	struct xfp_sha256 sha;
	enum xfp_status status;
	uint8_t digest[32];

	xfp_sha256_init(&sha);
	status = xfp_read_through(path, 0, XFP_TO_THE_END, signals, hash, &sha, err);
	xfp_sha256_final(&sha, digest);
	xfp_hex(digest, sizeof digest, hex);
	return status;
}
