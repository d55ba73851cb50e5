/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/zip.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/system/file.h"

#define LOCAL_BYTES 30u
#define ENTRY_BYTES 46u
#define END_BYTES 22u
#define LOCATOR_BYTES 20u
#define END64_BYTES 56u
#define COMMENT_MAX 65535u
#define NAME_MAX_BYTES 4096u
#define FULL16 0xffffu
#define FULL32 0xffffffffu
#define ENCRYPTED (1u << 0 | 1u << 6 | 1u << 13)
#define SIZES_FOLLOW (1u << 3)

#define AGAIN "; the file is damaged: download it again"

struct zip_reader {
	int fd;
	const struct xfp_place *place;
	uint64_t count, directory, directory_bytes; /* entries; offset in the archive, and size, of the directory */
	unsigned char *entries;
	struct zip_entry { /* initially in the order of the directory */
		struct xfp_zip_member member;
		uint64_t local, compressed; /* offset of its local header; stored bytes */
		uint16_t flags, method;
		bool folder;
	} * found;
	uint32_t found_count;
	struct xfp_error *err;
};

static enum xfp_status bad(const struct zip_reader *z, const char *what)
{
	return xfp_fail(z->err, XFP_BAD_INPUT, "%s: %s" AGAIN, z->place->shown, what);
}

static enum xfp_status bad_member(const struct zip_reader *z, const char *name, const char *what)
{
	return xfp_fail(z->err, XFP_BAD_INPUT, "%s: %s: %s" AGAIN, z->place->shown, xfp_printable(name).text, what);
}

static enum xfp_status read_at(const struct zip_reader *z, void *to, size_t size, uint64_t offset)
{
	return xfp_pread(z->fd, to, size, z->place->offset + offset, z->place->shown, z->err);
}

/* ---- the end of the archive ---------------------------------------------------------------------- */

/* Read the zip64 record, which a locator before the end points to. Fields that exist in both records must agree. */
static enum xfp_status read_end64(struct zip_reader *z, uint64_t locator_at, const unsigned char *locator,
				  const unsigned char *end, uint64_t *directory_end)
{
	unsigned char record[END64_BYTES];
	uint64_t at = xfp_load64(locator + 8), rest;
	enum xfp_status status;

	if (xfp_load32(locator + 4) || xfp_load32(locator + 16) > 1)
		return bad(z, "is one of several disks of a zip archive");
	if (at > locator_at || locator_at - at < END64_BYTES)
		return bad(z, "the zip64 record is not where its locator says");
	if ((status = read_at(z, record, sizeof record, at)))
		return status;
	rest = xfp_load64(record + 4);
	if (memcmp(record, "PK\6\6", 4) || rest != locator_at - at - 12)
		return bad(z, "the zip64 record at its end is invalid");
	if (xfp_load32(record + 16) || xfp_load32(record + 20) || xfp_load64(record + 24) != xfp_load64(record + 32))
		return bad(z, "is one of several disks of a zip archive");
	z->count = xfp_load64(record + 32);
	z->directory_bytes = xfp_load64(record + 40);
	z->directory = xfp_load64(record + 48);
	*directory_end = at;
	if ((xfp_load16(end + 10) != FULL16 && xfp_load16(end + 10) != z->count) ||
	    (xfp_load32(end + 12) != FULL32 && xfp_load32(end + 12) != z->directory_bytes) ||
	    (xfp_load32(end + 16) != FULL32 && xfp_load32(end + 16) != z->directory))
		return bad(z, "the two records at its end contradict each other");
	return XFP_OK;
}

/* Find the central directory. */
static enum xfp_status read_end(struct zip_reader *z)
{
	uint64_t size = z->place->bytes, tail = END_BYTES + COMMENT_MAX + LOCATOR_BYTES, at, directory_end = 0;
	unsigned char *bytes, *end;
	enum xfp_status status;
	uint64_t comment = 0;

	if (tail > size)
		tail = size;
	if (!(bytes = malloc(tail + 1)))
		return xfp_no_memory_for(z->err, z->place->shown);
	if ((status = read_at(z, bytes, tail, size - tail)))
		goto done;
	while (comment + END_BYTES <= tail && comment <= COMMENT_MAX) {
		end = bytes + tail - END_BYTES - comment;
		if (!memcmp(end, "PK\5\6", 4) && xfp_load16(end + 20) == comment)
			break;
		comment++;
	}
	if (comment + END_BYTES > tail || comment > COMMENT_MAX) {
		status = bad(z, "it does not end like a zip archive");
		goto done;
	}
	end = bytes + tail - END_BYTES - comment;
	at = size - END_BYTES - comment;
	if (end - bytes >= LOCATOR_BYTES && !memcmp(end - LOCATOR_BYTES, "PK\6\7", 4)) {
		if ((status = read_end64(z, at - LOCATOR_BYTES, end - LOCATOR_BYTES, end, &directory_end)))
			goto done;
	} else {
		if (xfp_load16(end + 4) || xfp_load16(end + 6) || xfp_load16(end + 8) != xfp_load16(end + 10)) {
			status = bad(z, "is one of several disks of a zip archive");
			goto done;
		}
		z->count = xfp_load16(end + 10);
		z->directory_bytes = xfp_load32(end + 12);
		z->directory = xfp_load32(end + 16);
		directory_end = at;
	}
	if (z->directory > directory_end || directory_end - z->directory != z->directory_bytes ||
	    z->count > z->directory_bytes / ENTRY_BYTES)
		status = bad(z, "its directory is not where its end says, or something was put before the archive");
	else if (z->directory_bytes > XFP_ZIP_DIRECTORY_MAX)
		status = bad(z, "its directory exceeds 100 MB");
done:
	free(bytes);
	return status;
}

/* ---- the directory -------------------------------------------------------------------------------- */

/* Return whether a name is a relative path that stays in its folder. */
static bool is_harmless(const char *name, size_t length)
{
	const char *at = name, *slash;

	if (!length || memchr(name, 0, length) || memchr(name, '\\', length) || *name == '/' ||
	    (length > 1 && name[1] == ':'))
		return false;
	for (; at; at = slash ? slash + 1 : NULL) {
		slash = strchr(at, '/');
		if (!strncmp(at, "..", 2) && (at[2] == '/' || !at[2]))
			return false;
	}
	return true;
}

/* Read sizes that exceed 32 bits from the zip64 extra field, which has only those, in this order. */
static bool read_zip64(const unsigned char *extra, size_t size, struct zip_entry *f)
{
	uint64_t *const wanted[] = { &f->member.bytes, &f->compressed, &f->local };
	bool any = f->member.bytes == FULL32 || f->compressed == FULL32 || f->local == FULL32;
	size_t at = 0, left = 0;

	while (any && size >= 4) {
		left = xfp_load16(extra + 2);
		if (left > size - 4)
			return false;
		if (xfp_load16(extra) == 1)
			break;
		extra += 4 + left;
		size -= 4 + left;
	}
	if (any && size < 4)
		return false;
	for (size_t i = 0; any && i < sizeof wanted / sizeof *wanted; i++) {
		if (*wanted[i] != FULL32)
			continue;
		if (left - at < 8)
			return false;
		*wanted[i] = xfp_load64(extra + 4 + at);
		at += 8;
	}
	return true;
}

static enum xfp_status read_entry(struct zip_reader *z, const unsigned char *entry, size_t *length, size_t left)
{
	struct zip_entry *f = &z->found[z->found_count];
	size_t name, extra;

	if (left < ENTRY_BYTES || memcmp(entry, "PK\1\2", 4))
		return bad(z, "its directory has fewer entries than stated");
	name = xfp_load16(entry + 28);
	extra = xfp_load16(entry + 30);
	*length = ENTRY_BYTES + name + extra + xfp_load16(entry + 32);
	if (*length > left)
		return bad(z, "an entry of its directory reaches past the directory's end");
	*f = (struct zip_entry){
		.member = { .name = strndup((const char *)entry + ENTRY_BYTES, name),
			    .bytes = xfp_load32(entry + 24),
			    .crc = xfp_load32(entry + 16) },
		.local = xfp_load32(entry + 42),
		.compressed = xfp_load32(entry + 20),
		.flags = xfp_load16(entry + 8),
		.method = xfp_load16(entry + 10),
	};
	if (!f->member.name)
		return xfp_no_memory_for(z->err, z->place->shown);
	z->found_count++;
	if (name > NAME_MAX_BYTES || !is_harmless(f->member.name, name) || strlen(f->member.name) != name)
		return xfp_fail(z->err, XFP_BAD_INPUT,
				"%s: %s: is not a path inside the archive; do not trust this checkpoint",
				z->place->shown, xfp_printable(f->member.name).text);
	if (f->flags & ENCRYPTED)
		return xfp_fail(z->err, XFP_BAD_INPUT, "%s: %s: is encrypted; unpack the archive and name its folder",
				z->place->shown, xfp_printable(f->member.name).text);
	if (xfp_load16(entry + 34))
		return bad_member(z, f->member.name, "lies on another disk");
	if (!read_zip64(entry + ENTRY_BYTES + name, extra, f))
		return bad_member(z, f->member.name, "lacks the zip64 field that it claims");
	f->folder = f->member.name[name - 1] == '/';
	f->member.compressed = f->method != 0;
	if (!f->method && f->compressed != f->member.bytes)
		return bad_member(z, f->member.name, "is stored, but its two sizes differ");
	return XFP_OK;
}

/* Check that the local header agrees, and that the data ends before the directory. */
static enum xfp_status read_local(struct zip_reader *z, struct zip_entry *f)
{
	unsigned char local[LOCAL_BYTES + NAME_MAX_BYTES];
	size_t name = strlen(f->member.name);
	enum xfp_status status;
	uint64_t end;

	if (f->local > z->directory || z->directory - f->local < LOCAL_BYTES + name)
		return bad_member(z, f->member.name, "lies past the archive's end");
	if ((status = read_at(z, local, LOCAL_BYTES + name, f->local)))
		return status;
	if (memcmp(local, "PK\3\4", 4) || xfp_load16(local + 26) != name ||
	    memcmp(local + LOCAL_BYTES, f->member.name, name) || xfp_load16(local + 8) != f->method ||
	    ((xfp_load16(local + 6) ^ f->flags) & ENCRYPTED))
		return bad_member(z, f->member.name, "its header is not what the directory says");
	if (!(xfp_load16(local + 6) & SIZES_FOLLOW) && xfp_load32(local + 18) != FULL32 &&
	    xfp_load32(local + 22) != FULL32 &&
	    (xfp_load32(local + 18) != f->compressed || xfp_load32(local + 22) != f->member.bytes))
		return bad_member(z, f->member.name, "has another size in its header than in the directory");
	f->member.offset = f->local + LOCAL_BYTES + name + xfp_load16(local + 28);
	if (!xfp_add(f->member.offset, f->compressed, &end) || end > z->directory)
		return bad_member(z, f->member.name, "reaches past the archive's end");
	return XFP_OK;
}

/* ---- the whole archive ---------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
	const struct zip_entry *x = a, *y = b;

	return (x->local > y->local) - (x->local < y->local);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct xfp_zip_member *)a)->name, ((const struct xfp_zip_member *)b)->name);
}

static enum xfp_status check_overlaps(struct zip_reader *z)
{
	uint64_t end = 0;

	if (z->found_count)
		qsort(z->found, z->found_count, sizeof *z->found, by_place);
	for (uint32_t i = 0; i < z->found_count; i++) {
		const struct zip_entry *f = &z->found[i];

		if (f->local < end)
			return xfp_fail(z->err, XFP_BAD_INPUT, "%s: %s and %s overlap" AGAIN, z->place->shown,
					xfp_printable(f[-1].member.name).text, xfp_printable(f->member.name).text);
		end = f->member.offset + f->compressed;
	}
	return XFP_OK;
}

/* Return the name of the first member in directory order. */
static const char *first_of(const struct zip_reader *z)
{
	for (uint32_t i = 0; i < z->found_count; i++)
		if (!z->found[i].folder)
			return z->found[i].member.name;
	return NULL;
}

static enum xfp_status read_members(struct zip_reader *z, const char *first, struct xfp_zip *zip)
{
	if (!(zip->members = malloc(z->found_count * sizeof *zip->members + 1)))
		return xfp_no_memory_for(z->err, z->place->shown);
	for (uint32_t i = 0; i < z->found_count; i++) {
		if (z->found[i].folder)
			continue;
		zip->members[zip->count] = z->found[i].member;
		zip->members[zip->count++].offset += z->place->offset;
		z->found[i].member.name = NULL;
	}
	if (zip->count)
		qsort(zip->members, zip->count, sizeof *zip->members, by_name);
	for (uint32_t i = 0; i < zip->count; i++) {
		if (zip->members[i].name == first)
			zip->first = i;
		if (i && !strcmp(zip->members[i - 1].name, zip->members[i].name))
			return bad_member(z, zip->members[i].name, "is in the archive twice");
	}
	return XFP_OK;
}

enum xfp_status xfp_zip_read(int fd, const struct xfp_place *place, struct xfp_zip *out, struct xfp_error *err)
{
	struct zip_reader z = { .fd = fd, .place = place, .err = err };
	struct xfp_zip zip = { 0 };
	enum xfp_status status;
	size_t at = 0, length = 0;
	const char *first;

	if ((status = read_end(&z)))
		return status;
	z.entries = malloc(z.directory_bytes + 1);
	z.found = calloc(z.count + 1, sizeof *z.found);
	if (!z.entries || !z.found) {
		status = xfp_no_memory_for(err, place->shown);
		goto done;
	}
	if ((status = read_at(&z, z.entries, z.directory_bytes, z.directory)))
		goto done;
	for (; !status && z.found_count < z.count; at += length)
		status = read_entry(&z, z.entries + at, &length, z.directory_bytes - at);
	if (!status && at != z.directory_bytes)
		status = bad(&z, "its directory has more entries than it says");
	for (uint32_t i = 0; !status && i < z.found_count; i++)
		status = read_local(&z, &z.found[i]);
	first = first_of(&z);
	if (status || (status = check_overlaps(&z)) || (status = read_members(&z, first, &zip)))
		goto done;
	*out = zip;
	zip = (struct xfp_zip){ 0 };

done:
	for (uint32_t i = 0; z.found && i < z.found_count; i++)
		free(z.found[i].member.name);
	xfp_zip_free(&zip);
	free(z.entries);
	free(z.found);
	return status;
}

void xfp_zip_count(const struct xfp_zip *zip, struct xfp_checkpoint *checkpoint)
{
	for (uint32_t i = 0; i < zip->count; i++) {
		const struct xfp_zip_member *m = &zip->members[i];

		checkpoint->members += m->bytes && !m->compressed;
		checkpoint->without_crc += m->bytes && !m->compressed && !m->crc;
	}
}

void xfp_zip_free(struct xfp_zip *zip)
{
	for (uint32_t i = 0; i < zip->count; i++)
		free(zip->members[i].name);
	free(zip->members);
	*zip = (struct xfp_zip){ 0 };
}

const struct xfp_zip_member *xfp_zip_find(const struct xfp_zip *zip, const char *name)
{
	struct xfp_zip_member wanted = { .name = (char *)(uintptr_t)name };

	return zip->count ? bsearch(&wanted, zip->members, zip->count, sizeof wanted, by_name) : NULL;
}
