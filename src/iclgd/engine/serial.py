"""The plain engine: one process, one cell after another, neighbours sharing what they have in common."""

from iclgd.engine.board import Board
from iclgd.engine.work import work
from iclgd.tools import Tools


def run(board: Board, tools: Tools) -> None:
    while part := board.take():
        for event in work(part.left, tools, board.store):
            board.saw(part, event)
