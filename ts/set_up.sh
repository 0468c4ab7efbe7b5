#!/usr/bin/env bash
# Makes the TypeScript side ready. The Makefile decides when that is due and keeps the stamp. What is missing
# is said in one line, with what to do about it.
set -euo pipefail
cd "$(dirname "$0")"

stop() {
    echo "set-up stopped: $1" >&2
    exit 1
}

command -v node >/dev/null ||
    stop "node is missing; install Node.js 20.19 or newer with npm (https://nodejs.org)"
command -v npm >/dev/null || stop "npm is missing; it comes with Node.js (Debian: apt install npm)"
new_enough='const [major, minor] = process.versions.node.split(".").map(Number);
process.exit(major > 20 || (major === 20 && minor >= 19) ? 0 : 1)'
node -e "$new_enough" ||
    stop "node is $(node --version) and farhand's TypeScript needs 20.19 or newer"

echo "set-up: installing ts/package-lock.json ..."
# its warnings are about the Node that some packages wish for; the tests run with the one that is there
npm install --no-save --no-audit --no-fund --loglevel=error >/dev/null ||
    stop "npm could not install ts/package-lock.json, its reason is above; check the network, then try again"
echo "set-up: done in $SECONDS s"
