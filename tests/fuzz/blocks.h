/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks.h - parts of ggml's blocks, of any type, shape and size, built from input bytes.
 */
#ifndef XFP_FUZZ_BLOCKS_H
#define XFP_FUZZ_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Aborts if the codec accepts a part whose windows exceed its components, or if a rectangle's weights differ from those
 * of the whole row; sanitizers detect reads beyond a window. Returns whether the codec accepted the part. */
bool fuzz_blocks(const uint8_t *data, size_t size);

#endif
