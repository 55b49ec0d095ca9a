# The environment of a PyTorch build, for fish. Load it with: source env_set.fish
# Written by torchbuild_tasks 0.1.0
# for the checkout /src/pytorch
#
# Changes made here are lost: the next `env` or `build` writes this file anew. To change a
# value use a flag, --set NAME=VALUE or torchbuild.toml. To change the form of the file put
# a template of your own in ./env_templates/env_set.fish.in.

# USE_NIGHTLY: with it the build is refused (2.14)
set -e -g USE_NIGHTLY
if set -q -U -x USE_NIGHTLY; echo 'env_set.fish: USE_NIGHTLY is a universal variable; erase it: set -e -U USE_NIGHTLY' >&2; return 1; end
# PATH: the Python that gets torch
if test -n "$PATH"; set -gx --path PATH "$PATH"; else; set -gx --path PATH; end
while contains -- '/opt/py 3.12 (x86)/bin' $PATH; set -e -g PATH[(contains -i -- '/opt/py 3.12 (x86)/bin' $PATH)]; end
set -gx --path PATH '/opt/py 3.12 (x86)/bin' $PATH
# CMAKE_PREFIX_PATH: helper magma
if test -n "$CMAKE_PREFIX_PATH"; set -gx --path CMAKE_PREFIX_PATH "$CMAKE_PREFIX_PATH"; else; set -gx --path CMAKE_PREFIX_PATH; end
while contains -- '/opt/it\'s 100% ours' $CMAKE_PREFIX_PATH; set -e -g CMAKE_PREFIX_PATH[(contains -i -- '/opt/it\'s 100% ours' $CMAKE_PREFIX_PATH)]; end
set -gx --path CMAKE_PREFIX_PATH '/opt/it\'s 100% ours' $CMAKE_PREFIX_PATH
# CXX: GCC 12.2 is the newest that CUDA 12.4 takes
set -gx CXX '/usr/bin/g++'
# CXXFLAGS: --set
set -gx CXXFLAGS '-O2 -DNAME="a b & c" -DCOST=$5!'
# GREETING: torchbuild.toml
set -gx GREETING 'Grüße, 世界 🔥 ‘quoted’'
# ODD: 50% & /? ^
set -gx ODD '  ~ %PATH% `id` $(id) \\ ^ | < > * ? # ; -x	'
# MAX_JOBS: line one rm -rf / line\u2028three
set -gx MAX_JOBS '7'
set -gx USE_CUDA '0'

# `set` hands on the status of what ran before this file.
true
