/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/tokenizers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_tokenizer(data, size);
	return 0;
}
