/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/json_print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/utf8.h"

#define DIGITS 15 /* decimals with at most this many digits print unchanged */

json_t *xfp_json_text(const char *text)
{
	return xfp_json_text_of(text, strlen(text));
}

json_t *xfp_json_text_of(const char *text, size_t size)
{
	const char *end = text + size;
	json_t *value;
	char *copy, *to;

	if (xfp_utf8_valid(text, size))
		return json_stringn(text, size);
	if (!(to = copy = malloc(size * 4 + 1)))
		return NULL;
	while (text < end) {
		int n = xfp_utf8_length(text, (size_t)(end - text), NULL);

		if (n > 0 && *text) {
			memcpy(to, text, (size_t)n);
			to += n;
			text += n;
		} else {
			to += xfp_escape_byte((unsigned char)*text++, to);
		}
	}
	value = json_stringn(copy, (size_t)(to - copy));
	free(copy);
	return value;
}

json_t *xfp_json_text_or_null(const char *text)
{
	return text ? xfp_json_text(text) : json_null();
}

json_t *xfp_json_count(uint64_t count)
{
	return json_integer((json_int_t)count);
}

json_t *xfp_json_count_or_null(uint64_t count)
{
	return count ? xfp_json_count(count) : json_null();
}

json_t *xfp_json_number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

void xfp_json_put(json_t **object, const char *name, json_t *value)
{
	if (json_object_set_new(*object, name, value)) {
		json_decref(*object);
		*object = NULL;
	}
}

void xfp_json_add(json_t **list, json_t *piece)
{
	if (json_array_append_new(*list, piece)) {
		json_decref(*list);
		*list = NULL;
	}
}

void xfp_json_join(json_t **object, json_t *more)
{
	if (json_object_update_new(*object, more)) {
		json_decref(*object);
		*object = NULL;
	}
}

json_t *xfp_json_object(const struct xfp_json_field fields[])
{
	json_t *object = json_object();

	/* The values must be released even if there is no object. */
	for (; fields->name; fields++)
		xfp_json_put(&object, fields->name, fields->value);
	return object;
}

/* jansson escapes C0 only. DEL and C1 (U+0080 to U+009F, whose first byte is c2) occur only in strings, where "\\u00NN"
 * is the same character. jansson writes strings in pieces of whole characters. */
static int put(const char *text, size_t size, void *context)
{
	FILE *out = context;

	for (const char *end = text + size; text < end; text++) {
		unsigned char c = (unsigned char)*text, next = end - text > 1 ? (unsigned char)text[1] : 0;

		if (c == 0x7f)
			fputs("\\u007F", out);
		else if (c == 0xc2 && next >= 0x80 && next < 0xa0)
			fprintf(out, "\\u%04X", (unsigned char)*++text);
		else
			putc(c, out);
	}
	return 0;
}

static enum xfp_status print(json_t *root, size_t flags, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	if (!root || json_dump_callback(root, put, stdout, flags | JSON_ENCODE_ANY | JSON_REAL_PRECISION(DIGITS)))
		status = xfp_no_memory(err);
	json_decref(root);
	return status;
}

enum xfp_status xfp_json_print(json_t *root, struct xfp_error *err)
{
	enum xfp_status status = print(root, JSON_INDENT(2), err);

	if (!status)
		putchar('\n');
	return status;
}

enum xfp_status xfp_json_print_line(json_t *root, struct xfp_error *err)
{
	return print(root, JSON_COMPACT, err);
}
