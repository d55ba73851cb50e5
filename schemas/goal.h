/* SPDX-License-Identifier: Apache-2.0 */
/*
 * goal.h - a size that a bundle is to have, as an operator names it: bytes of its file, bits for each of the
 * checkpoint's elements, or the memory of GPUs.
 *
 * A goal is no parameter: it decides no byte itself. What it was solved to does (assignment.h), and that alone is
 * recorded.
 */
#ifndef XFP_GOAL_H
#define XFP_GOAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/xfp_error.h"
#include "schemas/ledger.h"

enum xfp_goal_kind {
	XFP_GOAL_NONE,
	XFP_GOAL_SIZE,    /* of the whole file, bytes */
	XFP_GOAL_BPW,     /* of the whole file, bits for each element of the checkpoint's tensors */
	XFP_GOAL_ENVELOPE /* of what the fullest of some GPUs holds */
};

/* How much an error of some units counts; the last one that matches does. */
struct xfp_weight {
	char *pattern; /* allocated: "class:NAME" or "role:GLOB", as in policy.h */
	uint32_t milli;
};

struct xfp_goal {
	enum xfp_goal_kind kind;
	uint64_t bytes;   /* SIZE: of the file; ENVELOPE: of one GPU */
	uint32_t micro;   /* BPW: millionths of a bit */
	uint32_t gpus;    /* ENVELOPE */
	uint64_t reserve; /* ENVELOPE: of each GPU, for other things than weights */
	struct xfp_weight *weights;
	uint32_t weight_count;
	/* Sizes that were given without a unit and are small, so that a larger unit was perhaps meant. */
	bool bare, bare_reserve;
	bool binary_reserve; /* the reserve was given in units of 1024 */
	char said[64]; /* as it was given, "--target-size 14GiB", for messages */
};
void xfp_goal_free(struct xfp_goal *goal); /* its weights */

/* "14GiB", "3.5G": as xfp_size_parse, with at most three decimals. */
bool xfp_goal_parse_size(const char *text, uint64_t *bytes);
/* "4.25": more than 0, at most 64, with at most six decimals. */
bool xfp_goal_parse_bpw(const char *text, uint32_t *micro);
/* "96GiB" or "2x96GiB". */
bool xfp_goal_parse_envelope(const char *text, uint32_t *gpus, uint64_t *bytes);
/* "kv=8GiB,act=10GiB": the sum; any names. `bare`: some size of it is (xfp_size_is_bare). */
bool xfp_goal_parse_reserve(const char *text, uint64_t *bytes, bool *bare);
/* "attention=2,role:down=1.5": appended. XFP_USAGE names what is wrong, without a place. */
enum xfp_status xfp_goal_add_weights(struct xfp_goal *goal, const char *text, struct xfp_error *err);

/* How much an error of such a unit counts: where nothing is said, 3 of dense_mlp and embedding, 4.5 of lm_head, 0.7 of
 * routed_expert and 1 of others, a stack being one unit. */
double xfp_goal_weight(const struct xfp_goal *goal, const struct xfp_ledger_unit *unit);

/* Elements of a checkpoint's tensors, tied ones once: what bits a weight are counted over. */
uint64_t xfp_ledger_elements(const struct xfp_ledger *ledger);

#endif
