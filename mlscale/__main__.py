"""`python -m mlscale` is the command line."""

import sys

from mlscale.cli.main import main

sys.exit(main())
