#!/bin/sh
# Starts a node in a container. The arguments are those of `penstock start`.
#
# Each PENSTOCK_… variable is a property, as everywhere. In a StatefulSet all pods are given the same variables, and what
# differs comes from the ordinal at the end of the pod's name:
#
#   NODE_ID_BASE            node.id is this number plus the ordinal. Without it nothing below is done.
#   CONTROLLER_COUNT        nodes with a lower ordinal are controllers, too
#   CONTROLLER_LISTENER     the listener that those have beside PENSTOCK_LISTENERS
#   ADVERTISED_BY_ORDINAL   for each ordinal, with blanks between, what is advertised beside PENSTOCK_ADVERTISED_LISTENERS
set -eu

fail() {
    echo "penstock-entrypoint: $1" >&2
    exit 2
}

nth_word() { # a number from 0, and words
    position=$1
    shift
    [ "$position" -lt $# ] || fail "ADVERTISED_BY_ORDINAL has $# addresses, and none for ordinal $position"
    shift "$position"
    echo "$1"
}

if [ -n "${NODE_ID_BASE:-}" ]; then
    name=${POD_NAME:-$(uname -n)}
    ordinal=${name##*-}
    case $ordinal in
        "$name" | '' | *[!0-9]*) fail "the pod is called $name, but in a StatefulSet the name ends with -ORDINAL" ;;
    esac
    export PENSTOCK_NODE_ID=$((NODE_ID_BASE + ordinal))
    if [ -n "${CONTROLLER_COUNT:-}" ]; then
        if [ "$ordinal" -lt "$CONTROLLER_COUNT" ]; then
            export PENSTOCK_PROCESS_ROLES=broker,controller
            export PENSTOCK_LISTENERS="$PENSTOCK_LISTENERS,$CONTROLLER_LISTENER"
        else
            export PENSTOCK_PROCESS_ROLES=broker
        fi
    fi
    if [ -n "${ADVERTISED_BY_ORDINAL:-}" ]; then
        # shellcheck disable=SC2086 # a list of words
        own=$(nth_word "$ordinal" $ADVERTISED_BY_ORDINAL)
        export PENSTOCK_ADVERTISED_LISTENERS="$PENSTOCK_ADVERTISED_LISTENERS,$own"
    fi
fi
exec penstock start "$@"
