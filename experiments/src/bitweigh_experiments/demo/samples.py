"""Sample queries in plain English that the documents can answer."""

from __future__ import annotations

__all__ = ["DEBIAN", "N_SAMPLES", "PYTHON"]

N_SAMPLES = 10

DEBIAN = (
    "find duplicate files on disk",
    "typing tutor for kids",
    "measure network bandwidth",
    "read e-books",
    "learn chemistry and the periodic table",
    "play chess against the computer",
    "recover deleted files",
    "weather forecast on the desktop",
    "password manager",
    "solve sudoku puzzles",
)

PYTHON = (
    "pick a random element",
    "delete a directory and everything in it",
    "wait until a thread has finished",
    "round a number to the nearest integer",
    "open a web page in the browser",
    "median of some numbers",
    "day of the week",
    "create a temporary file",
    "turn a dictionary into json text",
    "decode base64 text",
)
