/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bytes_alphabet.h - the 256 characters that stand for bytes in byte-level tokens.
 *
 * Bytes that print in Latin-1 stand for themselves; the others, in their order, are U+0100 and what follows it.
 */
#ifndef XFP_TOKENIZER_BYTES_ALPHABET_H
#define XFP_TOKENIZER_BYTES_ALPHABET_H

#include <stdbool.h>
#include <stdint.h>

static inline bool xfp_byte_prints(unsigned byte)
{
	return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
}

static inline uint32_t xfp_byte_character(unsigned byte)
{
	if (xfp_byte_prints(byte))
		return byte;
	return 0x100 + (byte <= ' ' ? byte : byte < 0xad ? byte - 0x7f + 33 : 67);
}

/* -1 if the character does not stand for a byte. */
static inline int xfp_character_byte(uint32_t character)
{
	if (character < 0x100)
		return xfp_byte_prints(character) ? (int)character : -1;
	if (character > 0x100 + 67)
		return -1;
	character -= 0x100;
	return (int)(character < 33 ? character : character < 67 ? character - 33 + 0x7f : 0xad);
}

#endif
