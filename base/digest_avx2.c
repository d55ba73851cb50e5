/* SPDX-License-Identifier: Apache-2.0 */
/* XXH3-128 with AVX2, twice as fast as with SSE2. Clang has no such pragma, and does without. */
#include <stddef.h>

#if defined __x86_64__ && defined __GNUC__ && !defined __clang__ && __has_include(<xxhash.h>)
#pragma GCC target("avx2")
#include "base/digest_set.h"

const struct xfp_digest_set xfp_digest_avx2 = XFP_DIGEST_SET;
#endif
