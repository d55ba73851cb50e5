/* SPDX-License-Identifier: Apache-2.0 */
/*
 * surveys.h - files of surveys, changed by input bytes and sealed again: read as xfp cache import does, and written.
 */
#ifndef XFP_FUZZ_SURVEYS_H
#define XFP_FUZZ_SURVEYS_H

#include <stddef.h>
#include <stdint.h>

/* Aborts if a survey was read whose parts do not have the sizes that it states, or if writing what was read gives other
 * bytes. Returns the number of surveys; -1: refused. */
int fuzz_surveys(const uint8_t *data, size_t size);

#endif
