/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/bundle_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/bytes.h"
#include "base/system/filesystem.h"
#include "schemas/digest.h"

#define BLOCK XFP_WRITER_BLOCK
#define WRITE_BACK ((uint64_t)8 << 20) /* flush to disk in steps of this size */

/* libarchive never sees a failure, since it would then leak memory: xfp_writer_written checks for it. */
static la_ssize_t on_write(struct archive *archive, void *context, const void *data, size_t size)
{
	struct xfp_bundle_writer *w = context;

	(void)archive;
	if (!w->status && !w->present)
		w->status = xfp_pwrite(w->file.fd, data, size, w->position, w->file.path, w->err);
	if (!w->status && !w->threaded)
		xfp_sha256_update(&w->file_sha256, data, size);
	w->position += size;
	if (w->position - w->flushed >= WRITE_BACK) {
		xfp_write_back(w->file.fd, w->flushed, w->position - w->flushed);
		w->flushed = w->position;
	}
	return (la_ssize_t)size;
}

enum xfp_status xfp_writer_written(struct xfp_bundle_writer *w, bool success)
{
	if (!w->status && !success)
		w->status =
			xfp_fail(w->err, XFP_FAILED, "%s: %s", w->file.final_path, archive_error_string(w->archive));
	return w->status;
}

enum xfp_status xfp_writer_open(struct xfp_bundle_writer *w, const char *path, bool moving, struct xfp_error *err)
{
	enum xfp_status status = moving ? xfp_pending_keep(path, &w->file, err) : xfp_pending_open(path, &w->file, err);

	w->err = err;
	if (status)
		return status;
	w->archive = archive_write_new();
	w->entry = archive_entry_new();
	w->block[0] = malloc(BLOCK);
	w->block[1] = malloc(BLOCK);
	if (!w->archive || !w->entry || !w->block[0] || !w->block[1])
		return xfp_no_memory(err);
	xfp_sha256_init(&w->file_sha256);
	/* Blocks of no fixed size: writes pass through uncopied, and the file ends with two zero blocks. */
	return xfp_writer_written(w, archive_write_set_format_pax_restricted(w->archive) == ARCHIVE_OK &&
					     archive_write_add_filter_none(w->archive) == ARCHIVE_OK &&
					     archive_write_set_bytes_per_block(w->archive, 0) == ARCHIVE_OK &&
					     archive_write_set_bytes_in_last_block(w->archive, 1) == ARCHIVE_OK &&
					     archive_write_open(w->archive, w, NULL, on_write, NULL) == ARCHIVE_OK);
}

void xfp_writer_close(struct xfp_bundle_writer *w)
{
	if (!w->status)
		w->status = XFP_FAILED; /* closing an abandoned archive must not write */
	archive_write_free(w->archive);
	archive_entry_free(w->entry);
	free(w->block[0]);
	free(w->block[1]);
	free(w->files);
	xfp_pending_discard(&w->file);
}

/* ---- members ----------------------------------------------------------------------------------- */

enum xfp_status xfp_writer_begin(struct xfp_bundle_writer *w, const char *name, uint64_t size, uint64_t offset)
{
	archive_entry_clear(w->entry);
	archive_entry_set_pathname(w->entry, name);
	archive_entry_set_size(w->entry, (la_int64_t)size);
	archive_entry_set_filetype(w->entry, AE_IFREG);
	archive_entry_set_perm(w->entry, 0644);
	archive_entry_set_mtime(w->entry, 0, 0);
	if (xfp_writer_written(w, archive_write_header(w->archive, w->entry) == ARCHIVE_OK))
		return w->status;
	if (w->position != offset)
		return xfp_fail(w->err, XFP_FAILED, "%s: this libarchive (%s) writes a different header for member %s",
				w->file.final_path, archive_version_string(), name);
	return XFP_OK;
}

enum xfp_status xfp_writer_put(struct xfp_bundle_writer *w, const void *data, size_t size)
{
	return xfp_writer_written(w, archive_write_data(w->archive, data, size) == (la_ssize_t)size);
}

enum xfp_status xfp_writer_zeros(struct xfp_bundle_writer *w, uint64_t size)
{
	enum xfp_status status = XFP_OK;

	memset(w->block[0], 0, size < BLOCK ? size : BLOCK);
	for (uint64_t done = 0; !status && done < size; done += BLOCK)
		status = xfp_writer_put(w, w->block[0], size - done < BLOCK ? size - done : BLOCK);
	return status;
}

enum xfp_status xfp_writer_end(struct xfp_bundle_writer *w)
{
	return xfp_writer_written(w, archive_write_finish_entry(w->archive) == ARCHIVE_OK);
}

enum xfp_status xfp_writer_text(struct xfp_bundle_writer *w, const char *name, const char *text)
{
	size_t size = strlen(text);
	enum xfp_status status;

	(void)((status = xfp_writer_begin(w, name, size, w->position + xfp_tar_header_bytes(size))) ||
	       (status = xfp_writer_put(w, text, size)) || (status = xfp_writer_end(w)));
	return status;
}

/* An open extent. */
struct source {
	const struct xfp_writer_source *from;
	void *elements; /* elements of a tensor */
	int fd;         /* or of a file */
};

static enum xfp_status open_source(struct xfp_bundle_writer *w, const struct xfp_writer_source *from,
				   struct source *source)
{
	struct stat st;

	*source = (struct source){ .from = from, .fd = -1 };
	if (from->elements)
		return from->elements->open(from->elements->own, from->tensor, &source->elements, w->err);
	return xfp_open_identified(from->path, from->identity, &source->fd, &st, w->err);
}

/* Read the block that begins after `done` bytes. */
static enum xfp_status read_source(struct xfp_bundle_writer *w, const struct source *source, uint64_t done, void *block)
{
	const struct xfp_writer_source *from = source->from;
	size_t size = xfp_writer_source_block(from, done);

	if (!from->elements)
		return xfp_pread(source->fd, block, size, from->offset + done, from->path, w->err);
	return size ? from->elements->read(source->elements, done, size, block, w->err) : XFP_OK;
}

static void close_source(const struct source *source)
{
	if (source->elements)
		source->from->elements->close(source->elements);
	if (source->fd >= 0)
		close(source->fd);
}

enum xfp_status xfp_writer_stream(struct xfp_bundle_writer *w, const struct xfp_writer_source *from, uint8_t *sha256,
				  uint8_t xxh3[16])
{
	struct xfp_sha256 own, *sha = &w->file_sha256;
	struct xfp_digest *digest = xfp_digest_new();
	struct source source;
	enum xfp_status status = open_source(w, from, &source);

	if (!status && !digest)
		status = xfp_no_memory(w->err);
	if (sha256) {
		xfp_sha256_init(&own);
		sha = &own;
	}
	if (!status)
		status = read_source(w, &source, 0, w->block[0]);
	for (uint64_t done = 0, number = 0; !status && done < from->size; number++) {
		uint8_t *block = w->block[number % 2], *next = w->block[1 - number % 2];
		size_t size = xfp_writer_source_block(from, done);

		w->threaded = true;
		done += size;
#pragma omp parallel sections num_threads(2) if (size >= XFP_THREAD_MIN_BYTES)
		{
#pragma omp section
			xfp_sha256_update(sha, block, size);
#pragma omp section
			{
				xfp_digest_update(digest, block, size);
				if (!sha256)
					status = xfp_writer_put(w, block, size);
				if (!status)
					status = read_source(w, &source, done, next);
			}
		}
		w->threaded = false;
		xfp_watch_done(w->watcher, size);
	}
	close_source(&source);
	if (digest)
		xfp_digest_final(digest, status ? NULL : xxh3);
	if (!status && sha256)
		xfp_sha256_final(&own, sha256);
	return status;
}

/* ---- units that move --------------------------------------------------------------------------- */

/* Hash the places of all bytes of units: a file with another layout holds none of them. */
static void digest_layout(const struct xfp_bundle_plan *plan, char hex[33])
{
	XXH128_canonical_t canonical;

	XXH128_canonicalFromHash(&canonical, XXH3_128bits(plan->parts, plan->part_count * sizeof *plan->parts));
	xfp_hex(canonical.digest, sizeof canonical.digest, hex);
}

enum xfp_status xfp_moved_begin(struct xfp_bundle_writer *w, const struct xfp_bundle_moving *moving,
				const struct xfp_bundle_plan *plan)
{
	enum xfp_status status;
	char layout[33];
	bool fresh = false;

	digest_layout(plan, layout);
	status = moving->begin(moving->own, layout, &fresh, w->err);
	/* The space is needed even if the callback failed. */
	if (fresh && ftruncate(w->file.fd, 0) && !status)
		status = xfp_fail_errno(w->err, errno, "%s: cannot truncate", w->file.path);
	return status;
}

enum xfp_status xfp_moved_complete(struct xfp_bundle_writer *w, const struct xfp_bundle_moving *moving,
				   const char sha256_hex[65])
{
	if (ftruncate(w->file.fd, (off_t)w->position) || fsync(w->file.fd))
		return xfp_fail_errno(w->err, errno, "%s: cannot sync", w->file.path);
	return moving->complete(moving->own, sha256_hex, w->err);
}

/* Skip a part that is already in the file; *same: its bytes match the index. */
static enum xfp_status pass_moved(struct xfp_bundle_writer *w, const struct xfp_idx_part *part, bool *same)
{
	struct xfp_writer_source from = { .path = w->file.path, .offset = part->offset, .size = part->size };
	enum xfp_status status =
		xfp_pread(w->file.fd, w->block[0], xfp_writer_source_block(&from, 0), from.offset, from.path, w->err);
	struct xfp_sha256 own;
	uint8_t sha256[32];

	xfp_sha256_init(&own);
	for (uint64_t done = 0, number = 0; !status && done < from.size; number++) {
		uint8_t *block = w->block[number % 2], *next = w->block[1 - number % 2];
		size_t size = xfp_writer_source_block(&from, done);

		done += size;
#pragma omp parallel sections num_threads(2) if (size >= XFP_THREAD_MIN_BYTES)
		{
#pragma omp section
			xfp_sha256_update(&own, block, size);
#pragma omp section
			{
				if (w->present)
					status = xfp_writer_put(w, block, size);
				if (!status)
					status = xfp_pread(w->file.fd, next, xfp_writer_source_block(&from, done),
							   from.offset + done, from.path, w->err);
			}
		}
		xfp_watch_done(w->watcher, size);
	}
	xfp_sha256_final(&own, sha256);
	*same = !status && !memcmp(sha256, part->sha256, sizeof sha256);
	/* A file that ends before the part has lost it. */
	return status == XFP_BAD_INPUT ? XFP_OK : status;
}

/* Part `first` is lost: check all other parts, too, so that all lost ones are made again at once. */
static enum xfp_status find_lost(struct xfp_bundle_writer *w, const struct xfp_bundle_input *input,
				 const struct xfp_bundle_plan *plan, uint32_t first)
{
	enum xfp_status status = XFP_OK;
	uint32_t lost = 0, last = UINT32_MAX;

	w->present = false;
	for (uint32_t i = first; !status && i < plan->part_count; i++) {
		const struct xfp_idx_part *part = &plan->parts[i];
		bool same = true;

		if (part->kind >= XFP_PARTS || !input->units[part->number].moved || part->number == last)
			continue;
		if ((status = pass_moved(w, part, &same)) || same)
			continue;
		last = part->number;
		input->moving->lost(input->moving->own, last);
		lost++;
	}
	return status ? status
		      : xfp_fail(w->err, XFP_DAMAGED,
				 "%s: moved parts of %" PRIu32 " units do not match their SHA-256; these units are "
				 "converted again",
				 w->file.path, lost);
}

enum xfp_status xfp_moved_put(struct xfp_bundle_writer *w, const struct xfp_bundle_input *input,
			      const struct xfp_bundle_plan *plan, uint32_t i)
{
	enum xfp_status status;
	bool same;

	w->present = true;
	status = pass_moved(w, &plan->parts[i], &same);
	w->present = false;
	return status || same ? status : find_lost(w, input, plan, i);
}

/* Sync the file at intervals, at the end of a unit; afterwards the artifacts of its units may be removed. */
enum xfp_status xfp_moved_sync(struct xfp_bundle_writer *w, const struct xfp_bundle_moving *moving,
			       const struct xfp_bundle_plan *plan, uint32_t i)
{
	const struct xfp_idx_part *part = &plan->parts[i], *next = part + 1, *end = plan->parts + plan->part_count;
	uint64_t share = (end[-1].offset + plan->padded[plan->part_count - 1]) / XFP_MOVE_SHARE;
	bool last = next == end || next->kind >= XFP_PARTS;
	enum xfp_status status = XFP_OK;

	if (part->kind >= XFP_PARTS || (!last && next->number == part->number) ||
	    (!last && w->position - w->synced < (share < XFP_MOVE_MAX ? share : XFP_MOVE_MAX)))
		return XFP_OK;
	if (fsync(w->file.fd))
		return xfp_fail_errno(w->err, errno, "%s: cannot sync", w->file.path);
	if (!w->synced)
		status = xfp_sync_folder_of(w->file.path, w->err);
	w->synced = w->position;
	return status ? status : moving->synced(moving->own, part->number + 1, w->err);
}
