"""The old path of `local_runner.py`, for one release."""

import os
import runpy
import sys

# This folder is first on sys.path, and contains modules with the names of packages.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
runpy.run_path(os.path.join(sys.path[0], "local_runner.py"), run_name=__name__)
