"""What a person writes in TOML: engines, tools, workloads, sweeps, hosts, metrics.

Strict and frozen: an unknown key is an error (``catalog`` adds the file and the nearest valid key).
Every field's description is its reference documentation; ``docs/reference`` is checked against it.
"""

from benchrunner.definitions.base import Definition, MetricId, Name, Preparation, Scalar
from benchrunner.definitions.engines import (
    Build,
    Data,
    Engine,
    Link,
    Needs,
    Source,
    SourceBuild,
)
from benchrunner.definitions.hosts import Host, HostLimits
from benchrunner.definitions.metrics import Metric
from benchrunner.definitions.pages import (
    ChartDefinition,
    ColumnDefinition,
    LineColumn,
    LineDefinition,
    LinesDefinition,
    Page,
    TableDefinition,
)
from benchrunner.definitions.services import Service
from benchrunner.definitions.sweeps import Sweep
from benchrunner.definitions.tools import Output, Tool
from benchrunner.definitions.workloads import (
    Ceiling,
    Check,
    Estimate,
    ExpandedStep,
    Gift,
    Rule,
    Steady,
    Step,
    Variant,
    Workload,
)

__all__ = [
    "Build",
    "Ceiling",
    "ChartDefinition",
    "Check",
    "ColumnDefinition",
    "Data",
    "Definition",
    "Engine",
    "Estimate",
    "ExpandedStep",
    "Gift",
    "Host",
    "HostLimits",
    "LineColumn",
    "LineDefinition",
    "LinesDefinition",
    "Link",
    "Metric",
    "MetricId",
    "Name",
    "Needs",
    "Output",
    "Page",
    "Preparation",
    "Rule",
    "Scalar",
    "Service",
    "Source",
    "SourceBuild",
    "Steady",
    "Step",
    "Sweep",
    "TableDefinition",
    "Tool",
    "Variant",
    "Workload",
]
