/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_DESCRIPTION_TEXT_H
#define XFP_DESCRIPTION_TEXT_H

#include "model/forward/description.h"

/* Write every member of a description as text, which is equal only for descriptions that compute the same; numbers are
 * written by their bits. The caller frees it. NULL if memory runs out. */
char *xfp_description_text(const struct xfp_description *description);

#endif
