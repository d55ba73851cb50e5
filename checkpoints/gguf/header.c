/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/gguf/header.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/system/filesystem.h"
#include "base/text/size.h"
#include "base/utf8.h"
#include "checkpoints/checkpoint.h"

#define AGAIN "; download it again"
#define FIRST_READ ((uint64_t)64 << 10)
#define LARGEST_NAME 63 /* maximum of llama.cpp for a tensor name */
#define ALIGNMENT 32

/* A key and its value, by offsets in the header, whose buffer moves while it grows. */
struct seen_pair {
	uint64_t start, key, key_bytes, value, end, count;
	enum xfp_gguf_kind kind;
	bool array;
};

struct gguf_header_reader {
	const char *path; /* for messages */
	uint64_t start;   /* offset of the GGUF in its file */
	int fd;
	uint64_t size; /* size of the file */
	unsigned char *bytes;
	uint64_t have, capacity, at;
	struct seen_pair *pairs;
	struct xfp_gguf_tensor *tensors;
	uint32_t pair_count, tensor_count;
	struct xfp_error *err;
};

/* ---- bytes -------------------------------------------------------------------------------------- */

/* Check that `count` more bytes exist, and read them to memory in growing steps. */
static enum xfp_status need(struct gguf_header_reader *r, uint64_t count, const char *what)
{
	uint64_t end, want;
	enum xfp_status status;
	char max[32];

	if (count > r->size - r->at)
		return xfp_fail(r->err, XFP_BAD_INPUT,
				"%s: truncated or damaged: %s at byte %" PRIu64 " claims %" PRIu64
				" bytes, but %" PRIu64 " follow" AGAIN,
				r->path, what, r->at, count, r->size - r->at);
	end = r->at + count;
	if (end <= r->have)
		return XFP_OK;
	if (end > XFP_GGUF_HEADER_MAX)
		return xfp_fail(r->err, XFP_BAD_INPUT, "%s: its header exceeds the limit of %s" AGAIN, r->path,
				xfp_human((double)XFP_GGUF_HEADER_MAX, "B", max));
	want = r->have ? 2 * r->have : FIRST_READ;
	if (want < end)
		want = end;
	if (want > r->size)
		want = r->size;
	if (want > r->capacity) {
		unsigned char *grown = realloc(r->bytes, want);

		if (!grown)
			return xfp_no_memory_for(r->err, r->path);
		r->bytes = grown;
		r->capacity = want;
	}
	if ((status = xfp_pread(r->fd, r->bytes + r->have, want - r->have, r->start + r->have, r->path, r->err)))
		return status;
	r->have = want;
	return XFP_OK;
}

static enum xfp_status take32(struct gguf_header_reader *r, uint32_t *value, const char *what)
{
	enum xfp_status status = need(r, sizeof *value, what);

	if (!status) {
		*value = xfp_load32(r->bytes + r->at);
		r->at += sizeof *value;
	}
	return status;
}

static enum xfp_status take64(struct gguf_header_reader *r, uint64_t *value, const char *what)
{
	enum xfp_status status = need(r, sizeof *value, what);

	if (!status) {
		*value = xfp_load64(r->bytes + r->at);
		r->at += sizeof *value;
	}
	return status;
}

/* Check UTF-8; NULs are allowed. */
static bool is_text(const char *text, uint64_t length)
{
	while (length) {
		const char *nul = memchr(text, 0, length);
		size_t some = nul ? (size_t)(nul - text) : length;

		if (!xfp_utf8_valid(text, some))
			return false;
		text += some + (nul != NULL);
		length -= some + (nul != NULL);
	}
	return true;
}

/* Read a text; set *place and *length to its location. `what` is for messages: "key", "name", "value". */
static enum xfp_status read_text(struct gguf_header_reader *r, uint64_t *place, uint64_t *length, const char *what)
{
	uint64_t start = r->at;
	enum xfp_status status;

	if ((status = take64(r, length, what)))
		return status;
	*place = r->at;
	if ((status = need(r, *length, what)))
		return status;
	if (!is_text((const char *)r->bytes + r->at, *length))
		return xfp_fail(r->err, XFP_BAD_INPUT, "%s: a %s at byte %" PRIu64 " is not UTF-8" AGAIN, r->path, what,
				start);
	r->at += *length;
	return XFP_OK;
}

/* ---- keys and values ---------------------------------------------------------------------------- */

static struct xfp_printable shown_key(const struct gguf_header_reader *r, const struct seen_pair *pair)
{
	char key[sizeof(struct xfp_printable)];
	size_t length = pair->key_bytes < sizeof key - 1 ? pair->key_bytes : sizeof key - 1;

	memcpy(key, r->bytes + pair->key, length);
	key[length] = 0;
	return xfp_printable(key);
}

static enum xfp_status bad_pair(const struct gguf_header_reader *r, const struct seen_pair *pair, const char *what)
{
	return xfp_fail(r->err, XFP_BAD_INPUT, "%s: metadata %s: %s" AGAIN, r->path, shown_key(r, pair).text, what);
}

/* Skip `count` values of a type. */
static enum xfp_status skip_values(struct gguf_header_reader *r, const struct seen_pair *pair)
{
	uint64_t size = xfp_gguf_kind_bytes(pair->kind), place, length;
	enum xfp_status status = XFP_OK;

	/* Each text has at least a length field. */
	if (pair->count > (r->size - r->at) / (size ? size : sizeof length))
		return xfp_fail(r->err, XFP_BAD_INPUT,
				"%s: metadata %s: claims %" PRIu64 " values, but %" PRIu64 " bytes follow" AGAIN,
				r->path, shown_key(r, pair).text, pair->count, r->size - r->at);
	if (size) {
		if (!(status = need(r, pair->count * size, "a value")))
			r->at += pair->count * size;
		return status;
	}
	for (uint64_t i = 0; !status && i < pair->count; i++)
		status = read_text(r, &place, &length, "value");
	return status;
}

static enum xfp_status read_pair(struct gguf_header_reader *r, struct seen_pair *pair)
{
	enum xfp_status status;
	uint32_t kind;

	*pair = (struct seen_pair){ .start = r->at, .count = 1 };
	if ((status = read_text(r, &pair->key, &pair->key_bytes, "key")))
		return status;
	if (!pair->key_bytes)
		return xfp_fail(r->err, XFP_BAD_INPUT, "%s: a key of its metadata is empty" AGAIN, r->path);
	if (memchr(r->bytes + pair->key, 0, pair->key_bytes))
		return bad_pair(r, pair, "a key with NUL in it");
	if ((status = take32(r, &kind, "a kind of value")))
		return status;
	if ((pair->array = kind == XFP_GGUF_ARRAY)) {
		if ((status = take32(r, &kind, "a kind of value")) ||
		    (status = take64(r, &pair->count, "a number of values")))
			return status;
		if (kind == XFP_GGUF_ARRAY)
			return xfp_fail(
				r->err, XFP_BAD_INPUT,
				"%s: metadata %s: is an array of arrays, which xfp does not read; write the file "
				"without that key",
				r->path, shown_key(r, pair).text);
	}
	if (kind >= XFP_GGUF_KINDS)
		return xfp_fail(r->err, XFP_BAD_INPUT, "%s: metadata %s: has an unknown type, %" PRIu32 AGAIN, r->path,
				shown_key(r, pair).text, kind);
	pair->kind = (enum xfp_gguf_kind)kind;
	pair->value = r->at;
	if ((status = skip_values(r, pair)))
		return status;
	pair->end = r->at;
	return XFP_OK;
}

static enum xfp_status read_pairs(struct gguf_header_reader *r, uint64_t count)
{
	enum xfp_status status = XFP_OK;
	uint32_t capacity = 0;

	for (uint64_t i = 0; !status && i < count; i++) {
		if (r->pair_count == capacity) {
			struct seen_pair *grown;

			capacity = capacity ? 2 * capacity : 64;
			if (!(grown = realloc(r->pairs, capacity * sizeof *grown)))
				return xfp_no_memory_for(r->err, r->path);
			r->pairs = grown;
		}
		if (!(status = read_pair(r, &r->pairs[r->pair_count])))
			r->pair_count++;
	}
	return status;
}

/* ---- tensors ------------------------------------------------------------------------------------ */

static enum xfp_status bad_tensor(const struct gguf_header_reader *r, const char *name, const char *what)
{
	return xfp_fail(r->err, XFP_BAD_INPUT, "%s: tensor %s: %s" AGAIN, r->path, xfp_printable(name).text, what);
}

static enum xfp_status read_type(struct gguf_header_reader *r, struct xfp_gguf_tensor *t)
{
	enum xfp_status status = take32(r, &t->number, "a type");

	if (status)
		return status;
	t->type = xfp_ggml_type(t->number);
	if (!t->type)
		return xfp_fail(
			r->err, XFP_BAD_INPUT,
			"%s: tensor %s: is of type %" PRIu32
			", which llama.cpp does not have: a type of a fork of it, or the file is damaged; use a "
			"file in one of llama.cpp's own types",
			r->path, xfp_printable(t->name).text, t->number);
	if (t->type->form == XFP_GGML_REMOVED)
		return xfp_fail(r->err, XFP_BAD_INPUT,
				"%s: tensor %s: is of type %s, which llama.cpp removed; use a newer file of the model",
				r->path, xfp_printable(t->name).text, t->type->name);
	return XFP_OK;
}

/* Check the shape, and that rows are whole blocks of the type. */
static enum xfp_status check_shape(const struct gguf_header_reader *r, struct xfp_gguf_tensor *t)
{
	uint64_t elements = 1, row = t->rank ? t->shape[t->rank - 1] : 1;
	bool empty = false;

	/* A size of 0 does not excuse an overflow of the others. */
	for (uint32_t d = 0; d < t->rank; d++) {
		empty |= !t->shape[d];
		if (!xfp_mul(elements, t->shape[d] ? t->shape[d] : 1, &elements) || elements > INT64_MAX)
			return bad_tensor(r, t->name, "its shape has 2^63 elements or more");
	}
	if (empty)
		elements = 0;
	if (row % t->type->elements)
		return xfp_fail(r->err, XFP_BAD_INPUT,
				"%s: tensor %s: its rows of %" PRIu64 " elements are not whole blocks of %" PRIu32
				" (%s)" AGAIN,
				r->path, xfp_printable(t->name).text, row, t->type->elements, t->type->name);
	if (!xfp_mul(elements / t->type->elements, t->type->bytes, &t->bytes) || t->bytes > INT64_MAX)
		return bad_tensor(r, t->name, "its shape makes 2^63 bytes or more");
	return XFP_OK;
}

static enum xfp_status read_tensor(struct gguf_header_reader *r, struct xfp_gguf_tensor *t)
{
	uint64_t place, length, size;
	enum xfp_status status;

	*t = (struct xfp_gguf_tensor){ 0 };
	if ((status = read_text(r, &place, &length, "name")))
		return status;
	if (!length || length > LARGEST_NAME || memchr(r->bytes + place, 0, length))
		return xfp_fail(r->err, XFP_BAD_INPUT,
				"%s: the name of tensor %" PRIu32 " has %" PRIu64
				" bytes or holds NUL; names have 1 to %d" AGAIN,
				r->path, r->tensor_count, length, LARGEST_NAME);
	if (!(t->name = strndup((const char *)r->bytes + place, length)))
		return xfp_no_memory_for(r->err, r->path);
	if ((status = take32(r, &t->rank, "a rank")))
		return status;
	if (t->rank > XFP_GGUF_RANK)
		return xfp_fail(r->err, XFP_BAD_INPUT,
				"%s: tensor %s: has %" PRIu32 " dimensions, more than the maximum of %d" AGAIN, r->path,
				xfp_printable(t->name).text, t->rank, XFP_GGUF_RANK);
	for (uint32_t d = t->rank; d-- > 0;) {
		if ((status = take64(r, &size, "a size")))
			return status;
		if (size > INT64_MAX)
			return bad_tensor(r, t->name, "a size of it is negative");
		t->shape[d] = size;
	}
	if ((status = read_type(r, t)) || (status = check_shape(r, t)))
		return status;
	return take64(r, &t->offset, "an offset");
}

static enum xfp_status read_tensors(struct gguf_header_reader *r, uint64_t count)
{
	enum xfp_status status = XFP_OK;
	uint32_t capacity = 0;

	for (uint64_t i = 0; !status && i < count; i++) {
		if (r->tensor_count == capacity) {
			struct xfp_gguf_tensor *grown;

			capacity = capacity ? 2 * capacity : 64;
			if (!(grown = realloc(r->tensors, capacity * sizeof *grown)))
				return xfp_no_memory_for(r->err, r->path);
			r->tensors = grown;
		}
		/* Count it first, so that its name is freed if it fails. */
		status = read_tensor(r, &r->tensors[r->tensor_count++]);
	}
	return status;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum xfp_status check_names(const struct gguf_header_reader *r)
{
	char **names = malloc((r->tensor_count + (size_t)1) * sizeof *names);
	enum xfp_status status = XFP_OK;

	if (!names)
		return xfp_no_memory_for(r->err, r->path);
	for (uint32_t i = 0; i < r->tensor_count; i++)
		names[i] = r->tensors[i].name;
	qsort(names, r->tensor_count, sizeof *names, by_name);
	for (uint32_t i = 1; !status && i < r->tensor_count; i++)
		if (!strcmp(names[i - 1], names[i]))
			status = bad_tensor(r, names[i], "its name occurs twice");
	free(names);
	return status;
}

/* Check that tensors are adjacent, in order, and within the file, and convert their offsets to offsets in the file, or
 * in the archive that contains it. */
static enum xfp_status place_tensors(struct gguf_header_reader *r, uint64_t alignment)
{
	uint64_t data = xfp_align(r->at, alignment), next = 0;

	for (uint32_t i = 0; i < r->tensor_count; i++) {
		struct xfp_gguf_tensor *t = &r->tensors[i];

		if (t->offset != next)
			return xfp_fail(r->err, XFP_BAD_INPUT,
					"%s: tensor %s: begins at byte %" PRIu64
					" of the data, but the previous one ends at %" PRIu64 AGAIN,
					r->path, xfp_printable(t->name).text, t->offset, next);
		if (data > r->size || next > r->size - data || t->bytes > r->size - data - next)
			return xfp_fail(r->err, XFP_BAD_INPUT,
					"%s: truncated: tensor %s has %" PRIu64 " bytes from byte %" PRIu64
					" of the data on, and the file ends at %" PRIu64 AGAIN,
					r->path, xfp_printable(t->name).text, t->bytes, next,
					r->size > data ? r->size - data : 0);
		t->offset = r->start + data + next;
		next = xfp_align(next + t->bytes, alignment);
	}
	return XFP_OK;
}

/* ---- the file ----------------------------------------------------------------------------------- */

struct sorted_key {
	const struct xfp_gguf_value *value;
	uint32_t number;
};

static int by_key(const void *a, const void *b)
{
	const struct xfp_gguf_text *x = &((const struct sorted_key *)a)->value->key;
	const struct xfp_gguf_text *y = &((const struct sorted_key *)b)->value->key;
	int order = memcmp(x->bytes, y->bytes, x->length < y->length ? x->length : y->length);

	return order ? order : (x->length > y->length) - (x->length < y->length);
}

/* List the values; the header is complete, so their addresses are final. */
static enum xfp_status list_values(const struct gguf_header_reader *r, struct xfp_gguf_metadata *out)
{
	struct sorted_key *sorted = malloc((r->pair_count + (size_t)1) * sizeof *sorted);
	enum xfp_status status = XFP_OK;

	out->values = calloc(r->pair_count + (size_t)1, sizeof *out->values);
	out->by_key = calloc(r->pair_count + (size_t)1, sizeof *out->by_key);
	if (!sorted || !out->values || !out->by_key) {
		status = xfp_no_memory_for(r->err, r->path);
		goto done;
	}
	for (uint32_t i = 0; i < r->pair_count; i++) {
		const struct seen_pair *p = &r->pairs[i];

		out->values[i] = (struct xfp_gguf_value){
			.key = { (const char *)r->bytes + p->key, p->key_bytes },
			.kind = p->kind,
			.array = p->array,
			.count = p->count,
			.at = r->bytes + p->value,
			.bytes = p->end - p->value,
			.pair = r->bytes + p->start,
			.pair_bytes = p->end - p->start,
		};
		sorted[i] = (struct sorted_key){ &out->values[i], i };
	}
	out->count = r->pair_count;
	qsort(sorted, r->pair_count, sizeof *sorted, by_key);
	for (uint32_t i = 0; !status && i < r->pair_count; i++) {
		out->by_key[i] = sorted[i].number;
		if (i && !by_key(&sorted[i - 1], &sorted[i]))
			status = bad_pair(r, &r->pairs[sorted[i].number], "is given twice");
	}
done:
	free(sorted);
	return status;
}

static enum xfp_status read_alignment(const struct gguf_header_reader *r, const struct xfp_gguf_metadata *metadata,
				      uint64_t *alignment)
{
	const struct xfp_gguf_value *value = xfp_gguf_find(metadata, "general.alignment");

	*alignment = ALIGNMENT;
	if (!value)
		return XFP_OK;
	if (value->array || value->kind != XFP_GGUF_U32 || !xfp_gguf_integer(value, 0, alignment) || !*alignment ||
	    *alignment & (*alignment - 1))
		return xfp_fail(r->err, XFP_BAD_INPUT,
				"%s: metadata general.alignment: is not a 32-bit power of two" AGAIN, r->path);
	return XFP_OK;
}

static enum xfp_status check_version(const struct gguf_header_reader *r, uint32_t version)
{
	if (version == 2 || version == 3)
		return XFP_OK;
	if (version == 1)
		return xfp_fail(r->err, XFP_BAD_INPUT,
				"%s: is GGUF version 1 of August 2023, which is obsolete; "
				"use a newer file of the model",
				r->path);
	if (version && !(version & 0xffff))
		return xfp_fail(r->err, XFP_BAD_INPUT,
				"%s: is big-endian; llama.cpp's gguf_convert_endian.py, with 'little', converts it",
				r->path);
	return xfp_fail(r->err, XFP_BAD_INPUT,
			"%s: is of version %" PRIu32
			" of GGUF; versions 2 and 3 are read: use a newer xfp, or download the file again",
			r->path, version);
}

static enum xfp_status parse(struct gguf_header_reader *r, struct xfp_gguf_file *out)
{
	uint64_t tensors, pairs, alignment;
	enum xfp_status status;

	if ((status = need(r, 8, "its beginning")))
		return status;
	if (memcmp(r->bytes, XFP_GGUF_MAGIC, 4) != 0)
		return xfp_fail(r->err, XFP_BAD_INPUT, "%s: %s", r->path,
				!memcmp(r->bytes, "version ", 8)
					? "is a Git LFS pointer, not the file itself; run git lfs pull"
					: "is not a GGUF file; if it should be one, download it again");
	out->version = xfp_load32(r->bytes + 4);
	if ((status = check_version(r, out->version)))
		return status;
	r->at = 8;
	if ((status = take64(r, &tensors, "a number of tensors")) || (status = take64(r, &pairs, "a number of keys")))
		return status;
	/* Minimum sizes of a key and of a tensor; table sizes are 32 bits. */
	if (pairs > (r->size - r->at) / 13 || tensors > (r->size - r->at) / 25 || pairs > UINT32_MAX / 2 ||
	    tensors > UINT32_MAX / 2)
		return xfp_fail(r->err, XFP_BAD_INPUT,
				"%s: its header claims %" PRIu64 " keys and %" PRIu64
				" tensors, but the file has %" PRIu64 " bytes" AGAIN,
				r->path, pairs, tensors, r->size);
	if ((status = read_pairs(r, pairs)) || (status = read_tensors(r, tensors)) || (status = check_names(r)) ||
	    (status = list_values(r, &out->metadata)) || (status = read_alignment(r, &out->metadata, &alignment)))
		return status;
	return place_tensors(r, alignment);
}

enum xfp_status xfp_gguf_read(const struct xfp_place *place, struct xfp_gguf_file *out, struct xfp_error *err)
{
	struct gguf_header_reader r = { .path = place->shown, .start = place->offset, .fd = -1, .err = err };
	enum xfp_status status;

	*out = (struct xfp_gguf_file){ 0 };
	if ((status = xfp_place_open(place, &r.fd, &r.size, &out->identity, err)))
		goto done;
	status = (out->shown = strdup(place->shown)) ? parse(&r, out) : xfp_no_memory_for(err, place->shown);
	out->header = r.bytes;
	out->header_bytes = r.at;
	out->tensors = r.tensors;
	out->count = r.tensor_count;
	if (status)
		xfp_gguf_free(out);
done:
	free(r.pairs);
	if (r.fd >= 0)
		close(r.fd);
	return status;
}

void xfp_gguf_free(struct xfp_gguf_file *file)
{
	for (uint32_t i = 0; i < file->count; i++)
		free(file->tensors[i].name);
	free(file->tensors);
	free(file->metadata.values);
	free(file->metadata.by_key);
	free(file->header);
	free(file->shown);
	*file = (struct xfp_gguf_file){ 0 };
}
