/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/surveys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_surveys(data, size);
	return 0;
}
