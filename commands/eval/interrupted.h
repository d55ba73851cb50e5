/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_EVAL_INTERRUPTED_H
#define XFP_EVAL_INTERRUPTED_H

#include "model/evaluate/evaluation.h"

/* While the models are being opened, a signal ends the process, with a message. Call with true before that, and with
 * false after xfp_signals_block. */
void xfp_eval_opening(bool opening);
/* Report on stderr what an interrupted evaluation saved, and the command that resumes it. */
void xfp_eval_print_interrupted(const struct xfp_evaluation *evaluation, char *const *argv);

#endif
