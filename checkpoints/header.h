/* SPDX-License-Identifier: Apache-2.0 */
/*
 * header.h - metadata in the files of a checkpoint, for display.
 *
 * Nothing depends on it: a format reads what it needs when it opens a checkpoint. A format with metadata implements
 * `header` of its struct xfp_checkpoint_format.
 */
#ifndef XFP_CHECKPOINT_HEADER_H
#define XFP_CHECKPOINT_HEADER_H

#include "checkpoints/checkpoint.h"

struct xfp_header_entry {
	uint32_t file;       /* index into the checkpoint's `files` */
	char *key;           /* key in the file, "general.architecture" */
	const char *type;    /* type in the format's terms, "string"; static storage */
	bool list;           /* the value is a list, which may be empty; otherwise one text */
	uint64_t count;      /* number of texts */
	char *values;        /* texts, each NUL-terminated */
	const char *meaning; /* name that a number stands for; static storage; or NULL */
};

/* Entries in the order of the files, and within each in file order. Initialize with zeros. */
struct xfp_header {
	struct xfp_header_entry *entries;
	uint32_t count, capacity;
};

/* Read the headers again. Empty if the format has no metadata. The caller frees it in any case. */
enum xfp_status xfp_header_read(const struct xfp_checkpoint *checkpoint, struct xfp_header *header,
				struct xfp_error *err);
void xfp_header_free(struct xfp_header *header);

/* For formats: add an entry and take ownership of it, also on failure. A NULL key or NULL values mean that memory ran
 * out. */
enum xfp_status xfp_header_add(struct xfp_header *header, struct xfp_header_entry *entry, struct xfp_error *err);

#endif
