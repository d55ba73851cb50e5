/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle.c - streaming a planned bundle into its file.
 *
 * xfp.idx stands near the front and holds digests of what comes after it. Those of units were taken when
 * they were packed; those of small files and kept tensors are taken first, which reads them twice, so that
 * the file is written front to back and its own digest is known when it ends. That digest is what takes the
 * time: it has a thread of its own, and that what is copied is still what it was is told by XXH3.
 */
#include "schemas/bundle.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/sha256.h"
#include "base/system/filesystem.h"
#include "schemas/bundle_plan.h"

#define BLOCK ((size_t)1 << 20)
#define WORTH_A_THREAD (256u << 10)
#define WRITE_BACK ((uint64_t)8 << 20) /* handed to the disk at a time */

struct writer {
	struct xfp_pending file;
	struct archive *archive;
	struct archive_entry *entry;
	struct xfp_sha256 whole; /* of the file */
	XXH3_state_t *xxh;
	uint8_t (*files)[16]; /* XXH3 of the small files */
	uint8_t *block[2];
	bool beside;            /* what is written is added to `whole` by another thread */
	uint64_t position;      /* bytes written so far */
	uint64_t handed;        /* of them, to the disk */
	enum xfp_status status; /* of the writes; after a failure nothing more is written */
	struct xfp_error *err;
};

/* A stretch of a source file. */
struct extent {
	const char *path;
	uint64_t offset, size;
	const struct xfp_identity *identity; /* who the file has to be when it is opened; NULL: any */
};

/* libarchive is never told of a failure, since it would then leak memory: `written` asks for it. */
static la_ssize_t on_write(struct archive *archive, void *context, const void *data, size_t size)
{
	struct writer *w = context;

	(void)archive;
	if (!w->status)
		w->status = xfp_write(w->file.fd, data, size, w->file.path, w->err);
	if (!w->status && !w->beside)
		xfp_sha256_update(&w->whole, data, size);
	w->position += size;
	if (w->position - w->handed >= WRITE_BACK) {
		xfp_write_back(w->file.fd, w->handed, w->position - w->handed);
		w->handed = w->position;
	}
	return (la_ssize_t)size;
}

/* What became of a call of libarchive, by its result and by the writes that it made. */
static enum xfp_status written(struct writer *w, bool success)
{
	if (!w->status && !success)
		w->status =
			xfp_fail(w->err, XFP_FAILED, "%s: %s", w->file.final_path, archive_error_string(w->archive));
	return w->status;
}

static enum xfp_status writer_open(struct writer *w, const char *path, struct xfp_error *err)
{
	enum xfp_status status;

	w->err = err;
	if ((status = xfp_pending_open(path, &w->file, err)))
		return status;
	w->archive = archive_write_new();
	w->entry = archive_entry_new();
	w->xxh = XXH3_createState();
	w->block[0] = malloc(BLOCK);
	w->block[1] = malloc(BLOCK);
	if (!w->archive || !w->entry || !w->xxh || !w->block[0] || !w->block[1])
		return xfp_no_memory(err);
	xfp_sha256_init(&w->whole);
	/* Blocks of no fixed size: writes pass through uncopied, and two zero blocks end the file. */
	return written(w, archive_write_set_format_pax_restricted(w->archive) == ARCHIVE_OK &&
				  archive_write_add_filter_none(w->archive) == ARCHIVE_OK &&
				  archive_write_set_bytes_per_block(w->archive, 0) == ARCHIVE_OK &&
				  archive_write_set_bytes_in_last_block(w->archive, 1) == ARCHIVE_OK &&
				  archive_write_open(w->archive, w, NULL, on_write, NULL) == ARCHIVE_OK);
}

static void writer_close(struct writer *w)
{
	if (!w->status)
		w->status = XFP_FAILED; /* closing an abandoned archive shall not write */
	archive_write_free(w->archive);
	archive_entry_free(w->entry);
	XXH3_freeState(w->xxh);
	free(w->block[0]);
	free(w->block[1]);
	free(w->files);
	xfp_pending_discard(&w->file);
}

/* ---- members ----------------------------------------------------------------------------------- */

static enum xfp_status begin_member(struct writer *w, const char *name, uint64_t size, uint64_t offset)
{
	archive_entry_clear(w->entry);
	archive_entry_set_pathname(w->entry, name);
	archive_entry_set_size(w->entry, (la_int64_t)size);
	archive_entry_set_filetype(w->entry, AE_IFREG);
	archive_entry_set_perm(w->entry, 0644);
	archive_entry_set_mtime(w->entry, 0, 0);
	if (written(w, archive_write_header(w->archive, w->entry) == ARCHIVE_OK))
		return w->status;
	if (w->position != offset)
		return xfp_fail(w->err, XFP_FAILED, "%s: this libarchive (%s) writes another header for member %s",
				w->file.final_path, archive_version_string(), name);
	return XFP_OK;
}

static enum xfp_status put(struct writer *w, const void *data, size_t size)
{
	return written(w, archive_write_data(w->archive, data, size) == (la_ssize_t)size);
}

static enum xfp_status put_zeros(struct writer *w, uint64_t size)
{
	enum xfp_status status = XFP_OK;

	memset(w->block[0], 0, size < BLOCK ? size : BLOCK);
	for (uint64_t done = 0; !status && done < size; done += BLOCK)
		status = put(w, w->block[0], size - done < BLOCK ? size - done : BLOCK);
	return status;
}

static enum xfp_status end_member(struct writer *w)
{
	return written(w, archive_write_finish_entry(w->archive) == ARCHIVE_OK);
}

static enum xfp_status put_text(struct writer *w, const char *name, const char *text)
{
	size_t size = strlen(text);
	enum xfp_status status;

	(void)((status = begin_member(w, name, size, w->position + xfp_tar_header_bytes(size))) ||
	       (status = put(w, text, size)) || (status = end_member(w)));
	return status;
}

static size_t block_size(const struct extent *from, uint64_t done)
{
	return from->size - done < BLOCK ? (size_t)(from->size - done) : BLOCK;
}

/* Open a source. Links may lead elsewhere than when it was inspected, so it is the open file that counts. */
static enum xfp_status open_source(struct writer *w, const struct extent *from, int *fd)
{
	struct xfp_identity now;
	enum xfp_status status;
	struct stat st;

	*fd = -1;
	if ((status = xfp_open_regular(from->path, fd, &st, w->err)))
		return status;
	now = xfp_identity_at(from->path, &st);
	if (from->identity && !xfp_identity_equal(from->identity, &now))
		return xfp_fail(w->err, XFP_FAILED, "%s: changed while it was being converted; run again", from->path);
	return XFP_OK;
}

/* Walk through a stretch of a source for both of its digests or, where `sha256` is NULL, to write it, and for its XXH3
 * alone: SHA-256 is then of all that is written. A block is read while the one before it goes through SHA-256. */
static enum xfp_status stream(struct writer *w, const struct extent *from, uint8_t *sha256, uint8_t xxh3[16])
{
	struct xfp_sha256 own, *sha = &w->whole;
	XXH128_canonical_t canonical;
	int fd;
	enum xfp_status status = open_source(w, from, &fd);

	XXH3_128bits_reset(w->xxh);
	if (sha256) {
		xfp_sha256_init(&own);
		sha = &own;
	}
	if (!status)
		status = xfp_pread(fd, w->block[0], block_size(from, 0), from->offset, from->path, w->err);
	for (uint64_t done = 0, number = 0; !status && done < from->size; number++) {
		uint8_t *block = w->block[number % 2], *next = w->block[1 - number % 2];
		size_t size = block_size(from, done);

		w->beside = true;
		done += size;
#pragma omp parallel sections num_threads(2) if (size >= WORTH_A_THREAD)
		{
#pragma omp section
			xfp_sha256_update(sha, block, size);
#pragma omp section
			{
				XXH3_128bits_update(w->xxh, block, size);
				if (!sha256)
					status = put(w, block, size);
				if (!status)
					status = xfp_pread(fd, next, block_size(from, done), from->offset + done,
							   from->path, w->err);
			}
		}
		w->beside = false;
	}
	if (fd >= 0)
		close(fd);
	XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(w->xxh));
	memcpy(xxh3, canonical.digest, sizeof canonical.digest);
	if (!status && sha256)
		xfp_sha256_final(&own, sha256);
	return status;
}

/* Write a stretch whose digest is in the index already: it must still be the same. */
static enum xfp_status put_extent(struct writer *w, const struct extent *from, const uint8_t want[16])
{
	uint8_t xxh3[16];
	enum xfp_status status = stream(w, from, NULL, xxh3);

	if (!status && memcmp(xxh3, want, sizeof xxh3))
		status = xfp_fail(w->err, XFP_DAMAGED, "%s", from->path);
	return status;
}

static struct extent tensor_extent(const struct xfp_ledger *ledger, const struct xfp_idx_part *part)
{
	const struct xfp_ledger_tensor *tensor = &ledger->tensors[part->number];

	return (struct extent){ ledger->files[tensor->file].path, tensor->offset, part->size,
				&ledger->files[tensor->file].identity };
}

/* Complete the index: digests of what goes into the bundle as it is. */
static enum xfp_status digest_sources(struct writer *w, const struct xfp_ledger *ledger,
				      const struct xfp_identity *files, struct xfp_bundle_plan *plan)
{
	enum xfp_status status = XFP_OK;

	w->files = calloc(ledger->extra_count + 1, sizeof *w->files);
	if (!w->files)
		return xfp_no_memory(w->err);

	for (uint32_t f = 0; !status && f < ledger->extra_count; f++) {
		char *path = xfp_path(ledger->model, ledger->extras[f]);
		struct extent from = { path, 0, plan->files[f].size, files ? &files[f] : NULL };

		status = path ? stream(w, &from, plan->files[f].sha256, w->files[f]) : xfp_no_memory(w->err);
		free(path);
	}
	for (uint32_t i = 0; !status && i < plan->part_count; i++) {
		struct xfp_idx_part *part = &plan->parts[i];
		struct extent from;

		if (part->kind < XFP_PARTS)
			continue;
		from = tensor_extent(ledger, part);
		status = stream(w, &from, part->sha256, plan->tensors[part->number].source);
		if (status)
			xfp_context(w->err, status, "tensor %s",
				    xfp_printable(ledger->tensors[part->number].name).text);
	}
	return status;
}

/* UINT64_MAX: it is not there. What a file has grown by since its size was taken is not read, and both digests of what
 * is read are the same. */
static uint64_t file_size(const char *path)
{
	struct stat st;

	return stat(path, &st) ? UINT64_MAX : (uint64_t)st.st_size;
}

static enum xfp_status put_files(struct writer *w, const struct xfp_ledger *ledger, const struct xfp_identity *files,
				 const struct xfp_bundle_plan *plan)
{
	enum xfp_status status = XFP_OK;
	char name[XFP_FILE_MEMBER_BYTES];

	for (uint32_t f = 0; !status && f < ledger->extra_count; f++) {
		const struct xfp_idx_file *file = &plan->files[f];
		char *path = xfp_path(ledger->model, ledger->extras[f]);
		struct extent from = { path, 0, file->size, files ? &files[f] : NULL };

		if (!path)
			return xfp_no_memory(w->err);
		xfp_file_member(f, ledger->extras[f], name);
		(void)((status = begin_member(w, name, file->size, file->offset)) ||
		       (status = put_extent(w, &from, w->files[f])) || (status = end_member(w)));
		if (!status && file_size(path) != file->size)
			status = XFP_DAMAGED;
		if (status == XFP_DAMAGED)
			status =
				xfp_fail(w->err, XFP_BAD_INPUT,
					 "%s: it changed while the bundle was written; run the conversion again", path);
		free(path);
	}
	return status;
}

static enum xfp_status put_unit_part(struct writer *w, const struct xfp_bundle_unit *unit,
				     const struct xfp_idx_part *part)
{
	struct extent from = { unit->path, unit->offset[part->kind], part->size, NULL };
	enum xfp_status status = put_extent(w, &from, unit->packed->digest[part->kind].xxh3);

	if (status == XFP_DAMAGED)
		status = xfp_fail(w->err, status, "%s: damaged: the packed weights of unit %s fail their digest",
				  unit->path, xfp_printable(unit->unit->name).text);
	return status;
}

static enum xfp_status put_tensor(struct writer *w, const struct xfp_ledger *ledger, const struct xfp_idx_part *part,
				  const uint8_t source[16])
{
	struct extent from = tensor_extent(ledger, part);
	enum xfp_status status = put_extent(w, &from, source);
	struct xfp_printable name = xfp_printable(ledger->tensors[part->number].name);

	if (status == XFP_DAMAGED)
		return xfp_fail(w->err, XFP_BAD_INPUT,
				"%s: tensor %s changed while the bundle was written; run the conversion again",
				from.path, name.text);
	return status ? xfp_context(w->err, status, "tensor %s", name.text) : status;
}

static enum xfp_status put_parts(struct writer *w, const struct xfp_bundle_input *input,
				 const struct xfp_bundle_plan *plan)
{
	enum xfp_status status = XFP_OK;
	char name[24];

	for (uint32_t i = 0; !status && i < plan->part_count; i++) {
		const struct xfp_idx_part *part = &plan->parts[i];

		xfp_part_member(part->number, part->kind, name);
		if ((status = begin_member(w, name, plan->padded[i], part->offset)))
			break;
		status = part->kind < XFP_PARTS
				 ? put_unit_part(w, &input->units[part->number], part)
				 : put_tensor(w, input->ledger, part, plan->tensors[part->number].source);
		(void)(status || (status = put_zeros(w, plan->padded[i] - part->size)) || (status = end_member(w)));
	}
	return status;
}

/* xfp.sum: digests of the two members. */
static enum xfp_status put_sum(struct writer *w, const char *json, const struct xfp_bundle_plan *plan)
{
	static const uint8_t zeros[XFP_DATA_ALIGN]; /* the member ends less than these after its index */
	uint8_t json_sha[32], idx_sha[32];
	char text[XFP_SUM_BYTES + 1];
	struct xfp_sha256 sha;

	xfp_sha256(json, strlen(json), json_sha);
	xfp_sha256_init(&sha);
	xfp_sha256_update(&sha, plan->index, plan->index_bytes);
	xfp_sha256_update(&sha, zeros, plan->idx_bytes - plan->index_bytes);
	xfp_sha256_final(&sha, idx_sha);
	xfp_sum_text(json_sha, idx_sha, text);
	return put_text(w, XFP_MEMBER_SUM, text);
}

/* ------------------------------------------------------------------------------------------------ */

static void digest_text(struct writer *w, char sha256_hex[65])
{
	uint8_t sha[32];

	xfp_sha256_final(&w->whole, sha);
	xfp_hex(sha, sizeof sha, sha256_hex);
}

enum xfp_status xfp_bundle_write(const char *path, const struct xfp_bundle_input *input, char sha256_hex[65],
				 struct xfp_error *err)
{
	struct xfp_bundle_plan plan;
	struct writer w = { .file.fd = -1 };
	enum xfp_status status;

	if ((status = xfp_bundle_plan(input, &plan, err)))
		goto done;
	if ((status = writer_open(&w, path, err)) ||
	    (status = digest_sources(&w, input->ledger, input->files, &plan)) ||
	    (status = put_text(&w, XFP_MEMBER_JSON, input->json)) ||
	    (status = begin_member(&w, XFP_MEMBER_IDX, plan.idx_bytes, plan.idx_offset)) ||
	    (status = put(&w, plan.index, plan.index_bytes)) ||
	    (status = put_zeros(&w, plan.idx_bytes - plan.index_bytes)) || (status = end_member(&w)) ||
	    (status = put_files(&w, input->ledger, input->files, &plan)) || (status = put_parts(&w, input, &plan)) ||
	    (status = put_sum(&w, input->json, &plan)))
		goto done;
	if ((status = written(&w, archive_write_close(w.archive) == ARCHIVE_OK)))
		goto done;
	digest_text(&w, sha256_hex);
	/* What was read of the checkpoint must be what the units were made from. */
	if ((status = xfp_ledger_check_files(input->ledger, err)))
		goto done;
	status = xfp_pending_publish(&w.file, true, err);
done:
	writer_close(&w);
	xfp_bundle_plan_free(&plan);
	return status;
}
