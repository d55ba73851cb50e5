#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# With --drop-cache, units move from the cache into the bundle while it is written: at any moment each unit is in
# one of the two, and both together are little larger than the bundle.

load helpers

setup() { setup_folder; }

# Everything is packed, and only the bundle is left to write: out.xfp.work and xfp-cache, in ./packed too.
pack_all() {
	make_model m
	expected=$(converted m out.xfp)
	rm out.xfp out.xfp.work/bundle
	mkdir packed
	cp -a out.xfp.work xfp-cache packed
}

as_packed() {
	rm -rf out.xfp .out.xfp.pending out.xfp.work xfp-cache
	cp -a packed/. .
}

# The figure NAME of the summary of a conversion with --drop-cache.
summary() { # NAME OPTION...
	xfp convert m -o out.xfp --drop-cache --json "${@:2}" | "$PYTHON" -c 'import json, sys
print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}

# Run again after a kill: no packed unit is made again, the bytes are right, and no other files remain.
finished_again() {
	[ ! -e out.xfp ] || [ "$(sha out.xfp)" = "$expected" ] || { echo "a wrong bundle has the name"; return 1; }
	[ "$(summary repacked)" = 0 ] || { echo "units were made again"; return 1; }
	[ "$(sha out.xfp)" = "$expected" ] || { echo "other bytes"; return 1; }
	[ "$(ls -A)" = "$files" ] || { ls -A; return 1; }
	[ -z "$(find out.xfp.work -name 'u0*' -o -name 'moving*')" ] || { ls out.xfp.work; return 1; }
}

@test "xfp-bundle is killed at system calls: no unit is converted again, and the bytes are the same" {
	needs_strace
	pack_all
	files="bin
calls
m
out.xfp
out.xfp.work
packed
share
trace"
	replace_stage xfp-bundle 'exec strace -qq -o "$top/trace" $TRACE "$real" "$@"'
	export PATH=$PWD/bin:$PATH
	TRACE="-e trace=pwrite64,fsync,rename,write,ftruncate" summary repacked
	mv trace calls
	points=0
	for call in pwrite64 fsync rename write ftruncate; do
		count=$(grep -c "^$call(" calls)
		# Including the last calls: between the record that the file is complete and its final name are a
		# rename and two syncs.
		for n in $({ seq 1 $((1 + count / 6)) "$count"; seq $((count > 3 ? count - 3 : 1)) "$count"; } | sort -nu); do
			as_packed
			TRACE="-e trace=$call -e inject=$call:signal=KILL:when=$n" run xfp convert m -o out.xfp --drop-cache -q
			# Progress is saved at intervals: a run faster than the first one may make fewer calls.
			if [ "$status" = 0 ] && [ "$(grep -c "^$call(" trace)" -lt "$n" ]; then
				continue
			fi
			[ "$status" = 1 ] || { echo "$call $n: $status $output"; return 1; }
			TRACE="-e trace=none" finished_again || { echo "after $call $n"; return 1; }
			points=$((points + 1))
		done
	done
	[ "$points" -ge 20 ] || { echo "$points points"; return 1; }
}

@test "xfp is killed while it removes units from the cache: no unit is converted again" {
	needs_strace
	pack_all
	files="m
out.xfp
out.xfp.work
packed
trace"
	strace -qq -o trace -e trace=unlink xfp convert m -o out.xfp --drop-cache -q
	count=$(grep -c "^unlink(" trace)
	[ "$count" -ge 20 ]
	for ((n = 1; n <= count; n += 1 + count / 20)); do
		as_packed
		strace -qq -o trace -e trace=unlink -e "inject=unlink:signal=KILL:when=$n" \
			xfp convert m -o out.xfp --drop-cache -q || true
		flock out.xfp.work/lock true
		finished_again || { echo "after unlink $n"; return 1; }
	done
}

# ---- content of the pending bundle ----------------------------------------------------------------

# Kill xfp-bundle when about half of the units have moved.
half_moved() {
	pack_all
	replace_stage xfp-bundle 'exec strace -qq -o "$top/trace" $TRACE "$real" "$@"'
	PATH=$PWD/bin:$PATH TRACE="-e trace=rename" summary repacked
	count=$(grep -c '"[^"]*/moving")' trace)
	as_packed
	which=$(grep -n '"[^"]*/moving")' trace | sed -n "$((count / 2))s/:.*//p")
	PATH=$PWD/bin:$PATH TRACE="-e trace=rename -e inject=rename:signal=KILL:when=$((which + 1))" \
		run xfp convert m -o out.xfp --drop-cache -q
	[ "$status" = 1 ]
	[ -e .out.xfp.pending ]
	for unit in out.xfp.work/u??????-packed; do
		key=$(cut -c1-32 "$unit")
		[ -e "xfp-cache/artifacts/${key:0:2}/$key.h5" ] || echo "$unit"
	done >gone
	[ "$(wc -l <gone)" -ge 2 ]
	[ "$(wc -l <gone)" -le 7 ]
	mkdir half
	cp -a .out.xfp.pending out.xfp.work xfp-cache half
}

as_half() {
	rm -rf out.xfp .out.xfp.pending out.xfp.work xfp-cache
	cp -a half/. .
}

@test "moved parts are compared with their SHA-256: damaged units are converted again, and only those" {
	needs_strace
	half_moved
	"$PYTHON" - <<-'END'
	data = open(".out.xfp.pending", "rb").read()
	with open(".out.xfp.pending", "r+b") as file:
	    file.seek(20000)
	    file.write(bytes([data[20000] ^ 255]))
	END
	run -0 xfp convert m -o out.xfp --drop-cache
	[[ $output == *"moved parts of 1 units do not match their SHA-256; these units are converted again"* ]]
	[[ $output == *" 1 packed now, 7 from the cache"* ]]
	[ "$(sha out.xfp)" = "$expected" ]
	# all units at once
	as_half
	truncate -s 10000 .out.xfp.pending
	run -0 xfp convert m -o out.xfp --drop-cache
	[[ $output == *"$(wc -l <gone) packed now, "* ]]
	[ "$(sha out.xfp)" = "$expected" ]
	as_half
	rm .out.xfp.pending
	run -0 xfp convert m -o out.xfp --drop-cache
	[[ $output == *"$(wc -l <gone) packed now, "* ]]
	[ "$(sha out.xfp)" = "$expected" ]
}

@test "a damaged record or receipt is not used" {
	needs_strace
	half_moved
	sed -i 's/^./x/' out.xfp.work/moving
	run -0 xfp convert m -o out.xfp --drop-cache
	[[ $output == *"$(wc -l <gone) packed now, "* ]]
	[ "$(sha out.xfp)" = "$expected" ]
	as_half
	for receipt in out.xfp.work/u*-receipt; do
		printf 'xxxx' | dd of="$receipt" bs=1 seek=3000 conv=notrunc status=none
	done
	run -0 xfp convert m -o out.xfp --drop-cache
	[[ $output == *"$(wc -l <gone) packed now, "* ]]
	[ "$(sha out.xfp)" = "$expected" ]
	# another unit's receipt is not valid for this one
	as_half
	first=$(head -n 1 gone)
	cp "out.xfp.work/u000007-receipt" "${first%-packed}-receipt"
	run -0 xfp convert m -o out.xfp --drop-cache
	[ "$(sha out.xfp)" = "$expected" ]
}

@test "without the cache's manifest, or its choices, moved units are still known" {
	needs_strace
	half_moved
	rm -r xfp-cache
	run -0 xfp convert m -o out.xfp --drop-cache
	[[ $output =~ ([0-9]+)" packed now, " ]]
	[ "${BASH_REMATCH[1]}" -le $((8 - $(wc -l <gone))) ]
	[ "$(sha out.xfp)" = "$expected" ]
}

@test "a pending bundle of other settings is restarted, with a message" {
	needs_strace
	half_moved
	# of the units that moved, which come first
	other=$(converted m other.xfp --cache elsewhere --min-cos-strict 0.97)
	run -0 xfp convert m -o out.xfp --drop-cache --min-cos-strict 0.97
	[[ $output == *"out.xfp: units moved there from the cache are converted again, since settings"* ]]
	[ "$(sha out.xfp)" = "$other" ]
	[ ! -e .out.xfp.pending ]
	[ ! -e xfp-cache ]
	# of others, so that only the offsets of these change
	as_half
	other=$(converted m other.xfp --cache elsewhere --min-cos-lazy 0.9)
	run -0 xfp convert m -o out.xfp --drop-cache --min-cos-lazy 0.9
	[[ $output == *"the pending bundle has different units: $(wc -l <gone) moved units are made again"* ]]
	[ "$(sha out.xfp)" = "$other" ]
	[ ! -e .out.xfp.pending ]
	[ ! -e xfp-cache ]
}

@test "without --drop-cache a pending bundle is finished, and stays up to date" {
	needs_strace
	half_moved
	run -0 xfp convert m -o out.xfp
	[[ $output == *" 0 fitted, 0 packed now, "* ]]
	[ "$(sha out.xfp)" = "$expected" ]
	[ ! -e .out.xfp.pending ]
	run -0 xfp convert m -o out.xfp
	[[ $output == *"is up to date"*" 0 fitted, 0 packed now"* ]]
	run -0 xfp plan m -o out.xfp
	[[ $output == *"is up to date"* ]]
	# missing artifacts are made again when they are needed
	other=$(converted m other.xfp --cache elsewhere --min-cos-lazy 0.9)
	[ "$(converted m out.xfp --min-cos-lazy 0.9)" = "$other" ]
	[ "$(converted m out.xfp --drop-cache)" = "$expected" ]
	[ ! -e xfp-cache ]
}

@test "one process at a time writes the pending bundle" {
	pack_all
	exec 9>.out.xfp.pending
	flock 9
	run -1 xfp convert m -o out.xfp --drop-cache 9>&-
	[[ $output == *".out.xfp.pending: another process is writing this file"* ]]
	exec 9>&-
	[ "$(converted m out.xfp --drop-cache)" = "$expected" ]
}

# ---- removed and remaining files ------------------------------------------------------------------

@test "outliers and fits are removed before the bundle is started; after a kill nothing is fitted again" {
	make_model m
	expected=$(converted m whole.xfp --cache whole)
	replace_stage xfp-bundle 'find "$top/xfp-cache/artifacts" -name "*.h5" >"$top/left"; exit 1'
	PATH=$PWD/bin:$PATH run xfp convert m -o out.xfp --drop-cache
	[ "$status" = 1 ]
	[ "$(wc -l <left)" = 15 ] # 8 packed, 7 choices
	[ "$(artifacts whole | wc -l)" = 29 ]
	[ "$(find out.xfp.work -name '*-receipt' | wc -l)" = 8 ]
	[ -z "$(find out.xfp.work -name '*-fit' -o -name '*-outliers')" ]
	xfp status out.xfp | grep -q "^units    8 of 8 done"
	run -0 xfp convert m -o out.xfp -n --drop-cache
	[[ $output == *"would be written"* ]]
	run -0 xfp convert m -o out.xfp --drop-cache
	[[ $output == *" 0 fitted, 0 packed now, 8 from the cache"* ]]
	[ "$(sha out.xfp)" = "$expected" ]
	# another floor needs artifacts that no longer exist
	run -0 xfp convert m -o out.xfp --drop-cache --min-cos-strict 0.97
	[ "$(sha out.xfp)" = "$(converted m whole.xfp --cache whole --min-cos-strict 0.97)" ]
}

@test "equal units share artifacts, which stay until the last of them is done" {
	make_model m --num-experts 2
	"$PYTHON" - <<-'END'
	import json, struct
	with open("m/model.safetensors", "r+b") as file:
	    size, = struct.unpack("<Q", file.read(8))
	    header = json.loads(file.read(size))
	    for a, b in [("gate", "up")]:
	        for e in range(2):
	            name = f"model.layers.0.mlp.experts.{e}.%s_proj.weight"
	            first, last = header[name % a]["data_offsets"]
	            file.seek(8 + size + first)
	            data = file.read(last - first)
	            file.seek(8 + size + header[name % b]["data_offsets"][0])
	            file.write(data)
	END
	expected=$(converted m whole.xfp --cache whole)
	[ "$(converted m out.xfp --drop-cache)" = "$expected" ]
	[ ! -e xfp-cache ]
}

@test "units that other outputs need are copied, and plan reports it" {
	make_model m
	expected=$(converted m a.xfp)
	artifacts >all
	run -0 xfp plan m -o b.xfp --drop-cache
	[[ $output == *"--drop-cache leaves 8 packed units that other outputs need"* ]]
	run -0 xfp convert m -o b.xfp --drop-cache
	[[ $output == *" 0 fitted, 0 packed now"* ]]
	artifacts | diff all -
	[ "$(sha b.xfp)" = "$expected" ]
	run -0 xfp convert m -o a.xfp
	[[ $output == *"is up to date"* ]]
	run -0 xfp plan m -o a.xfp --drop-cache
	[[ $output != *"--drop-cache leaves"* ]]
}

@test "with --like of a goal's bundle, units move, too, and none is converted again" {
	needs_strace
	make_model m
	xfp convert m -o out.xfp -q
	expected=$(converted m goal.xfp --target-size "$(stat -c %s out.xfp)")
	rm -r out.xfp out.xfp.work xfp-cache
	replace_stage xfp-bundle 'exec strace -qq -o "$top/trace" -e trace=fsync $TRACE "$real" "$@"'
	PATH=$PWD/bin:$PATH TRACE="-e inject=fsync:signal=KILL:when=12" \
		run xfp convert m -o out.xfp --like goal.xfp --drop-cache -q
	[ "$status" = 1 ]
	[ -s .out.xfp.pending ]
	grep -q . out.xfp.work/moving
	[ "$(summary repacked --like goal.xfp)" = 0 ]
	[ "$(sha out.xfp)" = "$expected" ]
	[ ! -e .out.xfp.pending ]
}

@test "nothing is removed from a read-only cache, and plan reports it" {
	needs_mounts
	make_model m
	expected=$(converted m out.xfp)
	rm out.xfp out.xfp.work/bundle
	artifacts >before
	run -0 read_only xfp-cache xfp plan m -o out.xfp --drop-cache
	[[ $output == *"--drop-cache removes nothing: the cache is read-only"* ]]
	run -0 read_only xfp-cache xfp convert m -o out.xfp --drop-cache
	[ "$(sha out.xfp)" = "$expected" ]
	artifacts | diff before -
	[ ! -e .out.xfp.pending ]
}

@test "plan of a bundle whose cache was dropped gives no false reason" {
	make_model m
	xfp convert m -o out.xfp -q --drop-cache
	run -0 xfp plan m -o out.xfp
	[[ $output == *"is up to date"* ]]
	[[ $output == *"cache    $PWD/xfp-cache: there is none, and the bundle needs none"* ]]
	[[ $output != *"could not be run"* ]]
	[[ $output == *"time     about "* ]]
}

# ---- disk ----------------------------------------------------------------------------------------

@test "cache, work folder and bundle together never need much more than the bundle, as plan says" {
	make_model m --layers 2 --hidden 512 --intermediate 512 --num-experts 16 --vocab 4000
	xfp plan m -o out.xfp --drop-cache --json >plan
	xfp convert m -o out.xfp -q --drop-cache &
	pid=$!
	peak=0
	while kill -0 $pid 2>/dev/null; do
		now=$(du -skc xfp-cache out.xfp.work .out.xfp.* out.xfp 2>/dev/null | tail -n 1 | cut -f1)
		[ "$now" -le "$peak" ] || peak=$now
	done
	wait $pid
	bundle=$(($(stat -c %s out.xfp) / 1024))
	echo "peak $peak kB, bundle $bundle kB, plan $(cat plan)"
	[ "$peak" -gt "$bundle" ]
	[ $((peak * 10)) -lt $((bundle * 13)) ]
	"$PYTHON" -c 'import json, sys
disk, peak = json.load(open("plan"))["disk"], 1024 * int(sys.argv[1])
assert peak <= disk["total"] < 1.5 * peak, (peak, disk)
assert disk["total"] < .75 * (disk["bundle"] + disk["cache"] + disk["work"]), disk' "$peak"
}

@test "a conversion that fits on the disk only because units move is accepted, and fits" {
	needs_mounts
	make_model m --layers 2 --hidden 256 --intermediate 256 --num-experts 16 --vocab 2000
	expected=$(converted m out.xfp)
	size=$(($(stat -c %s out.xfp) * 16 / 10240))k
	mkdir disk
	run -1 on_small_disk "$size" disk xfp convert m -o disk/out.xfp -q
	[[ $output == *" free, for "* || $output == *"No space left"* ]]
	run -0 on_small_disk "$size" disk sh -c 'xfp convert m -o disk/out.xfp -q --drop-cache && sha256sum disk/out.xfp'
	[[ $output == *"$expected"* ]]
}
