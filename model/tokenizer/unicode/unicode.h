/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unicode.h - properties of characters, and normal forms.
 */
#ifndef XFP_TOKENIZER_UNICODE_H
#define XFP_TOKENIZER_UNICODE_H

#include "base/utf8.h"
#include "base/xfp_error.h"
#include "model/tokenizer/unicode/growable.h"

#define XFP_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Append the text with invalid UTF-8 replaced. False if out of memory. */
bool xfp_utf8_replace(const char *text, size_t size, struct xfp_growable *out);

bool xfp_is_white(uint32_t character);
/* Whether the pre-tokenizer Digits isolates a character, and whether it prevents an adjacent single_word token. */
bool xfp_is_numeric(uint32_t character);
bool xfp_is_word(uint32_t character);

/* What BERT's tokenizer removes, splits at, and surrounds by blanks. Accents are nonspacing marks. */
bool xfp_is_control(uint32_t character);
bool xfp_is_accent(uint32_t character);
bool xfp_is_punctuation(uint32_t character);
bool xfp_is_chinese(uint32_t character);

/* Append a normal form of well-formed UTF-8, in the Unicode version of Hugging Face tokenizers. */
enum xfp_unicode_form { XFP_NFC, XFP_NFKC, XFP_NFD, XFP_NFKD };
enum xfp_status xfp_normal_form(const char *text, size_t size, enum xfp_unicode_form form, struct xfp_growable *out,
				struct xfp_error *err);

/* Append the lower case of a character. False if out of memory. */
bool xfp_lower(uint32_t character, struct xfp_growable *out);

#endif
