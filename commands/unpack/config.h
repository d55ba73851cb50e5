/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - config.json without the description of packed weights.
 */
#ifndef XFP_UNPACK_CONFIG_H
#define XFP_UNPACK_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

/* Remove quantization_config and compression_config from a JSON text of `size` bytes and from its text_config;
 * everything else is copied byte for byte. `out` has room for `size` bytes. Returns false if neither is present or the
 * text is not a JSON object; `out` is then undefined. */
bool xfp_config_unpack(const char *text, size_t size, char *out, size_t *out_size);

#endif
