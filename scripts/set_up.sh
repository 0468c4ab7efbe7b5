#!/usr/bin/env bash
# Sets up the virtual environment: `set_up.sh run` for the demo, `set_up.sh dev` for the checks and tests.
# The Makefile decides when set-up is due and keeps the stamps. If something is missing, one line says what and how
# to install it.
set -euo pipefail

purpose=$1
python=${PYTHON:-python3}
venv=${VENV:-.venv}
lock=requirements/$purpose.txt

main() {
    one_at_a_time
    need_python
    need_venv_module
    echo "set-up: installing $lock into $venv ..."
    make_environment
    install
    need_postgresql
    need_chromium
    need_proxies
    echo "set-up: done in $SECONDS s"
}

stop() {
    echo "set-up stopped: $1" >&2
    exit 1
}

# `make demo` and `make test` at the same time in one clone: the second waits instead of mixing its files with the first's
one_at_a_time() {
    exec 9<"$0"
    if command -v flock >/dev/null; then flock 9; fi
}

need_python() {
    command -v "$python" >/dev/null ||
        stop "$python is missing; install Python 3.11 or newer (Debian: apt install python3 python3-venv)"
    local version
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') ||
        stop "$python does not run; choose another one: make ... PYTHON=python3.11"
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        stop "$python is Python $version and farhand needs 3.11 or newer; choose another one: make ... PYTHON=python3.11"
}

need_venv_module() {
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        stop "$python has no venv module; install it (Debian: apt install python3-venv), then run make again"
}

make_environment() {
    # an incomplete environment has no pip, and one whose python was removed does not run: start over
    if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        "$python" -m venv --clear "$venv" || stop "$python could not create $venv; see the error above"
    fi
}

install() {
    local pip=("$venv/bin/python" -m pip install -qq --no-input --disable-pip-version-check)
    # the lock file is complete, so pip must not resolve anything: for a dependency with an extra it would choose the
    # newest release, which has no hash here
    "${pip[@]}" --no-deps --require-hashes -r "$lock" ||
        stop "pip could not install $lock, see the error above; check the network, then run make again"
    # the build backend is already in the lock file, so nothing is fetched unpinned here
    "${pip[@]}" --no-deps --no-build-isolation -e . ||
        stop "pip could not install farhand itself, see the error above"
    if [ "$purpose" = dev ]; then
        # in its own folder: tests that use it put that folder first in the path
        "${pip[@]}" --upgrade --no-deps --target "$venv/oldest-server" --require-hashes -r requirements/oldest-server.txt ||
            stop "pip could not install requirements/oldest-server.txt, see the error above; check the network, then run make again"
    fi
}

# the tests start their own database, so only the programs are needed: no server is set up or started
need_postgresql() {
    if [ "$purpose" != dev ] || has_postgresql; then return; fi
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        stop "PostgreSQL is missing and the tests need its programs; install it (Debian: apt install postgresql), then run make again"
    fi
    echo "set-up: installing PostgreSQL for the tests ..."
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] ||
        echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends postgresql; } >/dev/null ||
        stop "apt could not install postgresql, see the error above; check the network, then run make again"
    has_postgresql || stop "postgresql is installed, but initdb cannot be found"
}

# the tests use the distribution's browser, which gets security updates; none is downloaded. Without its headless
# shell they take longer
need_chromium() {
    if [ "$purpose" != dev ]; then return; fi
    if command -v chromium >/dev/null && command -v chromium-headless-shell >/dev/null; then return; fi
    if [ "$(id -u)" != 0 ] && command -v chromium >/dev/null; then return; fi
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        stop "chromium is missing and the browser tests need it; install it (Debian: apt install chromium), then run make again"
    fi
    echo "set-up: installing chromium for the tests ..."
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium chromium-headless-shell fonts-dejavu-core; } >/dev/null ||
        stop "apt could not install chromium, see the error above; check the network, then run make again"
    command -v chromium >/dev/null || stop "chromium is installed, but cannot be found"
}

# the tests run farhand behind the first two and in front of the third, as people do; only the tests start them
need_proxies() {
    if [ "$purpose" != dev ] || has_proxies; then return; fi
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        stop "haproxy, nginx or pgbouncer is missing and the tests need them; install them (Debian: apt install haproxy nginx-light pgbouncer), then run make again"
    fi
    echo "set-up: installing haproxy, nginx and pgbouncer for the tests ..."
    # a policy of 101 keeps the packages from starting a server of their own
    local policy=/usr/sbin/policy-rc.d
    if [ -e "$policy" ]; then policy=; else printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy"; fi
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends haproxy nginx-light pgbouncer; } >/dev/null ||
        { [ -z "$policy" ] || rm -f "$policy"; stop "apt could not install haproxy, nginx and pgbouncer, see the error above; check the network, then run make again"; }
    [ -z "$policy" ] || rm -f "$policy"
    has_proxies || stop "haproxy, nginx and pgbouncer are installed, but cannot be found"
}

has_proxies() {
    local PATH=$PATH:/usr/sbin
    command -v haproxy >/dev/null && command -v nginx >/dev/null && command -v pgbouncer >/dev/null
}

has_postgresql() {
    command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null
}

main
