/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokenizers.h - a tokenizer.json of any parts and texts of any bytes, built from input bytes.
 */
#ifndef XFP_FUZZ_TOKENIZERS_H
#define XFP_FUZZ_TOKENIZERS_H

#include <stddef.h>
#include <stdint.h>

/* The bytes up to the first 0 are a tokenizer.json in which each character below 0x20 and above 0x7f stands for a part;
 * a text follows. Aborts if an id is not one of the tokenizer's, or if decoding token by token differs from decoding at
 * once. Returns the number of ids of the text; -1: refused. */
int fuzz_tokenizer(const uint8_t *data, size_t size);

#endif
