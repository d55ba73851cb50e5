/* SPDX-License-Identifier: Apache-2.0 */
#define MATVEC_SMALL
#include "kernels/multiply/matvec_table_plain.h"

#include "kernels/multiply/matvec_decode.h"

void xfp_matvec_decode_plain(const struct xfp_matvec *w, size_t row, float *x)
{
	decode_row(w, row, x);
}
