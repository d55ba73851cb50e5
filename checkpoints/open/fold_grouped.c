/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/open/fold_grouped.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/text/suffix.h"
#include "checkpoints/packed/grouped.h"

bool xfp_grouped_is_codes(const struct xfp_fold *fold, uint32_t number)
{
	return !fold->consumed[number] && !fold->checkpoint->tensors[number].recipe &&
	       xfp_stem(fold->checkpoint->tensors[number].name, XFP_QWEIGHT);
}

/* ---- the config --------------------------------------------------------------------------------- */

/* Read an integer by either key; `missing` if there is neither. Returns false if it is not an integer. */
static bool integer(const json_t *config, const char *key, const char *other, int64_t missing, int64_t *value)
{
	const json_t *one = json_object_get(config, key);

	if (!one || json_is_null(one))
		one = json_object_get(config, other);
	*value = one && !json_is_null(one) ? json_integer_value(one) : missing;
	return !one || json_is_null(one) || json_is_integer(one);
}

enum xfp_status xfp_grouped_read_config(const struct xfp_fold *fold, struct xfp_grouped_config *config)
{
	int64_t bits, group;

	if (!integer(fold->config, "bits", "w_bit", 4, &bits) || bits <= 0 || bits > 32)
		return xfp_fold_bad_config(fold, "bits is not a number of bits; download the file again");
	if (!integer(fold->config, "group_size", "q_group_size", 128, &group) || group == 0 || group < -1)
		return xfp_fold_bad_config(fold, "group_size is neither a number of inputs nor -1; download the file "
						 "again");
	config->bits = (uint64_t)bits;
	config->group = group < 0 ? 0 : (uint64_t)group;
	return XFP_OK;
}

struct xfp_config_word xfp_grouped_word(const struct xfp_fold *fold, const char *key, const char *other,
					const char *missing)
{
	const char *text = json_string_value(json_object_get(fold->config, key));
	struct xfp_config_word word;

	if (!text && other)
		text = json_string_value(json_object_get(fold->config, other));
	snprintf(word.text, sizeof word.text, "%.31s", xfp_printable(text ? text : missing).text);
	for (char *c = word.text; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return word;
}

/* ---- tensors ------------------------------------------------------------------------------------ */

static enum xfp_status find(const struct xfp_fold *fold, const struct xfp_source_tensor *codes, const char *ending,
			    uint32_t *number)
{
	*number = xfp_fold_find(fold, codes, strlen(XFP_QWEIGHT), ending);
	return *number == UINT32_MAX ? xfp_fold_missing(fold, codes, ending + 1, ending) : XFP_OK;
}

enum xfp_status xfp_grouped_find(struct xfp_fold *fold, uint32_t number, struct xfp_grouped *matrix)
{
	struct xfp_source_tensor *tensors = fold->checkpoint->tensors, *codes = &tensors[number];
	uint32_t zeros, scales;
	enum xfp_status status;

	if (!fold->config)
		return xfp_fold_bad(fold, codes,
				    "contains packed codes without parameters: neither quantization_config in "
				    "config.json nor quantize_config.json nor quant_config.json exists; download "
				    "them, too");
	if ((status = find(fold, codes, ".qzeros", &zeros)) || (status = find(fold, codes, ".scales", &scales)))
		return status;
	*matrix = (struct xfp_grouped){
		.number = number, .codes = codes, .zeros = &tensors[zeros], .scales = &tensors[scales]
	};
	for (int i = 0; i < 3; i++) {
		const struct xfp_source_tensor *t = i == 0 ? codes : i == 1 ? matrix->zeros : matrix->scales;

		if (t->rank != 2 || !t->bytes)
			return xfp_fold_bad(fold, t, "has the shape %s, but is of a matrix; download it again",
					    xfp_fold_shape(t->rank, t->shape).text);
	}
	if (!xfp_grouped_is_scale(matrix->scales->dtype))
		return xfp_fold_bad(fold, matrix->scales, "is %s; scales are F16, BF16 or F32",
				    xfp_dtype_name(matrix->scales->dtype));
	return XFP_OK;
}

enum xfp_status xfp_grouped_bad_shapes(const struct xfp_fold *fold, const struct xfp_grouped *matrix, const char *form,
				       const char *expected)
{
	const struct xfp_source_tensor *q = matrix->codes, *z = matrix->zeros, *s = matrix->scales;

	return xfp_fold_bad(fold, q,
			    "is %s %s with qzeros %s %s and scales %s %s, but %s as %s says it has %s; download both "
			    "again",
			    xfp_dtype_name(q->dtype), xfp_fold_shape(q->rank, q->shape).text, xfp_dtype_name(z->dtype),
			    xfp_fold_shape(z->rank, z->shape).text, xfp_dtype_name(s->dtype),
			    xfp_fold_shape(s->rank, s->shape).text, form, fold->config_name, expected);
}

enum xfp_status xfp_grouped_fold(struct xfp_fold *fold, struct xfp_grouped *matrix, struct xfp_recipe_part *part,
				 uint32_t groups)
{
	struct xfp_source_tensor *tensors = fold->checkpoint->tensors, *codes = matrix->codes;
	struct xfp_component *to = part->components;
	uint64_t bytes;

	if (!xfp_mul(matrix->rows, matrix->cols, &bytes) || !xfp_mul(bytes, sizeof(uint16_t), &bytes))
		return xfp_fold_bad(fold, codes, "is too large");
	*to++ = xfp_fold_component(codes, XFP_COMPONENT_CODES);
	*to++ = xfp_fold_component(matrix->scales, XFP_COMPONENT_SCALES);
	*to++ = xfp_fold_component(matrix->zeros, XFP_COMPONENT_ZEROS);
	if (groups != UINT32_MAX) {
		*to++ = xfp_fold_component(&tensors[groups], XFP_COMPONENT_GROUPS);
		fold->consumed[groups] = true;
	}
	part->component_count = (uint32_t)(to - part->components);
	part->rows = matrix->rows;
	part->cols = matrix->cols;
	fold->consumed[matrix->zeros - tensors] = fold->consumed[matrix->scales - tensors] = true;
	fold->cut[matrix->number] = (uint32_t)strlen(XFP_QWEIGHT);
	fold->ending[matrix->number] = ".weight";
	codes->dtype = xfp_grouped_dtype(matrix->scales->dtype);
	codes->shape[0] = matrix->rows;
	codes->shape[1] = matrix->cols;
	codes->bytes = bytes;
	return xfp_fold_make_tensor(fold, matrix->number, part);
}
