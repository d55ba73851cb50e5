/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exl2.h - constants shared by EXL2's codec and fold. Private to checkpoints/packed/.
 */
#ifndef XFP_EXL2_H
#define XFP_EXL2_H

#define XFP_EXL2_MULTIPLE 32u         /* rows of codes and scales are padded to this */
#define XFP_EXL2_MAX_COLS (1u << 16u) /* maximum columns, reordered at once */

enum xfp_exl2_parameter { XFP_EXL2_PADDED_ROWS };

#endif
