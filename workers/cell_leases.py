"""Parts of leases of other cells: requests of the cells above, carried out by the engine of this cell."""

from collections.abc import Mapping

import structlog

from climate.cloud import CloudError
from climate.cloud.part_messages import METHOD, later, read, written_answer
from climate.compute.cells.errors import BadMessage
from climate.compute.cells.messaging import paths
from climate.compute.cells.messaging.dispatch import CellContext, Handlers
from climate.compute.cells.messaging.messages import Message
from climate.context import Climate
from climate.service.lease_tree import part_requests

log = structlog.get_logger(__name__)


def handlers(climate: Climate) -> Handlers:
    """Return the method by which the cells above hold hosts of this one."""

    def lease_part(context: CellContext, message: Message, kwargs: Mapping[str, object]) -> dict[str, object]:
        try:
            asker, action = read(kwargs)
        except ValueError as error:
            raise BadMessage(f"{METHOD}: {error}") from None
        account = part_requests.account_of(paths.split(message.routing_path)[0], asker)
        try:
            return written_answer(part_requests.execute(climate, account, action))
        except CloudError as error:
            log.info("action of parent postponed", action=type(action).__name__, reason=str(error))
            return later(str(error))

    return Handlers(targeted={METHOD: lease_part})
