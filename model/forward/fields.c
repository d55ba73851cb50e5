/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forward/fields.h"

#define MAX_COUNT 0x1000000 /* limit of any count: 2^24 */

void xfp_field_wrong(struct xfp_fields *f, const char *key, const char *what)
{
	if (!f->status)
		f->status = xfp_fail(f->err, XFP_BAD_INPUT, "%s: %s %s", f->where, key, what);
}

json_t *xfp_field(json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	return json_is_null(value) ? NULL : value;
}

uint32_t xfp_field_count(struct xfp_fields *f, const char *key, uint32_t otherwise)
{
	json_t *value = xfp_field(f->root, key);

	if (!value && otherwise)
		return otherwise;
	if (json_is_integer(value) && json_integer_value(value) >= 1 && json_integer_value(value) <= MAX_COUNT)
		return (uint32_t)json_integer_value(value);
	xfp_field_wrong(f, key, value ? "is not a valid count" : "is missing" XFP_OWN_CONFIG);
	return 1;
}

uint32_t xfp_field_count_or_zero(struct xfp_fields *f, const char *key, uint32_t otherwise)
{
	json_t *value = xfp_field(f->root, key);
	bool zero = value ? json_is_integer(value) && !json_integer_value(value) : !otherwise;

	return zero ? 0 : xfp_field_count(f, key, otherwise);
}

bool xfp_field_flag(struct xfp_fields *f, const char *key, bool otherwise)
{
	json_t *value = xfp_field(f->root, key);

	if (value && !json_is_boolean(value))
		xfp_field_wrong(f, key, "is neither true nor false");
	return json_object_get(f->root, key) ? json_is_true(value) : otherwise;
}

double xfp_field_number(struct xfp_fields *f, json_t *object, const char *key, double otherwise)
{
	json_t *value = xfp_field(object, key);
	double number = json_number_value(value);

	if (!value && otherwise > 0)
		return otherwise;
	if (json_is_number(value) && number > 0 && number < 1e30)
		return number;
	xfp_field_wrong(f, key, value ? "is not a valid number" : "is missing" XFP_OWN_CONFIG);
	return 1;
}

double xfp_field_any_number(struct xfp_fields *f, json_t *object, const char *key)
{
	json_t *value = xfp_field(object, key);

	if (value && !json_is_number(value))
		xfp_field_wrong(f, key, "is not a valid number");
	return json_number_value(value);
}
