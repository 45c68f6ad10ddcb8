"""The project's own JSON Schemas of the signed dialect, as the package holds them."""

import json
from pathlib import Path

import jsonschema_rs

import carnet.wire.dialects.samvad

FOLDER = Path(carnet.wire.dialects.samvad.__file__).with_name("schemas")
SCHEMAS = {path.stem: json.loads(path.read_text()) for path in FOLDER.glob("*.json")}
_VALIDATORS = {
    name: jsonschema_rs.validator_for(schema, validate_formats=True)
    for name, schema in SCHEMAS.items()
}


def valid(schema: str, given: object) -> bool:
    """Whether it is what that schema describes; bytes are read as JSON."""
    value = json.loads(given) if isinstance(given, bytes) else given
    return _VALIDATORS[schema].is_valid(value)
