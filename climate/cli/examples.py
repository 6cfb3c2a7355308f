"""Examples in the help of each command: lines that a shell takes as they are, two and more for each command."""

from collections.abc import Iterator

import click

TEXT = """\
climate admin-password reset
climate admin-password reset --password-prompt
climate api GET /reservation/v1/leases
climate api POST /reservation/v1/os-hosts --data '{"name": "gpu-1"}'
climate audit --kind user --since -7d
climate audit --object gpu-1 --limit 10
climate boot web --flavor small --image cirros --wait
climate boot web --flavor small --image cirros --lease mine --count 2
climate calendar create
climate calendar create --name "GPU hosts" --project
climate calendar delete "GPU hosts"
climate calendar delete 019af3c1-7a00-7000-8000-000000000001
climate calendar list
climate calendar list -f json
climate cell add north --child --host broker.example.org --username cell
climate cell add top --parent --host broker.example.org --ask password --local
climate cell capacities
climate cell capacities north
climate cell delete north
climate cell delete north --force
climate cell list
climate cell list -f json
climate cell set north --weight-offset 10
climate cell set north --host broker.example.org --port 5672
climate cell show north
climate cell show north -f json
climate cell sync
climate cell sync --project 546f375fc9354437b5aeeaf5f4d18c16
climate cell tree
OS_CLOUD=climate climate cell tree
climate cells
CLIMATE_LOG_LEVEL=DEBUG climate cells
climate cloudpipe certificates 546f375fc9354437b5aeeaf5f4d18c16
climate cloudpipe certificates 546f375fc9354437b5aeeaf5f4d18c16 -f json
climate cloudpipe configure 546f375fc9354437b5aeeaf5f4d18c16 203.0.113.7 1000
climate cloudpipe configure 546f375fc9354437b5aeeaf5f4d18c16 vpn.example.org 1001
climate cloudpipe create 546f375fc9354437b5aeeaf5f4d18c16
climate cloudpipe create 546f375fc9354437b5aeeaf5f4d18c16 -f json
climate cloudpipe credentials 546f375fc9354437b5aeeaf5f4d18c16 --name alice
climate cloudpipe credentials 546f375fc9354437b5aeeaf5f4d18c16 --name alice --file /tmp/alice.zip
climate cloudpipe delete 546f375fc9354437b5aeeaf5f4d18c16
climate cloudpipe delete 546f375fc9354437b5aeeaf5f4d18c16 --with-authority
climate cloudpipe list
climate cloudpipe list -f json
climate cloudpipe revoke 546f375fc9354437b5aeeaf5f4d18c16 2
climate cloudpipe revoke 546f375fc9354437b5aeeaf5f4d18c16 2 3
climate clouds list
climate clouds list -f value -c name
climate clouds write
climate clouds write --url https://climate.example.org
climate completion
climate completion zsh
climate credential create ci --role member --expiration +30d
climate credential create backup --role reader -f json
climate credential delete ci
climate credential delete ci backup
climate credential list
climate credential list --sort expires_at
climate credential show ci
climate credential show ci -f value -c expires_at
climate demo
climate demo --no-lab
climate doctor
climate doctor -f json
climate event list
climate event list --status ERROR
climate event mend
climate event mend 3f0c8a4e-5a3f-4a0e-9d8f-2f1d7c1b6a55
climate event requeue 3f0c8a4e-5a3f-4a0e-9d8f-2f1d7c1b6a55
climate event requeue 9b2f5c1d-7e60-4b57-8f6e-0c9d3a4b1e22
climate event set-aside
climate event set-aside -f json
climate find --hosts 4 --property '[">=", "$vcpus", "4"]' --for 6h --within 1w
climate find --min 2 --max 8 --for 2h --between 'Mon-Fri 08:00-18:00 Europe/Berlin' --mode most
climate find --hosts 2 --for 6h --take 1 --name training
climate flavor list
climate flavor list -f value -c name
climate floating associate 203.0.113.7 web
climate floating associate 203.0.113.7 web --fixed 10.0.0.5
climate floating create
climate floating create public --server web
climate floating delete 203.0.113.7
climate floating delete 203.0.113.7 203.0.113.8
climate floating disassociate 203.0.113.7
climate floating disassociate 203.0.113.8
climate floating list
climate floating list -f json
climate floating pool add public 203.0.113.64-203.0.113.95
climate floating pool add public 203.0.113.128-203.0.113.130
climate floating pool create public 203.0.113.0/24
climate floating pool create public 203.0.113.0/24 --gateway 203.0.113.1
climate floating pool list
climate floating pool list -f json
climate floating reservable allocations
climate floating reservable allocations 203.0.113.7
climate floating reservable create public 203.0.113.7
climate floating reservable create public 203.0.113.7 --dry-run
climate floating reservable delete 203.0.113.7
climate floating reservable delete 203.0.113.7 --dry-run
climate floating reservable list
climate floating reservable list -f json
climate floating reservable show 203.0.113.7
climate floating reservable show 203.0.113.7 -f json
climate floating show 203.0.113.7
climate floating show 203.0.113.7 -f json
climate host allocations
climate host allocations gpu-1
climate host close gpu-1
climate host close gpu-1 --reason "new disks"
climate host create gpu-1 --extra gpu_count=4
climate host create gpu-1 --drain
climate host delete gpu-1
climate host delete gpu-1 gpu-2 --dry-run
climate host evacuate gpu-1 --preview
climate host evacuate gpu-1 --fenced
climate host fail gpu-1 --reason "no power"
climate host fail 7 --reason "disk errors"
climate host heal gpu-1
climate host heal 7
climate host health gpu-1
climate host health gpu-1 -f json
climate host history gpu-1
climate host history gpu-1 -f json
climate host list
climate host list --long --sort vcpus:desc
climate host maintenance gpu-1 --from "2030-01-31 09:00" --for 4h --reason firmware
climate host maintenance gpu-1 --from +1d --reason firmware --move-servers
climate host move gpu-1 --to multi-tenant
climate host move gpu-1 gpu-2 --to reservation --reason "more leases"
climate host open gpu-1
climate host open gpu-1 --reason "disks are new"
climate host power clear gpu-1
climate host power clear gpu-1 --force
climate host power off gpu-1
climate host power off gpu-1 --hard
climate host power on gpu-1
climate host power on gpu-1 --force
climate host power set gpu-1 --driver redfish --setting address=https://192.0.2.7 --secret password
climate host power set gpu-1 --driver memory --watts 200
climate host power show gpu-1
climate host power show gpu-1 -f json
climate host property list
climate host property list --detail --all
climate host property set gpu_count --public
climate host property set rack --private
climate host property show gpu_count
climate host property show gpu_count -f json
climate host set gpu-1 --extra gpu_count=8
climate host set gpu-1 --extra rack=7 --extra gpu=h100
climate host show gpu-1
climate host show gpu-1 --at "2030-01-31 09:00"
climate host unset gpu-1 --extra rack
climate host unset gpu-1 --extra rack --extra gpu
climate image list
climate image list -f value -c name
climate import blazar --database postgresql://blazar@db.example.org/blazar
climate import blazar --database postgresql://blazar@db.example.org/blazar --resume
climate journal archive --older-than 365d
climate journal archive --older-than 90d
climate journal check
climate journal check -f json
climate journal lost leases-20300131T160000Z-0123456789ab.jsonl.gz
climate journal lost leases-20300228T160000Z-89abcdef0123.jsonl.gz
climate journal rebuild
CLIMATE_HOME=/var/lib/climate climate journal rebuild
climate journal show 3f0c8a4e-5a3f-4a0e-9d8f-2f1d7c1b6a55
climate journal show 3f0c8a4e-5a3f-4a0e-9d8f-2f1d7c1b6a55 --at -1d
climate keys rotate
CLIMATE_HOME=/var/lib/climate climate keys rotate
climate lab
climate lab --manager vlan
climate lease confirm mine
climate lease confirm mine --idempotency-key order-7
climate lease create mine --for 2h --hosts 1
climate lease create rest --for 12h --min 1 --max 4 --preemptible
climate lease create mine --for 2h --hosts 4 --wait-list --wait-until +2d
climate lease create ours --for 8h --hosts 2 --share-project 4f2a8a1e0c8d4c7f9a54f7f3a3b1c1d2
climate lease create mine --start +1d --for 8h --hosts 2 --resource '[">=", "$gpu_count", "2"]'
climate lease create training --start 'tomorrow 09:00' --for 4h --hosts 2 --repeat 'FREQ=WEEKLY;COUNT=10'
climate lease delete mine
climate lease delete mine yours --dry-run
climate lease extend mine 2h
climate lease extend mine --until "2030-01-31 18:00"
climate lease history mine
climate lease history mine -f json
climate lease hosts mine
climate lease hosts mine -f value -c name
climate lease list
climate lease list --status ACTIVE --sort end_date
climate lease set mine --name ours
climate lease set mine --viewer 9b1d2e3f4a5b4c6d8e7f0a1b2c3d4e5f --unshare 4f2a8a1e0c8d4c7f9a54f7f3a3b1c1d2
climate lease set mine --end "2030-01-31 18:00" --dry-run
climate lease shorten mine 30m
climate lease shorten mine --until +1h
climate lease show mine
climate lease show mine -f value -c status
climate lease sublet mine course --to-project 4f2a8a1e0c8d4c7f9a54f7f3a3b1c1d2 --hosts 2 --start +1d --for 4h
climate lease sublet mine deadline --to-project 4f2a8a1e0c8d4c7f9a54f7f3a3b1c1d2 --host gpu-1 --for 1d
climate lease subleases mine
climate lease subleases mine -f json
climate lease wait mine --for ACTIVE
climate lease wait mine --for TERMINATED --timeout 1h
climate limit history default
climate limit history 546f375fc9354437b5aeeaf5f4d18c16
climate limit list
climate limit list --all
climate limit set default leases=10
climate limit set 546f375fc9354437b5aeeaf5f4d18c16 leases=none
climate limit show default
climate limit show default --at -7d
climate limit unset 546f375fc9354437b5aeeaf5f4d18c16
climate limit unset 546f375fc9354437b5aeeaf5f4d18c16 leases
climate mail set start end_1h degraded
climate mail set --none
climate mail show
climate mail show -f json
climate maintenance end 3f0c8a4e-5a3f-4a0e-9d8f-2f1d7c1b6a55
climate maintenance end 3f0c8a4e-5a3f-4a0e-9d8f-2f1d7c1b6a55 9b2f5c1d-7e60-4b57-8f6e-0c9d3a4b1e22
climate maintenance history 3f0c8a4e-5a3f-4a0e-9d8f-2f1d7c1b6a55
climate maintenance history 3f0c8a4e-5a3f-4a0e-9d8f-2f1d7c1b6a55 -f json
climate maintenance list
climate maintenance list --host gpu-1
climate maintenance set 3f0c8a4e-5a3f-4a0e-9d8f-2f1d7c1b6a55 --to "2030-01-31 18:00"
climate maintenance set 3f0c8a4e-5a3f-4a0e-9d8f-2f1d7c1b6a55 --open-end --reason "parts are missing"
climate maintenance show 3f0c8a4e-5a3f-4a0e-9d8f-2f1d7c1b6a55
climate maintenance show 3f0c8a4e-5a3f-4a0e-9d8f-2f1d7c1b6a55 --at -1d
climate metadata
CLIMATE_METADATA_ADDRESS=169.254.169.254:80 climate metadata
climate migrate
climate migrate --wait 10m
climate network associate 546f375fc9354437b5aeeaf5f4d18c16
climate network associate 546f375fc9354437b5aeeaf5f4d18c16 private
climate network create private 10.0.0.0/24
climate network create private 10.0.0.0/16 --manager vlan --count 4 --size 256 --vlan 100
climate network delete private
climate network delete private test
climate network disassociate private
climate network disassociate test
climate network hosts
climate network hosts -f json
climate network list
climate network list -f json
climate network show private
climate network show private -f json
climate node list
climate node list --long
climate node maintenance gpu-1 --reason "new disks"
climate node maintenance gpu-1 --end
climate notice list
climate notice list --since -1h --follow
climate notice resend 1734
climate notice resend 1734 1735
climate openstack register --dry-run
climate openstack register --url https://climate.example.org
climate poller
CLIMATE_LOG_LEVEL=DEBUG climate poller
climate pool backlog
climate pool backlog reservation --from +1d --to +3d
climate pool history
climate pool history reservation
climate pool hosts reservation
climate pool hosts multi-tenant --servers
climate pool list
climate pool list -f json
climate pool move multi-tenant gpu-1
climate pool move reservation gpu-1 gpu-2 --reason "more leases"
climate pool plan
climate pool plan -f json
climate pool set --target 4 --spare 1
climate pool set reservation --horizon 7d
climate pool show reservation
climate pool show reservation --at -1d
climate power list
climate power list -f json
climate power report
climate power report --from -7d --hosts
climate project create lab --description Robots
climate project create lab -f value -c id
climate project delete lab
climate project delete lab robots
climate project list
climate project list -f value -c name
climate project set lab --name robots
climate project set lab --disable
climate project show lab
climate project show lab -f value -c id
climate reservation reallocate gpu-1 --lease mine
climate reservation reallocate gpu-1 --lease mine --to gpu-2
climate role add member --user alice --project lab
climate role add reader --user bob --project lab
climate role assignment list --project lab
climate role assignment list --user alice
climate role list
climate role list -f value -c name
climate role remove member --user alice --project lab
climate role remove reader --user bob --project lab
climate role show member
climate role show member -f value -c id
climate series delete training
climate series delete training --from training-2026-12-01
climate series extend training 1h
climate series extend training 30m --from training-2026-12-01
climate series list
climate series list -f json
climate series set training --later 1h
climate series set training --name course --earlier 1d --from training-2026-12-01
climate series shorten training 1h
climate series shorten training 30m --dry-run
climate series show training
climate series show training -f json
climate server actions web
climate server actions web -f json
climate server confirm web
climate server confirm web db
climate server console web
climate server console web --lines 20
climate server delete web
climate server delete web db --wait
climate server evacuate web
climate server evacuate web --host gpu-2 --fenced
climate server explain web
climate server explain web -f json
climate server image web backup
climate server image web backup --property kind=nightly
climate server list
climate server list --status ACTIVE --all-projects
climate server lock web
climate server lock web --reason "it is backed up"
climate server migrate web --wait
climate server migrate web --live --host gpu-2
climate server migrations
climate server migrations web
climate server pause web
climate server pause web db
climate server reboot web
climate server reboot web --hard
climate server rebuild web --image cirros
climate server rebuild web --image cirros --metadata role=test
climate server rescue web --wait
climate server rescue web --image cirros
climate server resize web --flavor large
climate server resize web --flavor large --wait
climate server resume web
climate server resume web db
climate server revert web
climate server revert web db
climate server shelve web
climate server shelve web db
climate server show web
climate server show web -f value -c status
climate server start web
climate server start web db
climate server stop web
climate server stop web db
climate server suspend web
climate server suspend web db
climate server unlock web
climate server unlock web db
climate server unpause web
climate server unpause web db
climate server unrescue web
climate server unrescue web db --wait
climate server unshelve web
climate server unshelve web db
climate service delete compute-1
climate service delete 7
climate service disable compute-1
climate service disable compute-1 --reason "new disks"
climate service down compute-1
climate service down 7
climate service enable compute-1
climate service enable 7
climate service list
climate service list -f json
climate service up compute-1
climate service up 7
climate storage allocations
climate storage allocations fast
climate storage create fast --class ssd --capacity 100
climate storage create slow --class hdd --capacity 4000 --backend second
climate storage delete fast
climate storage delete fast slow
climate storage list
climate storage list -f json
climate storage set fast --capacity 200
climate storage set fast --closed
climate storage show fast
climate storage show fast -f json
climate stores run psql
climate stores run pg_dump --file climate.sql
climate token
curl -H "X-Auth-Token: $(climate token)" http://127.0.0.1:8000/reservation/v1/leases
climate up
climate up --demo --port 9000
climate usage --start -7d
climate usage --start -30d --by user --per day -f csv
climate user create alice --project lab --role member
climate user create bot --no-password
climate user delete alice
climate user delete alice bob
climate user list
climate user list --project lab
climate user set alice --generate-password
climate user set alice --disable
climate user show alice
climate user show alice -f value -c id
climate volume attach data web
climate volume attach 0d1c9a56-5f0e-4a6f-8f4e-6a2f5a1e7c02 web
climate volume delete data
climate volume delete data old
climate volume detach data
climate volume detach 0d1c9a56-5f0e-4a6f-8f4e-6a2f5a1e7c02
climate volume list
climate volume list --all
climate volume show data
climate volume show data -f json
climate web
CLIMATE_PORT=9000 climate web
climate worker
CLIMATE_WORKER_QUEUES=compute climate worker
climate zone add https://child.example.org/compute/v2.1 --username admin
climate zone add https://child.example.org/compute/v2.1 --username admin --weight-scale 2
climate zone boot web --flavor small --image cirros
climate zone boot web --flavor small --image cirros --count 10
climate zone build r-1a2b3c4d
climate zone build r-1a2b3c4d -f json
climate zone builds
climate zone builds -f json
climate zone delete 1
climate zone delete 1 --force
climate zone info
climate zone info -f json
climate zone list
climate zone list -f json
climate zone set 1 --weight-offset 5
climate zone set 1 --password
climate zone show 1
climate zone show 1 -f json
"""

EXAMPLES = tuple(TEXT.splitlines())


def add_examples(command: click.Command, name: str) -> None:
    """Write the examples of a command, and of all below it, below its help; `name` is what follows `climate`."""
    lines = [line for line in EXAMPLES if f"climate {name}" in line]
    for path, one in _leaves(command, name):
        mine = [line for line in lines if f"climate {path} " in f"{line} " or f"climate {path})" in line]
        if mine:
            one.epilog = "\b\n" + "\n  ".join(["Examples:", *mine])


def _leaves(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
        return
    for name, below in command.commands.items():
        yield from _leaves(below, f"{path} {name}")
