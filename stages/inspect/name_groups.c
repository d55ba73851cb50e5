/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/inspect/name_groups.h"

#include <stdlib.h>
#include <string.h>

#include "stages/inspect/notes.h"

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static int compare(const void *a, const void *b)
{
	const struct xfp_name_group *x = a, *y = b;
	unsigned line_x = x->rule ? x->rule->line : 0, line_y = y->rule ? y->rule->line : 0;
	int order = COMPARE(x->class_, y->class_);

	if (!order)
		order = COMPARE(line_x, line_y);
	if (!order)
		order = COMPARE(x->fate, y->fate);
	return order ? order : strcmp(x->names, y->names);
}

/* Merge equal neighbors; the first one's name is kept. */
static void join(struct xfp_name_groups *groups)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < groups->count; i++) {
		struct xfp_name_group *group = &groups->list[i], *last = kept ? &groups->list[kept - 1] : NULL;

		if (last && !compare(last, group)) {
			last->tensors += group->tensors;
			last->weights += group->weights;
			free(group->names);
		} else {
			groups->list[kept++] = *group;
		}
	}
	groups->count = kept;
}

enum xfp_status xfp_name_groups_make(const struct xfp_ledger *ledger, const struct xfp_rule *const *rules,
				     struct xfp_name_groups *groups, struct xfp_error *err)
{
	*groups = (struct xfp_name_groups){ .list = calloc((size_t)ledger->tensor_count + 1, sizeof *groups->list) };
	if (!groups->list)
		return xfp_no_memory(err);
	for (uint32_t t = 0; t < ledger->tensor_count; t++) {
		const struct xfp_ledger_tensor *tensor = &ledger->tensors[t];
		struct xfp_name_group *group = &groups->list[groups->count];

		*group = (struct xfp_name_group){
			.names = strdup(tensor->name),
			.rule = rules[t],
			.class_ = tensor->class_,
			.fate = tensor->fate,
			.tensors = 1,
			.weights = tensor->bytes * 8 / xfp_dtype_bits(tensor->dtype),
		};
		if (!group->names) {
			xfp_name_groups_free(groups);
			return xfp_no_memory(err);
		}
		xfp_star_numbers(group->names);
		groups->count++;
	}
	qsort(groups->list, groups->count, sizeof *groups->list, compare);
	join(groups);
	return XFP_OK;
}

void xfp_name_groups_free(struct xfp_name_groups *groups)
{
	for (uint32_t i = 0; i < groups->count; i++)
		free(groups->list[i].names);
	free(groups->list);
	*groups = (struct xfp_name_groups){ 0 };
}
