/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unicode.h - characters: UTF-8, what they are, and their normal forms.
 */
#ifndef XFP_TOKENIZER_UNICODE_H
#define XFP_TOKENIZER_UNICODE_H

#include "base/xfp_error.h"
#include "model/tokenizer/grown.h"

#define XFP_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* The character that well-formed UTF-8 begins with, and how many bytes it takes. */
size_t xfp_utf8_take(const char *text, uint32_t *character);
/* The bytes of a character; returns how many. */
size_t xfp_utf8_put(uint32_t character, char bytes[4]);
/* How many of the bytes are a character (> 0), or as many as may still become one, negated; 0: none, and `bad` says how
 * many of them one U+FFFD stands for. `size` > 0. */
int xfp_utf8_length(const char *text, size_t size, size_t *bad);

/* Append the text with what is no UTF-8 replaced. False: out of memory. */
bool xfp_utf8_replace(const char *text, size_t size, struct xfp_grown *out);

bool xfp_is_white(uint32_t character);
/* Whether the pre-tokenizer Digits isolates a character, and whether it prevents an adjacent single_word token. */
bool xfp_is_numeric(uint32_t character);
bool xfp_is_word(uint32_t character);

/* Append the NFC, or NFKC (`compatible`), of well-formed UTF-8, in the Unicode version of Hugging Face tokenizers. */
enum xfp_status xfp_normal_form(const char *text, size_t size, bool compatible, struct xfp_grown *out,
				struct xfp_error *err);

#endif
