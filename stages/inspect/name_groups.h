/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_groups.h - a ledger's tensors by name, with layer and expert numbers as *: a page instead of a
 * hundred thousand lines.
 */
#ifndef XFP_NAME_GROUPS_H
#define XFP_NAME_GROUPS_H

#include "schemas/ledger.h"
#include "stages/inspect/rule.h"

/* Tensors that one rule took, of one fate, and alike but for the numbers in their names. */
struct xfp_name_group {
	char *names;                 /* "model.layers.*.self_attn.q_proj.weight" */
	const struct xfp_rule *rule; /* NULL: none took them */
	enum xfp_class class_;
	enum xfp_fate fate;
	uint64_t tensors, weights;
};

struct xfp_name_groups {
	struct xfp_name_group *list;
	uint32_t count;
};

/* `rules` are those that took each tensor, of one family. In the order of classes, then of the family's
 * rules, then of names. The caller frees; on failure there is nothing. */
enum xfp_status xfp_name_groups_make(const struct xfp_ledger *ledger, const struct xfp_rule *const *rules,
				     struct xfp_name_groups *groups, struct xfp_error *err);
void xfp_name_groups_free(struct xfp_name_groups *groups);

#endif
