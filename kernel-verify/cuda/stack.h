/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack.h - write a trial's matrices as the experts of a bundle's only unit.
 */
#ifndef XFP_KERNEL_VERIFY_STACK_H
#define XFP_KERNEL_VERIFY_STACK_H

#include "kernel-verify/trial/matrix.h"

#define XFP_STACK_MAX 4

struct xfp_stack {
	struct xfp_trial_matrix matrix[XFP_STACK_MAX];
	uint32_t experts;
	const uint8_t *balance; /* [cols]; NULL: none */
	bool tensor;            /* a kept tensor rather than a unit */
};

void xfp_stack_make(struct xfp_trial *trial, struct xfp_stack *stack, uint32_t experts, bool outliers, bool infinite);
enum xfp_status xfp_stack_write(const struct xfp_stack *stack, int file, struct xfp_error *err);

#endif
