/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole.h - a bundle as one file: its size against the source, its bits per weight, and what takes them. What people
 * are told before anything else, by convert, info and plan.
 */
#ifndef XFP_WHOLE_H
#define XFP_WHOLE_H

#include <stdint.h>

#include "base/dtype.h"
#include "runtime/xfp.h"
#include "schemas/ledger.h"

struct xfp_whole {
	uint64_t bytes;        /* of the file */
	uint64_t source;       /* bytes of all tensors of the checkpoint */
	uint64_t stored;       /* what they take in its files where weights are packed, as far as that is known; or 0 */
	uint64_t elements;     /* of them; those that are tied to others are counted once */
	uint64_t units;        /* stored bytes of units that are quantized, */
	uint64_t unit_weights; /* their weights, */
	double paper;          /* and bits times weights, as xfp_paper_bits counts them */
	uint64_t kept;         /* bytes of tensors and units at source precision */
	uint64_t files;        /* of config, tokenizer and the like; index and padding are what is left */
	/* Of `kept`, matrices of each class that --format could have quantized, and their least columns. */
	uint64_t could[XFP_CLASSES], cols[XFP_CLASSES];
	bool compact; /* the caller's: v2c is among the modes, so that codebooks are no matter */
};

struct xfp_whole xfp_whole_of_bundle(const struct xfp_bundle *bundle);
/* What tensors outside of units come to; `bytes`, `files` and the units are to be added. */
struct xfp_whole xfp_whole_of_ledger(const struct xfp_ledger *ledger);
/* What tensors take in a checkpoint whose weights are packed; 0 where they lie there as they are. */
uint64_t xfp_whole_stored(const struct xfp_ledger *ledger);
/* `paper`: its bits as xfp_paper_bits counts them. */
void xfp_whole_add_unit(struct xfp_whole *whole, enum xfp_class class_, enum xfp_mode mode, uint64_t bytes,
			uint64_t weights, uint64_t cols, double paper);

/* Bits a weight as papers count them: indices of (on average) k bits, and what each group has of its own. Codebooks,
 * scales of rows, balance and outliers are left out. */
double xfp_paper_bits(enum xfp_mode mode, double k, uint32_t group, enum xfp_dtype source);
/* Of a unit of a bundle, whose experts may differ in their bits; and of all units, 0 where there is none. */
double xfp_unit_paper_bits(const struct xfp_bundle *bundle, const struct xfp_unit_info *unit);
double xfp_whole_paper_bits(const struct xfp_whole *whole);

/* Bits of the file for each element of the checkpoint. */
double xfp_whole_bits(const struct xfp_whole *whole);

/* Bits for each of a number of weights; 0 if there are none. */
double xfp_bits_each(uint64_t bytes, uint64_t weights);

/* Ways to store, as tables sum them up. Zeroed there is none. */
struct xfp_ways {
	uint32_t modes;                   /* bit m set: some unit has mode m */
	uint32_t least_k, most_k;         /* bits of an index, where there are codebooks */
	uint32_t least_group, most_group; /* columns of a group, where there are groups */
};
void xfp_ways_add(struct xfp_ways *ways, enum xfp_mode mode, uint32_t k, uint32_t group);

#endif
