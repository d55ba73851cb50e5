/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/gguf/metadata.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

static const size_t kind_bytes[XFP_GGUF_KINDS] = {
	[XFP_GGUF_U8] = 1,  [XFP_GGUF_I8] = 1,  [XFP_GGUF_U16] = 2, [XFP_GGUF_I16] = 2,
	[XFP_GGUF_U32] = 4, [XFP_GGUF_I32] = 4, [XFP_GGUF_F32] = 4, [XFP_GGUF_BOOL] = 1,
	[XFP_GGUF_U64] = 8, [XFP_GGUF_I64] = 8, [XFP_GGUF_F64] = 8,
};

size_t xfp_gguf_kind_bytes(uint32_t kind)
{
	return kind < XFP_GGUF_KINDS ? kind_bytes[kind] : 0;
}

/* Compare a key with "PREFIX.NAME", or with NAME if the prefix is NULL. */
static int compare(const struct xfp_gguf_text *key, const char *prefix, const char *name)
{
	size_t before = prefix ? strlen(prefix) + 1 : 0, length = before + strlen(name);

	for (size_t i = 0; i < length && i < key->length; i++) {
		unsigned char want = (unsigned char)(i >= before       ? name[i - before]
						     : i + 1 == before ? '.'
								       : prefix[i]);
		unsigned char have = (unsigned char)key->bytes[i];

		if (have != want)
			return have < want ? -1 : 1;
	}
	return key->length < length ? -1 : key->length > length;
}

const struct xfp_gguf_value *xfp_gguf_find_in(const struct xfp_gguf_metadata *m, const char *prefix, const char *name)
{
	uint32_t low = 0, high = m->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct xfp_gguf_value *value = &m->values[m->by_key[middle]];
		int order = compare(&value->key, prefix, name);

		if (!order)
			return value;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

const struct xfp_gguf_value *xfp_gguf_find(const struct xfp_gguf_metadata *m, const char *key)
{
	return xfp_gguf_find_in(m, NULL, key);
}

bool xfp_gguf_integer(const struct xfp_gguf_value *value, uint64_t number, uint64_t *out)
{
	const unsigned char *at;
	int64_t number_or_less = 0;

	if (!value || number >= value->count)
		return false;
	at = value->at + number * kind_bytes[value->kind];
	switch (value->kind) {
	case XFP_GGUF_BOOL:
		*out = *at != 0;
		return true;
	case XFP_GGUF_U8:
		*out = *at;
		return true;
	case XFP_GGUF_U16:
		*out = xfp_load16(at);
		return true;
	case XFP_GGUF_U32:
		*out = xfp_load32(at);
		return true;
	case XFP_GGUF_U64:
		*out = xfp_load64(at);
		return true;
	case XFP_GGUF_I8:
		number_or_less = (int8_t)*at;
		break;
	case XFP_GGUF_I16:
		number_or_less = (int16_t)xfp_load16(at);
		break;
	case XFP_GGUF_I32:
		number_or_less = (int32_t)xfp_load32(at);
		break;
	case XFP_GGUF_I64:
		number_or_less = (int64_t)xfp_load64(at);
		break;
	default:
		return false;
	}
	*out = (uint64_t)number_or_less;
	return number_or_less >= 0;
}

bool xfp_gguf_real(const struct xfp_gguf_value *value, uint64_t number, double *out)
{
	uint64_t whole;
	float single;

	if (!value || number >= value->count)
		return false;
	switch (value->kind) {
	case XFP_GGUF_F32:
		memcpy(&single, value->at + 4 * number, sizeof single);
		*out = single;
		return true;
	case XFP_GGUF_F64:
		memcpy(out, value->at + 8 * number, sizeof *out);
		return true;
	default:
		if (!xfp_gguf_integer(value, number, &whole))
			return false;
		*out = (double)whole;
		return true;
	}
}

bool xfp_gguf_flag(const struct xfp_gguf_value *value, uint64_t number, bool *out)
{
	if (!value || number >= value->count || value->kind != XFP_GGUF_BOOL)
		return false;
	*out = value->at[number] != 0;
	return true;
}

bool xfp_gguf_text(const struct xfp_gguf_value *value, struct xfp_gguf_text *out)
{
	if (!value || value->array || value->kind != XFP_GGUF_TEXT)
		return false;
	*out = (struct xfp_gguf_text){ (const char *)value->at + 8, value->bytes - 8 };
	return true;
}

bool xfp_gguf_text_is(const struct xfp_gguf_value *value, const char *text)
{
	struct xfp_gguf_text have;

	return xfp_gguf_text(value, &have) && have.length == strlen(text) && !memcmp(have.bytes, text, have.length);
}

char *xfp_gguf_text_copy(const struct xfp_gguf_value *value)
{
	struct xfp_gguf_text have;

	return xfp_gguf_text(value, &have) && !memchr(have.bytes, 0, have.length) ? strndup(have.bytes, have.length)
										  : NULL;
}

bool xfp_gguf_next_text(const struct xfp_gguf_value *value, uint64_t *at, struct xfp_gguf_text *out)
{
	if (!value || !value->array || value->kind != XFP_GGUF_TEXT || *at >= value->bytes)
		return false;
	out->bytes = (const char *)value->at + *at + 8;
	out->length = xfp_load64(value->at + *at);
	*at += 8 + out->length;
	return true;
}
