"""What is said of the server's connections holds for those that are open and those that come."""

from socket import IPPROTO_TCP, TCP_NODELAY, create_connection, socket

from sections.server import answer_at_once


def waits(connection: socket) -> bool:
    return not connection.getsockopt(IPPROTO_TCP, TCP_NODELAY)


def test_no_answer_waits_for_the_one_before():
    with socket() as port, socket() as closed:
        closed.close()
        port.bind(("127.0.0.1", 0))
        port.listen()
        with create_connection(port.getsockname()), port.accept()[0] as early:
            assert waits(early)
            answer_at_once.__wrapped__()
            assert not waits(early)
            with create_connection(port.getsockname()), port.accept()[0] as late:
                assert not waits(late)
