"""`python -m pipelines.build`: the same command as `medi build`, with the same options."""

import sys

from pipelines.cli.app import main

sys.argv.insert(1, "build")
sys.exit(main())
