/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/crcs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/text/suffix.h"
#include "checkpoints/crc32.h"
#include "checkpoints/format.h"
#include "checkpoints/zip.h"

struct crc_range {
	char *name; /* preceded by the name of its archive if that is a member itself */
	uint64_t begin, end;
	uint32_t expected, crc;
};

struct xfp_crcs {
	struct xfp_crc32_tables tables;
	char *path;
	struct crc_range *ranges; /* by `begin`; members of a member overlap it */
	size_t count, first;      /* ranges before `first` end before `position` */
	uint64_t position;
};

bool xfp_crcs_in(const char *format)
{
	return !strcmp(format, xfp_format_pytorch.name) || xfp_ends_with(format, " in a zip");
}

/* Read the directory of a place that begins as an archive does; otherwise `zip` stays empty. */
static enum xfp_status read_archive(int fd, const struct xfp_place *place, struct xfp_zip *zip, struct xfp_error *err)
{
	enum xfp_status status;
	char magic[4];

	if (place->bytes < sizeof magic)
		return XFP_OK;
	if ((status = xfp_pread(fd, magic, sizeof magic, place->offset, place->path, err)))
		return status;
	return memcmp(magic, "PK\3\4", sizeof magic) ? XFP_OK : xfp_zip_read(fd, place, zip, err);
}

/* Add a range for each nonempty stored member; `inside` is the member that contains the archive, or NULL. */
static enum xfp_status add_members(struct xfp_crcs *c, struct xfp_zip *zip, const char *inside, struct xfp_error *err)
{
	struct crc_range *ranges = realloc(c->ranges, (c->count + zip->count + 1) * sizeof *ranges);

	if (!ranges)
		return xfp_no_memory_for(err, c->path);
	c->ranges = ranges;
	for (uint32_t i = 0; i < zip->count; i++) {
		struct xfp_zip_member *m = &zip->members[i];
		char *name = inside ? xfp_formatted("%s/%s", inside, m->name) : strdup(m->name);

		if (!name)
			return xfp_no_memory_for(err, c->path);
		if (m->compressed || !m->bytes)
			free(name);
		else
			ranges[c->count++] = (struct crc_range){ name, m->offset, m->offset + m->bytes, m->crc, 0 };
	}
	return XFP_OK;
}

/* Add the members of a torch.save archive that is itself a member. Other nested archives are not checked inside: no
 * tensor is read from them, and the CRC-32 of the whole member covers them. */
static enum xfp_status add_nested(struct xfp_crcs *c, int fd, const struct xfp_zip_member *m, struct xfp_error *err)
{
	const struct xfp_place place = { c->path, c->path, m->offset, m->bytes };
	struct xfp_zip zip = { 0 };
	enum xfp_status status;

	if (m->compressed || xfp_ends_with(m->name, ".zip"))
		return XFP_OK;
	if (!(status = read_archive(fd, &place, &zip, err)))
		status = add_members(c, &zip, m->name, err);
	xfp_zip_free(&zip);
	/* A member that only begins as an archive does is not one. */
	return status == XFP_BAD_INPUT ? XFP_OK : status;
}

static int by_begin(const void *a, const void *b)
{
	const struct crc_range *x = a, *y = b;

	return (x->begin > y->begin) - (x->begin < y->begin);
}

enum xfp_status xfp_crcs_open(const char *path, struct xfp_crcs **out, struct xfp_error *err)
{
	struct xfp_place place = xfp_place_of_file(path);
	struct xfp_crcs *c = calloc(1, sizeof *c);
	struct xfp_identity identity;
	struct xfp_zip zip = { 0 };
	enum xfp_status status;
	int fd = -1;

	*out = NULL;
	if (!c || !(c->path = strdup(path))) {
		status = xfp_no_memory_for(err, path);
		goto done;
	}
	xfp_crc32_init(&c->tables);
	if ((status = xfp_place_open(&place, &fd, &place.bytes, &identity, err)) ||
	    (status = read_archive(fd, &place, &zip, err)) || !zip.members ||
	    (status = add_members(c, &zip, NULL, err)))
		goto done;
	for (uint32_t i = 0; !status && i < zip.count; i++)
		status = add_nested(c, fd, &zip.members[i], err);
	if (status)
		goto done;
	if (c->count)
		qsort(c->ranges, c->count, sizeof *c->ranges, by_begin);
	*out = c;
	c = NULL;
done:
	if (fd >= 0)
		close(fd);
	xfp_zip_free(&zip);
	xfp_crcs_close(c);
	return status;
}

void xfp_crcs_update(struct xfp_crcs *c, const void *data, size_t size)
{
	uint64_t end = c->position + size;

	while (c->first < c->count && c->ranges[c->first].end <= c->position)
		c->first++;
	for (size_t i = c->first; i < c->count && c->ranges[i].begin < end; i++) {
		struct crc_range *r = &c->ranges[i];
		uint64_t from = r->begin > c->position ? r->begin : c->position, to = r->end < end ? r->end : end;

		if (from < to)
			r->crc =
				xfp_crc32_update(&c->tables, r->crc, (const unsigned char *)data + (from - c->position),
						 (size_t)(to - from));
	}
	c->position = end;
}

enum xfp_status xfp_crcs_end(const struct xfp_crcs *c, struct xfp_crc_counts *counts, struct xfp_error *err)
{
	*counts = (struct xfp_crc_counts){ 0 };
	for (size_t i = 0; i < c->count; i++) {
		const struct crc_range *r = &c->ranges[i];

		if (!r->expected)
			counts->absent++;
		else if (r->crc == r->expected && r->end <= c->position)
			counts->checked++;
		else
			return xfp_fail(err, XFP_BAD_INPUT,
					"%s: %s: its CRC-32 is %08" PRIx32 ", and the archive expects %08" PRIx32
					"; the file is damaged: download it again",
					c->path, xfp_printable(r->name).text, r->crc, r->expected);
	}
	return XFP_OK;
}

void xfp_crcs_close(struct xfp_crcs *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->count; i++)
		free(c->ranges[i].name);
	free(c->ranges);
	free(c->path);
	free(c);
}
