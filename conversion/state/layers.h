/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers.h - the layers of a calibrated conversion: the keys of their inputs, and which of these artifacts exist.
 *
 * The inputs of a layer depend on the tensors of all layers before it, so their keys form a chain. The manifest stores
 * the digest of each tensor by file identity, as it does for matrices (sources.h). A digest is known once a layer's
 * stage has read the tensor. Until then the keys of that layer, of all later ones and of the fits of their units are
 * unknown: these units are not done, and make runs the stages, which compute the keys as well.
 */
#ifndef XFP_CONVERSION_LAYERS_H
#define XFP_CONVERSION_LAYERS_H

#include "conversion/state/conversion.h"

/* Read calibration.h5 from the folder `work` and assign units to layers. Requires the ledger. */
enum xfp_status xfp_layers_begin(struct xfp_conversion *c, const char *work, struct xfp_error *err);
void xfp_layers_free(struct xfp_conversion *c);

/* Find the keys of all layers, as far as digests are known, and which artifacts exist. With `check`, artifacts are read
 * and damaged ones removed. Call it before units are prepared. */
enum xfp_status xfp_layers_prepare(struct xfp_conversion *c, bool check, struct xfp_error *err);
/* The layer whose inputs a unit multiplies, or XFP_NO_LAYER. */
static inline uint32_t xfp_layers_of(const struct xfp_conversion *c, uint32_t unit)
{
	return c->layers.count ? c->layers.of_unit[unit] : XFP_NO_LAYER;
}
/* The key of the layer's inputs, which the unit's libraries depend on: NULL if the unit has no inputs, or no library
 * with the parameters of its fits; "" if the key is unknown. */
const char *xfp_layers_key(const struct xfp_conversion *c, uint32_t unit, const struct xfp_parameters *parameters);
/* Note that a unit needs the inputs of its layer, which it must have. Call it after all units are prepared. */
void xfp_layers_need(struct xfp_conversion *c, uint32_t unit);
/* Whether a conversion into another output that runs, was interrupted or has failed needs these inputs. */
bool xfp_layers_needed_elsewhere(const struct xfp_conversion *c);
/* Find the layers that must be computed, and update stamps: afterwards a stamp exists if and only if its artifact
 * exists under the current key. */
enum xfp_status xfp_layers_settle(struct xfp_conversion *c, struct xfp_error *err);
/* Read the digests of a layer's tensors from its artifact of that key and store them for this run and later ones. They
 * are ignored if the artifact is of other tensors, or if a file has changed since inspect. Returns XFP_DAMAGED if the
 * artifact is damaged; other errors may concern only the manifest. */
enum xfp_status xfp_layers_record(struct xfp_conversion *c, uint32_t layer, const char *key, struct xfp_error *err);
/* Mark the stored digests of a layer's tensors as wrong: the weights differ from those that were digested. */
void xfp_layers_invalidate(struct xfp_conversion *c, uint32_t layer);
void xfp_layers_invalidate_all(struct xfp_conversion *c);

#endif
