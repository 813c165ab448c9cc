#!/bin/bash
# Installs hub-agent or hub-cloud with its unit, its user and its configuration. Safe to run again: it replaces what it
# brought, and never touches a configuration that is there. With DESTDIR it only lays out files, for a package or an image.
set -euo pipefail

usage() {
  cat <<'U'
usage: packaging/install.sh agent|cloud [BINARY]

Installs hub-agent (on a hub) or hub-cloud (on a server). BINARY defaults to target/release/hub-agent or hub-cloud.
  DESTDIR=/some/root   lay out files below this folder and leave the running system alone
U
}

case "${1:-}" in
  agent | cloud) name=hub-$1 ;;
  -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac
here=$(dirname "$(realpath "$0")")
source=$(dirname "$here")
binary=${2:-$source/target/release/$name}
root=${DESTDIR:-}

if [ ! -x "$binary" ]; then
  echo "install.sh: $binary is not there; build it with: cargo build --release -p $name" >&2
  exit 1
fi
if [ -z "$root" ] && [ "$(id -u)" != 0 ]; then
  echo "install.sh: run me as root, or set DESTDIR" >&2
  exit 1
fi

# A running binary cannot be written over, only replaced.
install -D -m 0755 "$binary" "$root/usr/bin/$name.new"
mv -f "$root/usr/bin/$name.new" "$root/usr/bin/$name"
install -D -m 0644 "$source/systemd/$name.service" "$root/usr/lib/systemd/system/$name.service"
install -D -m 0644 "$here/sysusers.d/$name.conf" "$root/usr/lib/sysusers.d/$name.conf"
install -d -m 0755 "$root/etc/$name"
install -m 0644 "$here/$name.toml.example" "$root/etc/$name/config.toml.example"
if [ -z "$root" ]; then
  systemd-sysusers "$name.conf"
fi
if [ ! -e "$root/etc/$name/config.toml" ]; then
  # It may hold a claim code or a database password: nobody else reads it.
  install -m 0640 "$here/$name.toml.example" "$root/etc/$name/config.toml"
  if [ -z "$root" ]; then
    chgrp "$name" "$root/etc/$name/config.toml"
  fi
fi

if [ -z "$root" ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart "$name.service"
  echo "$name is installed. Next: edit /etc/$name/config.toml, then: systemctl enable --now $name"
fi
