/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.h - what a model takes on the fullest of several GPUs that an engine cuts its matrices across.
 *
 * A role says how: query, key, value, gate, up and whatever else feeds the same activations to all are cut by rows;
 * what takes the parts together again (o, down, out_proj) by columns; stacks of experts by experts; token embeddings
 * and output heads by rows. What no rule names is on every GPU, and so are kept tensors, but for embeddings and heads.
 * With rows go their codebooks and groups; where columns are cut, codebooks of rows are on every GPU. Libraries are
 * on every GPU always, and shares are rounded up.
 */
#ifndef XFP_GPU_H
#define XFP_GPU_H

#include "schemas/layout/bundle_layout.h"
#include "schemas/ledger.h"

enum xfp_cut { XFP_CUT_NONE, XFP_CUT_ROWS, XFP_CUT_COLUMNS, XFP_CUT_EXPERTS };

enum xfp_cut xfp_gpu_cut(const struct xfp_ledger_unit *unit);
const char *xfp_cut_name(enum xfp_cut cut);
/* How many GPUs the unit can be cut across: rows, columns or experts; UINT64_MAX where it is not cut. */
uint64_t xfp_gpu_most(const struct xfp_ledger_unit *unit);

/* Bytes of a unit's parts, stored in that mode, on the fullest GPU. */
uint64_t xfp_gpu_unit(const struct xfp_ledger_unit *unit, enum xfp_mode mode, const uint64_t parts[XFP_PARTS],
		      uint32_t gpus);
/* Of all kept tensors that no unit holds. */
uint64_t xfp_gpu_kept(const struct xfp_ledger *ledger, uint32_t gpus);

#endif
