"""What the command line says about a file, in the words of a job."""

from shoal.errors import ShoalError
from shoal.inspection import inspect


def refused(path):
    try:
        inspect(path)
    except ShoalError as error:
        return " ".join(error.worded("key").replace(str(path), path.name).split())
    raise AssertionError("the file was read")
