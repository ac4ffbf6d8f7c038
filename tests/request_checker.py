"""Checks a request against the OpenAPI document of its operation, with nothing of the product: on jsonschema alone."""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urldefrag, urljoin, urlsplit

from jsonschema import Draft4Validator, Draft202012Validator, validators
from referencing import Registry, Resource

DOCUMENT = "file:///openapi"
FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_OWN_HEADERS = ("accept", "content-type", "authorization")


def _nullable(validator: Any, types: Any, instance: Any, schema: Mapping[str, Any]) -> Any:
    if instance is not None or schema.get("nullable") is not True:
        yield from Draft4Validator.VALIDATORS["type"](validator, types, instance, schema)


def _without_read_only(validator: Any, required: Any, instance: Any, schema: Mapping[str, Any]) -> Any:
    properties = schema.get("properties", {})
    wanted = [name for name in required if not properties.get(name, {}).get("readOnly")]
    yield from Draft202012Validator.VALIDATORS["required"](validator, wanted, instance, schema)


def _enum(validator: Any, values: Any, instance: Any, schema: Mapping[str, Any]) -> Any:
    if instance is not None or schema.get("nullable") is not True:
        yield from Draft4Validator.VALIDATORS["enum"](validator, values, instance, schema)


_Before = validators.extend(Draft4Validator, {"type": _nullable, "required": _without_read_only, "enum": _enum})
_Current = validators.extend(Draft202012Validator, {"required": _without_read_only})


@dataclass(frozen=True)
class Place:
    """A value in a document, by the address of its file and its path there."""

    uri: str
    path: tuple[str, ...]
    value: Any


class Checker:
    """The operations of a document; `read` gives other documents by their address below `file:///`."""

    def __init__(self, document: Mapping[str, Any], read: Callable[[str], Any] = dict.__getitem__) -> None:
        self.files: dict[str, Any] = {DOCUMENT: document}
        self.read = read
        self.registry: Any = Registry(retrieve=lambda uri: Resource.opaque(self._file(uri)))  # type: ignore[call-arg]
        is_before = str(document["openapi"]).startswith("3.0")
        self.validator: Any = _Before if is_before else _Current

    def _file(self, uri: str) -> Any:
        if uri not in self.files:
            self.files[uri] = self.read(uri)
        return self.files[uri]

    def at(self, place: Place, *keys: str | int) -> Place | None:
        """What is at these keys, over references."""
        here: Place | None = self._follow(place)
        for key in keys:
            value = here.value if here else None
            known = isinstance(value, list) or (isinstance(value, dict) and key in value)
            if here is None or not known:
                return None
            here = self._follow(Place(here.uri, (*here.path, str(key)), value[key]))
        return here

    def _follow(self, place: Place) -> Place:
        for _ in range(30):
            reference = place.value.get("$ref") if isinstance(place.value, dict) else None
            if not isinstance(reference, str):
                return place
            uri, pointer = urldefrag(urljoin(place.uri, reference))
            path = [unquote(part).replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
            found = self.at(Place(uri, (), self._file(uri)), *path[:-1]) or Place(uri, (), None)
            value = found.value
            if path:
                value = found.value[int(path[-1]) if isinstance(found.value, list) else path[-1]]
            place = Place(found.uri, (*found.path, *path[-1:]), value)
        raise ValueError(f"{place} leads in a circle")

    def faults(self, path: str, method: str, request: Mapping[str, Any]) -> list[str]:
        """What the document says against a request as `mats call --dry-run` prints it."""
        root = Place(DOCUMENT, (), self.files[DOCUMENT])
        item = self.at(root, "paths", path)
        key = method.lower()
        operation = item and (self.at(item, key) or self.at(item, "additionalOperations", method))
        if item is None or operation is None:
            return [f"no operation {method} {path}"]
        parameters: dict[tuple[str, str], Place] = {}
        for level in (item, operation):
            listed = self.at(level, "parameters")
            for number in range(len(listed.value) if listed else 0):
                one = listed and self.at(listed, number)
                if one:
                    parameters[one.value["name"], one.value["in"]] = one
        url = urlsplit(request["url"])
        found = [] if request["method"] == method.upper() else [f"method {request['method']}"]
        found += self._in_path(path, url.path, parameters)
        schemes = self.at(root, "components", "securitySchemes")
        every = [self.at(schemes, name) for name in schemes.value] if schemes else []
        keys = {one.value.get("name") for one in every if one and one.value.get("in") == "query"}
        found += [
            one for one in self._in_query(path, url.query, parameters) if one.removeprefix("unknown query ") not in keys
        ]
        for (name, place), one in parameters.items():
            if place == "header" and one.value.get("required") and name.lower() not in _OWN_HEADERS:
                found += [] if name.lower() in {n.lower() for n in request["headers"]} else [f"no header {name}"]
        return found + self._in_body(operation, request)

    def _against(self, schema: Place | None, value: Any) -> list[str]:
        if schema is None:
            return []
        pointer = "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in schema.path)
        quoted = pointer.replace("%", "%25").replace(" ", "%20").replace("{", "%7B").replace("}", "%7D")
        made = self.validator({"$ref": f"{schema.uri}#{quoted}"}, registry=self.registry)
        return [f"{'/'.join(map(str, error.path))}: {error.message[:200]}" for error in made.iter_errors(value)][:3]

    def _written(self, schema: Place | None, text: str) -> list[str]:
        """Faults of a value that is written as text, read as any type that the schema may have."""
        if schema is None:
            return []
        readings: list[Any] = [text]
        with suppress(ValueError):
            readings.append(json.loads(text))
        items = text.split(",")
        readings.append([json.loads(one) if re.fullmatch(r"-?\d+(\.\d+)?|true|false", one) else one for one in items])
        readings.append(items)
        every = [self._against(schema, reading) for reading in readings]
        return [] if not all(every) else every[0]

    def _in_path(self, path: str, sent: str, parameters: Mapping[tuple[str, str], Place]) -> list[str]:
        template = path.partition("#")[0].partition("?")[0]
        pattern, names = "", []
        for literal, place in re.findall(r"([^{]*)(\{(?:[^{}]|\{[^{}]*\})*\})?", template):
            pattern += re.escape(literal)
            if place:
                names.append(place[1:-1])
                pattern += "(.+)" if re.search(r"^\{[+*]|[+*]\}$|:\.[*+]\}$", place) else "([^/]+)"
        found = re.search(pattern + "$", sent)
        if not found:
            return [f"path {sent} is not {template}"]
        faults = []
        for name, text in zip(names, found.groups(), strict=True):
            one = parameters.get((name, "path")) or parameters.get((re.split(r"[+*:=]", name.lstrip("+*"))[0], "path"))
            if one and "style" not in one.value:
                faults += self._written(self.at(one, "schema"), unquote(text))
        return faults

    def _in_query(self, path: str, sent: str, parameters: Mapping[tuple[str, str], Place]) -> list[str]:
        pairs = parse_qsl(sent, keep_blank_values=True)
        fixed = parse_qsl(path.partition("?")[2].partition("#")[0], keep_blank_values=True)
        faults = [
            f"query lacks {name}={value}" for name, value in fixed if "{" not in value and (name, value) not in pairs
        ]
        known = {name for name, _ in fixed}
        open_ended = False
        for (name, place), one in parameters.items():
            if place == "querystring":
                open_ended = True
            if place != "query":
                continue
            schema = self.at(one, "schema")
            own = [value for key, value in pairs if key == name]
            deep = [key for key, _ in pairs if key.startswith(f"{name}[")]
            known |= {name, *deep}
            resolved = schema.value if schema else {}
            types = resolved.get("type") if isinstance(resolved, dict) else None
            is_object = isinstance(resolved, dict) and (types == "object" or "properties" in resolved or not types)
            open_ended |= is_object and one.value.get("style", "form") == "form" and one.value.get("explode", True)
            if one.value.get("required") and not own and not deep and not is_object:
                faults.append(f"query lacks {name}")
            if own and schema and "content" not in one.value:
                if len(own) == 1:
                    faults += self._written(schema, own[0])
                elif types == "array":
                    items = self.at(schema, "items")
                    faults += [fault for value in own for fault in self._written(items, value)]
        return faults + [f"unknown query {key}" for key, _ in pairs if key not in known and not open_ended]

    def _in_body(self, operation: Place, request: Mapping[str, Any]) -> list[str]:
        body = self.at(operation, "requestBody")
        if body is None or "body" not in request:
            needed = body is not None and body.value.get("required") is True
            return ["no body"] if needed else ["a body"] if "body" in request else []
        sent = request["headers"].get("content-type", "")
        kind = sent.partition(";")[0].strip().lower()
        content = body.value.get("content", {})
        fits = [name for name in content if _covers(name.partition(";")[0].strip().lower(), kind)]
        if not fits:
            return [f"content type {sent} is not of {list(content)}"]
        media = self.at(body, "content", fits[0])
        schema = media and self.at(media, "schema")
        if kind.endswith(("/json", "+json")):
            return self._against(schema, json.loads(request["body"]))
        if kind == FORM and schema and media:
            return self._in_form(media, schema, parse_qsl(request["body"], keep_blank_values=True))
        return []

    def _in_form(self, media: Place, schema: Place, pairs: list[tuple[str, str]]) -> list[str]:
        faults = []
        properties = self.at(schema, "properties")
        for name, value in pairs:
            one = properties and self.at(properties, name.partition("[")[0])
            encoding = self.at(media, "encoding", name.partition("[")[0])
            style = encoding.value.get("style", "") if encoding else ""
            if style == "deepObject" and one and one.value.get("type") == "object" and "[" not in name:
                faults.append(f"{name} is not written as deepObject")
            elif one and one.value.get("type") == "array" and "[" not in name:
                item = self.at(one, "items")
                faults += self._written(item, value) and self._written(one, value)
            elif one and "[" not in name:
                faults += self._written(one, value)
        sent = {name.partition("[")[0] for name, _ in pairs}
        return faults + [f"form lacks {name}" for name in schema.value.get("required", []) if name not in sent]


def _covers(documented: str, sent: str) -> bool:
    pattern = re.escape(documented).replace(r"\*", "[^/]*")
    return re.fullmatch(pattern, sent) is not None
