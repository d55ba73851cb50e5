/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_verify.h - the parts of xfp-kernel-verify: the tests of processor kernels, and the bench.
 */
#ifndef XFP_KERNEL_VERIFY_H
#define XFP_KERNEL_VERIFY_H

#include "kernel-verify/trial/trial.h"

void xfp_kernel_ops_index(struct xfp_kernel_ops *ops);
void xfp_kernel_ops_rows(struct xfp_kernel_ops *ops);
void xfp_kernel_ops_cells(struct xfp_kernel_ops *ops);
void xfp_kernel_ops_compact(struct xfp_kernel_ops *ops);
void xfp_kernel_ops_feedback(struct xfp_kernel_ops *ops);
void xfp_kernel_ops_scaled(struct xfp_kernel_ops *ops);
void xfp_kernel_ops_matvec(struct xfp_kernel_ops *ops);
void xfp_kernel_ops_panel(struct xfp_kernel_ops *ops);

void xfp_kernel_verify_ops(const struct xfp_kernel_ops *ops, struct xfp_kernel_report *report);
void xfp_kernel_golden(const struct xfp_kernel_ops *ops, const struct xfp_kernel_request *request);
enum xfp_status xfp_kernel_verify_bundle(struct xfp_kernel_report *report, struct xfp_error *err);
void xfp_kernel_bench(const struct xfp_kernel_ops *ops, struct xfp_kernel_report *report);

/* Read bytes in the calling thread and return a value that depends on all of them; do f32 or f64 operations and return
 * their number, 0 on an unsupported processor. */
uint64_t xfp_ceiling_read(const uint8_t *from, size_t bytes);
double xfp_ceiling_multiply(unsigned steps);
double xfp_ceiling_multiply_f64(unsigned steps);

#endif
