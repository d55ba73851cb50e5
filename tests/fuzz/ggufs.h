/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ggufs.h - GGUF files built from input bytes: opened, and all of their tensors read in every way.
 */
#ifndef XFP_FUZZ_GGUFS_H
#define XFP_FUZZ_GGUFS_H

#include <stddef.h>
#include <stdint.h>

/* Aborts if two ways of reading differ, or a recipe is impossible. Returns the number of the model's tensors; -1:
 * refused. */
int fuzz_gguf(const uint8_t *data, size_t size);

#endif
