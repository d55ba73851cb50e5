#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# A cache that is damaged, emptied, read-only, full or shared: the bundle is correct, or none is written.

load helpers

setup() { setup_folder; }

flip() { # FILE OFFSET
	"$PYTHON" - "$1" "$2" <<-'EOF'
	import sys
	with open(sys.argv[1], "r+b") as f:
	    f.seek(int(sys.argv[2])); byte = f.read(1)[0]
	    f.seek(int(sys.argv[2])); f.write(bytes([byte ^ 0x40]))
	EOF
}

@test "a flipped byte in each artifact in turn: detected, recomputed, same bundle" {
	make_model m
	expected=$(converted m out.xfp)
	artifacts >list
	while read -r artifact; do
		flip "$artifact" $(($(stat -c %s "$artifact") * 2 / 3))
	done <list
	rm out.xfp
	xfp convert m -o out.xfp >stdout 2>stderr
	[ "$(sha out.xfp)" = "$expected" ]
	grep -q "damaged artifact" stderr
	xfp convert m -o out.xfp -q # nothing damaged is left in use
	xfp verify out.xfp --source m
}

@test "one damaged artifact of each kind: only what depends on it is recomputed" {
	make_model m
	expected=$(converted m out.xfp)
	for kind in outliers fit choice packed; do
		for harm in header middle truncated empty; do
			key=$(query "SELECT ${kind}_key FROM latest_units WHERE role = 'q'")
			artifact=xfp-cache/artifacts/${key:0:2}/$key.h5
			case $harm in
			header) flip "$artifact" 9 ;;
			middle) flip "$artifact" $(($(stat -c %s "$artifact") / 2)) ;;
			truncated) truncate -s -1 "$artifact" ;;
			empty) : >"$artifact" ;;
			esac
			rm out.xfp
			# a floor that changes the packing, and back
			xfp convert m -o out.xfp -q --floor attention=0.5
			rm -f out.xfp
			[ "$(converted m out.xfp --rehash)" = "$expected" ] || { echo "$kind $harm"; return 1; }
			[ "$(converted m out.xfp)" = "$expected" ] || { echo "$kind $harm"; return 1; }
		done
	done
}

@test "missing artifacts are recomputed" {
	make_model m
	expected=$(converted m out.xfp)
	for kind in outliers fit choice packed; do
		query "SELECT key FROM artifacts WHERE kind = '$kind'" | while read -r key; do
			rm "xfp-cache/artifacts/${key:0:2}/$key.h5"
		done
		rm out.xfp
		[ "$(converted m out.xfp)" = "$expected" ] || { echo "$kind"; return 1; }
	done
	rm -r xfp-cache out.xfp
	[ "$(converted m out.xfp)" = "$expected" ]
}

@test "the manifest missing, overwritten, or of another version: rebuilt, and no unit is converted again" {
	make_model m
	expected=$(converted m out.xfp)
	count=$(query "SELECT count(*) FROM artifacts")
	for harm in lost overwritten empty version; do
		case $harm in
		lost) rm xfp-cache/manifest.sqlite* ;;
		overwritten) echo "this is not a database, whatever its name says" >xfp-cache/manifest.sqlite ;;
		empty) : >xfp-cache/manifest.sqlite ;;
		version) "$PYTHON" -c 'import sqlite3
sqlite3.connect("xfp-cache/manifest.sqlite").execute("PRAGMA user_version = 999")' ;;
		esac
		rm -f xfp-cache/manifest.sqlite-wal xfp-cache/manifest.sqlite-shm out.xfp
		[ "$(converted m out.xfp)" = "$expected" ] || { echo "$harm"; return 1; }
		[ "$(query "SELECT count(*) FROM artifacts")" = "$count" ] || { echo "$harm: artifacts"; return 1; }
		[ "$(query "SELECT sum(fitted) + sum(repacked) FROM run_units")" = 0 ] || { echo "$harm: work"; return 1; }
	done
}

@test "a cache that is a file is reported before any work" {
	make_model m
	echo x >cache
	for how in -q -n; do
		run -1 xfp convert m -o out.xfp --cache cache "$how"
		[[ $output == *"/cache: is not a folder"* ]]
	done
	[ "$(ls -A)" = "cache
m" ]
}

@test "a rebuilt manifest is reported" {
	make_model m
	xfp convert m -o out.xfp -q
	rm xfp-cache/manifest.sqlite*
	echo "this is not a database" >xfp-cache/manifest.sqlite
	run -0 --separate-stderr xfp convert m -o out.xfp
	[[ $stderr == *"xfp-cache: the manifest was "*"rebuilt from "*" artifacts"* ]]
}

@test "a read-only cache serves hits, and a miss is status 1 with a remedy" {
	needs_mounts
	make_model m
	expected=$(converted m out.xfp)
	rm -r out.xfp out.xfp.work
	read_only xfp-cache xfp convert m -o out.xfp -q
	[ "$(sha out.xfp)" = "$expected" ]
	run -1 read_only xfp-cache xfp convert m -o other.xfp --outlier-sigma 3
	[[ $output == *xfp-cache* && $output == *"read-only"* ]]
	no_output other.xfp
	# without its manifest, too
	rm -r xfp-cache/manifest.sqlite* out.xfp out.xfp.work
	read_only xfp-cache xfp convert m -o out.xfp -q
	[ "$(sha out.xfp)" = "$expected" ]
}

@test "a full disk: status 1, no bundle; with free space, the run resumes" {
	needs_mounts
	make_model m
	expected=$(converted m out.xfp)
	mkdir disk
	# too small from the start: reported before any work, with figures
	run -1 on_small_disk 16k disk xfp convert m -o disk/out.xfp --cache cache --work work
	[[ $output == *" free, for "* ]]
	# enough for the minimum, but not for what is needed
	for size in 300k 600k 900k; do
		on_small_disk "$size" disk sh -c '
			xfp convert m -o disk/out.xfp 2>disk-errors; echo $? >status
			ls -A disk >listing
			test -e disk/out.xfp && sha256sum <disk/out.xfp >sum; true'
		case $(cat status) in
		0) grep -q "$expected" sum ;;
		1) [ -s disk-errors ] && [ -z "$(grep -e '^out\.xfp$' -e '^\..*tmp$' listing)" ] ;;
		*) cat disk-errors; return 1 ;;
		esac || { cat status listing disk-errors; return 1; }
	done
	on_small_disk 64m disk sh -c '
		mount -t tmpfs -o size=400k none disk && xfp convert m -o out2.xfp --cache disk -q; test $? -eq 1 &&
		mount -o remount,size=64m disk && xfp convert m -o out2.xfp --cache disk -q'
	[ "$(sha out2.xfp)" = "$expected" ]
}

@test "a file size limit: status 1 and a message, no bundle" {
	make_model m
	expected=$(converted m out.xfp)
	kilobytes=$(($(stat -c %s out.xfp) / 1024))
	rm out.xfp
	run -1 bash -c "ulimit -f $((kilobytes - 20)) && exec xfp convert m -o out.xfp"
	[[ $output == *"File too large"* && $output == *out.xfp* ]]
	no_output out.xfp
	[ "$(converted m out.xfp)" = "$expected" ]
}

@test "two models, one cache, at once; and the same model twice" {
	make_model m
	make_model n --seed 7 --experts fused
	m=$(converted m m1.xfp --cache alone)
	n=$(converted n n1.xfp --cache alone)
	for i in 1 2; do
		rm -rf both
		xfp convert m -o m.xfp --cache both -q -j2 & first=$!
		xfp convert n -o n.xfp --cache both -q -j2 & second=$!
		xfp convert m -o m2.xfp --cache both -q -j2 & third=$!
		wait $first
		wait $second
		wait $third
		[ "$(sha m.xfp)" = "$m" ]
		[ "$(sha m2.xfp)" = "$m" ]
		[ "$(sha n.xfp)" = "$n" ]
		[ "$(query "SELECT count(*) FROM runs WHERE status = 0" both)" = 3 ]
		rm m.xfp m2.xfp n.xfp
	done
}
