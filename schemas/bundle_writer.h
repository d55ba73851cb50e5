/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_writer.h - write a bundle's file member by member. Private to schemas/.
 *
 * The SHA-256 of the whole file takes the most time, and runs in a thread of its own; whether copied data is unchanged
 * is checked with XXH3.
 */
#ifndef XFP_BUNDLE_WRITER_H
#define XFP_BUNDLE_WRITER_H

#include <archive.h>
#include <archive_entry.h>

#include "base/sha256.h"
#include "base/system/file.h"
#include "schemas/bundle_plan.h"

#define XFP_WRITER_BLOCK ((size_t)1 << 20)
#define XFP_THREAD_MIN_BYTES (256u << 10)

struct xfp_bundle_writer {
	struct xfp_pending file;
	struct archive *archive;
	struct archive_entry *entry;
	struct xfp_sha256 file_sha256; /* SHA-256 of the file */
	uint8_t (*files)[16]; /* XXH3 of the small files */
	uint8_t *block[2];
	bool threaded;               /* written bytes are added to `whole` by another thread */
	uint64_t position;           /* bytes written so far */
	uint64_t flushed;            /* bytes flushed so far */
	uint64_t synced;             /* bytes known to be on disk, if units are moved */
	bool present;                /* the data is already in the file, and is only hashed */
	struct xfp_watcher *watcher; /* watches everything that is read; NULL: none */
	enum xfp_status status;      /* status of writing; after a failure nothing more is written */
	struct xfp_error *err;
};

/* An extent of a source file, or the elements of a tensor. */
struct xfp_writer_source {
	const char *path;
	uint64_t offset, size;
	const struct xfp_identity *identity;        /* identity that the file must have when it is opened; NULL: any */
	const struct xfp_bundle_elements *elements; /* NULL for a file; otherwise `offset` and `identity` are unused */
	uint32_t tensor;
};

/* The size of the block that begins after `done` bytes. */
static inline size_t xfp_writer_source_block(const struct xfp_writer_source *from, uint64_t done)
{
	return from->size - done < XFP_WRITER_BLOCK ? (size_t)(from->size - done) : XFP_WRITER_BLOCK;
}

/* Open the pending file. `moving`: it is kept, and existing content stays until it is overwritten. The caller must
 * close the writer even after a failure. */
enum xfp_status xfp_writer_open(struct xfp_bundle_writer *w, const char *path, bool moving, struct xfp_error *err);
void xfp_writer_close(struct xfp_bundle_writer *w);

/* The combined result of a libarchive call and of the writes that it made. */
enum xfp_status xfp_writer_written(struct xfp_bundle_writer *w, bool success);

/* Write a member whose content is at `offset`: begin, put bytes and zeros, end. xfp_writer_text writes a whole
 * member. */
enum xfp_status xfp_writer_begin(struct xfp_bundle_writer *w, const char *name, uint64_t size, uint64_t offset);
enum xfp_status xfp_writer_put(struct xfp_bundle_writer *w, const void *data, size_t size);
enum xfp_status xfp_writer_zeros(struct xfp_bundle_writer *w, uint64_t size);
enum xfp_status xfp_writer_end(struct xfp_bundle_writer *w);
enum xfp_status xfp_writer_text(struct xfp_bundle_writer *w, const char *name, const char *text);

/* Read a source extent. With `sha256`, compute both digests; with `sha256` NULL, write the data and compute its XXH3
 * only, since SHA-256 then covers everything written. A block is read while the previous one is hashed. */
enum xfp_status xfp_writer_stream(struct xfp_bundle_writer *w, const struct xfp_writer_source *from, uint8_t *sha256,
				  uint8_t xxh3[16]);

/* For a bundle that units are moved into (struct xfp_bundle_moving): before anything is written; for a part that is
 * already in the file; after each part; and at the end. */
enum xfp_status xfp_moved_begin(struct xfp_bundle_writer *w, const struct xfp_bundle_moving *moving,
				const struct xfp_bundle_plan *plan);
enum xfp_status xfp_moved_put(struct xfp_bundle_writer *w, const struct xfp_bundle_input *input,
			      const struct xfp_bundle_plan *plan, uint32_t part);
enum xfp_status xfp_moved_sync(struct xfp_bundle_writer *w, const struct xfp_bundle_moving *moving,
			       const struct xfp_bundle_plan *plan, uint32_t part);
enum xfp_status xfp_moved_complete(struct xfp_bundle_writer *w, const struct xfp_bundle_moving *moving,
				   const char sha256_hex[65]);

#endif
