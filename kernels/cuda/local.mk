# SPDX-License-Identifier: Apache-2.0
#
# kernels/cuda/: device code. nvcc compiles every .cu to a fat binary for libxfp-cuda (runtime/cuda/fatbins.c) and, for
# the emulator of the tests, to PTX for each architecture.

cuda_sources = \
	kernels/cuda/fp8.cu \
	kernels/cuda/kept.cu \
	kernels/cuda/prepare.cu \
	kernels/cuda/repack.cu \
	kernels/cuda/v2.cu \
	kernels/cuda/v2a.cu \
	kernels/cuda/v2c.cu
cuda_headers = \
	kernels/cuda/abi.h \
	kernels/cuda/codebook.h \
	kernels/cuda/copies.h \
	kernels/cuda/device.h \
	kernels/cuda/few.h \
	kernels/cuda/grouped.h \
	kernels/cuda/integer.h \
	kernels/cuda/lanes.h \
	kernels/cuda/parts.h \
	kernels/cuda/place.h \
	kernels/cuda/ring.h \
	kernels/cuda/tile.h \
	kernels/cuda/wide.h \
	kernels/cuda/wide_rows.h
EXTRA_DIST += $(cuda_sources) $(cuda_headers)

# 8.0 runs on 8.6 and 8.9, 9.0 on Hopper, 10.0 on 10.3, 12.0 on 12.1; all other devices use the PTX, which is for 9.0,
# the first architecture where a kernel can wait for the previous launch (device.h).
# Rounding follows IEEE except for fused products and sums; --use_fast_math is never set.
cuda_fatbins = $(cuda_sources:.cu=.fatbin)
nvcc_flags = -std=c++17 -I$(srcdir)
nvcc_targets = \
	-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 \
	-gencode arch=compute_100,code=sm_100 -gencode arch=compute_120,code=sm_120 \
	-gencode arch=compute_90,code=compute_90
SUFFIXES += .cu .fatbin .ptx80 .ptx90 .ptx100 .ptx120

# ptxas's report on each kernel is kept for tests/cuda/resources; its other output, and nvcc's, is shown.
.cu.fatbin:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && { $(NVCC) $(nvcc_flags) $(NVCCFLAGS) $(nvcc_targets) --compress-mode=size -Xptxas -v \
		-fatbin -o $@ $< >$*.ptxas 2>&1 || { cat $*.ptxas >&2; exit 1; }; }
	@grep -Ev '^ptxas info|^ *[0-9]+ bytes stack frame,' $*.ptxas >&2 || :
.cu.ptx80:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(NVCC) $(nvcc_flags) $(NVCCFLAGS) -arch=compute_80 -ptx -o $@ $<
.cu.ptx90:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(NVCC) $(nvcc_flags) $(NVCCFLAGS) -arch=compute_90 -ptx -o $@ $<
.cu.ptx100:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(NVCC) $(nvcc_flags) $(NVCCFLAGS) -arch=compute_100 -ptx -o $@ $<
.cu.ptx120:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(NVCC) $(nvcc_flags) $(NVCCFLAGS) -arch=compute_120 -ptx -o $@ $<

cuda_ptx = \
	$(cuda_sources:.cu=.ptx80) $(cuda_sources:.cu=.ptx90) $(cuda_sources:.cu=.ptx100) $(cuda_sources:.cu=.ptx120)
$(cuda_fatbins) $(cuda_ptx): $(cuda_headers)
CLEANFILES += $(cuda_fatbins) $(cuda_sources:.cu=.ptxas) $(cuda_ptx)
