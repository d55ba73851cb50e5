#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# tests/on-device, with the stand-in driver for a GPU: it builds with nothing but a C compiler, nvcc and Python, outside
# of the build folder, runs some of the verifier's table in the emulator of PTX, and leaves its report when it is stopped.

load helpers

# Programs that are all that PATH has: $PWD/bin.
setup() {
	local name found

	[ -n "${NVCC-}" ] || skip "there is no nvcc: $XFP_TEST_CUDA"
	"$PYTHON" -c 'import numpy' || skip "numpy, which the emulator needs, is not installed"
	setup_folder
	mkdir bin
	# What a C compiler is, and what sh and coreutils are.
	for name in cc gcc g++ as ld sh cat env ls mkdir rm sleep uname; do
		found=$(command -v "$name") && ln -s "$(readlink -f "$found")" bin/"$name"
	done
	printf '#!/bin/sh\nexec "%s" "$@"\n' "$NVCC" >bin/nvcc
	printf '#!/bin/sh\nexec "%s" "$@"\n' "$("$PYTHON" -c 'import sys; print(sys.executable)')" >bin/python3
	cat >bin/compute-sanitizer <<-'END'
		#!/bin/sh
		echo "as $*"
		case $2 in "$SANITIZER_FINDS") exit 86 ;; esac
	END
	chmod +x bin/nvcc bin/python3 bin/compute-sanitizer
	bare=(env -i "PATH=$PWD/bin" "TMPDIR=$PWD")
}

@test "built and run with a C compiler, nvcc and Python alone" {
	"${bare[@]}" "$srcdir/tests/on-device" --stand-in --folder built --trials 1 --filter '*v2c k=4' >out || {
		cat out
		return 1
	}
	grep -q '^toolkit: .*release ' on-device.txt
	grep -q '^nvidia-smi: not found$' on-device.txt
	grep -Eq '^\[ +[0-9.]+ s\] compiled kernels/cuda/v2c.cu$' on-device.txt
	grep -Eq '^\[ +[0-9.]+ s\] device: stand-in sm_90, ' on-device.txt
	grep -Eq '^\[ +[0-9.]+ s\] matvec v2c k=4 cuda: 1 ok$' on-device.txt
	grep -Eq '^\[ +[0-9.]+ s\] experts v2c k=4 cuda: 1 ok$' on-device.txt
	for tool in memcheck racecheck initcheck; do
		grep -Eq "\] as --tool $tool --error-exitcode 86 .*/xfp-kernel-verify --device cuda --seed 1 --filter .* --trials 1$" on-device.txt
	done
	grep -Eq '\] matvec v2c k=4 G32 +256 x 8192 .* M=512 ' on-device.txt
	grep -Eq '\] all is right$' on-device.txt
	diff on-device.txt <(sed '$d' out)
	[ "$(tail -n 1 out)" = 'the report is on-device.txt' ]

	# what is wrong is told by the status: a race that a tool finds, and a device without memory
	run -4 "${bare[@]}" SANITIZER_FINDS=racecheck "$srcdir/tests/on-device" --stand-in --folder built \
		--built --only sanitize
	[[ "$output" == *'sanitize racecheck: it found errors'*'sanitize initcheck: done'*'status 4: not all is right'* ]]
	run -4 "${bare[@]}" STAND_IN_FAIL_ALLOC=4 "$srcdir/tests/on-device" --stand-in --folder built --built --only verify \
		--trials 1 --filter 'matvec v2c k=4'
	[[ "$output" == *'CUDA_ERROR_OUT_OF_MEMORY'*'verify: FAILED, status 4'* ]]
}

@test "stopped in the middle, it leaves the report, and no process or folder" {
	"${bare[@]}" "$srcdir/tests/on-device" --stand-in --report here.txt >out 2>&1 &
	it=$!
	for _ in {1..100}; do
		if grep -q 'building in' here.txt 2>/dev/null; then break; fi
		sleep 0.1
	done
	sleep 1
	kill -TERM "$it"
	status=0
	wait "$it" || status=$?
	[ "$status" -eq 143 ]
	grep -q '^compiler: ' here.txt
	tail -n 1 here.txt | grep -Eq '^\[ +[0-9.]+ s\] stopped by SIGTERM$'
	[ -z "$(find . -name 'xfp-on-device-*')" ]
	run ! grep -lz "$PWD/xfp-on-device-" /proc/[0-9]*/cmdline
}

@test "no device, no compiler, a wrong command line" {
	run -1 "${bare[@]}" "$srcdir/tests/on-device"
	[[ "$output" == *'failed: no device is found, by '* ]]
	grep -q 'failed: no device is found' on-device.txt
	run -1 "${bare[@]}" CC=none "$srcdir/tests/on-device" --arch 90
	[[ "$output" == *'failed: none is not found; CC may name another'* ]]
	run -1 "${bare[@]}" "$srcdir/tests/on-device" --arch 75
	[[ "$output" == *'the device has compute capability 7.5; the kernels want 8.0 or newer'* ]]
	run -2 "${bare[@]}" "$srcdir/tests/on-device" --only speed
	run -0 "${bare[@]}" "$srcdir/tests/on-device" --help
}
