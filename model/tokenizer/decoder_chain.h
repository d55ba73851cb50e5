/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decoder_chain.h - the links of a decoder, as read from the file.
 */
#ifndef XFP_TOKENIZER_DECODER_CHAIN_H
#define XFP_TOKENIZER_DECODER_CHAIN_H

#include "model/tokenizer/decoder.h"

enum link_kind { BYTE_LEVEL, BYTE_FALLBACK, FUSE, STRIP, REPLACE, METASPACE, WORDPIECE, BLANKS };

struct decoder_link {
	enum link_kind kind;
	char *text;    /* to search for, or to strip */
	char *content; /* replacement */
	uint32_t start, stop;
	bool drop_first; /* remove replacements at the start of the first token */
};

struct xfp_decoder_chain {
	struct decoder_link *link;
	size_t count, capacity;
};

#endif
