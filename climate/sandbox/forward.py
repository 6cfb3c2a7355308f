"""Forward connections of a socket that was opened outside to a port inside."""

import asyncio
import socket

_PIECE = 65536


def serve(listener: socket.socket, port: int) -> None:
    """Forward connections until this process ends; a connection that nobody inside accepts is closed."""
    asyncio.run(_serve(listener, port))


async def _serve(listener: socket.socket, port: int) -> None:
    # The event loop holds only weak references to tasks, so this set keeps them alive.
    carried: set[asyncio.Task[object] | None] = set()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        carried.add(asyncio.current_task())
        try:
            await _carry(reader, writer, port)
        except* OSError:
            pass  # One side is closed; closing the other one tells its peer.
        finally:
            writer.close()
            carried.discard(asyncio.current_task())

    async with await asyncio.start_server(carry, sock=listener) as server:
        await server.serve_forever()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
    there, back = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.TaskGroup() as both:
            both.create_task(_pump(reader, back))
            both.create_task(_pump(there, writer))
    finally:
        back.close()


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Copy one direction to its end; the other one may continue."""
    while piece := await source.read(_PIECE):
        target.write(piece)
        await target.drain()
    target.write_eof()
