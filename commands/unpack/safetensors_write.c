/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/unpack/safetensors_write.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"

static int by_element_and_name(const void *a, const void *b)
{
	const struct xfp_safetensor *x = *(struct xfp_safetensor *const *)a, *y = *(struct xfp_safetensor *const *)b;
	unsigned x_bits = xfp_dtype_bits(x->dtype), y_bits = xfp_dtype_bits(y->dtype);

	return x_bits != y_bits ? (x_bits < y_bits) - (x_bits > y_bits) : strcmp(x->name, y->name);
}

static json_t *describe(const struct xfp_safetensor *tensor)
{
	json_t *shape = json_array();

	for (uint32_t i = 0; shape && i < tensor->rank; i++)
		json_array_append_new(shape, json_integer((json_int_t)tensor->shape[i]));
	return json_pack("{s:s, s:o, s:[I, I]}", "dtype", xfp_dtype_name(tensor->dtype), "shape", shape, "data_offsets",
			 (json_int_t)tensor->offset, (json_int_t)(tensor->offset + tensor->bytes));
}

/* Give every tensor its place, counted from the end of the header, and describe them all. */
static char *make_header(struct xfp_safetensor *tensors, uint32_t count, uint64_t *data_bytes)
{
	struct xfp_safetensor **sorted = malloc((count + (size_t)1) * sizeof *sorted);
	json_t *root = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
	bool ok = sorted && root;
	char *text;

	*data_bytes = 0;
	for (uint32_t i = 0; ok && i < count; i++)
		sorted[i] = &tensors[i];
	if (ok)
		qsort(sorted, count, sizeof *sorted, by_element_and_name);
	for (uint32_t i = 0; ok && i < count; i++) {
		sorted[i]->offset = *data_bytes;
		*data_bytes += sorted[i]->bytes;
		ok = !json_object_set_new(root, sorted[i]->name, describe(sorted[i]));
	}
	text = ok ? json_dumps(root, JSON_COMPACT) : NULL;
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
