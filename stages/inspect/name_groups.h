/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_groups.h - a ledger's tensors grouped by name, with layer and expert numbers as *: one page instead of a hundred
 * thousand lines.
 */
#ifndef XFP_NAME_GROUPS_H
#define XFP_NAME_GROUPS_H

#include "schemas/ledger.h"
#include "stages/inspect/rule.h"

/* Tensors with the same rule, fate and name, apart from the numbers in their names. */
struct xfp_name_group {
	char *names;                 /* "model.layers.*.self_attn.q_proj.weight" */
	const struct xfp_rule *rule; /* NULL: no rule matched */
	enum xfp_class class_;
	enum xfp_fate fate;
	uint64_t tensors, weights;
};

struct xfp_name_groups {
	struct xfp_name_group *list;
	uint32_t count;
};

/* Group the tensors; `rules` holds the rule that matched each tensor, all of one family. Groups are ordered by class,
 * then by the family's rules, then by name. The caller frees them; on failure there are none. */
enum xfp_status xfp_name_groups_make(const struct xfp_ledger *ledger, const struct xfp_rule *const *rules,
				     struct xfp_name_groups *groups, struct xfp_error *err);
void xfp_name_groups_free(struct xfp_name_groups *groups);

#endif
