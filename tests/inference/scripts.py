"""Scripts of this folder in processes of their own, with several virtual devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path


def script(name: str, *arguments: str, devices: int = 8) -> subprocess.Popen:
    """Start a script."""
    flags = f"--xla_force_host_platform_device_count={devices}"
    return subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name(name)), *arguments],
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def printed(process: subprocess.Popen, seconds: int = 900) -> dict:
    """What a script prints on its last line."""
    out, err = process.communicate(timeout=seconds)
    assert process.returncode == 0, err[-3000:]
    return json.loads(out.strip().splitlines()[-1])
