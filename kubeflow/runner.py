"""The old path of `kubeflow_v2_runner.py`, for one release."""

import os
import runpy
import sys

# This folder is first on sys.path, in place of the checkout.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
runpy.run_path(os.path.join(sys.path[0], "kubeflow_v2_runner.py"), run_name=__name__)
