"""The demo site on this machine: `python -m deploy`, and Ctrl-C to end it."""

from argparse import ArgumentParser

from deploy.supervisor import serve

parser = ArgumentParser(prog="python -m deploy", description=__doc__)
parser.add_argument("--replicas", type=int, default=2, help="processes of the app; 2")
parser.add_argument("--address", default="127.0.0.1", help="where the proxy listens; 127.0.0.1, this machine only")
parser.add_argument("--port", type=int, default=8600, help="of the proxy; replicas take those after it; 8600")
choices = parser.parse_args()
serve(choices.replicas, choices.address, choices.port)
