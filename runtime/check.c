/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - verify the bytes that opening a bundle does not: small files and data members.
 *
 * Members are numbered: files first, then parts. Each consists of its canonical header, content with the recorded
 * SHA-256, and zero padding up to the next member. xfp_bundle_open verifies the rest of the file.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/sha256.h"
#include "runtime/bundle_map.h"
#include "runtime/digest.h"

struct checked_member {
	char name[XFP_FILE_MEMBER_BYTES];
	uint64_t offset; /* offset of the content */
	uint64_t size;   /* bytes that the digest covers */
	uint64_t padded; /* size in the header */
	const uint8_t *sha256;
};

uint32_t xfp_bundle_members(const struct xfp_bundle *bundle)
{
	return xfp_bundle_count(bundle, XFP_TABLE_FILES) + xfp_bundle_count(bundle, XFP_TABLE_PARTS);
}

static struct checked_member find_member(const struct xfp_bundle *bundle, uint32_t number)
{
	uint32_t files = xfp_bundle_count(bundle, XFP_TABLE_FILES);
	struct checked_member member;

	if (number < files) {
		const struct xfp_idx_file *file = &bundle->files[number];

		member = (struct checked_member){
			.offset = file->offset, .size = file->size, .padded = file->size, .sha256 = file->sha256
		};
		xfp_file_member(number, xfp_bundle_string(bundle, file->name), member.name);
	} else {
		const struct xfp_idx_part *part = &bundle->parts[number - files];

		member = (struct checked_member){ .offset = part->offset,
						  .size = part->size,
						  .padded = bundle->padded[number - files],
						  .sha256 = part->sha256 };
		xfp_part_member(part->number, part->kind, member.name);
	}
	return member;
}

static const char *part_owner(const struct xfp_bundle *bundle, const struct xfp_idx_part *part)
{
	return xfp_bundle_string(bundle, part->kind < XFP_PARTS ? bundle->units[part->number].name
								: bundle->tensors[part->number].name);
}

/* Return the name to report for a member: of its tensor, unit or file. */
static const char *owner(const struct xfp_bundle *bundle, uint32_t number)
{
	uint32_t files = xfp_bundle_count(bundle, XFP_TABLE_FILES);

	if (number < files)
		return xfp_bundle_string(bundle, bundle->files[number].name);
	return part_owner(bundle, &bundle->parts[number - files]);
}

const char *xfp_bundle_first_missing(const struct xfp_bundle *bundle)
{
	struct xfp_error ignored;

	if (xfp_bundle_check_strings(bundle, &ignored))
		return NULL;
	for (uint32_t p = 0; p < xfp_bundle_count(bundle, XFP_TABLE_PARTS); p++) {
		const struct xfp_idx_part *part = &bundle->parts[p];
		enum xfp_index_table table = part->kind < XFP_PARTS ? XFP_TABLE_UNITS : XFP_TABLE_TENSORS;

		if (part->number >= xfp_bundle_count(bundle, table))
			return NULL;
		if (part->offset > bundle->bytes || part->size > bundle->bytes - part->offset)
			return part_owner(bundle, part);
	}
	return NULL;
}

bool xfp_bundle_member(const struct xfp_bundle *bundle, uint32_t number, struct xfp_member_info *info)
{
	uint32_t files = xfp_bundle_count(bundle, XFP_TABLE_FILES);
	struct checked_member member;

	if (number >= xfp_bundle_members(bundle))
		return false;
	member = find_member(bundle, number);
	*info = (struct xfp_member_info){ .file = XFP_NOT_FOUND,
					  .unit = XFP_NOT_FOUND,
					  .tensor = XFP_NOT_FOUND,
					  .data = bundle->map + member.offset,
					  .bytes = member.size,
					  .sha256 = member.sha256 };
	if (number < files)
		info->file = number;
	else if (bundle->parts[number - files].kind < XFP_PARTS)
		info->unit = bundle->parts[number - files].number;
	else
		info->tensor = bundle->parts[number - files].number;
	return true;
}

static enum xfp_status damaged(const struct xfp_bundle *bundle, uint32_t number, const struct checked_member *member,
			       const char *what, struct xfp_error *err)
{
	return xfp_fail(err, XFP_BAD_INPUT, "%s: damaged: member %s (%s): %s; copy or convert it again", bundle->path,
			member->name, xfp_printable(owner(bundle, number)).text, what);
}

/* Check the tar header and the padding of a member, which no digest covers. */
static enum xfp_status check_frame(const struct xfp_bundle *bundle, uint32_t number,
				   const struct checked_member *member, struct xfp_error *err)
{
	const uint8_t *content = bundle->map + member->offset;
	size_t header_bytes = xfp_tar_header_bytes(member->padded);
	uint8_t header[3 * XFP_TAR_BLOCK];

	xfp_tar_header(member->name, member->padded, header);
	if (memcmp(content - header_bytes, header, header_bytes))
		return damaged(bundle, number, member, "its header is not canonical", err);
	if (!xfp_bundle_all_zero(content + member->size, xfp_align(member->padded, XFP_TAR_BLOCK) - member->size))
		return damaged(bundle, number, member, "its padding is not zero", err);
	return XFP_OK;
}

enum xfp_status xfp_bundle_check_frames(const struct xfp_bundle *bundle, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t i = 0; !status && i < xfp_bundle_members(bundle); i++) {
		struct checked_member member = find_member(bundle, i);

		status = check_frame(bundle, i, &member, err);
	}
	return status;
}

enum xfp_status xfp_bundle_check_member(const struct xfp_bundle *bundle, uint32_t number, struct xfp_error *err)
{
	struct checked_member member;
	enum xfp_status status;
	uint8_t sha256[32];

	if (number >= xfp_bundle_members(bundle))
		return xfp_fail(err, XFP_USAGE, "%s: has no member %u", bundle->path, (unsigned)number);
	member = find_member(bundle, number);
	if ((status = check_frame(bundle, number, &member, err)))
		return status;
	xfp_sha256(bundle->map + member.offset, member.size, sha256);
	if (memcmp(sha256, member.sha256, sizeof sha256))
		return damaged(bundle, number, &member, "its content fails its SHA-256", err);
	return XFP_OK;
}

enum xfp_status xfp_bundle_check(const struct xfp_bundle *bundle,
				 bool (*progress)(void *context, uint64_t done, uint64_t total), void *context,
				 struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t i = 0; !status && i < xfp_bundle_members(bundle); i++) {
		struct checked_member member = find_member(bundle, i);

		status = xfp_bundle_check_member(bundle, i, err);
		if (!status && progress && !progress(context, member.offset + member.padded, bundle->bytes))
			status = xfp_fail(err, XFP_FAILED, "%s: the check was stopped", bundle->path);
	}
	return status;
}

struct file_hash {
	const struct xfp_bundle *bundle;
	struct xfp_sha256 sha;
	uint64_t done;
};

static bool hash_until(void *context, uint64_t end, uint64_t total)
{
	struct file_hash *hash = context;

	(void)total;
	if (end > hash->done) {
		xfp_sha256_update(&hash->sha, hash->bundle->map + hash->done, end - hash->done);
		hash->done = end;
	}
	return true;
}

enum xfp_status xfp_bundle_check_file(const struct xfp_bundle *bundle, char hex[65], struct xfp_error *err)
{
	struct file_hash hash = { .bundle = bundle };
	enum xfp_status status;
	uint8_t digest[32];

	xfp_sha256_init(&hash.sha);
	status = xfp_bundle_check(bundle, hash_until, &hash, err);
	if (!status)
		hash_until(&hash, bundle->bytes, bundle->bytes);
	xfp_sha256_final(&hash.sha, digest);
	xfp_hex(digest, sizeof digest, hex);
	return status;
}
