/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokenizers.h - a tokenizer.json of any parts, as bytes say, and texts of any bytes for it.
 */
#ifndef XFP_FUZZ_TOKENIZERS_H
#define XFP_FUZZ_TOKENIZERS_H

#include <stddef.h>
#include <stdint.h>

/* The bytes are, up to the first 0, a tokenizer.json whose characters below 0x20 and above 0x7f each stand for a part
 * of one; a text follows. Aborts where ids are none of the tokenizer's, or where decoding token by token is not the
 * same as decoding at once. Returns how many ids the text has; -1: refused. */
int fuzz_tokenizer(const uint8_t *data, size_t size);

#endif
