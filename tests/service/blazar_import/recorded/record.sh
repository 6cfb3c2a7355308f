#!/bin/sh
# Record databases that real Blazar made, for both kinds of server: ./record.sh RELEASE
#
# RELEASE is a release on PyPI, such as 18.0.0. Needed are python3 with venv, mariadbd and mariadb-dump, pg_dump, and a
# PostgreSQL in which the user of PG may create databases. Everything temporary is in .record/, which git ignores.
set -eu
release=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$here/.record
pg=${PG:-postgresql://postgres@127.0.0.1}
name=blazar_record_$$
bin=$work/venv-$release/bin
mkdir -p "$work"

# Blazar 10 is of the time of SQLAlchemy 1.4.
case $release in
1[01].*) old="SQLAlchemy<2 oslo.db<13" ;;
*) old="" ;;
esac
if [ ! -x "$bin/blazar-db-manage" ]; then
    python3 -m venv "$work/venv-$release"
    # shellcheck disable=SC2086
    "$bin/pip" install -q "blazar==$release" "setuptools<80" pymysql psycopg2-binary "psycopg[binary]" $old
fi

# MariaDB: the tables by Blazar's own migrations.
data=$work/mariadb socket=$work/mariadb.sock
[ -d "$data" ] || mariadb-install-db --no-defaults --datadir="$data" --auth-root-authentication-method=normal >/dev/null
mariadbd --no-defaults --user="$(id -un)" --datadir="$data" --socket="$socket" --skip-networking 2>"$work/mariadb.log" &
server=$!
trap 'psql -q "$pg/postgres" -c "DROP DATABASE IF EXISTS $name" 2>/dev/null; kill $server; wait $server || true' EXIT
until mariadb-admin -uroot -S "$socket" ping >/dev/null 2>&1; do sleep 0.2; done
mariadb -uroot -S "$socket" -e "CREATE DATABASE $name CHARACTER SET utf8mb4"
printf '[database]\nconnection = mysql+pymysql://root@/%s?unix_socket=%s\n' "$name" "$socket" >"$work/mariadb.conf"
"$bin/blazar-db-manage" --config-file "$work/mariadb.conf" upgrade head >/dev/null 2>&1
"$bin/python" "$here/fill.py" "$work/mariadb.conf"
mariadb-dump -uroot -S "$socket" --skip-comments --skip-extended-insert --order-by-primary "$name" |
    grep -v '^/\*M!' >"$here/mariadb-$release.sql"
mariadb -uroot -S "$socket" -e "DROP DATABASE $name"

# PostgreSQL: Blazar's migration 75a74e4539cb fails there in every release, so its function `setup_db` makes the tables.
psql -q "$pg/postgres" -c "CREATE DATABASE $name"
printf '[database]\nconnection = %s/%s\n' "$pg" "$name" >"$work/postgresql.conf"
"$bin/python" "$here/fill.py" "$work/postgresql.conf" --create
pg_dump --inserts --no-owner --no-comments "$pg/$name" |
    grep -v -e '^--' -e '^\\' -e '^$' -e '^SET transaction_timeout' >"$here/postgresql-$release.sql"
psql -q "$pg/postgres" -c "DROP DATABASE $name"
