/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fp8.h - parameters of the codec fp8. Private to checkpoints/.
 */
#ifndef XFP_FP8_H
#define XFP_FP8_H

enum xfp_fp8_parameter { XFP_FP8_MATRIX_ROWS, XFP_FP8_BLOCK_ROWS, XFP_FP8_BLOCK_COLS };

#endif
