"""Raw files -> a release: which units there are, the steps of each, the flow that orders them, the folder at the end.

`run` is where a build begins; `flow` is the same build inside Prefect and is imported only when something is missing.
"""

from pipelines.build.run import BuildResult, build

__all__ = ["BuildResult", "build"]
