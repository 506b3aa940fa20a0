"""mlscale report: the file it writes, the sample in docs/, and clean refusals."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from command import Capture, refuse, succeed
from html_page import Node, parse
from synthetic import kernels as made
from synthetic import tidy

from mlscale import save, train
from mlscale.cli.main import parser_of
from mlscale.report import run_kernels
