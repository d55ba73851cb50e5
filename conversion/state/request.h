/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - the request of a conversion as plain data, filled in by commands/convert/options.h from the environment
 * and the command line.
 */
#ifndef XFP_REQUEST_H
#define XFP_REQUEST_H

#include <stdbool.h>

#include "schemas/goal.h"
#include "schemas/parameters.h"

/* The text whose activations units are quantized with. */
struct xfp_calibration_request {
	bool wanted;
	char variable[40]; /* environment variable that chose it, for messages; "": an option */
	bool self;         /* text that the model generates, */
	char *text, *ids;  /* or a text, or token ids in .npy format, absolute; NULL: the text that xfp has */
	uint32_t tokens;   /* 0: not given */
};

struct xfp_request {
	const char *program;              /* argv[0], the name in messages */
	char *model, *out, *cache, *work; /* absolute; a name in the Hugging Face cache has become a path */
	char *family;                     /* NULL: inspect finds it */
	char *like;                       /* absolute; NULL: no bundle to compare with */
	char *head_asked;                 /* option that requests a quantized output head; NULL: none, or a profile */
	struct xfp_parameters parameters;
	struct xfp_goal goal;
	struct xfp_calibration_request calibration;
	char *launcher; /* shell command that runs its arguments on a node of a cluster; NULL: none */
	unsigned jobs;  /* 0: not given */
	bool keep_going, dry_run, rehash, drop_cache, json, quiet, allow_empty, force;
	uint32_t check_survey; /* surveys in the cache to measure again; 0: none */
	bool survey;           /* planning: run missing surveys */
	bool planning;         /* predict the conversion, do not convert */
	bool out_guessed;      /* planning, and no output was named */
	bool own_cache;        /* --cache was not given: the cache is convert's own, next to OUT */
};

/* Free what the request owns, and zero it. */
void xfp_request_free(struct xfp_request *request);

#endif
