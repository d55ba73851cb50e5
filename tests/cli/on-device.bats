#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# tests/on-device without a GPU. With the stand-in driver, it builds outside of the build folder with a C
# compiler, nvcc and Python alone, and runs a part of the verifier's table in the PTX emulator. With a fake
# verifier and a fake driver, it simulates what a GPU may do: hang, fail, be too old.

load helpers

# Make $PWD/bin, the only folder in PATH, with these programs.
setup() {
	local name found

	[ -n "${NVCC-}" ] || skip "there is no nvcc: $XFP_TEST_CUDA"
	"$PYTHON" -c 'import numpy' || skip "numpy, which the emulator needs, is not installed"
	setup_folder
	mkdir bin
	# The programs of a C compiler, sh and coreutils.
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
	on_device=("${bare[@]}" "$srcdir/tests/on-device")
}

# fake FOLDER [TOOLKIT]: a build whose verifier is the script on standard input, with a driver of FAKE_VERSION and
# FAKE_ARCH.
fake() {
	mkdir -p "$1"
	{ printf '#!/bin/sh\n' && cat; } >"$1"/xfp-kernel-verify
	chmod +x "$1"/xfp-kernel-verify
	printf '{"toolkit": %d, "arch": 90, "flags": "-DOF=%s", "libraries": []}\n' "${2-13000}" "${1##*/}" >"$1"/build.json
	[ -e libcuda.so.1 ] || "$CC" -shared -fPIC -o libcuda.so.1 -x c - <<-'END'
		#include <stdlib.h>
		#include <string.h>
		static int number(const char *name, int otherwise) { return getenv(name) ? atoi(getenv(name)) : otherwise; }
		int cuDriverGetVersion(int *to) { *to = number("FAKE_VERSION", 13000); return 0; }
		int cuInit(unsigned flags) { return flags + number("FAKE_INIT", 0); }
		int cuDeviceGetCount(int *to) { *to = number("FAKE_DEVICES", 1); return 0; }
		int cuDeviceGet(int *to, int device) { *to = device; return 0; }
		int cuDeviceGetName(char *to, int size, int device) { (void)device; strncpy(to, "a GPU", (size_t)size); return 0; }
		int cuDeviceGetAttribute(int *to, int what, int device)
		{
			*to = device ? 0 : what == 75 ? number("FAKE_ARCH", 90) / 10 : number("FAKE_ARCH", 90) % 10;
			return 0;
		}
	END
	cp libcuda.so.1 "$1"
}

# An nvidia-smi that knows a field by its older name only, and reports the clocks of the file clocks.
fake_smi() {
	cat >bin/nvidia-smi <<-END
		#!/bin/sh
		case "\$*" in
		*clocks_event*) echo 'Field "clocks_event_reasons.active" is not a valid field to query.'; exit 2 ;;
		*clocks_throttle*) cat '$PWD/clocks' ;;
		*) echo 'a GPU, 580.1' ;;
		esac
	END
	chmod +x bin/nvidia-smi
	echo '1980, 3201, 312.40, 40, 0x0000000000000000' >clocks
}

@test "built and run with a C compiler, nvcc and Python alone" {
	"${on_device[@]}" --stand-in --folder built --only build >out
	grep -Eq '\] all is right$' out
	run ! grep 'verify:' out
	grep -q '^toolkit: .*release ' on-device.txt
	grep -Eq '^\[ +[0-9.]+ s\] compiled kernels/cuda/v2c.cu$' on-device.txt
	"${on_device[@]}" --stand-in --folder built --built --trials 1 --filter '*v2c k=4' >out || {
		cat out
		return 1
	}
	grep -Eq '\] build: .*/built, by nvcc [0-9.]+ for compute capability 9.0$' on-device.txt
	grep -q '^nvidia-smi: not found$' on-device.txt
	grep -Eq '^\[ +[0-9.]+ s\] device: stand-in sm_90, ' on-device.txt
	grep -Eq '^\[ +[0-9.]+ s\] matvec v2c k=4 cuda: 1 ok$' on-device.txt
	grep -Eq '^\[ +[0-9.]+ s\] experts v2c k=4 cuda: 1 ok$' on-device.txt
	for tool in memcheck racecheck initcheck; do
		grep -Eq "\] as --tool $tool --error-exitcode 86 .*/xfp-kernel-verify --device cuda --seed 1 --filter .* --trials 1$" on-device.txt
	done
	grep -Eq '\] matvec v2c k=4 G32 +256 x 8192 .* M=512 ' on-device.txt
	# in order of importance, one vector before many
	[ "$(sed -n 's/^\[ *[0-9.]* s\] \([a-z]*\):$/\1/p' on-device.txt | tr '\n' ' ')" = 'contact check first python bench verify sanitize ' ]
	grep -Eq '\] python: skipped: (.* has no (numpy|torch)|torch .* finds no CUDA device)' on-device.txt
	run -0 sed -n '/\] first:$/,/\] python:$/p' on-device.txt
	[[ "$output" == *' M=1 '* && "$output" != *' M=2 '* ]]
	grep -Eq '\] all is right$' on-device.txt
	diff on-device.txt <(sed '$d' out)
	[ "$(tail -n 1 out)" = 'the report is on-device.txt' ]

	# the status tells a race found by a tool from a device without memory
	run -4 "${bare[@]}" SANITIZER_FINDS=racecheck "$srcdir/tests/on-device" --stand-in --folder built \
		--built --only sanitize
	[[ "$output" == *'sanitize racecheck: it found errors'*'sanitize initcheck: done'*'status 4: not all is right'* ]]
	run -4 "${bare[@]}" STAND_IN_FAIL_ALLOC=4 "$srcdir/tests/on-device" --stand-in --folder built --built --only verify \
		--trials 1 --filter 'matvec v2c k=4'
	[[ "$output" == *'CUDA_ERROR_OUT_OF_MEMORY'*'verify: FAILED, status 4'* ]]
}

# Started, and stopped while it builds.
stop_while_building() {
	"${on_device[@]}" --stand-in --report here.txt >out 2>&1 &
	it=$!
	for _ in {1..100}; do
		if grep -q '\] building ' here.txt 2>/dev/null; then break; fi
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
	# nor does it wait for a compiler that ignores SIGTERM, and whose driver has ended
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

# Of the kernels a b, c d, e f and g h, one hangs or makes the device fail.
@test "a kernel that hangs, or faults the device, does not stop the others" {
	fake fake <<-'END'
		echo "$LD_LIBRARY_PATH" >>paths
		case "$*" in
		*--list*) printf '%s: cuda\n' 'a b' 'c d' 'e f' 'g h' ;;
		*"--filter c d"*) echo begun; sleep 60 ;;
		*"--filter e f"*) echo 'e f cuda: 1 of 2 FAILED'; exit 4 ;;
		*"--filter g h"*) echo 'g h cuda: 9 ok' ;;
		*) echo 'a b cuda: 7 ok'; if [ -e hangs ]; then sleep 60; fi
			echo 'c d cuda: 1 of 1 FAILED'; exit 4 ;;
		esac
	END
	touch hangs
	run -4 "${bare[@]}" LD_LIBRARY_PATH=mine "$srcdir/tests/on-device" --built --folder fake --only verify --minutes 0.2
	[[ "$output" == *'a b cuda: 7 ok'*'verify: stopped; 3 kernels without a result are run one by one'* ]]
	[[ "$output" == *'e f cuda: 1 of 2 FAILED'*'g h cuda: 9 ok'*'begun'*'c d: stopped: it takes too long'*'verify: FAILED, status 4'* ]]
	# the user's libraries come first, and the toolkit's last
	grep -Eqx "$PWD/fake:mine(:.*)?" paths
	rm hangs
	run -4 "${on_device[@]}" --built --folder fake --only verify
	[[ "$output" == *'verify: ended with status 4; 2 kernels without a result'*'e f cuda: '*'g h cuda: 9 ok'*'verify: FAILED, status 4'* ]]
	# one that hangs occasionally is not right
	sed -i 's/echo begun; sleep 60/echo "c d cuda: 3 ok"/; s/echo .e f cuda.*exit 4/echo "e f cuda: 2 ok"/' fake/xfp-kernel-verify
	touch hangs
	run -1 "${on_device[@]}" --built --folder fake --only verify --minutes 0.1
	[[ "$output" == *'e f cuda: 2 ok'*'c d cuda: 3 ok'*'verify: FAILED, status 1'* ]]
	# the following steps have time left
	run -1 "${on_device[@]}" --built --folder fake --only check,verify --minutes 0.2
	[[ "$output" == *'check: FAILED'*'verify:'*'verify: FAILED'* ]]
}

@test "a kernel that hangs in the bench does not stop the others" {
	fake fake <<-'END'
		row() { echo "$1       16384 x 8192         71.4 MB M=1       30.00 us  2380.0 GB/s   71 % of reads"; }
		case "$*" in
		*--list*k=4) printf '%s: cuda\n' 'matvec v2 k=4' 'matvec v2c k=4' 'matvec v2a k=4' ;;
		*--list*) ;;
		*"--vectors 1 --filter matvec v2c k=4") sleep 60 ;;
		*"--vectors 1 --filter matvec v2a k=4") row 'matvec v2a k=4'; exit 0 ;;
		*"--vectors 1 --filter matvec v2*k=4") row 'matvec v2 k=4'; sleep 60 ;;
		*"--vectors 1 --filter experts *") echo 'experts v2 k=4      FAILED: M=1: row 3 is wrong'; exit 4 ;;
		*"--vectors 1 --filter "*) row 'matvec bf16' ;;
		esac
	END
	fake_smi
	run -4 "${on_device[@]}" --built --folder fake --only contact,first --minutes 0.3
	[[ "$output" == *'matvec v2 k=4  '*'2380.0 GB/s'*'first: stopped; 2 kernels without a result'*'matvec v2a k=4  '* ]]
	[[ "$output" == *'matvec v2c k=4: stopped: it takes too long'*'matvec bf16 '*'experts v2 k=4 '*'first: FAILED, status 4'* ]]
	# clocks before, between and after
	grep -Eq '\] clocks: SM 1980 MHz, memory 3201 MHz, 312 W, 40 C, not throttled$' on-device.txt
	grep -Eq '\] clocks during first, matvec v2\*k=4: SM 1980 MHz before, 1980 / 1980 / 1980 MHz \(min / median / max of [0-9]+ samples\), 1980 MHz after; .*; not throttled$' on-device.txt
	[ "$(grep -c 'clocks during first, ' on-device.txt)" -eq 4 ]
	echo '1455, 3201, [N/A], 84, 0x0000000000000024' >clocks
	run -0 "${on_device[@]}" --built --folder fake --only contact,first --filter 'matvec bf16'
	[[ "$output" == *' 1455 MHz after; memory 3201 MHz; unknown W; 84 C; throttled: software power cap in '*' of '*' samples, software thermal slowdown in '* ]]
	rm bin/nvidia-smi
	run -0 "${on_device[@]}" --built --folder fake --only contact,first --filter 'matvec bf16'
	[[ "$output" == *'clocks: not sampled: nvidia-smi is missing'*'first: done'* ]]
}

@test "variants are measured in turn, and wrong ones marked" {
	for folder in fake fake/variants/broken fake/variants/hung fake/variants/quick fake/variants/large; do
		fake "$folder" <<-'END'
			name=${0%/*} name=${name##*/}
			case $name in quick) rate=400.0 share=80 ;; *) rate=200.0 share=40 ;; esac
			[ ! -e later ] || rate=202.0
			case "$*" in
			*--list*) printf '%s: cuda\n' 'matvec v2 k=4' ;;
			*"--trials 2 --filter matvec v2*k=4"*)
				case $name in
				broken) echo 'matvec v2 k=4 cuda: 1 of 2 FAILED'; exit 4 ;;
				hung) exit 1 ;;
				esac
				echo 'matvec v2 k=4 cuda: 2 ok' ;;
			*--bench*)
				echo "$name: $*" >>log
				case "$name: $*" in large*--unchecked*) ;; large*) echo 'matvec v2 k=4       FAILED: M=1: row 3 is wrong'; exit 4 ;; esac
				echo "matvec v2 k=4       16384 x 8192         71.4 MB M=1       30.00 us  $rate GB/s   $share % of reads" ;;
			esac
		END
	done
	run -0 "${on_device[@]}" --built --folder fake --only compare
	[[ "$output" == *'compare: broken, round 1: -DOF=broken'*'compare: broken is WRONG'*'compare: done'* ]]
	run -0 sed -n '/\] GB\/s, /,/\] compare: done/p' on-device.txt
	[[ "$output" == *'GB/s, % of reads '*' base '*' broken '*' hung '*' large '*' quick'* ]]
	[[ "$output" == *'matvec v2 k=4 16384 x 8192 M=1  200.0, 40.0 %  200.0, 40.0 % WRONG  200.0, 40.0 % unverified '*' - WRONG  400.0, 80.0 %'* ]]
	[[ "$output" == *'means of 1 rounds'*'  200.0, 40.0 % WRONG  400.0, 80.0 %'*'means of 2 rounds, which differ by at most 0.0 %'* ]]
	# a kernel that is known to be wrong is still measured
	[ "$(grep -c -- --unchecked log)" -eq 3 ]
	[ "$(sed 's/:.*//' log | tr '\n' ' ')" = 'fake broken hung large quick fake broken hung large quick ' ]
	# the base must be right, and be measured
	sed -i "s/^broken)/fake)/; s/\tbroken)/\tfake)/" fake/xfp-kernel-verify
	run -4 "${on_device[@]}" --built --folder fake --only compare
	printf '#!/bin/sh\nexit 1\n' >fake/xfp-kernel-verify
	run -1 "${on_device[@]}" --built --folder fake --only compare
	[[ "$output" == *'base is not verified'*'base: the bench ended with status 1'*'compare: FAILED, status 1'* ]]
}

@test "--nvcc and --variant: builds and their flags" {
	mkdir tools
	for version in 13.0 12.9; do
		cat >tools/nvcc-$version <<-END
			#!/bin/sh
			case "\$*" in
			--version) printf 'Cuda compilation tools, release $version, V$version.1\n\n' ;;
			--list-gpu-code) echo sm_90 ;;
			*) echo "$version \$*" >>'$PWD/log'; while [ "\$1" != -o ]; do shift; done; echo >"\$2" ;;
			esac
		END
	done
	cat >tools/cc <<-END
		#!/bin/sh
		echo "cc \$*" >>'$PWD/log'
		while [ "\$1" != -o ]; do shift; done
		echo >"\$2"
	END
	chmod +x tools/*
	run -0 "${bare[@]}" CC="$PWD/tools/cc" "$srcdir/tests/on-device" --only build --folder f --arch 90 --nvcc tools/nvcc-13.0 \
		--nvcc tools/nvcc-12.9 --variant 'near=-DAHEAD=2 -O1' --variant 'far=-DAHEAD=6'
	[ "$(cd f && echo nvcc-*/xfp-kernel-verify nvcc-*/variants/*/build.json)" = 'nvcc-12.9/xfp-kernel-verify nvcc-13.0/xfp-kernel-verify nvcc-13.0/variants/far/build.json nvcc-13.0/variants/near/build.json' ]
	grep -q '^13.0 .* -DAHEAD=2 -O1 .*/v2c.cu$' log
	grep -q '^13.0 .* -DAHEAD=6 .*/v2c.cu$' log
	[ "$(grep -c '^12.9 .*/v2c.cu$' log)" -eq 1 ]
	run ! grep '^12.9 .*-DAHEAD' log
	grep -q '^cc .* -DXFP_CUDA_TOOLKIT=13000 .*-DAHEAD=2 .*/runtime/cuda/plan.c$' log
	grep -q '^cc .* -DXFP_CUDA_TOOLKIT=12090 .*/runtime/cuda/plan.c$' log
	run ! grep '^cc .*-DAHEAD=2 -O1' log
	# results of an earlier build are not mistaken for this one's
	run -0 "${bare[@]}" CC="$PWD/tools/cc" "$srcdir/tests/on-device" --only build --folder f --arch 90 --nvcc tools/nvcc-13.0
	[ "$(cd f && find . -name build.json)" = ./build.json ]
	for words in '--variant near' '--variant base=-DA' '--variant a/b=-DA' '--variant a=-DA --variant a=-DB' '--built --variant a=-DA'; do
		# shellcheck disable=SC2086
		run -2 "${on_device[@]}" --folder f --arch 90 $words
	done
	run -1 "${on_device[@]}" --only build --folder f --arch 90 --nvcc tools/nvcc-13.0 --nvcc tools/nvcc-13.0
	[[ "$output" == *'failed: --nvcc: two have the same version, 13.0'* ]]
}

@test "NVRTC in place of nvcc" {
	local library nvrtc

	for library in "$(dirname "$(dirname "$(readlink -f "$NVCC")")")"/lib64/libnvrtc.so.??; do
		[ -e "$library" ] || skip "the toolkit has no NVRTC"
	done
	nvrtc=("$PYTHON" "$srcdir/tests/cuda/nvrtc.py" "$library")
	"${nvrtc[@]}" --version | grep -Eq 'release [0-9]+\.[0-9]+, '
	"${nvrtc[@]}" --list-gpu-code | grep -qx sm_90
	"${nvrtc[@]}" -std=c++17 "-I$srcdir" -gencode arch=compute_90,code=sm_90 -fatbin -o cubin "$srcdir/kernels/cuda/repack.cu"
	[ "$(head -c 4 cubin)" = $'\x7fELF' ]
	"${nvrtc[@]}" -std=c++17 "-I$srcdir" -arch=compute_90 -ptx -o ptx "$srcdir/kernels/cuda/repack.cu"
	"$NVCC" -std=c++17 "-I$srcdir" -arch=compute_90 -ptx -o expected "$srcdir/kernels/cuda/repack.cu"
	diff <(grep -o 'entry .*' ptx | sort) <(grep -o 'entry .*' expected | sort)
	echo 'extern "C" __global__ void kernel(int *p) { *p = q; }' >wrong.cu
	run -1 "${nvrtc[@]}" -gencode arch=compute_90,code=sm_90 -fatbin -o cubin wrong.cu
	[[ "$output" == *'wrong.cu(1): error: identifier "q" is undefined'*'nvrtc: nvrtcCompileProgram: NVRTC_ERROR_COMPILATION'* ]]
}

@test "the newest build that the driver supports; a driver or device that is missing or too old" {
	for version in 12040 12090 13000; do
		fake "fake/nvcc-$version" "$version" <<-'END'
			echo "by $0"
		END
	done
	run -0 "${on_device[@]}" --built --folder fake --only contact
	[[ "$output" == *'driver: for CUDA 13.0; first device: a GPU, compute capability 9.0'*'by nvcc 13.0 for '*"by $PWD/fake/nvcc-13000/"* ]]
	run -0 "${bare[@]}" FAKE_VERSION=12020 "$srcdir/tests/on-device" --built --folder fake --only contact
	[[ "$output" == *'driver: for CUDA 12.2;'*"by $PWD/fake/nvcc-12090/"* ]]
	run -1 "${bare[@]}" FAKE_VERSION=11080 "$srcdir/tests/on-device" --built --folder fake --only contact
	[[ "$output" == *'failed: the driver is for CUDA 11.8, and the builds in '*' need one for CUDA 12.0 or newer: '* ]]
	run -1 "${bare[@]}" FAKE_ARCH=75 "$srcdir/tests/on-device" --built --folder fake --only contact
	[[ "$output" == *'failed: the device has compute capability 7.5; the kernels need 8.0 or newer'* ]]
	run -1 "${bare[@]}" FAKE_ARCH=120 "$srcdir/tests/on-device" --built --folder fake --only contact
	[[ "$output" == *'was built for compute capability 9.0, and the device has 12.0: build with --arch 120'* ]]
	run -1 "${bare[@]}" FAKE_DEVICES=0 "$srcdir/tests/on-device" --built --folder fake --only contact
	[[ "$output" == *'failed: the CUDA driver finds no device; '* ]]
	run -1 "${bare[@]}" FAKE_INIT=999 "$srcdir/tests/on-device" --built --folder fake --only contact
	[[ "$output" == *'failed: cuInit of the CUDA driver fails with status 999; '* ]]
	rm fake/*/libcuda.so.1
	run -1 "${on_device[@]}" --built --folder fake --only contact
	[[ "$output" == *'failed: no CUDA driver: libcuda.so.1: '* ]]
	tail -n 1 on-device.txt | grep -q 'failed: no CUDA driver'
	mkdir none
	run -1 "${on_device[@]}" --built --folder none
	[[ "$output" == *'failed: '*' has no finished build; --only build --folder makes one'* ]]
}

@test "killed at any moment, the report has the results so far" {
	fake fake <<-'END'
		echo $$ >pid
		echo 'matvec v2 k=4       16384 x 8192         71.4 MB M=1       30.00 us  2380.0 GB/s   71 % of reads'
		exec sleep 60
	END
	fake_smi
	for signal in KILL TERM; do
		rm -f here.txt pid
		# no shell in between, which would survive SIGKILL
		(exec "${on_device[@]}" --built --folder fake --only contact,first --filter 'matvec v2 k=4' --report here.txt >out 2>&1) &
		it=$!
		for _ in {1..100}; do
			if grep -q '2380.0 GB/s' here.txt 2>/dev/null; then break; fi
			sleep 0.1
		done
		kill -s "$signal" "$it"
		status=0
		wait "$it" || status=$?
		[ "$status" -gt 128 ]
		grep -q '2380.0 GB/s' here.txt
		[ "$signal" = TERM ] || kill "$(cat pid)"
	done
	tail -n 1 here.txt | grep -q 'stopped by SIGTERM$'
	run ! kill -0 "$(cat pid)"
}

@test "the toolkit's libraries are found next to nvcc" {
	mkdir -p toolkit/bin toolkit/lib64 toolkit/targets/here/lib
	printf '#!/bin/sh\n' >toolkit/bin/nvcc
	fake fake <<-'END'
		echo "path $LD_LIBRARY_PATH"
	END
	chmod +x toolkit/bin/nvcc
	ln -s ../toolkit/bin/nvcc bin/other
	run -0 "${bare[@]}" NVCC="$PWD/bin/other" "$srcdir/tests/on-device" --built --folder fake --only contact
	[[ "$output" == *"path $PWD/fake:$PWD/toolkit/lib64:$PWD/toolkit/targets/here/lib"* ]]
}

@test "no device, no compiler, a wrong command line" {
	run -2 "${on_device[@]}" --only build
	[[ "$output" == *'--only build goes with --folder'* ]]
	run -1 "${on_device[@]}"
	[[ "$output" == *'failed: no device to build for: no CUDA driver: '* ]]
	grep -q 'failed: no device to build for' on-device.txt
	run -1 "${bare[@]}" CC=none "$srcdir/tests/on-device" --arch 90
	[[ "$output" == *'failed: none is not found; CC may name another'* ]]
	run -1 "${on_device[@]}" --arch 75
	[[ "$output" == *'the device has compute capability 7.5; the kernels need 8.0 or newer'* ]]
	run -2 "${on_device[@]}" --only speed
	run -0 "${on_device[@]}" --help
}
