/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle.c - stream a planned bundle into its file.
 *
 * xfp.idx is near the start of the file and holds digests of the data after it. Digests of units were computed when
 * they were packed; those of small files and kept tensors are computed first, which reads these twice, so that the file
 * is written front to back and its own digest is complete at the end.
 */
#include "schemas/bundle.h"

#include <archive.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "schemas/bundle_plan.h"
#include "schemas/bundle_writer.h"

/* Write an extent whose digest is already in the index, and check that it still matches. */
static enum xfp_status put_extent(struct xfp_bundle_writer *w, const struct xfp_writer_source *from,
				  const uint8_t want[16])
{
	uint8_t xxh3[16];
	enum xfp_status status = xfp_writer_stream(w, from, NULL, xxh3);

	if (!status && memcmp(xxh3, want, sizeof xxh3))
		status = xfp_fail(w->err, XFP_DAMAGED, "%s", from->path);
	return status;
}

static struct xfp_writer_source tensor_extent(const struct xfp_bundle_input *input, const struct xfp_idx_part *part)
{
	const struct xfp_ledger *ledger = input->ledger;
	const struct xfp_ledger_tensor *tensor = &ledger->tensors[part->number];

	return (struct xfp_writer_source){
		.path = ledger->files[tensor->file].path,
		.offset = tensor->offset,
		.size = part->size,
		.identity = &ledger->files[tensor->file].identity,
		.elements = tensor->recipe ? input->elements : NULL,
		.tensor = part->number,
	};
}

/* Complete the index: compute the digests of everything that goes into the bundle unchanged. */
static enum xfp_status digest_sources(struct xfp_bundle_writer *w, const struct xfp_bundle_input *input,
				      struct xfp_bundle_plan *plan)
{
	const struct xfp_ledger *ledger = input->ledger;
	const struct xfp_identity *files = input->files;
	enum xfp_status status = XFP_OK;

	w->files = calloc(ledger->extra_count + 1, sizeof *w->files);
	if (!w->files)
		return xfp_no_memory(w->err);

	for (uint32_t f = 0; !status && f < ledger->extra_count; f++) {
		char *path = xfp_ledger_extra_path(ledger, f);
		struct xfp_writer_source from = { .path = path,
						  .size = plan->files[f].size,
						  .identity = files ? &files[f] : NULL };

		status = path ? xfp_writer_stream(w, &from, plan->files[f].sha256, w->files[f]) : xfp_no_memory(w->err);
		free(path);
	}
	for (uint32_t i = 0; !status && i < plan->part_count; i++) {
		struct xfp_idx_part *part = &plan->parts[i];
		struct xfp_writer_source from;

		if (part->kind < XFP_PARTS)
			continue;
		from = tensor_extent(input, part);
		status = xfp_writer_stream(w, &from, part->sha256, plan->tensors[part->number].source);
		if (status)
			xfp_context(w->err, status, "tensor %s",
				    xfp_printable(ledger->tensors[part->number].name).text);
	}
	return status;
}

/* The size of a file; UINT64_MAX: missing. Bytes appended later are not read, so both passes read the same bytes. */
static uint64_t file_size(const char *path)
{
	struct stat st;

	return stat(path, &st) ? UINT64_MAX : (uint64_t)st.st_size;
}

static enum xfp_status put_files(struct xfp_bundle_writer *w, const struct xfp_ledger *ledger,
				 const struct xfp_identity *files, const struct xfp_bundle_plan *plan)
{
	enum xfp_status status = XFP_OK;
	char name[XFP_FILE_MEMBER_BYTES];

	for (uint32_t f = 0; !status && f < ledger->extra_count; f++) {
		const struct xfp_idx_file *file = &plan->files[f];
		char *path = xfp_ledger_extra_path(ledger, f);
		struct xfp_writer_source from = { .path = path,
						  .size = file->size,
						  .identity = files ? &files[f] : NULL };

		if (!path)
			return xfp_no_memory(w->err);
		xfp_file_member(f, ledger->extras[f], name);
		(void)((status = xfp_writer_begin(w, name, file->size, file->offset)) ||
		       (status = put_extent(w, &from, w->files[f])) || (status = xfp_writer_end(w)));
		if (!status && file_size(path) != file->size)
			status = XFP_DAMAGED;
		if (status == XFP_DAMAGED)
			status = xfp_fail(w->err, XFP_BAD_INPUT,
					  "%s: changed while the bundle was being written; run the conversion again",
					  path);
		free(path);
	}
	return status;
}

static enum xfp_status put_unit_part(struct xfp_bundle_writer *w, const struct xfp_bundle_unit *unit,
				     const struct xfp_idx_part *part)
{
	struct xfp_writer_source from = { .path = unit->path, .offset = unit->offset[part->kind], .size = part->size };
	enum xfp_status status = put_extent(w, &from, unit->packed->digest[part->kind].xxh3);

	if (status == XFP_DAMAGED)
		status =
			xfp_fail(w->err, status, "%s: damaged: the packed weights of unit %s do not match their digest",
				 unit->path, xfp_printable(unit->unit->name).text);
	return status;
}

static enum xfp_status put_tensor(struct xfp_bundle_writer *w, const struct xfp_bundle_input *input,
				  const struct xfp_idx_part *part, const uint8_t source[16])
{
	struct xfp_writer_source from = tensor_extent(input, part);
	enum xfp_status status = put_extent(w, &from, source);
	struct xfp_printable name = xfp_printable(input->ledger->tensors[part->number].name);

	if (status == XFP_DAMAGED)
		return xfp_fail(w->err, XFP_BAD_INPUT,
				"%s: tensor %s changed while the bundle was being written; run the conversion again",
				from.path, name.text);
	return status ? xfp_context(w->err, status, "tensor %s", name.text) : status;
}

static enum xfp_status put_parts(struct xfp_bundle_writer *w, const struct xfp_bundle_input *input,
				 const struct xfp_bundle_plan *plan)
{
	enum xfp_status status = XFP_OK;
	char name[24];

	for (uint32_t i = 0; !status && i < plan->part_count; i++) {
		const struct xfp_idx_part *part = &plan->parts[i];

		xfp_part_member(part->number, part->kind, name);
		if ((status = xfp_writer_begin(w, name, plan->padded[i], part->offset)))
			break;
		if (part->kind >= XFP_PARTS)
			status = put_tensor(w, input, part, plan->tensors[part->number].source);
		else if (input->units[part->number].moved)
			status = xfp_moved_put(w, input, plan, i);
		else
			status = put_unit_part(w, &input->units[part->number], part);
		(void)(status || (status = xfp_writer_zeros(w, plan->padded[i] - part->size)) ||
		       (status = xfp_writer_end(w)));
		if (!status && input->moving)
			status = xfp_moved_sync(w, input->moving, plan, i);
	}
	return status;
}

/* xfp.sum: digests of xfp.json and xfp.idx. */
static enum xfp_status put_sum(struct xfp_bundle_writer *w, const char *json, const struct xfp_bundle_plan *plan)
{
	static const uint8_t zeros[XFP_DATA_ALIGN]; /* the member's padding after the index is shorter than this */
	uint8_t json_sha[32], idx_sha[32];
	char text[XFP_SUM_BYTES + 1];
	struct xfp_sha256 sha;

	xfp_sha256(json, strlen(json), json_sha);
	xfp_sha256_init(&sha);
	xfp_sha256_update(&sha, plan->index, plan->index_bytes);
	xfp_sha256_update(&sha, zeros, plan->idx_bytes - plan->index_bytes);
	xfp_sha256_final(&sha, idx_sha);
	xfp_sum_text(json_sha, idx_sha, text);
	return xfp_writer_text(w, XFP_MEMBER_SUM, text);
}

/* ------------------------------------------------------------------------------------------------ */

static void digest_text(struct xfp_bundle_writer *w, char sha256_hex[65])
{
	uint8_t sha[32];

	xfp_sha256_final(&w->file_sha256, sha);
	xfp_hex(sha, sizeof sha, sha256_hex);
}

/* Data that goes into the bundle unchanged is read twice. */
static uint64_t bytes_to_read(const struct xfp_ledger *ledger, const struct xfp_bundle_plan *plan)
{
	uint64_t bytes = 0;

	for (uint32_t f = 0; f < ledger->extra_count; f++)
		bytes += 2 * plan->files[f].size;
	for (uint32_t i = 0; i < plan->part_count; i++)
		bytes += (plan->parts[i].kind < XFP_PARTS ? 1 : 2) * plan->parts[i].size;
	return bytes;
}

enum xfp_status xfp_bundle_write(const char *path, const struct xfp_bundle_input *input, char sha256_hex[65],
				 struct xfp_error *err)
{
	struct xfp_bundle_plan plan;
	struct xfp_bundle_writer w = { .file.fd = -1 };
	enum xfp_status status;

	if ((status = xfp_bundle_plan(input, &plan, err)))
		goto done;
	w.watcher = input->ledger->watcher;
	xfp_watch_more(w.watcher, bytes_to_read(input->ledger, &plan));
	if ((status = xfp_writer_open(&w, path, input->moving, err)) ||
	    (input->moving && (status = xfp_moved_begin(&w, input->moving, &plan))) ||
	    (status = digest_sources(&w, input, &plan)) ||
	    (status = xfp_writer_text(&w, XFP_MEMBER_JSON, input->json)) ||
	    (status = xfp_writer_begin(&w, XFP_MEMBER_IDX, plan.idx_bytes, plan.idx_offset)) ||
	    (status = xfp_writer_put(&w, plan.index, plan.index_bytes)) ||
	    (status = xfp_writer_zeros(&w, plan.idx_bytes - plan.index_bytes)) || (status = xfp_writer_end(&w)) ||
	    (status = put_files(&w, input->ledger, input->files, &plan)) || (status = put_parts(&w, input, &plan)) ||
	    (status = put_sum(&w, input->json, &plan)))
		goto done;
	if ((status = xfp_writer_written(&w, archive_write_close(w.archive) == ARCHIVE_OK)))
		goto done;
	digest_text(&w, sha256_hex);
	/* The checkpoint's files must still be those from which the units were made. */
	if ((status = xfp_ledger_check_files(input->ledger, err)))
		goto done;
	if (input->moving && (status = xfp_moved_complete(&w, input->moving, sha256_hex)))
		goto done;
	status = xfp_pending_publish(&w.file, true, err);
done:
	xfp_writer_close(&w);
	xfp_bundle_plan_free(&plan);
	return status;
}
