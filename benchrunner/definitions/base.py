"""What all definitions have in common: strict, frozen, and the forms of names."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=64)]
NameOrNone = Annotated[
    str, StringConstraints(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?$", max_length=64)
]
MetricId = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
Scalar = bool | int | float | str
Preparation = Annotated[
    str, StringConstraints(pattern=r"^(sync|drop-caches|fstrim|cool-down=[1-9][0-9]{0,3})$")
]


class Definition(BaseModel):
    """Base of all definitions: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)
