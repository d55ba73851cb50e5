/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pickle_machine.h - execute the opcodes of a pickle to a tree of values. Private to checkpoints/pytorch/.
 */
#ifndef XFP_PICKLE_MACHINE_H
#define XFP_PICKLE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/xfp_error.h"

/* Globals that a pickle may refer to. */
enum xfp_global_kind {
	XFP_GLOBAL_STORAGE,      /* elements of a dtype */
	XFP_GLOBAL_UNTYPED,      /* bytes */
	XFP_GLOBAL_DTYPE,        /* of tensors in untyped storages */
	XFP_GLOBAL_TENSOR,       /* (storage, offset, sizes, strides, ...) */
	XFP_GLOBAL_TENSOR_TYPED, /* (storage, offset, sizes, strides, requires_grad, hooks, dtype, ...) */
	XFP_GLOBAL_PARAMETER,    /* (tensor, ...) */
	XFP_GLOBAL_DICT,         /* () */
	XFP_GLOBAL_SIZE,         /* (sizes) */
	XFP_GLOBAL_DEVICE,       /* ignored */
};
struct xfp_global {
	const char *module, *name;
	enum xfp_global_kind kind;
	enum xfp_dtype dtype;
	unsigned halves; /* elements per byte, for dtypes that torch counts in bytes */
};
/* Find a supported global, or NULL. The texts are not NUL-terminated. */
const struct xfp_global *xfp_global_find(const char *module, size_t module_length, const char *name,
					 size_t name_length);

enum xfp_value_kind {
	XFP_VALUE_NONE,
	XFP_VALUE_BOOL,
	XFP_VALUE_INT,
	XFP_VALUE_FLOAT,
	XFP_VALUE_STRING,
	XFP_VALUE_MARK, /* only on the stack */
	XFP_VALUE_GLOBAL,
	XFP_VALUE_TUPLE,
	XFP_VALUE_LIST,
	XFP_VALUE_DICT,         /* alternating keys and values */
	XFP_VALUE_STORAGE,      /* ("storage", class, key, location, count) */
	XFP_VALUE_TENSOR,       /* arguments of the rebuild function */
	XFP_VALUE_TENSOR_TYPED, /* arguments of the rebuild function with a dtype */
	XFP_VALUE_OTHER,
};
struct xfp_items;
struct xfp_pickle_value {
	uint8_t kind;
	uint32_t length; /* length of a string */
	union {
		int64_t number;
		const char *text; /* points into the pickle */
		const struct xfp_global *global;
		struct xfp_items *items;
	};
};
struct xfp_items {
	struct xfp_pickle_value *at;
	uint32_t count, capacity;
	bool frozen; /* it is inside another container */
};

struct xfp_pickle_block;
struct xfp_pickle_memory {
	struct xfp_pickle_block *blocks;
	uint64_t left; /* bytes that may still be allocated */
};

/* Execute a pickle. The result is valid as long as `memory` and `text`. */
enum xfp_status xfp_pickle_run(const char *text, size_t size, const char *where, struct xfp_pickle_memory *memory,
			       struct xfp_pickle_value *result, struct xfp_error *err);
void xfp_pickle_memory_free(struct xfp_pickle_memory *memory);

/* The remedy for a pickle that contains more than tensors. */
#define XFP_PICKLE_REMEDY                                                                              \
	"; xfp reads only tensors written by torch.save: in Python, "                                  \
	"torch.load(..., weights_only=True) reads the tensors and safetensors.torch.save_file writes " \
	"them as model.safetensors"

#endif
