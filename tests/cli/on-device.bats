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
	"${bare[@]}" "$srcdir/tests/on-device" --stand-in --folder built --only build >out
	grep -Eq '\] all is right$' out
	run ! grep 'verify:' out
	grep -Eq '^\[ +[0-9.]+ s\] compiled kernels/cuda/v2c.cu$' on-device.txt
	"${bare[@]}" "$srcdir/tests/on-device" --stand-in --folder built --built --trials 1 --filter '*v2c k=4' >out || {
		cat out
		return 1
	}
	grep -q '^toolkit: .*release ' on-device.txt
	grep -q '^nvidia-smi: not found$' on-device.txt
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

# Started, and stopped while it builds.
stop_while_building() {
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

@test "stopped in the middle, it leaves the report, and no process or folder" {
	stop_while_building
	# nor does it wait for a compiler that goes on when it is told to end, and whose driver has gone
	cat >bin/nvcc <<-END
		#!/bin/sh
		case "\$*" in *--version*) exec "$NVCC" "\$@" ;; esac
		sh -c 'trap "" TERM; sleep 300; :' "$PWD/xfp-on-device-" &
		wait
	END
	SECONDS=0
	stop_while_building
	[ "$SECONDS" -lt 60 ]
}

# What the verifier says is made up: of the kernels a b, c d, e f and g h, one hangs or has the device fail.
@test "a kernel that hangs, or has the device fail, costs no other" {
	mkdir fake
	cat >fake/xfp-kernel-verify <<-'END'
		#!/bin/sh
		echo "$LD_LIBRARY_PATH" >>paths
		case "$*" in
		*--list) printf '%s: cuda\n' 'a b' 'c d' 'e f' 'g h' ;;
		*"--filter c d"*) echo begun; sleep 60 ;;
		*"--filter e f"*) echo 'e f cuda: 1 of 2 FAILED'; exit 4 ;;
		*"--filter g h"*) echo 'g h cuda: 9 ok' ;;
		*) echo 'a b cuda: 7 ok'; if [ -e hangs ]; then sleep 60; fi
			echo 'c d cuda: 1 of 1 FAILED'; exit 4 ;;
		esac
	END
	chmod +x fake/xfp-kernel-verify
	touch hangs
	run -4 "${bare[@]}" LD_LIBRARY_PATH=mine "$srcdir/tests/on-device" --built --folder fake --only verify --minutes 0.2
	[[ "$output" == *'a b cuda: 7 ok'*'verify: stopped; 3 kernels that it told nothing of are run one by one'* ]]
	[[ "$output" == *'e f cuda: 1 of 2 FAILED'*'g h cuda: 9 ok'*'begun'*'c d: stopped: it takes too long'*'verify: FAILED, status 4'* ]]
	# the user's libraries come first, and the toolkit's last
	grep -Eqx "$PWD/fake:mine(:.*)?" paths
	rm hangs
	run -4 "${bare[@]}" "$srcdir/tests/on-device" --built --folder fake --only verify
	[[ "$output" == *'verify: ended with status 4; 2 kernels that it told nothing of'*'e f cuda: '*'g h cuda: 9 ok'*'verify: FAILED, status 4'* ]]
	# one that hangs once in a while is not right
	sed -i 's/echo begun; sleep 60/echo "c d cuda: 3 ok"/; s/echo .e f cuda.*exit 4/echo "e f cuda: 2 ok"/' fake/xfp-kernel-verify
	touch hangs
	run -1 "${bare[@]}" "$srcdir/tests/on-device" --built --folder fake --only verify --minutes 0.1
	[[ "$output" == *'e f cuda: 2 ok'*'c d cuda: 3 ok'*'verify: FAILED, status 1'* ]]
	# half of the time is for what comes after
	run -1 "${bare[@]}" "$srcdir/tests/on-device" --built --folder fake --only verify,bench --minutes 0.2
	[[ "$output" == *'verify: FAILED'*'bench:'* ]]
}

@test "the toolkit's libraries are found beside nvcc" {
	mkdir -p toolkit/bin toolkit/lib64 toolkit/targets/here/lib fake
	printf '#!/bin/sh\n' >toolkit/bin/nvcc
	printf '#!/bin/sh\necho "path $LD_LIBRARY_PATH"\n' >fake/xfp-kernel-verify
	chmod +x toolkit/bin/nvcc fake/xfp-kernel-verify
	ln -s ../toolkit/bin/nvcc bin/other
	run -0 "${bare[@]}" NVCC="$PWD/bin/other" "$srcdir/tests/on-device" --built --folder fake --only bench
	[[ "$output" == *"path $PWD/fake:$PWD/toolkit/lib64:$PWD/toolkit/targets/here/lib"* ]]
}

@test "no device, no compiler, a wrong command line" {
	run -2 "${bare[@]}" "$srcdir/tests/on-device" --only build
	[[ "$output" == *'--only build goes with --folder'* ]]
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
