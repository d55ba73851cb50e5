/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks.h - parts of ggml's blocks, of any type, shape and sizes, as bytes say.
 */
#ifndef XFP_FUZZ_BLOCKS_H
#define XFP_FUZZ_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Aborts where the codec takes a part whose windows reach past its components, or where one rectangle's weights differ
 * from those of the whole row; sanitizers see what is read past a window. Whether the codec took the part. */
bool fuzz_blocks(const uint8_t *data, size_t size);

#endif
