/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_EVAL_INTERRUPTED_H
#define XFP_EVAL_INTERRUPTED_H

#include "model/evaluate/evaluation.h"

/* While the models are being opened, signals end the process, with a message. Called with true before that, and with
 * false once xfp_signals_hold blocks them. */
void xfp_eval_opening(bool opening);
/* Report on stderr what an interrupted evaluation left, and the command of `argv` if it resumes from there. */
void xfp_eval_print_interrupted(const struct xfp_evaluation *evaluation, char *const *argv);

#endif
