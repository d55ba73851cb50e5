/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hub.h - MODEL as the user writes it: a path, or the name of a model in the local Hugging Face cache.
 *
 *   HUB/models--ORG--NAME/refs/main             a commit, 40 hex digits
 *   HUB/models--ORG--NAME/snapshots/COMMIT/...  links into ../../blobs
 *   HUB/models--ORG--NAME/blobs/....incomplete  a download that is not finished
 *
 * HUB is $HF_HUB_CACHE, else $HF_HOME/hub, else huggingface/hub below $XDG_CACHE_HOME or ~/.cache. Nothing
 * is ever downloaded.
 */
#ifndef XFP_HUB_H
#define XFP_HUB_H

#include "base/xfp_error.h"

/* MODEL is a path that exists, which always wins, or ORG/NAME or NAME, with @REVISION (a branch, a tag, a
 * commit or the beginning of one) or without (refs/main, or the only snapshot). *path is MODEL itself or
 * the folder of the snapshot; the caller frees it. XFP_BAD_INPUT when there is neither, when it is not
 * clear which snapshot is meant, and when one lacks weights that its index lists. */
enum xfp_status xfp_model_find(const char *model, char **path, struct xfp_error *err);

#endif
