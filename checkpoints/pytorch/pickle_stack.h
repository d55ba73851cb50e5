/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pickle_stack.h - what the machine of pickle_machine.c works on: its stack and its memory. Private to
 * checkpoints/pytorch/.
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

/* XFP_BAD_INPUT: what is wrong at the opcode that is being done. */
enum xfp_status xfp_pickle_bad(struct xfp_pickle_machine *m, const char *what);

/* Room for `wanted` values, which are of no kind (0xff) at first. */
enum xfp_status xfp_pickle_grow(struct xfp_pickle_machine *m, struct xfp_pickle_value **values, size_t *capacity,
				size_t wanted);

struct xfp_pickle_value xfp_pickle_number(enum xfp_value_kind kind, int64_t value);
enum xfp_status xfp_pickle_push(struct xfp_pickle_machine *m, struct xfp_pickle_value value);
/* A container of these values. */
enum xfp_status xfp_pickle_push_items(struct xfp_pickle_machine *m, enum xfp_value_kind kind,
				      const struct xfp_pickle_value *from, size_t count);
/* The nearest values on the stack, none of them a mark. */
enum xfp_status xfp_pickle_top(struct xfp_pickle_machine *m, size_t count, struct xfp_pickle_value **out);
/* What is above the last mark. */
enum xfp_status xfp_pickle_to_mark(struct xfp_pickle_machine *m, size_t *first);
/* A tuple in place of what is above `first`, and of `below` marks below that. */
enum xfp_status xfp_pickle_make_tuple(struct xfp_pickle_machine *m, size_t first, size_t below);
/* Add to a list or a dict. What goes in is frozen, and what is frozen takes no more: so that nothing is in itself. */
enum xfp_status xfp_pickle_add(struct xfp_pickle_machine *m, const struct xfp_pickle_value *to,
			       const struct xfp_pickle_value *from, size_t count);

#endif
