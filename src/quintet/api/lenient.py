"""Reading JSON that others have written: a field that is not what it should be is its default."""

from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
)


class Lenient(BaseModel):
    """A value that is read from any JSON object without an error."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    @field_validator("*", mode="wrap")
    @classmethod
    def _or_default(cls, value: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        try:
            return check(value)
        except (ValidationError, RecursionError):
            return cls.model_fields[str(info.field_name)].get_default(call_default_factory=True)
