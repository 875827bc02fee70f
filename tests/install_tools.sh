#!/bin/sh
# What some tests need beyond Python: on a build machine (CI=true) it is installed here, on any other one those tests are
# left out with a sentence that says how to get it.
set -eu
[ "${CI:-}" = true ] || exit 0
packages=""
command -v kcat > /dev/null || packages="$packages kcat"
command -v java > /dev/null || packages="$packages default-jre-headless"
command -v mvn > /dev/null || packages="$packages maven"
[ -n "$packages" ] || exit 0
echo "installing:$packages"
apt-get update -qq
# shellcheck disable=SC2086 # a list of words
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages > /dev/null
