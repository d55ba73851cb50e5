/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/inspect/projection.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/bytes.h"

/* A tensor's dimensions by meaning; the strides count elements. */
struct reading {
	uint64_t experts, rows, cols;
	uint64_t expert_stride, row_stride, col_stride;
};

static struct reading read_as(const struct xfp_rule_layout *layout, const struct xfp_source_tensor *tensor)
{
	struct reading r = { .experts = 1 };
	uint64_t stride = 1;

	for (uint32_t d = layout->rank; d-- > 0; stride *= tensor->shape[d]) {
		switch (layout->dim[d]) {
		case 'E':
			r.experts = tensor->shape[d];
			r.expert_stride = stride;
			break;
		case 'N':
			r.rows = tensor->shape[d];
			r.row_stride = stride;
			break;
		default:
			r.cols = tensor->shape[d];
			r.col_stride = stride;
		}
	}
	return r;
}

/* The first dimension that contradicts the layout, or the rank if all agree. */
static uint32_t mismatched_dimension(const struct xfp_rule_layout *layout, const struct xfp_source_tensor *tensor,
				     const struct xfp_model_config *config)
{
	uint32_t d = 0;

	for (; d < layout->rank; d++) {
		uint64_t value;

		if (layout->equals[d] && xfp_model_config_product(config, layout->equals[d], &value) &&
		    value != tensor->shape[d])
			break;
	}
	return d;
}

uint32_t xfp_projection_fit(const struct xfp_rule *rule, const struct xfp_source_tensor *tensor,
			    const struct xfp_model_config *config)
{
	uint32_t fit = 0;

	for (uint32_t i = 0; i < rule->layout_count; i++) {
		const struct xfp_rule_layout *layout = &rule->layouts[i];

		if (layout->rank == tensor->rank && mismatched_dimension(layout, tensor, config) == layout->rank)
			fit |= UINT32_C(1) << i;
	}
	return fit;
}

/* Rows of one part; 0 if config.json does not give them. */
static uint64_t part_rows(const struct xfp_rule *rule, uint32_t part, uint64_t rows,
			  const struct xfp_model_config *config)
{
	uint64_t value;

	if (!rule->parts[part].rows)
		return rows / rule->part_count;
	return xfp_model_config_product(config, rule->parts[part].rows, &value) ? value : 0;
}

static bool splits(const struct xfp_rule *rule, uint64_t rows, const struct xfp_model_config *config)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < rule->part_count; i++) {
		uint64_t share = part_rows(rule, i, rows, config);

		if (!share || !xfp_add(sum, share, &sum))
			return false;
	}
	return sum == rows;
}

enum xfp_projection_fault xfp_projection_check(const struct xfp_rule *rule, uint32_t layout,
					       const struct xfp_source_tensor *tensor,
					       const struct xfp_model_config *config, char why[256])
{
	const struct xfp_rule_layout *l = &rule->layouts[layout];
	struct reading r;
	uint32_t wrong;

	if (!tensor->bytes) {
		snprintf(why, 256, "no weights");
		return XFP_FAULT_EMPTY;
	}
	if (!xfp_dtype_is_weight(tensor->dtype)) {
		snprintf(why, 256, "dtype %s cannot be quantized", xfp_dtype_name(tensor->dtype));
		return XFP_FAULT_DTYPE;
	}
	if (tensor->rank != l->rank) {
		snprintf(why, 256, "%" PRIu32 " dimension%s where %" PRIu32 " are expected", tensor->rank,
			 tensor->rank == 1 ? "" : "s", l->rank);
		return XFP_FAULT_RANK;
	}
	if ((wrong = mismatched_dimension(l, tensor, config)) < l->rank) {
		snprintf(why, 256, "dimension %" PRIu32 " is %" PRIu64 " and not %.128s", wrong + 1,
			 tensor->shape[wrong], l->equals[wrong]);
		return XFP_FAULT_SHAPE;
	}
	r = read_as(l, tensor);
	if (r.experts > XFP_MAX_EXPERTS) {
		snprintf(why, 256, "more than %d experts", XFP_MAX_EXPERTS);
		return XFP_FAULT_EXPERTS;
	}
	if (!splits(rule, r.rows, config)) {
		snprintf(why, 256, "%" PRIu64 " rows cannot be shared out to the %" PRIu32 " projections in it", r.rows,
			 rule->part_count);
		return XFP_FAULT_SPLIT;
	}
	return XFP_FAULT_NONE;
}

struct xfp_projection xfp_projection_read(const struct xfp_rule *rule, uint32_t layout, uint32_t part,
					  const struct xfp_source_tensor *tensor, const struct xfp_model_config *config)
{
	struct reading r = read_as(&rule->layouts[layout], tensor);
	struct xfp_projection p = {
		.view = {
			.rows = part_rows(rule, part, r.rows, config), .cols = r.cols,
			.row_stride = r.row_stride, .col_stride = r.col_stride,
		},
		.experts = (uint32_t)r.experts,
		.expert_stride = r.expert_stride,
	};

	if (rule->interleaved) {
		p.view.base = part * r.row_stride;
		p.view.row_stride = rule->part_count * r.row_stride;
	} else {
		for (uint32_t i = 0; i < part; i++)
			p.view.base += part_rows(rule, i, r.rows, config) * r.row_stride;
	}
	return p;
}
