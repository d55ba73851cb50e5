/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/blocks.h"
#include "tests/fuzz/folds.h"
#include "tests/fuzz/tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_fold(data, size);
	fuzz_blocks(data, size);
	fuzz_tokens(data, size);
	return 0;
}
