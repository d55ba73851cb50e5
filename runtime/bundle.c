/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle.c - open a bundle: map an untrusted file and verify its index.
 *
 * The member sizes determine the layout of the archive: json and index at the front, digests at the end, everything
 * else in between. So nothing is searched for; each member must be where the sizes in the index put it. json, index,
 * xfp.sum and the end of the archive are verified here to the last byte.
 */
#include "runtime/bundle_map.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/sha256.h"

#define END_BYTES (2 * (uint64_t)XFP_TAR_BLOCK)
/* Size of xfp.sum with its header, and of the end of the archive. */
#define TAIL_BYTES (2 * (uint64_t)XFP_TAR_BLOCK + END_BYTES)

#define OF_CHECKPOINTS "; for a checkpoint, use xfp inspect or xfp convert"
#define NO_FILE "%s: not a regular file" OF_CHECKPOINTS
#define TRUNCATED "%s: truncated; copy or convert it again"

static enum xfp_status map_file(struct xfp_bundle *bundle, struct xfp_error *err)
{
	/* O_NONBLOCK: opening a FIFO would otherwise block until someone writes to it. */
	int fd = open(bundle->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	enum xfp_status status = XFP_OK;
	struct stat st;
	void *map;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return xfp_fail(err, XFP_BAD_INPUT, "%s: no such file", bundle->path);
	if (fd < 0 && errno == ENXIO)
		return xfp_fail(err, XFP_BAD_INPUT, NO_FILE, bundle->path);
	if (fd < 0)
		return xfp_fail_errno(err, errno, "%s", bundle->path);
	if (fstat(fd, &st)) {
		status = xfp_fail_errno(err, errno, "%s", bundle->path);
	} else if (!S_ISREG(st.st_mode)) {
		status = xfp_fail(err, XFP_BAD_INPUT, NO_FILE, bundle->path);
	} else if ((uint64_t)st.st_size < 4 * XFP_TAR_BLOCK + TAIL_BYTES || (uint64_t)st.st_size > SIZE_MAX) {
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: too short for a bundle; copy or convert it again",
				  bundle->path);
	} else {
		bundle->bytes = (uint64_t)st.st_size;
		map = mmap(NULL, bundle->bytes, PROT_READ, MAP_SHARED, fd, 0);
		if (map == MAP_FAILED)
			status = xfp_fail_errno(err, errno, "%s: cannot be mapped", bundle->path);
		else
			bundle->map = map;
	}
	close(fd);
	return status;
}

/* Report a file that does not begin like a bundle: a bundle damaged at the front (its name or its end shows that it is
 * one), or a checkpoint in another format. */
static enum xfp_status not_a_bundle(const struct xfp_bundle *bundle, struct xfp_error *err)
{
	const uint8_t *start = bundle->map;
	uint64_t header = xfp_load64(start);
	uint8_t end[XFP_TAR_BLOCK];
	const char *what = NULL;

	xfp_tar_header(XFP_MEMBER_SUM, XFP_SUM_BYTES, end);
	if (!memcmp(start, XFP_MEMBER_JSON, sizeof XFP_MEMBER_JSON) ||
	    !memcmp(start + bundle->bytes - TAIL_BYTES, end, sizeof end))
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s: a bundle whose first bytes are damaged; copy or convert it again", bundle->path);
	if (!memcmp(start, "GGUF", 4))
		what = "GGUF";
	else if (!memcmp(start, "PK\3\4", 4))
		what = "a zip archive (PyTorch?)";
	else if (header < bundle->bytes && start[8] == '{')
		what = "safetensors";
	return xfp_fail(err, XFP_BAD_INPUT, "%s: %s%s%s" OF_CHECKPOINTS, bundle->path, what ? "is " : "",
			what ? what : "", what ? ", not a .xfp bundle" : "not a .xfp bundle");
}

/* Return the content of the member `name` at `offset`, which must be in canonical form. */
static enum xfp_status small_member(const struct xfp_bundle *bundle, uint64_t offset, const char *name,
				    uint64_t *content, uint64_t *size, struct xfp_error *err)
{
	const uint8_t *header = bundle->map + offset;
	uint8_t canonical[XFP_TAR_BLOCK];
	uint64_t limit = bundle->bytes - offset - XFP_TAR_BLOCK, padded;

	*size = 0;
	for (int i = 124; i < 135; i++)
		*size = *size * 8 + (header[i] & 7);
	xfp_tar_header(name, *size, canonical);
	if (memcmp(header, canonical, sizeof canonical) && !offset)
		return not_a_bundle(bundle, err);
	if (memcmp(header, canonical, sizeof canonical))
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s: damaged: its index is missing or invalid; copy or convert it again", bundle->path);
	*content = offset + XFP_TAR_BLOCK;
	padded = xfp_align(*size, XFP_TAR_BLOCK);
	if (padded > limit || !xfp_bundle_all_zero(bundle->map + *content + *size, padded - *size))
		return xfp_fail(err, XFP_BAD_INPUT, "%s: member %s is damaged; copy or convert it again", bundle->path,
				name);
	return XFP_OK;
}

/* Find json and index. */
static enum xfp_status find_front(struct xfp_bundle *bundle, struct xfp_error *err)
{
	uint64_t content, end;
	enum xfp_status status = small_member(bundle, 0, XFP_MEMBER_JSON, &content, &bundle->json_bytes, err);

	if (status)
		return status;
	bundle->json = (const char *)bundle->map + content;
	end = content + xfp_align(bundle->json_bytes, XFP_TAR_BLOCK);
	if (end + XFP_TAR_BLOCK > bundle->bytes)
		return xfp_fail(err, XFP_BAD_INPUT, TRUNCATED, bundle->path);
	if ((status = small_member(bundle, end, XFP_MEMBER_IDX, &bundle->idx_offset, &bundle->idx_bytes, err)))
		return status;
	bundle->index = bundle->map + bundle->idx_offset;
	if (bundle->idx_bytes % XFP_TAR_BLOCK || bundle->idx_bytes < sizeof *bundle->header)
		return xfp_fail(err, XFP_BAD_INPUT, TRUNCATED, bundle->path);
	return XFP_OK;
}

/* Check the last member, which holds the digests of the first two, and the end of the file. */
static enum xfp_status check_tail(const struct xfp_bundle *bundle, struct xfp_error *err)
{
	uint8_t expected[TAIL_BYTES] = { 0 }, json[32], idx[32];
	const char *missing;
	char text[XFP_SUM_BYTES + 1];

	xfp_sha256(bundle->json, bundle->json_bytes, json);
	xfp_sha256(bundle->index, bundle->idx_bytes, idx);
	xfp_sum_text(json, idx, text);
	xfp_tar_header(XFP_MEMBER_SUM, XFP_SUM_BYTES, expected);
	memcpy(expected + XFP_TAR_BLOCK, text, XFP_SUM_BYTES);
	if (!(bundle->bytes % XFP_TAR_BLOCK) && bundle->idx_offset + bundle->idx_bytes + TAIL_BYTES <= bundle->bytes &&
	    !memcmp(bundle->map + bundle->bytes - TAIL_BYTES, expected, sizeof expected))
		return XFP_OK;
	if ((missing = xfp_bundle_first_missing(bundle)))
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s: truncated: the weights from %s on are missing; copy or convert it again",
				bundle->path, xfp_printable(missing).text);
	return xfp_fail(err, XFP_BAD_INPUT,
			"%s: truncated or damaged: the digests at its end are missing or wrong; "
			"copy or convert it again",
			bundle->path);
}

/* Check that every small file and data member is where the sizes put it: backwards from the end through the data
 * members, then forwards through the small files up to the first data member. */
static enum xfp_status check_places(struct xfp_bundle *bundle, struct xfp_error *err)
{
	uint32_t parts = xfp_bundle_count(bundle, XFP_TABLE_PARTS), files = xfp_bundle_count(bundle, XFP_TABLE_FILES);
	uint64_t end = bundle->bytes - TAIL_BYTES, header = XFP_TAR_BLOCK, files_bytes;
	uint64_t position = bundle->idx_offset + bundle->idx_bytes;

	for (uint32_t i = parts; i-- > 0;) {
		const struct xfp_idx_part *part = &bundle->parts[i];

		if (part->offset > end || part->size > end - part->offset)
			goto bad;
		bundle->padded[i] = xfp_padded_bytes(part->size, header);
		header = xfp_tar_header_bytes(bundle->padded[i]);
		if (part->offset % XFP_DATA_ALIGN || end - part->offset != bundle->padded[i] ||
		    part->offset < position + header)
			goto bad;
		end = part->offset - header;
	}
	for (uint32_t f = 0; f < files; f++) {
		const struct xfp_idx_file *file = &bundle->files[f];

		if (file->offset != position + xfp_tar_header_bytes(file->size) || file->offset > end ||
		    file->size > end - file->offset)
			goto bad;
		position = file->offset + xfp_align(file->size, XFP_TAR_BLOCK);
	}
	files_bytes = position - bundle->idx_offset - bundle->idx_bytes;
	if (position != end ||
	    bundle->idx_bytes != xfp_idx_member_bytes(bundle->idx_offset, bundle->header->index_bytes, files_bytes,
						      parts ? header : 0))
		goto bad;
	return XFP_OK;
bad:
	return xfp_fail(err, XFP_BAD_INPUT,
			"%s: truncated or damaged: its members are not where its index puts them; "
			"copy or convert it again",
			bundle->path);
}

enum xfp_status xfp_bundle_open(const char *path, struct xfp_bundle **out, struct xfp_error *err)
{
	struct xfp_bundle *bundle = calloc(1, sizeof *bundle);
	enum xfp_status status;

	*out = NULL;
	if (!bundle || !(bundle->path = strdup(path))) {
		status = xfp_no_memory(err);
		goto done;
	}
	if ((status = map_file(bundle, err)) || (status = find_front(bundle, err)) ||
	    (status = xfp_bundle_check_header(bundle, err)) || (status = check_tail(bundle, err)))
		goto done;
	bundle->padded = malloc((xfp_bundle_count(bundle, XFP_TABLE_PARTS) + (size_t)1) * sizeof *bundle->padded);
	if (!bundle->padded) {
		status = xfp_no_memory(err);
		goto done;
	}
	if ((status = check_places(bundle, err)) || (status = xfp_bundle_check_tables(bundle, err)))
		goto done;
	*out = bundle;
	bundle = NULL;
done:
	xfp_bundle_close(bundle);
	return status;
}

void xfp_bundle_close(struct xfp_bundle *bundle)
{
	if (!bundle)
		return;
	if (bundle->map)
		munmap((void *)bundle->map, bundle->bytes);
	free(bundle->path);
	free(bundle->padded);
	free(bundle->unit_names);
	free(bundle->tensor_names);
	free(bundle->file_names);
	free(bundle);
}
