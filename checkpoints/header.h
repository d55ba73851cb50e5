/* SPDX-License-Identifier: Apache-2.0 */
/*
 * header.h - what the files of a checkpoint say of themselves beside their tensors, for people and programs to read.
 *
 * Nothing follows from it: what decides anything, a format's open takes for itself. A format that has something to tell
 * fills in `header` of its struct xfp_checkpoint_format.
 */
#ifndef XFP_CHECKPOINT_HEADER_H
#define XFP_CHECKPOINT_HEADER_H

#include "checkpoints/checkpoint.h"

struct xfp_header_entry {
	uint32_t file;       /* index into the checkpoint's `files` */
	char *key;           /* as the file has it, "general.architecture" */
	const char *type;    /* in the format's words, "string"; static storage */
	bool list;           /* its value is a list, which may be empty; otherwise it is one text */
	uint64_t count;      /* of texts */
	char *values;        /* each with a NUL behind it */
	const char *meaning; /* of a number that stands for a name: that; static storage; NULL: none */
};

/* In the order of files, and in each of them as it has them. Zeroed is empty. */
struct xfp_header {
	struct xfp_header_entry *entries;
	uint32_t count, capacity;
};

/* Reads the headers again. Empty where the format has nothing to tell. The caller frees it either way. */
enum xfp_status xfp_header_read(const struct xfp_checkpoint *checkpoint, struct xfp_header *header,
				struct xfp_error *err);
void xfp_header_free(struct xfp_header *header);

/* For formats: another entry, which the header takes over, also when it fails. A key or values that are NULL are what
 * there was no memory for. */
enum xfp_status xfp_header_add(struct xfp_header *header, struct xfp_header_entry *entry, struct xfp_error *err);

#endif
