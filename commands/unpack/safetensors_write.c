/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/unpack/safetensors_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "schemas/json_print.h"

static int by_element_and_name(const void *a, const void *b)
{
	const struct xfp_safetensor *x = *(struct xfp_safetensor *const *)a, *y = *(struct xfp_safetensor *const *)b;
	unsigned x_bits = xfp_dtype_bits(x->dtype), y_bits = xfp_dtype_bits(y->dtype);

	return x_bits != y_bits ? (x_bits < y_bits) - (x_bits > y_bits) : strcmp(x->name, y->name);
}

static json_t *describe(const struct xfp_safetensor *tensor)
{
	json_t *shape = json_array(), *offsets = json_array();

	for (uint32_t i = 0; i < tensor->rank; i++)
		xfp_json_add(&shape, xfp_json_count(tensor->shape[i]));
	xfp_json_add(&offsets, xfp_json_count(tensor->offset));
	xfp_json_add(&offsets, xfp_json_count(tensor->offset + tensor->bytes));
	return XFP_JSON({ "dtype", json_string(xfp_dtype_name(tensor->dtype)) }, { "shape", shape },
			{ "data_offsets", offsets });
}

/* Assign every tensor an offset from the end of the header, and build the header. */
static char *make_header(struct xfp_safetensor *tensors, uint32_t count, uint64_t *data_bytes)
{
	struct xfp_safetensor **sorted = malloc((count + (size_t)1) * sizeof *sorted);
	json_t *root;
	char *text;

	*data_bytes = 0;
	if (!sorted)
		return NULL;
	for (uint32_t i = 0; i < count; i++)
		sorted[i] = &tensors[i];
	qsort(sorted, count, sizeof *sorted, by_element_and_name);
	root = XFP_JSON({ "__metadata__", XFP_JSON({ "format", json_string("pt") }) });
	for (uint32_t i = 0; i < count; i++) {
		sorted[i]->offset = *data_bytes;
		*data_bytes += sorted[i]->bytes;
		xfp_json_put(&root, sorted[i]->name, describe(sorted[i]));
	}
	text = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	free(sorted);
	return text;
}

enum xfp_status xfp_safetensors_begin(const char *path, struct xfp_safetensor *tensors, uint32_t count,
				      struct xfp_pending *file, struct xfp_error *err)
{
	uint64_t data_bytes, length, start;
	char *text = make_header(tensors, count, &data_bytes), *header = NULL;
	enum xfp_status status;

	length = text ? xfp_align(strlen(text), 8) : 0;
	start = 8 + length;
	header = malloc(start);
	if (!text || !header) {
		status = xfp_no_memory(err);
		goto done;
	}
	xfp_store64(header, length);
	memset(header + 8, ' ', length);
	memcpy(header + 8, text, strlen(text));
	if ((status = xfp_pending_open(path, file, err)))
		goto done;
	if (ftruncate(file->fd, (off_t)(start + data_bytes)))
		status = xfp_fail_errno(err, errno, "%s", path);
	else
		status = xfp_pwrite(file->fd, header, start, 0, path, err);
	for (uint32_t i = 0; i < count; i++)
		tensors[i].offset += start;
	if (status)
		xfp_pending_discard(file);
done:
	free(text);
	free(header);
	return status;
}
