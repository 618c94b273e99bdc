#!/usr/bin/env bash
# Does on a bare Debian 13 what the README tells a newcomer to do: clone, make run, make test.
#
# usage: tests/fresh_machine.sh [--keep DIR] [pytest arguments]
#
#   --keep DIR       build the machine in DIR and leave it there, to look around with chroot;
#                    a DIR of an earlier call is used as it is, with a new clone
#   FRESH_COMMANDS   commands to run instead, one a line (default: make run, then make test)
#
# "Machine" means a folder made by debootstrap and entered with chroot. That needs root and
# Debian's packages; where either cannot be had, one line says so and the exit code is 0.
# What is tested is HEAD: changes that are not committed are left out.
set -euo pipefail

# Chromium is for the tests of pages and Java for those of Flink; a machine without them leaves these
# tests out.
packages=(python3 python3-venv python3-dev g++ make git ca-certificates chromium chromium-driver
    openjdk-21-jre-headless)
suite=trixie
cache=${XDG_CACHE_HOME:-$HOME/.cache}/amazon-reviews
# The bare machine with its packages, so that only the first call fetches them.
base=$cache/$suite-$(cksum <<<"${packages[*]}" | cut -d ' ' -f 1).tar
mark=.fresh-machine
repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

leave_out() {
    echo "fresh machine: left out, $1"
    exit 0
}

# --- what this needs --------------------------------------------------------------------------

[[ $(id -u) == 0 ]] || leave_out "it needs root"
[[ $(uname -sm) == "Linux x86_64" ]] || leave_out "it needs Linux on x86_64"

# In a mount namespace of its own the mounts below end with this script, however it ends.
if [[ -z ${FRESH_NAMESPACE:-} ]] && unshare --mount true 2>/dev/null; then
    FRESH_NAMESPACE=1 exec unshare --mount --propagation private "${BASH_SOURCE[0]}" "$@"
fi

keep=
if [[ ${1:-} == --keep ]]; then
    keep=${2:?--keep needs a folder}
    shift 2
fi

if ! command -v debootstrap >/dev/null; then
    command -v apt-get >/dev/null || leave_out "debootstrap is not installed, and there is no apt-get"
    { apt-get update && apt-get install -y --no-install-recommends debootstrap; } >/dev/null 2>&1 \
        || leave_out "debootstrap could not be installed"
fi

# --- the machine ------------------------------------------------------------------------------

mkdir -p "$cache"
if [[ -n $keep ]]; then
    mkdir -p "$keep"
    machine=$(cd "$keep" && pwd)
    # Only an empty folder is filled, and only one that was filled here is used again.
    if [[ ! -e $machine/$mark && -n $(ls -A "$machine") ]]; then
        echo "fresh machine: $keep is neither empty nor the folder of an earlier call" >&2
        exit 2
    fi
else
    machine=$(mktemp -d "$cache/machine.XXXXXX")
    chmod 755 "$machine" # mktemp makes it root's alone, and apt-get fetches as another user
fi

leave() {
    local code=$?
    # Needed where there is no mount namespace; nothing is removed across a mount in any case.
    for folder in dev proc; do
        if mountpoint -q "$machine/$folder"; then umount -l "$machine/$folder"; fi
    done
    if [[ -z $keep ]]; then rm -rf --one-file-system "$machine"; fi
    exit "$code"
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

passed=(DEBIAN_FRONTEND=noninteractive)
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY CI PIP_INDEX_URL \
    PIP_EXTRA_INDEX_URL PIP_DEFAULT_TIMEOUT UV_DEFAULT_INDEX UV_INDEX UV_HTTP_TIMEOUT; do
    if [[ -n ${!name:-} ]]; then passed+=("$name=${!name}"); fi
done

inside() {
    chroot "$machine" /usr/bin/env -i HOME=/root LANG=C.UTF-8 \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${passed[@]}" "$@"
}

enter() {
    mount -t proc proc "$machine/proc"
    mount --rbind /dev "$machine/dev"
    mount --make-rslave "$machine/dev"
    cp -L /etc/resolv.conf "$machine/etc/resolv.conf"
    # Flink looks up the name of the machine, which is that of the host.
    cp -L /etc/hosts "$machine/etc/hosts"
}

if [[ -e $machine/$mark ]]; then
    enter
elif [[ -f $base ]]; then
    tar -C "$machine" -xf "$base"
    enter
else
    log=$cache/base.log
    refused="Debian's packages cannot be had here (the output is in $log)"
    echo "fresh machine: fetching a bare Debian ($suite)"
    debootstrap --variant=minbase "$suite" "$machine" >"$log" 2>&1 || leave_out "$refused"
    enter
    echo "fresh machine: installing ${packages[*]}"
    inside apt-get update >>"$log" 2>&1 || leave_out "$refused"
    inside apt-get install -y --no-install-recommends "${packages[@]}" >>"$log" 2>&1 \
        || leave_out "$refused"
    inside apt-get clean
    touch "$machine/$mark"
    # Under its name only when whole: a killed call leaves no half an archive to start from.
    tar -C "$machine" --one-file-system -cf "$base.$$" . && mv "$base.$$" "$base"
fi

for candidate in "${SSL_CERT_FILE:-}" "${PIP_CERT:-}" "${REQUESTS_CA_BUNDLE:-}"; do
    if [[ -f $candidate ]]; then
        # A name of its own: the ca-certificates package writes the one that Debian uses.
        bundle=/etc/ssl/certs/of-the-host.pem
        cp -L "$candidate" "$machine$bundle"
        passed+=("SSL_CERT_FILE=$bundle" "PIP_CERT=$bundle" "REQUESTS_CA_BUNDLE=$bundle")
        break
    fi
done

# --- what a newcomer does ---------------------------------------------------------------------

checkout=/root/amazon-reviews
rm -rf "${machine:?}$checkout"
# safe.directory: in a container the checkout often belongs to another user than root.
git -c safe.directory='*' clone --quiet --no-hardlinks "$repo" "$machine$checkout"
echo "fresh machine: $(inside python3 --version), $(inside getconf GNU_LIBC_VERSION), commit" \
    "$(git -c safe.directory='*' -C "$machine$checkout" rev-parse --short HEAD)"

# The jars of `make flink` in place of Maven, if this checkout has those of its pom.xml.
jars=$repo/.cache/flink
if [[ $jars/installed -nt $repo/kubeflow/flink/pom.xml ]]; then
    mkdir -p "$machine$checkout/.cache"
    cp -r "$jars" "$machine$checkout/.cache/flink"
    touch "$machine$checkout/.cache/flink/installed"
fi

pytest_args=
if (($#)); then printf -v pytest_args '%q ' "$@"; fi
while IFS= read -r command; do
    [[ -n $command ]] || continue
    echo "fresh machine: $command"
    # No standard input: what is run must not eat the lines of this loop, nor ask anything.
    inside PYTEST_ARGS="$pytest_args" bash -c "cd $checkout && $command" </dev/null || {
        code=$?
        echo "fresh machine: '$command' failed with exit code $code" >&2
        exit "$code"
    }
done <<<"${FRESH_COMMANDS:-$'make run\nmake test'}"
