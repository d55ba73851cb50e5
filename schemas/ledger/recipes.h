/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recipes.h - the ledger's tables of recipes, parts and components, which describe how to unpack packed tensors.
 *
 * `total` and `slice` are the reader's, by table.
 */
#ifndef XFP_LEDGER_RECIPES_H
#define XFP_LEDGER_RECIPES_H

#include "schemas/ledger.h"
#include "schemas/ledger/slice.h"

/* Read the recipes of the tensors with numbers `tensors`, whose own records have been read, with their parts and
 * components. */
enum xfp_status xfp_recipes_read(struct xfp_artifact *a, const uint64_t *total, struct xfp_ledger_slice *slice,
				 const uint64_t *tensors, uint32_t tensor_count, struct xfp_error *err);

/* Build a recipe from records that have been read; *out stays NULL if the tensor has none. The caller frees *out even
 * after a failure. */
enum xfp_status xfp_recipe_build(struct xfp_artifact *a, const uint64_t *total, const struct xfp_ledger_slice *slice,
				 uint64_t number, struct xfp_recipe **out, struct xfp_error *err);

#endif
