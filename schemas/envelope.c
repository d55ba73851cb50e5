/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/envelope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/system/file.h"
#include "schemas/digest.h"
#include "schemas/h5.h"

#define MAGIC "XFPART\r\n"
#define VERSION 1u
#define AT_VERSION 8
#define AT_BLOCK 12
#define AT_SIZE 16
#define AT_DIGEST 24
#define AT_ZERO 40
#define BUFFER (64u << 10) /* stays in the cache, and needs few new pages */

/* Read exactly `size` bytes. A file that ends early is damaged; a read error is not damage. */
static enum xfp_status read_at(int fd, const struct xfp_artifact *a, void *buf, size_t size, uint64_t offset,
			       struct xfp_error *err)
{
	enum xfp_status status = xfp_pread(fd, buf, size, offset, a->path, err);

	return status == XFP_BAD_INPUT ? xfp_h5_damaged(a, err, "truncated") : status;
}

/* XXH3-128 of bytes [XFP_ENVELOPE_BYTES, size) of an open file. */
static enum xfp_status digest_of(int fd, uint64_t size, const struct xfp_artifact *a, uint8_t digest[16],
				 struct xfp_error *err)
{
	uint64_t left = size - XFP_ENVELOPE_BYTES;
	size_t capacity = left < BUFFER ? left + 1 : BUFFER;
	struct xfp_digest *state = xfp_digest_new();
	void *buffer = malloc(capacity);
	enum xfp_status status = state && buffer ? XFP_OK : xfp_no_memory_for(err, a->path);

	for (uint64_t at = XFP_ENVELOPE_BYTES; !status && at < size; at += capacity) {
		size_t part = size - at < capacity ? size - at : capacity;

		status = read_at(fd, a, buffer, part, at, err);
		if (!status)
			xfp_digest_update(state, buffer, part);
	}
	if (state)
		xfp_digest_final(state, status ? NULL : digest);
	free(buffer);
	return status;
}

enum xfp_status xfp_envelope_seal(const char *path, struct xfp_error *err)
{
	const struct xfp_artifact a = { .path = (char *)(uintptr_t)path };
	uint8_t block[XFP_ENVELOPE_BYTES] = MAGIC;
	enum xfp_status status;
	struct stat st;
	int fd;

	if ((fd = open(path, O_RDWR | O_CLOEXEC)) < 0)
		return xfp_fail_errno(err, errno, "%s: cannot reopen to write its envelope", path);
	if (fstat(fd, &st)) {
		status = xfp_fail_errno(err, errno, "%s: cannot stat", path);
		goto done;
	}
	xfp_store32(block + AT_VERSION, VERSION);
	xfp_store32(block + AT_BLOCK, XFP_ENVELOPE_BYTES);
	xfp_store64(block + AT_SIZE, (uint64_t)st.st_size);
	if ((status = digest_of(fd, (uint64_t)st.st_size, &a, block + AT_DIGEST, err)))
		goto done;
	status = xfp_pwrite(fd, block, sizeof block, 0, path, err);
done:
	if (close(fd) && !status)
		status = xfp_fail_errno(err, errno, "%s: cannot close", path);
	return status;
}

/* Check everything but the digest, which is returned in `want`. */
static enum xfp_status check_header(int fd, const struct xfp_artifact *a, uint64_t *size, uint8_t want[16],
				    struct xfp_error *err)
{
	uint8_t block[XFP_ENVELOPE_BYTES];
	enum xfp_status status;
	struct stat st;

	if (fstat(fd, &st))
		return xfp_fail_errno(err, errno, "%s: cannot stat", a->path);
	if (!S_ISREG(st.st_mode))
		return xfp_h5_damaged(a, err, "not a regular file");
	if (st.st_size <= (off_t)sizeof block)
		return xfp_h5_damaged(a, err, "truncated");
	if ((status = read_at(fd, a, block, sizeof block, 0, err)))
		return status;
	*size = xfp_load64(block + AT_SIZE);
	if (memcmp(block, MAGIC, AT_VERSION))
		return xfp_h5_damaged(a, err, "not made by xfp");
	if (xfp_load32(block + AT_VERSION) != VERSION)
		return xfp_h5_damaged(a, err, "envelope version %u", xfp_load32(block + AT_VERSION));
	if (xfp_load32(block + AT_BLOCK) != sizeof block)
		return xfp_h5_damaged(a, err, "wrong envelope size");
	if (*size != (uint64_t)st.st_size)
		return xfp_h5_damaged(a, err, "%lld bytes long instead of %llu", (long long)st.st_size,
				      (unsigned long long)*size);
	for (size_t i = AT_ZERO; i < sizeof block; i++)
		if (block[i])
			return xfp_h5_damaged(a, err, "nonzero padding in the envelope");
	memcpy(want, block + AT_DIGEST, 16);
	return XFP_OK;
}

enum xfp_status xfp_envelope_check(const struct xfp_artifact *a, bool digest, struct xfp_error *err)
{
	uint8_t want[16], got[16];
	enum xfp_status status;
	uint64_t size;
	int fd;

	if ((fd = open(a->path, O_RDONLY | O_CLOEXEC)) < 0)
		return xfp_fail_errno(err, errno, "%s: cannot open", a->path);
	if (!(status = check_header(fd, a, &size, want, err)) && digest &&
	    !(status = digest_of(fd, size, a, got, err)) && memcmp(got, want, sizeof got))
		status = xfp_h5_damaged(a, err, "its digest does not match");
	close(fd);
	return status;
}
