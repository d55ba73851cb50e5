/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/multiply/matvec_table_avx512.h"

#include "kernels/multiply/matvec_decode.h"

void xfp_matvec_decode_avx512(const struct xfp_matvec *w, size_t row, float *x)
{
	decode_row(w, row, x);
}
