/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/safetensors_header.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/sort.h"
#include "checkpoints/json_reader.h"

#define AGAIN "; the file is damaged: download it again"

struct header_parser {
	const char *path;
	struct xfp_json json;
	struct xfp_source_tensor *tensors; /* until the layout is checked, offset is BEGIN and bytes is END */
	uint32_t count, capacity;
	struct xfp_header *header; /* receives __metadata__; may be NULL */
	uint32_t number;           /* number of the file in `header` */
	struct xfp_error *err;
};

static enum xfp_status bad_json(struct header_parser *p, const char *name)
{
	if (!name)
		return xfp_fail(p->err, XFP_BAD_INPUT,
				"%s: its header is not valid safetensors: %s at its byte %td" AGAIN, p->path,
				p->json.error, p->json.at - p->json.start);
	return xfp_fail(p->err, XFP_BAD_INPUT, "%s: tensor %s: %s at byte %td of the header" AGAIN, p->path,
			xfp_printable(name).text, p->json.error, p->json.at - p->json.start);
}

static enum xfp_status bad_tensor(struct header_parser *p, const char *name, const char *what)
{
	return xfp_fail(p->err, XFP_BAD_INPUT, "%s: tensor %s: %s" AGAIN, p->path, xfp_printable(name).text, what);
}

/* ---- the JSON ----------------------------------------------------------------------------------- */

static enum xfp_status parse_dtype(struct header_parser *p, struct xfp_source_tensor *t)
{
	char dtype[64];
	size_t length;

	if (!xfp_json_string(&p->json, dtype, sizeof dtype, &length))
		return bad_json(p, t->name);
	if (length >= sizeof dtype || !xfp_dtype_parse(dtype, &t->dtype))
		return xfp_fail(p->err, XFP_BAD_INPUT, "%s: tensor %s: unknown dtype %s" AGAIN, p->path,
				xfp_printable(t->name).text, xfp_printable(dtype).text);
	return XFP_OK;
}

static enum xfp_status parse_shape(struct header_parser *p, struct xfp_source_tensor *t)
{
	uint64_t dimension;

	xfp_json_open(&p->json, '[');
	while (xfp_json_next(&p->json, ']') && xfp_json_u64(&p->json, &dimension)) {
		if (t->rank == XFP_MAX_RANK)
			return xfp_fail(p->err, XFP_BAD_INPUT,
					"%s: tensor %s: has more than %d dimensions; not supported", p->path,
					xfp_printable(t->name).text, XFP_MAX_RANK);
		t->shape[t->rank++] = dimension;
	}
	return p->json.error ? bad_json(p, t->name) : XFP_OK;
}

static enum xfp_status parse_offsets(struct header_parser *p, struct xfp_source_tensor *t)
{
	uint64_t offsets[2], offset;
	unsigned count = 0;

	xfp_json_open(&p->json, '[');
	while (xfp_json_next(&p->json, ']') && xfp_json_u64(&p->json, &offset)) {
		if (count < 2)
			offsets[count] = offset;
		count += count < 3;
	}
	if (p->json.error)
		return bad_json(p, t->name);
	if (count != 2)
		return bad_tensor(p, t->name, "data_offsets are not two numbers");
	t->offset = offsets[0];
	t->bytes = offsets[1];
	return XFP_OK;
}

static enum xfp_status parse_tensor(struct header_parser *p, struct xfp_source_tensor *t)
{
	static const struct {
		const char *key;
		enum xfp_status (*parse)(struct header_parser *p, struct xfp_source_tensor *t);
	} fields[3] = { { "dtype", parse_dtype }, { "shape", parse_shape }, { "data_offsets", parse_offsets } };
	bool seen[3] = { false, false, false };
	enum xfp_status status;
	char key[64];
	size_t length;

	xfp_json_open(&p->json, '{');
	while (xfp_json_next(&p->json, '}') && xfp_json_key(&p->json, key, sizeof key, &length)) {
		unsigned i = 0;

		while (i < 3 && (length != strlen(fields[i].key) || strcmp(key, fields[i].key)))
			i++;
		if (i == 3) {
			xfp_json_skip(&p->json); /* other writers may add members */
			continue;
		}
		if (seen[i])
			return xfp_fail(p->err, XFP_BAD_INPUT, "%s: tensor %s: %s is given twice" AGAIN, p->path,
					xfp_printable(t->name).text, key);
		seen[i] = true;
		if ((status = fields[i].parse(p, t)))
			return status;
	}
	if (p->json.error)
		return bad_json(p, t->name);
	for (unsigned i = 0; i < 3; i++) {
		if (!seen[i])
			return xfp_fail(p->err, XFP_BAD_INPUT, "%s: tensor %s: has no %s" AGAIN, p->path,
					xfp_printable(t->name).text, fields[i].key);
	}
	return XFP_OK;
}

/* Parse a value of __metadata__. */
static enum xfp_status parse_note(struct header_parser *p, const char *key)
{
	size_t size = (size_t)(p->json.end - p->json.at) + 1, length;
	enum xfp_status status = XFP_OK;
	struct xfp_header_entry entry = { .file = p->number, .type = "string", .count = 1 };
	char *value;

	if (!p->header) {
		xfp_json_skip(&p->json);
		return XFP_OK;
	}
	/* A decoded string is not longer than the rest of the header. */
	if (!(value = malloc(size)))
		return xfp_no_memory_for(p->err, p->path);
	if (xfp_json_string(&p->json, value, size, &length)) {
		entry.key = strdup(key);
		entry.values = strdup(value);
		status = xfp_header_add(p->header, &entry, p->err);
	}
	free(value);
	return status;
}

/* Check __metadata__, which has no effect here. */
static enum xfp_status parse_metadata(struct header_parser *p)
{
	enum xfp_status status;
	char key[XFP_MAX_NAME];
	size_t length;

	if (xfp_json_peek(&p->json) == 'n') {
		xfp_json_skip(&p->json);
		return p->json.error ? bad_json(p, "__metadata__") : XFP_OK;
	}
	xfp_json_open(&p->json, '{');
	while (xfp_json_next(&p->json, '}') && xfp_json_key(&p->json, key, sizeof key, &length)) {
		if (xfp_json_peek(&p->json) != '"')
			return bad_tensor(p, "__metadata__", "contains a value that is not a string");
		if ((status = parse_note(p, key)))
			return status;
	}
	return p->json.error ? bad_json(p, "__metadata__") : XFP_OK;
}

static enum xfp_status add_tensor(struct header_parser *p, const char *name, size_t length)
{
	struct xfp_source_tensor *grown;

	if (length > XFP_MAX_NAME)
		return xfp_fail(p->err, XFP_BAD_INPUT,
				"%s: tensor %s: its name has %zu bytes, more than the %d supported", p->path,
				xfp_printable(name).text, length, XFP_MAX_NAME);
	if (p->count == p->capacity) {
		p->capacity = p->capacity ? p->capacity * 2 : 64;
		grown = realloc(p->tensors, p->capacity * sizeof *grown);
		if (!grown)
			return xfp_no_memory_for(p->err, p->path);
		p->tensors = grown;
	}
	p->tensors[p->count] = (struct xfp_source_tensor){ .name = strdup(name) };
	if (!p->tensors[p->count].name)
		return xfp_no_memory_for(p->err, p->path);
	p->count++;
	return XFP_OK;
}

static enum xfp_status parse(struct header_parser *p)
{
	bool metadata = false;
	enum xfp_status status;
	char name[XFP_MAX_NAME + 1];
	size_t length;

	xfp_json_open(&p->json, '{');
	while (xfp_json_next(&p->json, '}') && xfp_json_key(&p->json, name, sizeof name, &length)) {
		if (!strcmp(name, "__metadata__")) {
			if (metadata)
				return bad_tensor(p, name, "is given twice");
			metadata = true;
			status = parse_metadata(p);
		} else if (!(status = add_tensor(p, name, length))) {
			status = parse_tensor(p, &p->tensors[p->count - 1]);
		}
		if (status)
			return status;
	}
	return xfp_json_end(&p->json) ? XFP_OK : bad_json(p, NULL);
}

/* ---- the layout --------------------------------------------------------------------------------- */

/* Compare pointers to tensors by name. */
static int by_name(const void *a, const void *b)
{
	const struct xfp_source_tensor *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static int by_place(const void *a, const void *b)
{
	const struct xfp_source_tensor *x = *(const struct xfp_source_tensor *const *)a;
	const struct xfp_source_tensor *y = *(const struct xfp_source_tensor *const *)b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return strcmp(x->name, y->name);
}

static enum xfp_status check_size(struct header_parser *p, const struct xfp_source_tensor *t)
{
	uint64_t bits = 1;

	/* Left to right, like the reference: a zero after an overflow does not excuse it. */
	for (uint32_t i = 0; i < t->rank; i++) {
		if (!xfp_mul(bits, t->shape[i], &bits))
			return bad_tensor(p, t->name, "its shape has more than 2^64 elements");
	}
	if (!xfp_mul(bits, xfp_dtype_bits(t->dtype), &bits))
		return bad_tensor(p, t->name, "its shape and dtype make more than 2^64 bits");
	if (bits % 8)
		return bad_tensor(p, t->name, "its shape and dtype do not make whole bytes");
	if (bits / 8 != t->bytes - t->offset)
		return xfp_fail(p->err, XFP_BAD_INPUT,
				"%s: tensor %s: its shape and dtype (%s) make %" PRIu64
				" bytes, its data_offsets %" PRIu64 AGAIN,
				p->path, xfp_printable(t->name).text, xfp_dtype_name(t->dtype), bits / 8,
				t->bytes - t->offset);
	return XFP_OK;
}

/* Check that names are unique; sorts `order` by name. */
static enum xfp_status check_names(struct header_parser *p, struct xfp_source_tensor **order)
{
	xfp_sort(order, p->count, sizeof *order, by_name);
	for (uint32_t i = 1; i < p->count; i++) {
		if (!strcmp(order[i - 1]->name, order[i]->name))
			return bad_tensor(p, order[i]->name, "its name occurs twice");
	}
	return XFP_OK;
}

/* Check that the tensors fill the data end to end; then convert offsets to those of the interface. */
static enum xfp_status check_layout(struct header_parser *p, struct xfp_source_tensor **order, uint64_t data,
				    uint64_t file_size)
{
	uint64_t start = 0;
	enum xfp_status status;

	xfp_sort(order, p->count, sizeof *order, by_place);
	for (uint32_t i = 0; i < p->count; i++) {
		const struct xfp_source_tensor *t = order[i];

		if (t->bytes < t->offset)
			return bad_tensor(p, t->name, "ends before it begins");
		if (t->offset < start)
			return xfp_fail(p->err, XFP_BAD_INPUT,
					"%s: tensor %s: begins at byte %" PRIu64
					" of the data and overlaps %s, which ends at %" PRIu64 AGAIN,
					p->path, xfp_printable(t->name).text, t->offset,
					xfp_printable(order[i - 1]->name).text, start);
		if (t->offset > start)
			return xfp_fail(p->err, XFP_BAD_INPUT,
					"%s: tensor %s: begins at byte %" PRIu64
					" of the data and leaves a hole from %" PRIu64 AGAIN,
					p->path, xfp_printable(t->name).text, t->offset, start);
		if ((status = check_size(p, t)))
			return status;
		start = t->bytes;
	}
	if (start > file_size - data)
		return xfp_fail(p->err, XFP_BAD_INPUT,
				"%s: truncated: its header claims %" PRIu64 " bytes of data, the file has %" PRIu64
				"; download it again",
				p->path, start, file_size - data);
	if (start < file_size - data)
		return xfp_fail(p->err, XFP_BAD_INPUT, "%s: %" PRIu64 " bytes follow the last tensor" AGAIN, p->path,
				file_size - data - start);

	for (uint32_t i = 0; i < p->count; i++) {
		p->tensors[i].bytes -= p->tensors[i].offset;
		p->tensors[i].offset += data;
	}
	return XFP_OK;
}

/* Check names first: duplicates overlap as well, and the name is the better message. Sorts the tensors by name. */
static enum xfp_status check(struct header_parser *p, uint64_t data, uint64_t file_size)
{
	struct xfp_source_tensor **named = malloc((p->count + (size_t)1) * sizeof *named);
	struct xfp_source_tensor **placed = malloc((p->count + (size_t)1) * sizeof *placed);
	struct xfp_source_tensor *sorted = malloc((p->count + (size_t)1) * sizeof *sorted);
	enum xfp_status status;

	if (!named || !placed || !sorted) {
		status = xfp_no_memory_for(p->err, p->path);
		goto done;
	}
	for (uint32_t i = 0; i < p->count; i++)
		named[i] = placed[i] = &p->tensors[i];
	if ((status = check_names(p, named)) || (status = check_layout(p, placed, data, file_size)))
		goto done;
	for (uint32_t i = 0; i < p->count; i++)
		sorted[i] = *named[i];
	free(p->tensors);
	p->tensors = sorted;
	sorted = NULL;

done:
	free(named);
	free(placed);
	free(sorted);
	return status;
}

/* ---- the file ----------------------------------------------------------------------------------- */

/* Recognize files that are often found in place of a safetensors file. */
static enum xfp_status not_safetensors(const char *path, const char *first8, uint64_t header, uint64_t size,
				       struct xfp_error *err)
{
	if (!memcmp(first8, "version ", 8))
		return xfp_fail(err, XFP_BAD_INPUT, "%s: is a Git LFS pointer, not the file itself; run git lfs pull",
				path);
	if (header > XFP_SAFETENSORS_HEADER_MAX)
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s: its header claims %" PRIu64
				" bytes, more than the %d that are allowed; not a safetensors"
				" file, or damaged: download it again",
				path, header, XFP_SAFETENSORS_HEADER_MAX);
	return xfp_fail(err, XFP_BAD_INPUT,
			"%s: truncated: its header alone claims %" PRIu64 " bytes, the file has %" PRIu64
			"; download it again",
			path, header, size);
}

enum xfp_status xfp_safetensors_read(const struct xfp_place *place, struct xfp_tensor_file *out, struct xfp_error *err)
{
	return xfp_safetensors_read_all(place, 0, out, NULL, err);
}

enum xfp_status xfp_safetensors_read_all(const struct xfp_place *place, uint32_t number, struct xfp_tensor_file *out,
					 struct xfp_header *header, struct xfp_error *err)
{
	struct header_parser p = { .path = place->shown, .header = header, .number = number, .err = err };
	struct xfp_identity identity = { 0 };
	enum xfp_status status = XFP_OK;
	char first8[8], *text = NULL;
	uint64_t length, size;
	int fd = -1;

	if ((status = xfp_place_open(place, &fd, &size, &identity, err)))
		goto done;
	if (size < 8) {
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: truncated: it has %" PRIu64 " bytes; download it again",
				  p.path, size);
		goto done;
	}
	if ((status = xfp_pread(fd, first8, sizeof first8, place->offset, p.path, err)))
		goto done;
	length = xfp_load64(first8);
	if (length > XFP_SAFETENSORS_HEADER_MAX || length > size - 8) {
		status = not_safetensors(p.path, first8, length, size, err);
		goto done;
	}
	text = malloc(length ? length : 1);
	if (!text) {
		status = xfp_fail(err, XFP_FAILED, "%s: out of memory for its header", p.path);
		goto done;
	}
	if ((status = xfp_pread(fd, text, length, place->offset + 8, p.path, err)))
		goto done;
	xfp_json_init(&p.json, text, length);
	if ((status = parse(&p)) || (status = check(&p, 8 + length, size)))
		goto done;
	for (uint32_t i = 0; i < p.count; i++)
		p.tensors[i].offset += place->offset;
	*out = (struct xfp_tensor_file){ p.tensors, p.count, identity };
	p.tensors = NULL;
	p.count = 0;

done:
	xfp_tensor_file_free(&(struct xfp_tensor_file){ .tensors = p.tensors, .count = p.count });
	free(text);
	if (fd >= 0)
		close(fd);
	return status;
}
