/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recipes.h - how packed tensors of a ledger are unpacked: its tables of recipes, parts and components.
 *
 * `total` and `slice` are the reader's, by table.
 */
#ifndef XFP_LEDGER_RECIPES_H
#define XFP_LEDGER_RECIPES_H

#include "schemas/ledger.h"
#include "schemas/ledger/slice.h"

/* Read the records of those that tensors have whose numbers are `tensors`, and whose own records are read. */
enum xfp_status xfp_recipes_read(struct xfp_artifact *a, const uint64_t *total, struct xfp_ledger_slice *slice,
				 const uint64_t *tensors, uint32_t tensor_count, struct xfp_error *err);

/* From records that are read; *out stays NULL where the tensor has none. What is in *out after a failure is the
 * caller's to free. */
enum xfp_status xfp_recipe_take(struct xfp_artifact *a, const uint64_t *total, const struct xfp_ledger_slice *slice,
				uint64_t number, struct xfp_recipe **out, struct xfp_error *err);

#endif
