/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exl2.h - what EXL2's codec and its fold agree on. Private to checkpoints/packed/.
 */
#ifndef XFP_EXL2_H
#define XFP_EXL2_H

#define XFP_EXL2_MULTIPLE 32u          /* of rows, to which codes and scales are padded */
#define XFP_EXL2_MOST_COLS (1u << 16u) /* whose weights are put in order at once */

enum xfp_exl2_parameter { XFP_EXL2_PADDED_ROWS };

#endif
