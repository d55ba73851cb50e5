#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# xfp-kernel-verify --device: on a machine without a GPU, and with the stand-in driver, which runs kernels in the
# PTX emulator.

load helpers

setup() {
	setup_folder
	mkdir bad # libraries that are none
	: >bad/libxfp-cuda.so.0
	: >bad/libcuda.so.1
	mkdir none
	for version in .14 .13 .12 .11 ''; do
		: >none/libcublas.so$version
	done
}

@test "no libxfp-cuda, no driver, no device: reported, with status 1" {
	LD_LIBRARY_PATH=$PWD/bad run -1 xfp-kernel-verify --device cuda
	[[ "$output" == 'xfp-kernel-verify: --device cuda: libxfp-cuda not found ('*'); build xfp with nvcc, '* ]]
	stand_in
	rm bad/libxfp-cuda.so.0
	LD_LIBRARY_PATH=$PWD/bad:$XFP_TEST_LIB run -1 xfp-kernel-verify --device cuda
	[[ "$output" == *'--device cuda: no CUDA driver found ('*'); install '* ]]
	run -1 env STAND_IN_DEVICES=0 xfp-kernel-verify --device cuda
	[[ "$output" == *'the CUDA driver finds no device; '* ]]
	run -1 xfp-kernel-verify --device cuda:3
	[[ "$output" == *'--device cuda:3: there is no device 3; the CUDA driver finds 1, numbered from 0' ]]
	run -1 env STAND_IN_VERSION=12020 xfp-kernel-verify --device cuda
	[[ "$output" == *'the driver supports CUDA 12.2, but the kernels need CUDA '* ]]
	run -1 env STAND_IN_ARCH=75 xfp-kernel-verify --device cuda
	[[ "$output" == *'has compute capability 7.5; the kernels need 8.0 or newer'* ]]
}

@test "options that exclude a device: status 2" {
	for words in '--device opencl' '--device cuda:' '--device cuda:x' '--device cuda --golden' '--device cuda --cpu-mask plain' \
		'--device cuda --bundle x.xfp' '--device cuda --processor-time --bench' '--trials 0' '--trials x' '--list --trials 3' \
		'--device cuda --unchecked' '--unchecked --bench' '--device cuda --vectors 1' '--vectors 1 --bench' \
		'--device cuda --bench --vectors 3' '--device cuda --bench --vectors 1,' '--device cuda --bench --vectors 12'; do
		# shellcheck disable=SC2086
		run -2 xfp-kernel-verify $words
	done
	xfp-kernel-verify --device cuda --list >list
	[ "$(grep -c '^matvec .*: cuda$' list)" -eq 19 ]
	[ "$(grep -c '^experts .*: cuda$' list)" -eq 19 ]
	[ "$(wc -l <list)" -eq 38 ]
	xfp-kernel-verify --list >list
	run ! grep -E '^experts|cuda' list
}

@test "kernels that pass, that fail, and that fault the device" {
	stand_in
	xfp-kernel-verify --device cuda --seed 4 --trials 4 --filter '* v2 k=3' >right
	sed -n 2p right | grep -Eqx 'device: stand-in sm_90, compute capability 9.0, 4 multiprocessors; driver for CUDA 13.0, kernels of nvcc [0-9.]+'
	grep -qx 'matvec v2 k=3 cuda: 4 ok' right
	grep -qx 'experts v2 k=3 cuda: 4 ok' right
	# Corrupt the kernels: sums of floats change sign, sums of integers lose their constant term.
	sed -Ei 's/add\.rn\.f32/sub.rn.f32/; s/fma\.rn\.f64([^,]*),([^,]*),([^,]*),[^,]*;/mul.rn.f64\1,\2,\3;/' v2.ptx90
	run -4 xfp-kernel-verify --device cuda --seed 4 --trials 1 --filter 'matvec v2* k=3'
	grep -qx 'matvec v2 k=3 cuda: 1 of 1 FAILED' <<<"$output"
	grep -Eq '^    seed 4, trial 43, .* M = 1, bf16 to f32.*: row [0-9]+ of y 0 is .*: the error is .*, the bound .*$' <<<"$output"
	grep -qx 'matvec v2a k=3 cuda: 1 ok' <<<"$output"
	cp "$XFP_TEST_TOOLS/../kernels/cuda/v2.ptx90" .
	sed -Ei 's/(st\.global\.[a-z0-9.]+[[:space:]]+\[%rd[0-9]+)(\+[0-9]+)?\]/\1+1]/' v2.ptx90
	status=0
	xfp-kernel-verify --device cuda --seed 4 --trials 2 --filter 'matvec v2* k=3' --json >json 2>errors || status=$?
	[ "$status" -eq 4 ]
	"$PYTHON" - <<-'END'
		import json
		it = json.load(open("json"))
		assert it["device"]["compute_capability"] == "9.0" and it["sets"] == ["cuda"]
		assert [g["op"] for g in it["groups"]] == ["matvec v2 k=3"], it
		assert it["groups"][0]["trials"] == 1 and "CUDA_ERROR_ILLEGAL_ADDRESS" in it["groups"][0]["failures"][0]
		assert it["lost"] == 2
	END
}

@test "the bench of a device: every line, on a device that computes nothing" {
	stand_in
	cat >blas.c <<-'END'
		#include <stddef.h>
		static int one;
		int cublasCreate_v2(void **handle) { *handle = &one; return 0; }
		int cublasDestroy_v2(void *handle) { return handle != &one; }
		int cublasGetVersion_v2(void *handle, int *version) { *version = 130100; return handle != &one; }
		int cublasSetStream_v2(void *handle, void *stream) { return handle != &one || !stream; }
		int cublasSetWorkspace_v2(void *handle, void *at, size_t bytes) { return handle != &one || !at || !bytes; }
		int cublasGemmEx(void *handle, int turn_a, int turn_b, int m, int n, int k, const float *alpha, const void *a, int at, int lda,
			const void *b, int bt, int ldb, const float *beta, void *c, int ct, int ldc, int compute, int algorithm)
		{
			return handle != &one || turn_a != 1 || turn_b || *alpha != 1 || *beta != 0 || !a || !b || !c || at != 14 || bt != 14 ||
				ct != 14 || lda != k || ldb != k || ldc != m || n < 1 || compute != 68 || algorithm != -1;
		}
	END
	mkdir blas
	: >blas/libcublas.so.14
	$CC -shared -fPIC -o blas/libcublas.so.13 blas.c
	export STAND_IN_IDLE=1
	LD_LIBRARY_PATH=$PWD/none:$LD_LIBRARY_PATH TMPDIR=$PWD xfp-kernel-verify --device cuda --trials 0 --bench --unchecked --mib 1 >bench
	cat bench
	grep -qx 'cuBLAS: not found' bench
	for vectors in 1 2 4 8 16 32 512; do
		[ "$(grep -Ec "^matvec v2c k=4 G32 +256 x 8192 +1\.1 MB M=$vectors .* us +[0-9.]+ GB/s.* \(no cuBLAS\)  prepared in " bench)" -eq 1 ]
	done
	grep -Eq '^experts v2c k=4 G32 +32 x 4096  x 8 ' bench
	grep -Eq '^upload from the disk .* % of the slower$' bench
	[ -z "$(ls | grep xfp-kernel-verify-)" ]
	# --vectors omits the other numbers of vectors, cases that have none of the given ones, and the upload
	xfp-kernel-verify --device cuda --trials 0 --bench --unchecked --mib 1 --vectors 2,512 >bench
	[ "$(grep -c ' M=2 ' bench)" -eq 6 ]
	[ "$(grep -c ' M=512 ' bench)" -eq 15 ]
	run ! grep -E 'M=(1|4|8|16|32) |^experts|^upload' bench
	LD_LIBRARY_PATH=$PWD/blas:$LD_LIBRARY_PATH xfp-kernel-verify --device cuda --trials 0 --bench --unchecked --mib 1 --filter '* v2 k=[24]' --json >json
	"$PYTHON" - <<-'END'
		import json
		it = json.load(open("json"))["bench"]
		assert it[0]["op"] == "reads" and it[0]["cublas"] == 130100
		assert len(it) == 1 + 7 + 7 + 3 and all(line["of_cublas"] > 0 and line["seconds"] > 0 for line in it[1:])
		assert {line["op"] for line in it[1:]} == {"matvec v2 k=4", "matvec v2 k=2", "experts v2 k=4"}
	END
}

@test "the bench of a device: wrong kernels have no time, and failing ones do not stop the others" {
	stand_in
	verifier=(xfp-kernel-verify --device cuda --trials 0 --bench --mib 1)
	# the real computation once, compared
	STAND_IN_IDLE=2 "${verifier[@]}" --filter 'experts v2 k=4' >bench
	grep -Eq '^experts v2 k=4 +32 x 4096  x 8 .* us ' bench
	export STAND_IN_IDLE=1
	run -4 "${verifier[@]}" --filter 'experts v2* k=4'
	[ "$(grep -Ec '^experts v2c? k=4 +FAILED: M=1: row 0 of y 0 is -?nan, not ' <<<"$output")" -eq 3 ]
	[[ "$output" == *'xfp-kernel-verify: experts v2 k=4: M=1: row 0 of y 0 is '* ]]
	# while a graph is captured, where waiting is forbidden: reads, and products
	STAND_IN_FAIL='cuLaunchKernelEx 5 1' run -1 "${verifier[@]}" --unchecked --filter 'experts v2 k=4'
	[[ "$output" == *': cuLaunchKernel failed: CUDA_ERROR_INVALID_VALUE'* ]]
	[[ "$output" != *'something waited'* ]]
	STAND_IN_FAIL='cuLaunchKernelEx 150 1' run -1 "${verifier[@]}" --unchecked --filter 'experts v2* k=4'
	[ "$(grep -Ec '^experts v2 k=4 +FAILED: M=1: .*cuLaunchKernelEx failed: CUDA_ERROR_INVALID_VALUE' <<<"$output")" -eq 1 ]
	[ "$(grep -Ec '^experts v2c k=4 G32 .* us ' <<<"$output")" -eq 2 ]
	[[ "$output" != *'something waited'* ]]
	STAND_IN_FAIL='cuLaunchKernelEx 150 1' run -1 "${verifier[@]}" --unchecked --filter 'experts v2 k=4' --json
	[[ "$output" == *'{"op": "experts v2 k=4", "set": "cuda", "failed": "M=1: '* ]]
	# cuBLAS alone
	printf '%s\n' 'static int one; int cublasCreate_v2(void **h) { *h = &one; return 0; }' \
		'int cublasDestroy_v2(void *h) { return !h; } int cublasGetVersion_v2(void *h, int *v) { *v = 13; return !h; }' \
		'int cublasSetStream_v2(void *h) { return !h; } int cublasSetWorkspace_v2(void *h) { return !h; }' \
		'int cublasGemmEx(void *h) { return h ? 13 : 1; }' >blas.c
	mkdir blas
	$CC -shared -fPIC -o blas/libcublas.so.14 blas.c
	LD_LIBRARY_PATH=$PWD/blas:$LD_LIBRARY_PATH "${verifier[@]}" --unchecked --filter 'experts v2* k=4' >bench
	[ "$(grep -Ec '^experts .* us .* \(cuBLAS fails\)  prepared in ' bench)" -eq 3 ]
}
