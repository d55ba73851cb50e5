/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.h - bit streams: codes of a few bits, adjacent from the lowest bit of 32-bit words, which may be apart.
 * Private to checkpoints/packed/.
 */
#ifndef XFP_PACKED_STREAM_H
#define XFP_PACKED_STREAM_H

#include "checkpoints/packed/nibbles.h"

#define XFP_STREAM 32u /* codes, after which a stream is at a word boundary again */

/* Return code n of the stream in words `pitch` bytes apart. */
static inline uint8_t xfp_stream_code(const unsigned char *stream, uint64_t pitch, unsigned bits, uint64_t n)
{
	uint64_t bit = n * bits;
	const unsigned char *word = stream + bit / 32 * pitch;
	uint32_t value = xfp_load32(word) >> bit % 32;

	if (32 % bits && bit % 32 + bits > 32)
		value |= xfp_load32(word + pitch) << (32 - bit % 32);
	return (uint8_t)(value & ((1u << bits) - 1));
}

/* Unpack the XFP_STREAM codes of `bits` words. */
static inline void xfp_stream_words(const unsigned char *word, uint64_t pitch, unsigned bits, uint8_t *code)
{
	unsigned each = 32 / bits, mask = (1u << bits) - 1;
	uint64_t value;

	if (bits == 3) { /* codes cross the boundaries of the three words */
		value = xfp_load32(word) | (uint64_t)xfp_load32(word + pitch) << 32;
		for (unsigned i = 0; i < 21; i++)
			code[i] = (uint8_t)(value >> i * 3 & mask);
		value = value >> 63 | (uint64_t)xfp_load32(word + 2 * pitch) << 1;
		for (unsigned i = 0; i < 11; i++)
			code[21 + i] = (uint8_t)(value >> i * 3 & mask);
		return;
	}
	if (32 % bits) {
		unsigned left = 0;

		value = 0;
		for (unsigned i = 0; i < XFP_STREAM; i++) {
			if (left < bits) {
				value |= (uint64_t)xfp_load32(word) << left;
				word += pitch;
				left += 32;
			}
			code[i] = (uint8_t)(value & mask);
			value >>= bits;
			left -= bits;
		}
		return;
	}
	for (unsigned w = 0; w < bits; w++, code += each) {
		value = xfp_load32(word + w * pitch);
		if (bits == 4)
			xfp_store64(code, xfp_nibbles_expand((uint32_t)value));
		if (bits == 8)
			xfp_store32(code, (uint32_t)value);
		for (unsigned i = 0; bits < 4 && i < each; i++)
			code[i] = (uint8_t)(value >> i * bits & mask);
	}
}

/* Unpack codes [first, first + count) of a stream. */
static inline void xfp_stream_run(const unsigned char *stream, uint64_t pitch, unsigned bits, uint64_t first,
				  uint64_t count, uint8_t *code)
{
	uint64_t i = 0;

	while (i < count)
		if ((first + i) % XFP_STREAM || count - i < XFP_STREAM) {
			code[i] = xfp_stream_code(stream, pitch, bits, first + i);
			i++;
		} else {
			xfp_stream_words(stream + (first + i) / XFP_STREAM * bits * pitch, pitch, bits, code + i);
			i += XFP_STREAM;
		}
}

/* The same for 2, 3, 4, 5, 6 or 8 bits, each a constant in its call. */
static inline void xfp_stream_codes(const unsigned char *stream, uint64_t pitch, unsigned bits, uint64_t first,
				    uint64_t count, uint8_t *code)
{
	switch (bits) {
	case 2:
		xfp_stream_run(stream, pitch, 2, first, count, code);
		break;
	case 3:
		xfp_stream_run(stream, pitch, 3, first, count, code);
		break;
	case 4:
		xfp_stream_run(stream, pitch, 4, first, count, code);
		break;
	case 5:
		xfp_stream_run(stream, pitch, 5, first, count, code);
		break;
	case 6:
		xfp_stream_run(stream, pitch, 6, first, count, code);
		break;
	default:
		xfp_stream_run(stream, pitch, 8, first, count, code);
		break;
	}
}

#endif
