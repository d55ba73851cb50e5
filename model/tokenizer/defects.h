/* SPDX-License-Identifier: Apache-2.0 */
/*
 * defects.h - signs that a file is not a text in UTF-8.
 */
#ifndef XFP_TEXT_DEFECTS_H
#define XFP_TEXT_DEFECTS_H

#include <stdbool.h>
#include <stddef.h>

struct xfp_text_defects {
	size_t nuls, first_nul;        /* count, offset of the first */
	size_t invalid, first_invalid; /* bytes that are not part of a valid UTF-8 sequence, offset of the first */
};

struct xfp_text_defects xfp_text_defects(const char *text, size_t size);

/* Describe the defects in `message` if any byte is NUL or more than one in 1000 is invalid UTF-8; false otherwise. */
#define XFP_TEXT_DEFECTS 256
bool xfp_text_defects_text(const char *text, size_t size, char message[XFP_TEXT_DEFECTS]);

#endif
