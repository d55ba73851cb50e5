/* SPDX-License-Identifier: Apache-2.0 */
/*
 * goal.h - the target size of a bundle, as the user gives it: size of the file, bits per weight of the checkpoint, or
 * GPU memory.
 *
 * A goal is not a parameter, because it does not determine any byte itself. Its solution does (assignment.h), and only
 * that is recorded.
 */
#ifndef XFP_GOAL_H
#define XFP_GOAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/xfp_error.h"
#include "schemas/ledger.h"

enum xfp_goal_kind {
	XFP_GOAL_NONE,
	XFP_GOAL_SIZE,    /* size of the whole file in bytes */
	XFP_GOAL_BPW,     /* size of the whole file in bits per element of the checkpoint's tensors */
	XFP_GOAL_ENVELOPE /* memory of the fullest of some GPUs */
};

/* The weight of an error in some units; the last entry that matches a unit applies. */
struct xfp_weight {
	char *pattern; /* allocated: "class:NAME" or "role:GLOB", as in policy.h */
	uint32_t milli;
};

struct xfp_goal {
	enum xfp_goal_kind kind;
	uint64_t bytes;   /* SIZE: of the file; ENVELOPE: of one GPU */
	uint32_t micro;   /* BPW: millionths of a bit */
	uint32_t gpus;    /* ENVELOPE */
	uint64_t reserve; /* ENVELOPE: memory of each GPU that is not for weights */
	struct xfp_weight *weights;
	uint32_t weight_count;
	/* A size was given without a unit and is small, so that its unit may be missing. */
	bool bare, bare_reserve;
	bool binary_reserve; /* the reserve was given in binary units */
	char option[64];     /* the option as given, "--target-size 14GiB", for messages */
};
void xfp_goal_free(struct xfp_goal *goal); /* frees its weights */

/* Parse "14GiB" or "3.5G": like xfp_size_parse, with at most three decimals. */
bool xfp_goal_parse_size(const char *text, uint64_t *bytes);
/* Parse "4.25": more than 0, at most 64, with at most six decimals. */
bool xfp_goal_parse_bpw(const char *text, uint32_t *micro);
/* Parse "96GiB" or "2x96GiB". */
bool xfp_goal_parse_envelope(const char *text, uint32_t *gpus, uint64_t *bytes);
/* Parse "kv=8GiB,act=10GiB" into the sum; names are arbitrary. `bare`: some size may lack its unit
 * (xfp_size_is_bare). */
bool xfp_goal_parse_reserve(const char *text, uint64_t *bytes, bool *bare);
/* Parse "attention=2,role:down=1.5" and append the weights. XFP_USAGE: invalid; the message lacks the option's name. */
enum xfp_status xfp_goal_add_weights(struct xfp_goal *goal, const char *text, struct xfp_error *err);

/* The weight of an error in a unit. Defaults: 3 for dense_mlp and embedding, 4.5 for lm_head, 0.7 for routed_expert and
 * 1 for others; a stack is one unit. */
double xfp_goal_weight(const struct xfp_goal *goal, const struct xfp_ledger_unit *unit);

/* The number of elements of a checkpoint's tensors, counting tied ones once: the denominator of bits per weight. */
uint64_t xfp_ledger_elements(const struct xfp_ledger *ledger);

#endif
