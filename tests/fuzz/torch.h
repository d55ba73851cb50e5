/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch.h - files of torch.save of any pickle and any archive, as bytes say: opened, and what they hold read.
 */
#ifndef XFP_FUZZ_TORCH_H
#define XFP_FUZZ_TORCH_H

#include <stddef.h>
#include <stdint.h>

/* Aborts where a tensor lies outside of its file, or what is read two ways is not the same. Returns how many tensors
 * there were; -1: refused. */
int fuzz_torch(const uint8_t *data, size_t size);

#endif
