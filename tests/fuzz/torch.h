/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch.h - torch.save files of any pickle and archive, built from input bytes: opened, and their contents read.
 */
#ifndef XFP_FUZZ_TORCH_H
#define XFP_FUZZ_TORCH_H

#include <stddef.h>
#include <stdint.h>

/* Aborts if a tensor lies outside its file, or two ways of reading differ. Returns the number of tensors; -1:
 * refused. */
int fuzz_torch(const uint8_t *data, size_t size);

#endif
