/* SPDX-License-Identifier: Apache-2.0 */
#include "model/npy.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/system/file.h"

#define LARGEST_FILE ((size_t)1 << 34)
#define SAVE "; save the ids with numpy.save, as integers [sequences, length]"

/* The header: a Python literal such as {'descr': '<u2', 'fortran_order': False, 'shape': (64, 256), }. */
struct npy_header {
	unsigned size; /* bytes per element */
	bool is_signed;
	size_t sequences, length;
};

/* False at the end of the text, unlike strchr. */
static bool is_one_of(char c, const char *set)
{
	return c && strchr(set, c);
}

/* The value after 'NAME':, or NULL if it is missing. */
static const char *value_of(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	if (!at)
		return NULL;
	at += strlen(name);
	while (*at == ' ' || *at == ':')
		at++;
	return at;
}

static bool parse_number(const char **at, size_t *number)
{
	uint64_t value = 0;

	while (**at == ' ' || **at == ',')
		++*at;
	if (!isdigit((unsigned char)**at))
		return false;
	for (; isdigit((unsigned char)**at); ++*at) {
		if (!xfp_mul(value, 10, &value) || !xfp_add(value, (uint64_t)(**at - '0'), &value))
			return false;
	}
	*number = value;
	return true;
}

static bool parse_header(const char *text, struct npy_header *h)
{
	const char *type = value_of(text, "'descr'"), *order = value_of(text, "'fortran_order'");
	const char *shape = value_of(text, "'shape'");
	size_t none;

	if (!type || !order || !shape || *shape++ != '(' || strncmp(order, "False", 5) || type[0] != '\'' ||
	    !is_one_of(type[1], "<|") || !is_one_of(type[2], "iu") || !is_one_of(type[3], "1248") || type[4] != '\'')
		return false;
	h->is_signed = type[2] == 'i';
	h->size = (unsigned)(type[3] - '0');
	if (!parse_number(&shape, &h->length))
		return false;
	h->sequences = 1;
	if (parse_number(&shape, &none)) {
		h->sequences = h->length;
		h->length = none;
	}
	return !parse_number(&shape, &none) && *shape == ')';
}

/* Ids beyond 32 bits become UINT32_MAX, which no vocabulary contains. */
static bool convert_ids(const char *bytes, const struct npy_header *h, uint32_t *ids)
{
	for (size_t i = 0; i < h->sequences * h->length; i++, bytes += h->size) {
		uint64_t id = 0;

		memcpy(&id, bytes, h->size);
		if (h->is_signed && id >> (8 * h->size - 1))
			return false;
		ids[i] = id < UINT32_MAX ? (uint32_t)id : UINT32_MAX;
	}
	return true;
}

static enum xfp_status parse(const char *path, char *file, size_t size, struct xfp_tokens *tokens,
			     struct xfp_error *err)
{
	struct npy_header h;
	size_t begin, length;
	uint64_t bytes;
	bool good;
	char end;

	if (size < 12 || memcmp(file, "\x93NUMPY", 6) || file[6] < 1 || file[6] > 3)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: is not a .npy file" SAVE, path);
	begin = file[6] == 1 ? 10 : 12;
	length = file[6] == 1 ? xfp_load16(file + 8) : xfp_load32(file + 8);
	if (length > size - begin)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: is truncated", path);
	end = file[begin + length];
	file[begin + length] = 0;
	good = parse_header(file + begin, &h);
	file[begin + length] = end;
	if (!good)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: does not hold integers of one or two dimensions" SAVE, path);
	if (h.length < 2 || !h.sequences)
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s: has fewer than two tokens per sequence, so there is nothing to predict", path);
	if (!xfp_mul(h.sequences, h.length, &bytes) || !xfp_mul(bytes, h.size, &bytes) || bytes > size - begin - length)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: is truncated", path);
	*tokens = (struct xfp_tokens){ h.sequences, h.length, malloc(h.sequences * h.length * sizeof(uint32_t)), 0 };
	if (!tokens->ids)
		return xfp_no_memory_for(err, path);
	if (convert_ids(file + begin + length, &h, tokens->ids))
		return XFP_OK;
	free(tokens->ids);
	tokens->ids = NULL;
	return xfp_fail(err, XFP_BAD_INPUT, "%s: has a negative number, which is not a token id", path);
}

enum xfp_status xfp_tokens_read(const char *path, struct xfp_tokens *tokens, struct xfp_error *err)
{
	enum xfp_status status;
	size_t size;
	char *file;

	*tokens = (struct xfp_tokens){ 0 };
	if ((status = xfp_slurp_input(path, LARGEST_FILE, &file, &size, err)))
		return status;
	status = parse(xfp_input_name(path), file, size, tokens, err);
	free(file);
	return status;
}

#define HEADER 128 /* bytes; numbers are aligned to 64 */

enum xfp_status xfp_npy_write(const struct xfp_pending *file, const float *numbers, size_t rows, size_t cols,
			      struct xfp_error *err)
{
	static const unsigned char magic[] = { 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, HEADER - 10, 0 };
	char header[HEADER];
	enum xfp_status status;
	int length;

	memcpy(header, magic, sizeof magic);
	length = snprintf(header + sizeof magic, sizeof header - sizeof magic,
			  "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }", rows, cols);
	memset(header + sizeof magic + length, ' ', sizeof header - sizeof magic - (size_t)length);
	header[HEADER - 1] = '\n';
	status = xfp_write(file->fd, header, HEADER, file->path, err);
	return status ? status : xfp_write(file->fd, numbers, rows * cols * sizeof *numbers, file->path, err);
}
