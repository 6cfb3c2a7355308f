"""Uploads at once: one project leaves some of the threads for uploads to the others."""

import io
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Semaphore
from typing import TYPE_CHECKING

from api.image.upload_slots import MOST_OF_PROJECT
from climate.web.request_framing import LONGEST_BODY
from tests.api.compute.api_clients import Person, World
from tests.api.compute.test_images import IMAGES, OCTETS, fill, make, refusal

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PATIENCE = 300.0
"""Longest time, in seconds, until something that is awaited has happened."""
SIZE = LONGEST_BODY + 1


class LateContent(io.BytesIO):
    """A content of which nothing arrives before the test says so."""

    def __init__(self, began: Semaphore, arrives: Event) -> None:
        super().__init__(b"x" * SIZE)
        self._began, self._arrives = began, arrives

    def read(self, size: int | None = -1, /) -> bytes:
        self._await()
        return super().read(size)

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        self._await()
        return super().readinto(buffer)

    def _await(self) -> None:
        if self.tell() == 0:
            self._began.release()
            assert self._arrives.wait(PATIENCE)


def test_a_project_leaves_uploads_to_others(there: World, member: Person, stranger: Person) -> None:
    began, arrives = Semaphore(0), Event()

    def put(image: dict[str, str], verb: str) -> int:
        content = LateContent(began, arrives)
        return member("PUT", f"{IMAGES}/{image['id']}/{verb}", input_stream=content, headers=OCTETS).status_code

    made = [make(member) for _ in range(MOST_OF_PROJECT)]
    one_more = make(member)
    with ThreadPoolExecutor(MOST_OF_PROJECT) as pool:
        running = [pool.submit(put, image, "stage" if at % 2 else "file") for at, image in enumerate(made)]
        try:
            assert all(began.acquire(timeout=PATIENCE) for _ in running)
            answer = member("PUT", f"{IMAGES}/{one_more['id']}/file", data=b"x" * SIZE, headers=OCTETS)
            assert f"has {MOST_OF_PROJECT} uploads" in refusal(answer, 429)
            assert answer.headers["Retry-After"]
            assert member.get(f"{IMAGES}/{one_more['id']}")["status"] == "queued", (
                "the refused upload changed the image"
            )
            fill(member, make(member), b"short")
            others = make(stranger)
            fill(stranger, others, b"x" * SIZE)
            assert stranger.get(f"{IMAGES}/{others['id']}")["status"] == "active"
        finally:
            arrives.set()
        assert {one.result() for one in running} == {204}
    fill(member, one_more, b"x" * SIZE)
