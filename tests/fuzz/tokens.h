/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokens.h - tokenizers of GGUF metadata, of any tokens, types, scores and merges, as bytes say.
 */
#ifndef XFP_FUZZ_TOKENS_H
#define XFP_FUZZ_TOKENS_H

#include <stddef.h>
#include <stdint.h>

/* Aborts where a file that is made is no JSON, or its merges are of what is no token, or it is far larger than what it
 * is made of. Returns the number of merges; -1: no file was made. */
int fuzz_tokens(const uint8_t *data, size_t size);

#endif
