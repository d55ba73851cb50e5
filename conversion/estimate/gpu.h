/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.h - the bytes of a model on the fullest of several GPUs with tensor parallelism.
 *
 * The role decides how a matrix is split: query, key, value, gate, up and others whose input is replicated are split by
 * rows; matrices that reduce the partial results (o, down, out_proj) by columns; expert stacks by experts; token
 * embeddings and output heads by rows. Units without a rule are replicated on every GPU, and so are kept tensors except
 * embeddings and heads. Codebooks and groups are split with their rows; in a split by columns, row codebooks are
 * replicated. Libraries are always replicated. Shares are rounded up.
 */
#ifndef XFP_GPU_H
#define XFP_GPU_H

#include "schemas/layout/bundle_layout.h"
#include "schemas/ledger.h"

enum xfp_gpu_split { XFP_GPU_SPLIT_NONE, XFP_GPU_SPLIT_ROWS, XFP_GPU_SPLIT_COLUMNS, XFP_GPU_SPLIT_EXPERTS };

enum xfp_gpu_split xfp_gpu_split_of(const struct xfp_ledger_unit *unit);
const char *xfp_gpu_split_name(enum xfp_gpu_split cut);
/* Maximum number of GPUs that the unit can be split across: its rows, columns or experts; UINT64_MAX if it is
 * replicated. */
uint64_t xfp_gpu_max_split(const struct xfp_ledger_unit *unit);

/* Bytes of a unit's parts on the fullest GPU if the unit is stored in `mode`. */
uint64_t xfp_gpu_unit(const struct xfp_ledger_unit *unit, enum xfp_mode mode, const uint64_t parts[XFP_PARTS],
		      uint32_t gpus);
/* Bytes on the fullest GPU of all kept tensors outside units. */
uint64_t xfp_gpu_kept(const struct xfp_ledger *ledger, uint32_t gpus);

#endif
