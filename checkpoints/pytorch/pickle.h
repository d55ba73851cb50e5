/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pickle.h - read the tensors in a pickle of torch.save. Private to checkpoints/pytorch/.
 *
 * A pickle machine that supports only the opcodes and globals that torch.save writes for tensors. It calls nothing and
 * only builds values; everything else is refused by name. It allocates at most XFP_PICKLE_GROWTH times the size of the
 * pickle. A container that is changed after it was put into another one is refused, so no container can contain itself.
 * Nothing is recursive.
 *
 * The tensors are those of the top-level dict, or of a dict in it that has more of them and one of the keys under which
 * tools store a model, such as "model" and "state_dict". Other values are counted and ignored.
 */
#ifndef XFP_PICKLE_H
#define XFP_PICKLE_H

#include "checkpoints/checkpoint.h"

#define XFP_PICKLE_MAX 100000000 /* maximum bytes of a pickle */
#define XFP_PICKLE_GROWTH 24     /* limit of memory, as a multiple of its bytes, plus a constant */

struct xfp_pickle; /* borrows the text that it was read from */

/* A tensor in the pickle; only its form is checked. */
struct xfp_pickle_tensor {
	const char *name, *key; /* key of the storage; neither is NUL-terminated */
	size_t name_length, key_length;
	enum xfp_dtype dtype;
	unsigned halves;        /* 2 if two elements share a byte: the last dimension is then half as long */
	const char *storage;    /* the storage's class */
	uint64_t storage_bytes; /* claimed bytes of the storage */
	uint64_t offset;        /* elements from the storage's start */
	uint32_t rank;          /* if it exceeds XFP_MAX_RANK, shape and stride are not set */
	uint64_t shape[XFP_MAX_RANK], stride[XFP_MAX_RANK];
	bool absent; /* on the device "meta": without data */
};

/* Read a pickle. `where` names it in messages; XFP_BAD_INPUT reports the error and its byte. */
enum xfp_status xfp_pickle_read(const char *text, size_t size, const char *where, struct xfp_pickle **out,
				struct xfp_error *err);
void xfp_pickle_close(struct xfp_pickle *pickle); /* NULL is fine */

/* Return the number of tensors, in the order of the pickle. */
uint32_t xfp_pickle_count(const struct xfp_pickle *pickle);
/* Get a tensor. XFP_BAD_INPUT if its numbers are invalid. */
enum xfp_status xfp_pickle_tensor(const struct xfp_pickle *pickle, uint32_t number, struct xfp_pickle_tensor *out,
				  struct xfp_error *err);

/* Return the number of ignored values, and the name of the first. */
uint32_t xfp_pickle_ignored(const struct xfp_pickle *pickle, const char **first, size_t *length);

#endif
