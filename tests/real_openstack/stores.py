"""MariaDB and RabbitMQ of one OpenStack, from Debian's packages, and the schemas of its databases.

The schemas take more than a minute; a dump of them is kept beside the environment of the services.
"""

import gzip
import shutil
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from tests.real_openstack.layout import BIN, PASSWORD, VENV, Layout
from tests.system.stack import await_so

DATABASES = ("keystone", "placement", "glance", "neutron", "nova", "nova_api", "nova_cell0")
PROGRAMS = {
    "mariadbd": "mariadb-server",
    "mariadb-install-db": "mariadb-server",
    "rabbitmq-server": "rabbitmq-server",
    "epmd": "erlang-base",
}
START_SECONDS = 900.0
RABBITMQ = "/usr/lib/rabbitmq/bin/rabbitmq-server"
LOCK = Path(__file__).with_name("requirements.lock")


def missing() -> str:
    """Return the reason why an OpenStack cannot run on this machine, or an empty text."""
    packages = sorted({package for program, package in PROGRAMS.items() if shutil.which(program) is None})
    if packages:
        return f"apt install {' '.join(packages)}"
    return "" if (BIN / "nova-compute").exists() else "make test-openstack installs its services"


def answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


def start(layout: Layout) -> None:
    """Start both, and wait until they answer."""
    data = layout.home / "mariadb"
    own = ("--no-defaults", f"--datadir={data}")
    layout.run("mariadb-install-db", *own, "--user=root", "--auth-root-authentication-method=normal")
    fast = ("--innodb-flush-method=nosync", "--innodb-flush-log-at-trx-commit=0", "--skip-innodb-doublewrite")
    place = (f"--port={layout.ports['mariadb']}", "--bind-address=127.0.0.1", f"--socket={layout.socket}")
    rules = ("--user=root", "--max-connections=500", "--character-set-server=utf8mb3", f"--pid-file={data}/pid")
    layout.start("mariadb", "mariadbd", *own, *place, *rules, *fast)
    _start_rabbitmq(layout)
    await_so(lambda: answers(layout.ports["mariadb"]), START_SECONDS, "the start of MariaDB")
    sql(layout, f"alter user root@localhost identified by '{PASSWORD}'", password="")
    address = f"create or replace user root@127.0.0.1 identified by '{PASSWORD}'"
    sql(layout, f"{address}; grant all on *.* to root@127.0.0.1 with grant option")
    await_so(lambda: answers(layout.ports["rabbitmq"]), START_SECONDS, "the start of RabbitMQ")


def _start_rabbitmq(layout: Layout) -> None:
    home = layout.folder("rabbitmq")
    (home / "rabbitmq.conf").write_text(f"listeners.tcp.local = 127.0.0.1:{layout.ports['rabbitmq']}\n")
    (home / "plugins").write_text("[].\n")
    (home / "env.conf").write_text("")
    layout.start(
        "rabbitmq",
        RABBITMQ,
        HOME=str(home),
        ERL_EPMD_ADDRESS="127.0.0.1",
        ERL_EPMD_PORT=str(layout.ports["epmd"]),
        RABBITMQ_CONF_ENV_FILE=str(home / "env.conf"),
        RABBITMQ_NODENAME="openstack@localhost",
        RABBITMQ_DIST_PORT=str(layout.ports["erlang"]),
        RABBITMQ_CONFIG_FILE=str(home / "rabbitmq.conf"),
        RABBITMQ_MNESIA_BASE=str(home / "mnesia"),
        RABBITMQ_LOG_BASE=str(home / "log"),
        RABBITMQ_ENABLED_PLUGINS_FILE=str(home / "plugins"),
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1}",
    )


def fill(layout: Layout) -> None:
    """Create the schemas of all services, from the dump if there is one."""
    digest = sha256(LOCK.read_bytes()).hexdigest()[:12]
    dump = VENV / f"schemas-{digest}.sql.gz"
    if dump.exists():
        sql(layout, gzip.decompress(dump.read_bytes()).decode())
        return
    for name in DATABASES:
        sql(layout, f"create database {name} character set utf8mb3")
    with ThreadPoolExecutor(4) as pool:
        made = [pool.submit(one, layout) for one in (_keystone, _nova, _neutron, _others)]
    for one in made:
        one.result()
    words = ("mariadb-dump", f"--socket={layout.socket}", "-uroot", f"-p{PASSWORD}", "--databases", *DATABASES)
    text = subprocess.run(words, capture_output=True, check=True).stdout
    dump.write_bytes(gzip.compress(text))


def sql(layout: Layout, statements: str, password: str = PASSWORD) -> None:
    """Run statements in MariaDB."""
    words = ["mariadb", f"--socket={layout.socket}", "-uroot", *([f"-p{password}"] if password else [])]
    made = subprocess.run(words, input=statements, text=True, check=False, capture_output=True)
    assert made.returncode == 0, made.stderr


def _keystone(layout: Layout) -> None:
    layout.run(BIN / "keystone-manage", "--config-file", layout.etc("keystone") / "keystone.conf", "db_sync")


def _nova(layout: Layout) -> None:
    """Create both schemas; the addresses of the cell are templates, so that the dump fits any ports."""
    manage = (BIN / "nova-manage", "--config-file", layout.etc("nova") / "nova.conf")
    address = "{scheme}://{username}:{password}@{hostname}:{port}/"
    layout.run(*manage, "api_db", "sync")
    layout.run(*manage, "cell_v2", "map_cell0", "--database_connection", f"{address}nova_cell0")
    cell = ("--database_connection", f"{address}nova", "--transport-url", address)
    layout.run(*manage, "cell_v2", "create_cell", "--name", "cell1", *cell)
    layout.run(*manage, "db", "sync")


def _neutron(layout: Layout) -> None:
    words = ("--config-file", layout.etc("neutron") / "neutron.conf", "upgrade", "head")
    layout.run(BIN / "neutron-db-manage", *words)


def _others(layout: Layout) -> None:
    layout.run(BIN / "placement-manage", "--config-dir", layout.etc("placement"), "db", "sync")
    layout.run(BIN / "glance-manage", "--config-file", layout.etc("glance") / "glance-api.conf", "db_sync")
