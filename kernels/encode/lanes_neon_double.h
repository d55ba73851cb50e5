/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes_neon_double.h - what lanes_neon.h has in 64 bits: f64, and exact sums. A part of it.
 */
#ifndef XFP_LANES_NEON_DOUBLE_H
#define XFP_LANES_NEON_DOUBLE_H

typedef struct {
	float64x2_t of[8]; /* two lanes each */
} vd;
#define EIGHTHS for (int i = 0; i < 8; i++)

ALWAYS vd vd_all(double value)
{
	vd a;

	EIGHTHS a.of[i] = vdupq_n_f64(value);
	return a;
}

ALWAYS vd vd_zero(void)
{
	return vd_all(0);
}

ALWAYS vd vd_load(const double *from)
{
	vd a;

	EIGHTHS a.of[i] = vld1q_f64(from + 2 * i);
	return a;
}

ALWAYS void vd_store(double *to, vd a)
{
	EIGHTHS vst1q_f64(to + 2 * i, a.of[i]);
}

ALWAYS vd vd_from_f(vf a)
{
	return (vd){ { vcvt_f64_f32(vget_low_f32(a.a)), vcvt_high_f64_f32(a.a), vcvt_f64_f32(vget_low_f32(a.b)),
		       vcvt_high_f64_f32(a.b), vcvt_f64_f32(vget_low_f32(a.c)), vcvt_high_f64_f32(a.c),
		       vcvt_f64_f32(vget_low_f32(a.d)), vcvt_high_f64_f32(a.d) } };
}

/* Pairs of lanes in 64 bits, with their sign. */
struct pairs {
	int64x2_t of[8];
};

ALWAYS struct pairs to_pairs(int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d)
{
	return (struct pairs){ { vmovl_s32(vget_low_s32(a)), vmovl_high_s32(a), vmovl_s32(vget_low_s32(b)),
				 vmovl_high_s32(b), vmovl_s32(vget_low_s32(c)), vmovl_high_s32(c),
				 vmovl_s32(vget_low_s32(d)), vmovl_high_s32(d) } };
}

ALWAYS vd vd_from_i(vi a)
{
	struct pairs wide = to_pairs(a.a, a.b, a.c, a.d);
	vd b;

	EIGHTHS b.of[i] = vcvtq_f64_s64(wide.of[i]);
	return b;
}

ALWAYS vd vd_add(vd a, vd b)
{
	EIGHTHS a.of[i] = vaddq_f64(a.of[i], b.of[i]);
	return a;
}

ALWAYS vd vd_sub(vd a, vd b)
{
	EIGHTHS a.of[i] = vsubq_f64(a.of[i], b.of[i]);
	return a;
}

ALWAYS vd vd_mul(vd a, vd b)
{
	EIGHTHS a.of[i] = vmulq_f64(a.of[i], b.of[i]);
	return a;
}

ALWAYS vd vd_div(vd a, vd b)
{
	EIGHTHS a.of[i] = vdivq_f64(a.of[i], b.of[i]);
	return a;
}

ALWAYS vd vd_where(vm m, vd a, vd b)
{
	struct pairs wide = to_pairs(QUARTERS_1(vreinterpretq_s32_u32, m));

	EIGHTHS a.of[i] = vbslq_f64(vreinterpretq_u64_s64(wide.of[i]), a.of[i], b.of[i]);
	return a;
}

ALWAYS vd vd_lookup(const double *table, vi index)
{
	struct pairs at = to_pairs(index.a, index.b, index.c, index.d);
	vd a;

	EIGHTHS a.of[i] =
		vld1q_lane_f64(table + vgetq_lane_s64(at.of[i], 1), vdupq_n_f64(table[vgetq_lane_s64(at.of[i], 0)]), 1);
	return a;
}

ALWAYS vd vd_lookup16(const double *table, vi index)
{
	return vd_lookup(table, index);
}

ALWAYS int32x4_t upper_halves(float64x2_t a, float64x2_t b)
{
	return vuzp2q_s32(vreinterpretq_s32_f64(a), vreinterpretq_s32_f64(b));
}

ALWAYS vi vd_sign(vd a)
{
	return vi_sign((vi){ upper_halves(a.of[0], a.of[1]), upper_halves(a.of[2], a.of[3]),
			     upper_halves(a.of[4], a.of[5]), upper_halves(a.of[6], a.of[7]) });
}

ALWAYS int32x2_t key_eighth(float64x2_t a, int count)
{
	uint64x2_t bits = vreinterpretq_u64_f64(a);

	bits = vsubq_u64(vandq_u64(bits, vdupq_n_u64(INT64_MAX)), vshrq_n_u64(bits, 63));
	return vreinterpret_s32_u32(vmovn_u64(vshlq_u64(bits, vdupq_n_s64(-count))));
}

ALWAYS int32x4_t key_quarter(float64x2_t a, float64x2_t b, int count)
{
	return vcombine_s32(key_eighth(a, count), key_eighth(b, count));
}

ALWAYS vi vd_key(vd a, int count)
{
	return (vi){ key_quarter(a.of[0], a.of[1], count), key_quarter(a.of[2], a.of[3], count),
		     key_quarter(a.of[4], a.of[5], count), key_quarter(a.of[6], a.of[7], count) };
}

ALWAYS vd vd_add_exact(vd a, vd b, vd c)
{
	EIGHTHS a.of[i] = vfmaq_f64(a.of[i], b.of[i], c.of[i]);
	return a;
}

typedef struct {
	int64x2_t sum[2], square[2];
} vsum;

ALWAYS void vsum_clear(vsum *s)
{
	s->sum[0] = s->sum[1] = s->square[0] = s->square[1] = vdupq_n_s64(0);
}

ALWAYS void vsum_add_quarter(vsum *s, int32x4_t a, int which)
{
	s->sum[which] = vpadalq_s32(s->sum[which], a);
	s->square[0] = vmlal_s32(s->square[0], vget_low_s32(a), vget_low_s32(a));
	s->square[1] = vmlal_high_s32(s->square[1], a, a);
}

ALWAYS void vsum_add(vsum *s, vi a)
{
	vsum_add_quarter(s, a.a, 0);
	vsum_add_quarter(s, a.b, 1);
	vsum_add_quarter(s, a.c, 0);
	vsum_add_quarter(s, a.d, 1);
}

ALWAYS void vsum_total(const vsum *s, int64_t *sum, int64_t *square)
{
	*sum = vaddvq_s64(vaddq_s64(s->sum[0], s->sum[1]));
	*square = vaddvq_s64(vaddq_s64(s->square[0], s->square[1]));
}

#undef EIGHTHS

#endif
