#!/bin/sh
# Installs what `make test-all` needs beyond `make test`, on Debian and its relatives:
#   g++-aarch64-linux-gnu, qemu-user   compile and run the NEON kernel on any machine
#   clang                              a second compiler
#   strace                             faults in the system calls of a save
#   chromium                           the page of the server, driven by playwright
#   node-typescript                    checks the types of the page's modules
set -eu

packages="g++-aarch64-linux-gnu qemu-user clang strace chromium node-typescript"

if [ "$(id -u)" -ne 0 ]; then
    echo "install_tools.sh: apt-get needs root; run this as root: apt-get install $packages" >&2
    exit 1
fi
if ! command -v apt-get >/dev/null; then
    echo "install_tools.sh: no apt-get; install the equivalents of these packages: $packages" >&2
    exit 1
fi

export DEBIAN_FRONTEND=noninteractive
echo "Installing $packages"
apt-get update
# shellcheck disable=SC2086 -- one word for each package
apt-get install --yes --no-install-recommends $packages

# --no-install-recommends skips optional packages; the tools themselves must be there.
for tool in aarch64-linux-gnu-g++ qemu-aarch64 clang++ strace chromium tsc; do
    command -v "$tool" >/dev/null || { echo "install_tools.sh: $tool is missing" >&2; exit 1; }
done
echo "Installed: $packages"
