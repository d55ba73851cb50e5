/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/folds.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_fold(data, size);
	return 0;
}
