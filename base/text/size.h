/* SPDX-License-Identifier: Apache-2.0 */
/*
 * size.h - sizes, as a command line gives them and as people read them.
 */
#ifndef XFP_SIZE_H
#define XFP_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* "5000000", "5G" or "5GB" (powers of 1000), "5GiB" (of 1024); any letter in either case, and blanks may stand before
 * the unit: "14 gb". Not 0. */
bool xfp_size_parse(const char *text, uint64_t *size);
/* Whether a size was perhaps meant in a larger unit: it was given without one, and is less than a MiB. What messages
 * then say of it is XFP_SIZE_UNITS. */
bool xfp_size_is_bare(const char *text, uint64_t size);
#define XFP_SIZE_UNITS "units are K, M, G, T (of 1000) and KiB, MiB, GiB, TiB"

/* Whether a size, as it was given, ends in a unit of 1024: "14GiB". */
bool xfp_size_is_binary(const char *given);
/* In units of 1024 ("24 GiB", four digits), for sizes next to one that the user gave so; otherwise as xfp_human. */
const char *xfp_size_text(uint64_t bytes, bool binary, char text[32]);
/* The same, rounded up to a multiple of 4 MB or MiB: what is enough, in a form that xfp_size_parse reads. */
const char *xfp_size_enough(uint64_t bytes, bool binary, char text[32]);
/* "12.3 M", "1.5 GB" (unit "B") and the like, at most 15 characters. */
const char *xfp_human(double value, const char *unit, char text[32]);

#endif
