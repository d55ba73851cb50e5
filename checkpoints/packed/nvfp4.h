/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvfp4.h - parameters of the codec nvfp4. Private to checkpoints/.
 */
#ifndef XFP_NVFP4_H
#define XFP_NVFP4_H

#define XFP_NVFP4_GROUP 16u

enum xfp_nvfp4_parameter {
	XFP_NVFP4_MATRIX_ROWS, /* rows with a common global scale */
	XFP_NVFP4_DIVIDES,     /* 1: scales are divided by the global one; 0: multiplied */
};

#endif
