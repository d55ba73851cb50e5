/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - the options of xfp-calibrate.
 */
#ifndef XFP_CALIBRATE_OPTIONS_H
#define XFP_CALIBRATE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct xfp_calibrate_options {
	bool begin;
	const char *text, *tokens; /* files; both NULL: the text that xfp comes with, */
	bool self;                 /* or text that the model generates */
	bool self_length;          /* or zeros, as many as its tokens, for estimates */
	bool pace;                 /* measure how long it will take, for estimates */
	uint64_t token_count;      /* 0: default */
	uint64_t memory;           /* limit of windows that are computed together; 0: default */
	uint32_t threads;          /* 0: one for each processor */
};

#endif
