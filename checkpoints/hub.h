/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hub.h - resolve MODEL: a path, or the name of a model in the local Hugging Face cache.
 *
 *   HUB/models--ORG--NAME/refs/main             a commit, 40 hex digits
 *   HUB/models--ORG--NAME/snapshots/COMMIT/...  links into ../../blobs
 *   HUB/models--ORG--NAME/blobs/....incomplete  a download that is not finished
 *
 * HUB is $HF_HUB_CACHE, else $HF_HOME/hub, else huggingface/hub below $XDG_CACHE_HOME or ~/.cache. Nothing is ever
 * downloaded.
 */
#ifndef XFP_HUB_H
#define XFP_HUB_H

#include "base/xfp_error.h"

/* Find a model. MODEL is an existing path, which has priority, or ORG/NAME or NAME, optionally with @REVISION (a
 * branch, a tag, a commit or its prefix); the default is refs/main, or the only snapshot. *path is MODEL itself or the
 * folder of the snapshot; the caller frees it. XFP_BAD_INPUT if neither exists, if the snapshot is ambiguous, or if it
 * lacks weights that its index lists. */
enum xfp_status xfp_model_find(const char *model, char **path, struct xfp_error *err);

#endif
