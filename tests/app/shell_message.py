"""What the command line says about a file, in the words of the pages."""

from shoal.app.messages import message_of
from shoal.errors import ShoalError
from shoal.inspection import inspect


def refused(path):
    try:
        inspect(path)
    except ShoalError as error:
        return " ".join(message_of(error).replace(str(path), path.name).split())
    raise AssertionError("the file was read")
