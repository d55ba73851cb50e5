/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ggufs.h - GGUF files as bytes say: opened, and all of their tensors read in every way.
 */
#ifndef XFP_FUZZ_GGUFS_H
#define XFP_FUZZ_GGUFS_H

#include <stddef.h>
#include <stdint.h>

/* Aborts where what is read two ways is not the same, or a recipe says what cannot be. Returns how many tensors the
 * model has; -1: refused. */
int fuzz_gguf(const uint8_t *data, size_t size);

#endif
