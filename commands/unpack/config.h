/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - config.json without what it says of packed weights.
 */
#ifndef XFP_UNPACK_CONFIG_H
#define XFP_UNPACK_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

/* A text of `size` bytes without quantization_config and compression_config, of the model and of its text_config; all
 * else is as it was, byte for byte. `out` has room for as many. False: there is neither, or the text is no JSON object,
 * and what is in `out` is of no use. */
bool xfp_config_unpack(const char *text, size_t size, char *out, size_t *out_size);

#endif
