/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_writer.h - a bundle's file as it is written, member by member. Private to schemas/.
 *
 * What takes the time is the SHA-256 of the whole file: it has a thread of its own, and that what is copied is still
 * what it was is told by XXH3.
 */
#ifndef XFP_BUNDLE_WRITER_H
#define XFP_BUNDLE_WRITER_H

#include <archive.h>
#include <archive_entry.h>
#include <xxhash.h>

#include "base/sha256.h"
#include "base/system/file.h"
#include "schemas/bundle_plan.h"

#define XFP_WRITER_BLOCK ((size_t)1 << 20)
#define XFP_WORTH_A_THREAD (256u << 10)

struct xfp_bundle_writer {
	struct xfp_pending file;
	struct archive *archive;
	struct archive_entry *entry;
	struct xfp_sha256 whole; /* of the file */
	XXH3_state_t *xxh;
	uint8_t (*files)[16]; /* XXH3 of the small files */
	uint8_t *block[2];
	bool beside;                 /* what is written is added to `whole` by another thread */
	uint64_t position;           /* bytes written so far */
	uint64_t handed;             /* of them, to the disk */
	uint64_t synced;             /* of them, on the disk for certain, where units are moved */
	bool there;                  /* what is written is in the file already, and only digested */
	struct xfp_watcher *watcher; /* of all that is read; NULL: nobody */
	enum xfp_status status;      /* of the writes; after a failure nothing more is written */
	struct xfp_error *err;
};

/* A stretch of a source file, or the elements of a tensor. */
struct xfp_stretch {
	const char *path;
	uint64_t offset, size;
	const struct xfp_identity *identity;        /* who the file has to be when it is opened; NULL: any */
	const struct xfp_bundle_elements *elements; /* NULL: it is a file's. `offset` and `identity` are nothing */
	uint32_t tensor;
};

/* Bytes of the block that begins after `done` bytes. */
static inline size_t xfp_stretch_block(const struct xfp_stretch *from, uint64_t done)
{
	return from->size - done < XFP_WRITER_BLOCK ? (size_t)(from->size - done) : XFP_WRITER_BLOCK;
}

/* `moving`: the pending file is kept, and what is in it stays until it is written again. Close it either way. */
enum xfp_status xfp_writer_open(struct xfp_bundle_writer *w, const char *path, bool moving, struct xfp_error *err);
void xfp_writer_close(struct xfp_bundle_writer *w);

/* What became of a call of libarchive, by its result and by the writes that it made. */
enum xfp_status xfp_writer_written(struct xfp_bundle_writer *w, bool success);

/* A member whose content is to be at `offset`; its bytes, zeros, its end. And a whole one, of a text. */
enum xfp_status xfp_writer_begin(struct xfp_bundle_writer *w, const char *name, uint64_t size, uint64_t offset);
enum xfp_status xfp_writer_put(struct xfp_bundle_writer *w, const void *data, size_t size);
enum xfp_status xfp_writer_zeros(struct xfp_bundle_writer *w, uint64_t size);
enum xfp_status xfp_writer_end(struct xfp_bundle_writer *w);
enum xfp_status xfp_writer_text(struct xfp_bundle_writer *w, const char *name, const char *text);

/* Walk through a stretch of a source for both of its digests or, where `sha256` is NULL, to write it, and for its XXH3
 * alone: SHA-256 is then of all that is written. A block is read while the one before it goes through SHA-256. */
enum xfp_status xfp_writer_stream(struct xfp_bundle_writer *w, const struct xfp_stretch *from, uint8_t *sha256,
				  uint8_t xxh3[16]);

/* Of a bundle that units are moved into (struct xfp_bundle_moving): before anything is written; a part that is in the
 * file already; after each part; and when all is written. */
enum xfp_status xfp_moved_begin(struct xfp_bundle_writer *w, const struct xfp_bundle_moving *moving,
				const struct xfp_bundle_plan *plan);
enum xfp_status xfp_moved_put(struct xfp_bundle_writer *w, const struct xfp_bundle_input *input,
			      const struct xfp_bundle_plan *plan, uint32_t part);
enum xfp_status xfp_moved_sync(struct xfp_bundle_writer *w, const struct xfp_bundle_moving *moving,
			       const struct xfp_bundle_plan *plan, uint32_t part);
enum xfp_status xfp_moved_complete(struct xfp_bundle_writer *w, const struct xfp_bundle_moving *moving,
				   const char sha256_hex[65]);

#endif
