/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_input.h - read members of a JSON file that may not be what it should be. The first fault is kept; later reads
 * return 0, so a reader checks the status once.
 */
#ifndef XFP_REPORT_JSON_INPUT_H
#define XFP_REPORT_JSON_INPUT_H

#include <jansson.h>
#include <stdint.h>

#include "base/xfp_error.h"

struct xfp_json_input {
	const char *path;
	const char *command; /* that makes such a file */
	json_t *root;
	enum xfp_status status;
	struct xfp_error *err;
};

/* Read a file whose root is an object. The caller decrements input->root. */
enum xfp_status xfp_json_input_open(struct xfp_json_input *input, const char *path, const char *command,
				    struct xfp_error *err);
/* Record the fault that a member is not `what`. */
void xfp_json_input_fault(struct xfp_json_input *input, const char *key, const char *what);

/* Check that the member "family" of the root is the bundle's. */
void xfp_json_input_family(struct xfp_json_input *input, const char *family);

/* A member of an object: a finite number; one that may be null, which becomes infinity; a whole
 * number below 2^53; a text; an object; a list. */
double xfp_json_input_number(struct xfp_json_input *input, const json_t *object, const char *key);
double xfp_json_input_number_or_null(struct xfp_json_input *input, const json_t *object, const char *key);
uint64_t xfp_json_input_count(struct xfp_json_input *input, const json_t *object, const char *key);
const char *xfp_json_input_text(struct xfp_json_input *input, const json_t *object, const char *key);
json_t *xfp_json_input_object(struct xfp_json_input *input, const json_t *object, const char *key);
json_t *xfp_json_input_list(struct xfp_json_input *input, const json_t *object, const char *key);

#endif
