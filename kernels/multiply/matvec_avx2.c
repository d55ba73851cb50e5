/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/multiply/matvec_table_avx2.h"

#include "kernels/multiply/matvec_rows.h"
#include "kernels/multiply/matvec_words_avx2.h"

void xfp_matvec_floats_avx2(ARGUMENTS)
{
	multiply_rows(PASSED);
}
