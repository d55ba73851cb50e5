#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# MODEL as a name in the local Hugging Face cache: found in the hub's own layout, never downloaded.

load helpers

one=1111111111111111111111111111111111111111
two=1122222222222222222222222222222222222222

setup() {
	setup_folder
	unset HF_HOME HF_HUB_CACHE XDG_CACHE_HOME
	export HOME=$PWD/home
	hub=$HOME/.cache/huggingface/hub
}

# A model in the layout of a download: files in blobs, and a snapshot of links to them.
cached() { # NAME COMMIT OPTION...
	local folder=$hub/models--${1//\//--} file

	make_model tmp "${@:3}"
	mkdir -p "$folder/blobs" "$folder/refs" "$folder/snapshots/$2"
	for file in tmp/*; do
		mv "$file" "$folder/blobs/$2-${file##*/}"
		ln -s "../../blobs/$2-${file##*/}" "$folder/snapshots/$2/${file##*/}"
	done
	rmdir tmp
	repository=$folder
}

@test "convert, verify and inspect take a name; the bundle is that of the same files in a folder" {
	make_model m --seed 3
	expected=$(converted m m.xfp --cache cache)
	cached Qwen/Qwen3-0.6B $one --seed 3
	printf '%s' $one >"$repository/refs/main"
	[ "$(converted Qwen/Qwen3-0.6B named.xfp)" = "$expected" ]
	xfp verify -q named.xfp --source Qwen/Qwen3-0.6B
	run -0 xfp convert Qwen/Qwen3-0.6B -o named.xfp
	[[ $output == *"is up to date"* ]]
	xfp-inspect --json Qwen/Qwen3-0.6B | sed "s#$repository/snapshots/$one#$PWD/m#" >named.json
	xfp-inspect --json m | diff named.json -
	# a name without an organisation
	mv "$repository" "$hub/models--gpt9"
	xfp verify -q named.xfp --source gpt9
}

@test "the location of the cache: HF_HUB_CACHE, then HF_HOME, then XDG_CACHE_HOME, then the home folder" {
	cached a/b $one
	HF_HOME=$PWD/nowhere run -3 xfp-inspect a/b
	[[ $output == *"no model of this name in $PWD/nowhere/hub; xfp downloads nothing" ]]
	XDG_CACHE_HOME=$PWD/nowhere run -3 xfp-inspect a/b
	[[ $output == *"$PWD/nowhere/huggingface/hub;"* ]]
	# shellcheck disable=SC2088 # the hub's tools expand it
	XDG_CACHE_HOME=nowhere HF_HOME='~/.cache/huggingface' xfp-inspect a/b >/dev/null
	HF_HOME=nowhere HF_HUB_CACHE=$hub xfp-inspect a/b >/dev/null
	XDG_CACHE_HOME=$HOME/.cache xfp-inspect a/b >/dev/null
}

@test "an existing path takes precedence over a name" {
	cached m $one --layers 2
	xfp-inspect --json m | grep -q "snapshots/$one"
	make_model m
	[ "$(xfp-inspect --json m | grep -c snapshots)" = 0 ]
	# and a string that cannot be a name is a missing path
	for name in ../m a/b/c 'a b' .m -- a//b m@ m@../x; do
		run -3 xfp convert -o out.xfp -- "$name"
		[ "$output" = "xfp convert: $name: no such file or folder" ] || { echo "$name: $output"; return 1; }
	done
	[ "$(ls -A)" = "home
m" ]
}

@test "revisions: a branch, a tag, a commit or its beginning; without one main, or the only snapshot" {
	cached a/b $one --layers 1
	units() { xfp-inspect --json "$1" | grep -c '"experts"'; }
	first=$(units a/b)
	cached a/b $two --layers 2
	run -3 xfp-inspect a/b
	[[ $output == *"a/b: has several snapshots; name one, as in a/b@11111111: $one, $two" ]]
	run -3 xfp-inspect a/b@11
	[[ $output == *"has several snapshots"* ]]
	[ "$(units a/b@$one)" = "$first" ]
	[ "$(units a/b@111)" = "$first" ]
	second=$(units a/b@1122)
	[ "$second" -gt "$first" ]
	mkdir "$repository/refs/pr"
	echo $two >"$repository/refs/main"
	echo $one >"$repository/refs/pr/7"
	[ "$(units a/b)" = "$second" ]
	[ "$(units a/b@main)" = "$second" ]
	[ "$(units a/b@pr/7)" = "$first" ]
	run -3 xfp-inspect a/b@v2
	[[ $output == *"a/b@v2: no revision v2 in "*"; there are "*$two* ]]
	echo 3333333333333333333333333333333333333333 >"$repository/refs/main"
	run -3 xfp-inspect a/b
	[[ $output == *"main is commit 3333"*"is missing"*"downloads nothing"*$one* ]]
}

@test "an incomplete download: missing files are named, before any work" {
	cached a/b $one --shards 3 --layers 2
	snapshot=$repository/snapshots/$one
	xfp-inspect a/b >/dev/null
	# a shard that is not downloaded yet, and one whose blob is missing
	rm "$snapshot/model-00002-of-00003.safetensors" "$repository/blobs/$one-model-00003-of-00003.safetensors"
	touch "$repository/blobs/abc.incomplete"
	for command in "xfp convert -o out.xfp" "xfp-inspect" "xfp prepare -o out.xfp"; do
		run -3 $command a/b
		[[ $output == *"a/b: $snapshot lacks 2 of its 3 shards: model-0000"* ]]
		[[ $output == *00002-of-00003* && $output == *00003-of-00003* && $output != *00001-of-00003* ]]
		[[ $output == *"(1 .incomplete download in its blobs); xfp downloads nothing: finish"* ]]
	done
	[ ! -e out.xfp.work ]
	# one file; then only a config is left
	cached c/d $one
	rm "$repository/blobs/$one-model.safetensors"
	run -3 xfp-inspect c/d
	[[ $output == *"lacks model.safetensors, a link to nothing; xfp downloads nothing"* ]]
	rm "$repository/snapshots/$one/model.safetensors"
	touch "$repository/blobs/abc.incomplete" "$repository/blobs/def.incomplete"
	run -3 xfp-inspect c/d
	[[ $output == *"lacks its weights (2 .incomplete downloads in its blobs)"* ]]
	rm -r "$repository/snapshots/$one"
	run -3 xfp-inspect c/d
	[[ $output == *"contains no snapshot"*"downloads nothing"* ]]
}

@test "interrupted: the command that resumes has the name, not the path" {
	by_default
	cached Qwen/Qwen3-0.6B $one --layers 2 --hidden 128 --num-experts 4
	xfp convert Qwen/Qwen3-0.6B@111 -o out.xfp -j1 2>errors &
	pid=$!
	until [ -s out.xfp.work/events ]; do sleep 0.01; done
	kill -s TERM $pid
	wait $pid || true
	[ "$(tail -n1 errors)" = "  xfp convert Qwen/Qwen3-0.6B@111 -o out.xfp -j1" ]
	eval "$(tail -n1 errors) -q"
	rm -r out.xfp out.xfp.work xfp-cache
	XFP_MODEL=Qwen/Qwen3-0.6B xfp convert -o out.xfp -j1 2>errors &
	pid=$!
	until [ -s out.xfp.work/events ]; do sleep 0.01; done
	kill -s TERM $pid
	wait $pid || true
	[ "$(tail -n1 errors)" = "  xfp convert Qwen/Qwen3-0.6B -o out.xfp -j1" ]
}
