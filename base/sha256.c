/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <stdbool.h>
#include <string.h>

static const uint32_t k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static uint32_t load_big_endian(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void blocks_plain(uint32_t state[8], const uint8_t *data, size_t count)
{
	for (; count; count--, data += 64) {
		uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
		uint32_t e = state[4], f = state[5], g = state[6], h = state[7], w[64];

		for (int i = 0; i < 16; i++)
			w[i] = load_big_endian(data + 4 * i);
		for (int i = 16; i < 64; i++) {
			uint32_t x = w[i - 15], y = w[i - 2];

			w[i] = w[i - 16] + w[i - 7] + (rotate(x, 7) ^ rotate(x, 18) ^ x >> 3) +
			       (rotate(y, 17) ^ rotate(y, 19) ^ y >> 10);
		}
		for (int i = 0; i < 64; i++) {
			uint32_t choose = g ^ (e & (f ^ g)), majority = (a & b) | (c & (a | b));
			uint32_t t = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + choose + k[i] + w[i];

			h = g;
			g = f;
			f = e;
			e = d + t;
			d = c;
			c = b;
			b = a;
			a = t + (rotate(b, 2) ^ rotate(b, 13) ^ rotate(b, 22)) + majority;
		}
		state[0] += a;
		state[1] += b;
		state[2] += c;
		state[3] += d;
		state[4] += e;
		state[5] += f;
		state[6] += g;
		state[7] += h;
	}
}

/* The processor's SHA instructions: blocks_own, and whether this processor has them. */
#if defined(__x86_64__) && defined(__GNUC__)
#define OWN_INSTRUCTIONS
#include <cpuid.h>
#include <immintrin.h>

/* Four rounds a step; the instructions need the state as ABEF and CDGH. */
__attribute__((target("sha,sse4.1,ssse3"))) static void blocks_own(uint32_t state[8], const uint8_t *data, size_t count)
{
	const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	__m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
	__m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
	__m128i abef = _mm_alignr_epi8(cdab, hgfe, 8), cdgh = _mm_blend_epi16(hgfe, cdab, 0xf0);

	for (; count; count--, data += 64) {
		const __m128i before[2] = { abef, cdgh };
		__m128i w[4];

		for (int i = 0; i < 4; i++)
			w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)data + i), swap);
#pragma GCC unroll 16
		for (int i = 0; i < 16; i++) {
			__m128i sum = _mm_add_epi32(w[i % 4], _mm_loadu_si128((const __m128i *)(k + 4 * i)));
			__m128i old = w[(i + 2) % 4], last = w[(i + 3) % 4];

			cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
			abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
			w[i % 4] = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(w[i % 4], w[(i + 1) % 4]),
								      _mm_alignr_epi8(last, old, 4)),
							last);
		}
		abef = _mm_add_epi32(abef, before[0]);
		cdgh = _mm_add_epi32(cdgh, before[1]);
	}
	cdab = _mm_shuffle_epi32(abef, 0x1b); /* FEBA */
	hgfe = _mm_shuffle_epi32(cdgh, 0xb1); /* DCHG */
	_mm_storeu_si128((__m128i *)state, _mm_blend_epi16(cdab, hgfe, 0xf0));
	_mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(hgfe, cdab, 8));
}

static bool has_own(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1))
		return false;
	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}
/* Clang, at least before version 16, has these intrinsics only in files compiled with +sha2 throughout. */
#elif defined(__aarch64__) && defined(__linux__) && \
	(defined(__ARM_FEATURE_SHA2) || (defined(__GNUC__) && !defined(__clang__)))
#define OWN_INSTRUCTIONS
#ifdef __ARM_FEATURE_SHA2
#define WITH_OWN
#else
#define WITH_OWN __attribute__((target("+crypto")))
#endif
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>

WITH_OWN static void blocks_own(uint32_t state[8], const uint8_t *data, size_t count)
{
	uint32x4_t abcd = vld1q_u32(state), efgh = vld1q_u32(state + 4);

	for (; count; count--, data += 64) {
		const uint32x4_t before[2] = { abcd, efgh };
		uint32x4_t w[4];

		for (int i = 0; i < 4; i++)
			w[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(data + 16 * i)));
#pragma GCC unroll 16
		for (int i = 0; i < 16; i++) {
			uint32x4_t sum = vaddq_u32(w[i % 4], vld1q_u32(k + 4 * i)), old = abcd;

			abcd = vsha256hq_u32(abcd, efgh, sum);
			efgh = vsha256h2q_u32(efgh, old, sum);
			w[i % 4] = vsha256su1q_u32(vsha256su0q_u32(w[i % 4], w[(i + 1) % 4]), w[(i + 2) % 4],
						   w[(i + 3) % 4]);
		}
		abcd = vaddq_u32(abcd, before[0]);
		efgh = vaddq_u32(efgh, before[1]);
	}
	vst1q_u32(state, abcd);
	vst1q_u32(state + 4, efgh);
}

static bool has_own(void)
{
	return getauxval(AT_HWCAP) & HWCAP_SHA2;
}
#endif

#ifdef OWN_INSTRUCTIONS
static void blocks(uint32_t state[8], const uint8_t *data, size_t count)
{
	static int known; /* 1: no, 2: yes; all threads find the same answer */
	int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (!answer) {
		answer = 1 + has_own();
		__atomic_store_n(&known, answer, __ATOMIC_RELAXED);
	}
	(answer == 2 ? blocks_own : blocks_plain)(state, data, count);
}
#else
static void blocks(uint32_t state[8], const uint8_t *data, size_t count)
{
	blocks_plain(state, data, count);
}
#endif

void xfp_sha256_init(struct xfp_sha256 *sha)
{
	static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	memcpy(sha->state, start, sizeof start);
	sha->size = 0;
}

void xfp_sha256_update(struct xfp_sha256 *sha, const void *data, size_t size)
{
	const uint8_t *bytes = data;
	size_t held = sha->size % 64, part = held ? 64 - held : 0;

	if (!size)
		return;
	sha->size += size;
	if (held) {
		part = part < size ? part : size;
		memcpy(sha->block + held, bytes, part);
		if (held + part < 64)
			return;
		blocks(sha->state, sha->block, 1);
	}
	blocks(sha->state, bytes + part, (size - part) / 64);
	memcpy(sha->block, bytes + size - (size - part) % 64, (size - part) % 64);
}

static void finish(struct xfp_sha256 *sha, void (*compress)(uint32_t *, const uint8_t *, size_t), uint8_t digest[32])
{
	size_t rest = sha->size % 64, tail_bytes = rest < 56 ? 64 : 128;
	uint8_t tail[128] = { 0 };
	uint64_t bits = sha->size * 8;

	memcpy(tail, sha->block, rest);
	tail[rest] = 0x80;
	for (int i = 1; i <= 8; i++, bits >>= 8)
		tail[tail_bytes - (size_t)i] = (uint8_t)bits;
	compress(sha->state, tail, tail_bytes / 64);
	for (int i = 0; i < 32; i++)
		digest[i] = (uint8_t)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
}

void xfp_sha256_final(struct xfp_sha256 *sha, uint8_t digest[32])
{
	finish(sha, blocks, digest);
}

void xfp_sha256(const void *data, size_t size, uint8_t digest[32])
{
	struct xfp_sha256 sha;

	xfp_sha256_init(&sha);
	xfp_sha256_update(&sha, data, size);
	xfp_sha256_final(&sha, digest);
}

void xfp_sha256_plain(const void *data, size_t size, uint8_t digest[32])
{
	struct xfp_sha256 sha;

	xfp_sha256_init(&sha);
	blocks_plain(sha.state, data, size / 64);
	sha.size = size;
	if (size % 64)
		memcpy(sha.block, (const uint8_t *)data + size / 64 * 64, size % 64);
	finish(&sha, blocks_plain, digest);
}
