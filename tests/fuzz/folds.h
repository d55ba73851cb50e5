/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folds.h - checkpoints of any tensors and any config.json, as bytes say: folded, and what comes of them read in every
 * way.
 */
#ifndef XFP_FUZZ_FOLDS_H
#define XFP_FUZZ_FOLDS_H

#include <stddef.h>
#include <stdint.h>

/* Aborts where what is read two ways is not the same, or a recipe says what cannot be. Returns how many tensors were
 * packed; -1: refused. */
int fuzz_fold(const uint8_t *data, size_t size);

#endif
