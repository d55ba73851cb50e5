/* SPDX-License-Identifier: Apache-2.0 */
/*
 * advice.h - where a bundle loses most, and what more bits there would cost and save.
 *
 * The prediction is a rule of thumb: each bit of an index halves the step between entries, and so reduces the squared
 * error to a quarter.
 */
#ifndef XFP_REPORT_ADVICE_H
#define XFP_REPORT_ADVICE_H

#include "conversion/report/report.h"

#define XFP_REPORT_ADVICE 5 /* most suggestions */

struct xfp_report_advice {
	char *pattern;      /* of xfp convert --override */
	uint32_t low, high; /* bits per index of these units now */
	uint32_t bits;      /* bits per index of all these units after the change */
	double share;       /* of the bundle's squared error, in these units */
	double error;       /* mean relative squared error of these units */
	double bytes;       /* how much larger the bundle becomes */
	double remaining;   /* the bundle's squared error afterwards, relative to now */
	double saved;       /* share of the bundle's squared error per million bytes */
	uint32_t layer;     /* index in report->layers, for the units of a class; or XFP_REPORT_NO_LAYER: */
	uint32_t part;      /* index in report->parts */
	uint8_t class_;
};

/* One more bit for a class of the worst layer, or for a component: those that save most loss per byte, in this order.
 * If units have different bits, only those with fewer get more.
 * Returns the number of suggestions; the caller frees their patterns. Stops early if memory runs out. */
uint32_t xfp_report_advise(const struct xfp_report *report, struct xfp_report_advice list[XFP_REPORT_ADVICE]);

/* The layer with the largest error of its own (`alone`), if the report has an evaluation, else the one with the largest
 * share of the squared error; layer_count if the bundle has no layers. */
uint32_t xfp_report_worst_layer(const struct xfp_report *report);
/* The component with the largest share; part_count if the bundle has no units. */
uint32_t xfp_report_worst_part(const struct xfp_report *report);

#endif
