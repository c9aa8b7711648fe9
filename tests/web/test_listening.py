"""The socket that a server listens on."""

import asyncio
import socket

import pytest

from veilog.errors import ParameterError
from veilog.web.serving import listening


def test_the_head_of_an_answer_does_not_wait_for_its_body() -> None:
    """Connections that are accepted from it send at once, without Nagle's algorithm."""

    async def accepted() -> int:
        delays: asyncio.Queue[int] = asyncio.Queue()

        def meet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            own = writer.get_extra_info("socket")
            delays.put_nowait(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        sock = listening("127.0.0.1", 0)
        server = await asyncio.start_server(meet, sock=sock)
        async with server:
            _, writer = await asyncio.open_connection(*sock.getsockname())
            found = await asyncio.wait_for(delays.get(), 30)
            writer.close()
            return found

    assert asyncio.run(accepted()) != 0


def test_a_port_that_is_taken_is_refused_in_words() -> None:
    with listening("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        with pytest.raises(ParameterError, match=f"cannot listen on 127.0.0.1, port {port}"):
            listening("127.0.0.1", port)
