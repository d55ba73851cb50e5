/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pickle.h - the tensors that a pickle of torch.save names. Private to checkpoints/pytorch/.
 *
 * A machine that knows the opcodes and the globals that torch.save writes for tensors, and no other: it calls nothing,
 * builds values only, and refuses all else by name. What it allocates is at most XFP_PICKLE_GROWTH times the pickle; a
 * container that is changed after it was put into another, without which none can hold itself, is refused; nothing
 * recurses.
 *
 * The tensors are those of the dict that the pickle makes, or of one in it that has more of them and a name by which
 * tools keep a model beside other things, as "model" and "state_dict". What else is there is counted and left.
 */
#ifndef XFP_PICKLE_H
#define XFP_PICKLE_H

#include "checkpoints/checkpoint.h"

#define XFP_PICKLE_MAX 100000000 /* bytes of a pickle */
#define XFP_PICKLE_GROWTH 24     /* times its bytes may be allocated, and a bit more */

struct xfp_pickle; /* borrows the text that it was read from */

/* One tensor, as the pickle has it: nothing but its form is checked. */
struct xfp_pickle_tensor {
	const char *name, *key; /* of the storage; neither ends with NUL */
	size_t name_length, key_length;
	enum xfp_dtype dtype;
	unsigned halves;        /* two elements to each of the storage's: of the last dimension, which is half of it */
	const char *storage;    /* the storage's class */
	uint64_t storage_bytes; /* that it claims */
	uint64_t offset;        /* elements from the storage's start */
	uint32_t rank;          /* may be more than XFP_MAX_RANK: then shape and stride are not there */
	uint64_t shape[XFP_MAX_RANK], stride[XFP_MAX_RANK];
	bool absent; /* on the device "meta": it has no data */
};

/* `where` names the pickle in messages; XFP_BAD_INPUT says what is wrong, and at which byte. */
enum xfp_status xfp_pickle_read(const char *text, size_t size, const char *where, struct xfp_pickle **out,
				struct xfp_error *err);
void xfp_pickle_close(struct xfp_pickle *pickle); /* NULL is fine */

/* In the order of the pickle. */
uint32_t xfp_pickle_count(const struct xfp_pickle *pickle);
/* XFP_BAD_INPUT: its numbers are none that a tensor can have. */
enum xfp_status xfp_pickle_tensor(const struct xfp_pickle *pickle, uint32_t number, struct xfp_pickle_tensor *out,
				  struct xfp_error *err);

/* What was left, that is no tensor of the model: how much, and the name of the first. */
uint32_t xfp_pickle_left(const struct xfp_pickle *pickle, const char **first, size_t *length);

#endif
