"""Run the command line and send it a signal, SIGINT as Ctrl-C does, a moment after a function of shoal has begun.

The function does not return before the signal has come.
"""

import signal
import sys
import threading
from importlib import import_module
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from systems import signal_main_thread


def stop_in(module, name, delay, number):
    """Stop the process some seconds after the function has been called, or when it is about to return."""
    home = import_module(module)
    original = getattr(home, name)

    def begun(*arguments, **settings):
        if not delay:
            signal_main_thread(number)
            return original(*arguments, **settings)
        timer = threading.Timer(delay, signal_main_thread, (number,))
        timer.start()
        result = original(*arguments, **settings)
        timer.join()  # it is late on a busy machine
        return result

    setattr(home, name, begun)


if __name__ == "__main__":
    module, name, delay, which, *arguments = sys.argv[1:]
    stop_in(module, name, float(delay), signal.Signals[which])
    import_module("shoal.cli").main(arguments)
