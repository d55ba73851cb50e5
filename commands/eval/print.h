/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_EVAL_PRINT_H
#define XFP_EVAL_PRINT_H

#include "model/evaluate/evaluation.h"

void xfp_eval_print(const struct xfp_evaluation *evaluation);
enum xfp_status xfp_eval_print_json(const struct xfp_evaluation *evaluation, struct xfp_error *err);

#endif
