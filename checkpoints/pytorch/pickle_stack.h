/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pickle_stack.h - stack and memory of the machine of pickle_machine.c. Private to checkpoints/pytorch/.
 */
#ifndef XFP_PICKLE_STACK_H
#define XFP_PICKLE_STACK_H

#include "checkpoints/pytorch/pickle_machine.h"

struct xfp_pickle_machine {
	const char *text, *at, *end;
	const char *where; /* for messages */
	const char *opcode;
	struct xfp_pickle_memory *memory;
	struct xfp_pickle_value *stack, *memo;
	size_t depth, stack_capacity, memo_count, memo_capacity;
	bool done;
	struct xfp_error *err;
};

/* Report an error at the current opcode and return XFP_BAD_INPUT. */
enum xfp_status xfp_pickle_bad(struct xfp_pickle_machine *m, const char *what);

/* Grow to `wanted` values; new ones have an invalid kind (0xff). */
enum xfp_status xfp_pickle_grow(struct xfp_pickle_machine *m, struct xfp_pickle_value **values, size_t *capacity,
				size_t wanted);

struct xfp_pickle_value xfp_pickle_number(enum xfp_value_kind kind, int64_t value);
enum xfp_status xfp_pickle_push(struct xfp_pickle_machine *m, struct xfp_pickle_value value);
/* Push a container of these values. */
enum xfp_status xfp_pickle_push_items(struct xfp_pickle_machine *m, enum xfp_value_kind kind,
				      const struct xfp_pickle_value *from, size_t count);
/* Return the top `count` values of the stack, none of which may be a mark. */
enum xfp_status xfp_pickle_top(struct xfp_pickle_machine *m, size_t count, struct xfp_pickle_value **out);
/* Return the position after the last mark. */
enum xfp_status xfp_pickle_to_mark(struct xfp_pickle_machine *m, size_t *first);
/* Replace the values above `first`, and `below` marks below them, by a tuple. */
enum xfp_status xfp_pickle_make_tuple(struct xfp_pickle_machine *m, size_t first, size_t below);
/* Add to a list or a dict. The added value is frozen, and frozen containers cannot grow, so that nothing contains
 * itself. */
enum xfp_status xfp_pickle_add(struct xfp_pickle_machine *m, const struct xfp_pickle_value *to,
			       const struct xfp_pickle_value *from, size_t count);

#endif
