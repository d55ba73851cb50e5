/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes.h - the number of lanes that the loops of encode/, multiply/ and model/forward/ process at a time.
 *
 * Each loop is compiled once per instruction set, from the same lines, on the operations of one of plain.h, avx2.h,
 * avx512.h and neon.h; registers.h describes them.
 */
#ifndef XFP_LANES_H
#define XFP_LANES_H

#define XFP_LANES 16

#endif
