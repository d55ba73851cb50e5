/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokens.h - tokenizers of GGUF metadata with any tokens, types, scores and merges, built from input bytes.
 */
#ifndef XFP_FUZZ_TOKENS_H
#define XFP_FUZZ_TOKENS_H

#include <stddef.h>
#include <stdint.h>

/* Aborts if a generated file is not JSON, merges unknown tokens, or is far larger than its input. Returns the number of
 * merges; -1: no file was made. */
int fuzz_tokens(const uint8_t *data, size_t size);

#endif
