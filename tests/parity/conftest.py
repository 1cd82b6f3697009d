"""Nothing here is collected where torch is not installed."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["*.py"]
