/* SPDX-License-Identifier: Apache-2.0 */
/*
 * composition.h - the composition of a bundle file: size relative to the source, bits per weight, and bytes by kind.
 * The first thing that convert, info and plan print.
 */
#ifndef XFP_COMPOSITION_H
#define XFP_COMPOSITION_H

#include <stdint.h>

#include "base/dtype.h"
#include "runtime/xfp.h"
#include "schemas/ledger.h"

struct xfp_composition {
	uint64_t bytes;  /* size of the bundle file */
	uint64_t source; /* bytes of all tensors of the checkpoint */
	uint64_t stored; /* their size in the checkpoint's files if weights are packed there; 0: unpacked or unknown */
	uint64_t elements;     /* elements of all tensors; tied tensors count once */
	uint64_t units;        /* stored bytes of quantized units */
	uint64_t unit_weights; /* weights of quantized units */
	double paper;          /* bits times weights, as xfp_paper_bits counts bits */
	uint64_t kept;         /* bytes of tensors and units at source precision */
	uint64_t files;        /* bytes of the config, tokenizer and other files; the rest is index and padding */
	/* Part of `kept`: bytes of the matrices per class that --format could have quantized, and their smallest column
	 * count. */
	uint64_t quantizable[XFP_CLASSES], cols[XFP_CLASSES];
	bool compact; /* set by the caller: v2c is among the modes, so that codebook overhead does not matter */
};

struct xfp_composition xfp_composition_of_bundle(const struct xfp_bundle *bundle);
/* Count the tensors outside units. The caller adds `bytes`, `files` and the units. */
struct xfp_composition xfp_composition_of_ledger(const struct xfp_ledger *ledger);
/* Bytes of the tensors in a checkpoint with packed weights; 0 if the weights are not packed. */
uint64_t xfp_composition_stored(const struct xfp_ledger *ledger);
/* Add a unit. `paper`: its bits as xfp_paper_bits counts them. */
void xfp_composition_add_unit(struct xfp_composition *composition, enum xfp_class class_, enum xfp_mode mode,
			      uint64_t bytes, uint64_t weights, uint64_t cols, double paper);

/* Bits per weight as papers count them: an index of k bits (on average) and the metadata of each group. Excludes
 * codebooks, row scales, balance and outliers. */
double xfp_paper_bits(enum xfp_mode mode, double k, uint32_t group, enum xfp_dtype source);
/* The same for a unit of a bundle, whose experts may differ in bits, and for all units; 0 if there are none. */
double xfp_unit_paper_bits(const struct xfp_bundle *bundle, const struct xfp_unit_info *unit);
double xfp_composition_paper_bits(const struct xfp_composition *composition);

/* Bits of the file per element of the checkpoint. */
double xfp_composition_bits(const struct xfp_composition *composition);

/* Bits per weight; 0 if there are no weights. */
double xfp_bits_per_weight(uint64_t bytes, uint64_t weights);

/* A set of storage formats, summarized for tables. All zero: empty. */
struct xfp_format_ranges {
	uint32_t modes;                /* bit m set: some unit has mode m */
	uint32_t min_k, max_k;         /* bits per index, of modes with codebooks */
	uint32_t min_group, max_group; /* columns per group, of modes with groups */
};
void xfp_format_ranges_add(struct xfp_format_ranges *ranges, enum xfp_mode mode, uint32_t k, uint32_t group);

#endif
