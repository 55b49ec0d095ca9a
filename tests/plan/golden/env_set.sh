# The environment of a PyTorch build, for sh, dash, bash and zsh. Load it with: . ./env_set.sh
# Written by torchbuild_tasks 0.1.0
# for the checkout /src/pytorch
#
# Changes made here are lost: the next `env` or `build` writes this file anew. To change a
# value use a flag, --set NAME=VALUE or torchbuild.toml. To change the form of the file put
# a template of your own in ./env_templates/env_set.sh.in.

# USE_NIGHTLY: with it the build is refused (2.14)
unset -v USE_NIGHTLY
# PATH: the Python that gets torch
torchbuild__new='/opt/py 3.12 (x86)/bin' torchbuild__old=${PATH:+:$PATH}:
while case $torchbuild__old in *:"$torchbuild__new":*) ;; *) false ;; esac; do
  torchbuild__old=${torchbuild__old%%:"$torchbuild__new":*}:${torchbuild__old#*:"$torchbuild__new":}
done
export PATH="$torchbuild__new${torchbuild__old%:}"
unset -v torchbuild__new torchbuild__old
# CMAKE_PREFIX_PATH: helper magma
torchbuild__new='/opt/it'\''s 100% ours' torchbuild__old=${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}:
while case $torchbuild__old in *:"$torchbuild__new":*) ;; *) false ;; esac; do
  torchbuild__old=${torchbuild__old%%:"$torchbuild__new":*}:${torchbuild__old#*:"$torchbuild__new":}
done
export CMAKE_PREFIX_PATH="$torchbuild__new${torchbuild__old%:}"
unset -v torchbuild__new torchbuild__old
# CXX: GCC 12.2 is the newest that CUDA 12.4 takes
export CXX='/usr/bin/g++'
# CXXFLAGS: --set
export CXXFLAGS='-O2 -DNAME="a b & c" -DCOST=$5!'
# GREETING: torchbuild.toml
export GREETING='Grüße, 世界 🔥 ‘quoted’'
# ODD: 50% & /? ^
export ODD='  ~ %PATH% `id` $(id) \ ^ | < > * ? # ; -x	'
# MAX_JOBS: line one rm -rf / line\u2028three
export MAX_JOBS='7'
export USE_CUDA='0'
