/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/content.h"

#include <stdlib.h>
#include <string.h>

#include "base/printable.h"

json_t *xfp_json_content(struct xfp_part_reader *r, const char *bytes, size_t size, const json_t *config)
{
	json_error_t problem;
	json_t *root = json_loadb(bytes, size, 0, &problem);

	(void)config;
	if (!root)
		r->status = json_error_code(&problem) == json_error_out_of_memory
				    ? xfp_no_memory_for(r->err, r->file)
				    : xfp_fail(r->err, XFP_BAD_INPUT, "%s: not JSON: line %d: %s", r->file,
					       problem.line, xfp_printable(problem.text).text);
	return root;
}

json_t *xfp_content_added(struct xfp_part_reader *r, const json_t *config)
{
	json_t *list = r->status ? NULL : json_array(), *value;
	const char *key;

	if (!r->status && !list)
		r->status = xfp_no_memory_for(r->err, r->file);
	json_object_foreach (json_object_get(config, "added_tokens_decoder"), key, value) {
		unsigned long id = strtoul(key, NULL, 10);
		json_t *token = NULL;

		if (!*key || strspn(key, "0123456789") != strlen(key) || id >= INT32_MAX || !json_is_object(value))
			xfp_part_refuse(r, "tokenizer_config.json", "added_tokens_decoder: %s is not the id of a token",
					xfp_printable(key).text);
		if (r->status)
			break;
		if (!(token = json_copy(value)) || json_object_set_new(token, "id", json_integer((json_int_t)id)) ||
		    json_array_append(list, token))
			r->status = xfp_no_memory_for(r->err, r->file);
		json_decref(token);
	}
	if (!r->status)
		return list;
	json_decref(list);
	return NULL;
}

bool xfp_content_line(struct xfp_part_reader *r, struct xfp_content_lines *lines)
{
	const char *stop = memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
	size_t size;

	if (r->status || lines->at == lines->end)
		return false;
	lines->number += lines->line.bytes != NULL;
	size = (size_t)((stop ? stop : lines->end) - lines->at);
	size -= size && lines->at[size - 1] == '\r';
	lines->line.size = 0;
	if (xfp_growable_add(&lines->line, lines->at, size) && xfp_growable_add(&lines->line, "", 1)) {
		lines->line.size--;
		lines->at = stop ? stop + 1 : lines->end;
		return true;
	}
	r->status = xfp_no_memory_for(r->err, r->file);
	return false;
}
