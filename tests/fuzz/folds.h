/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folds.h - checkpoints with any tensors and config.json, built from input bytes: folded, and the results read in every
 * way.
 */
#ifndef XFP_FUZZ_FOLDS_H
#define XFP_FUZZ_FOLDS_H

#include <stddef.h>
#include <stdint.h>

/* Aborts if two ways of reading differ, or a recipe is impossible. Returns the number of packed tensors; -1:
 * refused. */
int fuzz_fold(const uint8_t *data, size_t size);

#endif
