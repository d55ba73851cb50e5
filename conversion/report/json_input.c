/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/report/json_input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"

#define LARGEST_INPUT ((size_t)1 << 30)
#define LARGEST_COUNT ((json_int_t)1 << 53)

enum xfp_status xfp_json_input_open(struct xfp_json_input *input, const char *path, const char *command,
				    struct xfp_error *err)
{
	json_error_t error;
	char *text = NULL;
	size_t size;

	*input = (struct xfp_json_input){ .path = path, .command = command, .err = err };
	if ((input->status = xfp_slurp_regular(path, LARGEST_INPUT, &text, &size, err)))
		return input->status;
	input->root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
	free(text);
	if (!input->root)
		input->status = xfp_fail(err, XFP_BAD_INPUT, "%s: line %d: invalid JSON (%s); make it with %s", path,
					 error.line, error.text, command);
	else if (!json_is_object(input->root))
		input->status = xfp_fail(err, XFP_BAD_INPUT, "%s: not a JSON object; make it with %s", path, command);
	return input->status;
}

void xfp_json_input_fault(struct xfp_json_input *input, const char *key, const char *what)
{
	if (!input->status)
		input->status = xfp_fail(input->err, XFP_BAD_INPUT, "%s: \"%s\" is missing or not %s; make it with %s",
					 input->path, key, what, input->command);
}

void xfp_json_input_family(struct xfp_json_input *input, const char *family)
{
	const char *found = xfp_json_input_text(input, input->root, "family");

	if (!input->status && strcmp(found, family))
		input->status =
			xfp_fail(input->err, XFP_BAD_INPUT, "%s: of family %s, but the bundle's is %s; make it with %s",
				 input->path, found, family, input->command);
}

double xfp_json_input_number(struct xfp_json_input *input, const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_number(value))
		xfp_json_input_fault(input, key, "a number");
	return json_number_value(value);
}

double xfp_json_input_number_or_null(struct xfp_json_input *input, const json_t *object, const char *key)
{
	return json_is_null(json_object_get(object, key)) ? INFINITY : xfp_json_input_number(input, object, key);
}

uint64_t xfp_json_input_count(struct xfp_json_input *input, const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	json_int_t count = json_integer_value(value);

	if (!json_is_integer(value) || count < 0 || count > LARGEST_COUNT) {
		xfp_json_input_fault(input, key, "a whole number");
		return 0;
	}
	return (uint64_t)count;
}

const char *xfp_json_input_text(struct xfp_json_input *input, const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	if (!text)
		xfp_json_input_fault(input, key, "a text");
	return text ? text : "";
}

json_t *xfp_json_input_object(struct xfp_json_input *input, const json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	if (!json_is_object(value))
		xfp_json_input_fault(input, key, "an object");
	return value;
}

json_t *xfp_json_input_list(struct xfp_json_input *input, const json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	if (!json_is_array(value))
		xfp_json_input_fault(input, key, "a list");
	return value;
}
