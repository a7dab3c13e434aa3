"""The two wire formats that the agent CLIs speak: OpenAI Responses and Anthropic Messages, both streamed."""

import itertools
import json
from collections.abc import Iterator
from typing import Any, Protocol

from tests.e2e.exchange import Api, Reply, Request

Json = dict[str, Any]

CODEX_SHELLS = ("exec_command", "shell_command", "shell")
CLAUDE_SHELL = "Bash"
# The CLIs send notes of their own in the user's name; none of these was typed.
NOT_TYPED = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<system-reminder>",
    "<task-notification>",
    "[Request interrupted by user",
)
PIECE = 40

# Claude Code merges answers that share an id, so none is ever used twice.
_numbers = itertools.count(1)


def new_id(kind: str) -> str:
    return f"{kind}_{next(_numbers):08d}"


class Wire(Protocol):
    api: Api

    def read(self, body: Json, at: float) -> Request: ...

    def events(self, request: Request, reply: Reply) -> Iterator[Json]:
        """The whole stream; a text's pieces come one per event."""
        ...

    def error(self, reply: Reply) -> Json: ...


def encode(event: Json) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def is_typed(text: str) -> bool:
    return not text.lstrip().startswith(NOT_TYPED)


def texts_of(content: object) -> list[str]:
    """The texts of a message, which comes as a string or as a list of blocks."""
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    return [block["text"] for block in content if isinstance(block, dict) and isinstance(block.get("text"), str)]


def pieces(text: str) -> list[str]:
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


class Responses:
    api: Api = "responses"

    def read(self, body: Json, at: float) -> Request:
        prompts: list[str] = []
        results: list[str] = []
        for item in body.get("input") or []:
            if item.get("role") == "user":
                typed = [text for text in texts_of(item.get("content")) if is_typed(text)]
                if typed:
                    prompts += typed
                    results.clear()
            elif str(item.get("type", "")).endswith("_call_output"):
                output = item.get("output")
                results.append(output if isinstance(output, str) else json.dumps(output))
        return Request(
            api=self.api,
            model=str(body.get("model")),
            conversation=str(body.get("prompt_cache_key")),
            prompts=tuple(prompts),
            results=tuple(results),
            tools=tuple(str(tool.get("name", tool.get("type"))) for tool in body.get("tools") or []),
            at=at,
            body=body,
        )

    def events(self, request: Request, reply: Reply) -> Iterator[Json]:
        response = new_id("resp")
        yield {"type": "response.created", "response": {"id": response}}
        if reply.command is None:
            yield from self._text(reply.text)
        else:
            yield self._call(request, reply, reply.command)
        usage = reply.usage
        yield {
            "type": "response.completed",
            "response": {
                "id": response,
                "usage": {
                    "input_tokens": usage.input,
                    "input_tokens_details": {"cached_tokens": usage.cached},
                    "output_tokens": usage.output,
                    "output_tokens_details": {"reasoning_tokens": 0},
                    "total_tokens": usage.input + usage.output,
                },
            },
        }

    def _text(self, text: str) -> Iterator[Json]:
        message: Json = {"type": "message", "role": "assistant", "id": new_id("msg"), "content": []}
        yield {"type": "response.output_item.added", "output_index": 0, "item": message}
        for piece in pieces(text):
            yield {"type": "response.output_text.delta", "item_id": message["id"], "delta": piece}
        whole = message | {"content": [{"type": "output_text", "text": text}]}
        yield {"type": "response.output_item.done", "output_index": 0, "item": whole}

    def _call(self, request: Request, reply: Reply, command: str) -> Json:
        name = next((shell for shell in CODEX_SHELLS if shell in request.tools), CODEX_SHELLS[0])
        more: Json = {"yield_time_ms": 250} if reply.background else {}
        if reply.ask:
            more |= {"sandbox_permissions": "require_escalated", "justification": "May I?"}
        arguments: dict[str, Json] = {
            "exec_command": {"cmd": command} | more,
            "shell_command": {"command": command},
            "shell": {"command": ["bash", "-c", command]},
        }
        item = {
            "type": "function_call",
            "id": new_id("fc"),
            "call_id": new_id("call"),
            "name": name,
            "arguments": json.dumps(arguments[name]),
        }
        return {"type": "response.output_item.done", "output_index": 0, "item": item}

    def error(self, reply: Reply) -> Json:
        error = {"message": reply.text, "type": "scripted_error", "code": str(reply.status)}
        return {"error": {**error, **reply.error}}


class Messages:
    api: Api = "messages"

    def read(self, body: Json, at: float) -> Request:
        prompts: list[str] = []
        results: list[str] = []
        for message in body.get("messages") or []:
            if message.get("role") != "user":
                continue
            content = message.get("content")
            blocks = content if isinstance(content, list) else []
            outputs = [block for block in blocks if block.get("type") == "tool_result"]
            typed = [text for text in texts_of(content) if is_typed(text)]
            results += ["\n".join(texts_of(block.get("content"))) for block in outputs]
            # A prompt after an interrupted command comes in one message with the command's result.
            if typed:
                prompts += typed
                results.clear()
        return Request(
            api=self.api,
            model=str(body.get("model")),
            conversation=str((body.get("metadata") or {}).get("user_id")),
            prompts=tuple(prompts),
            results=tuple(results),
            tools=tuple(str(tool.get("name")) for tool in body.get("tools") or []),
            at=at,
            body=body,
        )

    def events(self, request: Request, reply: Reply) -> Iterator[Json]:
        usage = reply.usage
        message: Json = {
            "id": new_id("msg"),
            "type": "message",
            "role": "assistant",
            "model": request.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {
                "input_tokens": usage.input - usage.cached,
                "cache_read_input_tokens": usage.cached,
                "output_tokens": 1,
            },
        }
        yield {"type": "message_start", "message": message}
        yield from self._block(reply)
        yield {"type": "content_block_stop", "index": 0}
        reason = "tool_use" if reply.tool or reply.command is not None else "end_turn"
        yield {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": usage.output},
        }
        yield {"type": "message_stop"}

    def _block(self, reply: Reply) -> Iterator[Json]:
        block: Json
        deltas: list[Json]
        if reply.tool:
            block = {"type": "tool_use", "id": new_id("toolu"), "name": reply.tool, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(reply.arguments)}]
        elif reply.command is None:
            block = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(reply.text)]
        else:
            block = {"type": "tool_use", "id": new_id("toolu"), "name": CLAUDE_SHELL, "input": {}}
            wish = {"command": reply.command, "description": "scripted step"}
            arguments = json.dumps(wish | ({"run_in_background": True} if reply.background else {}))
            deltas = [{"type": "input_json_delta", "partial_json": arguments}]
        yield {"type": "content_block_start", "index": 0, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": 0, "delta": delta}

    def error(self, reply: Reply) -> Json:
        return {"type": "error", "error": {"type": "api_error", "message": reply.text, **reply.error}}


WIRES: dict[str, Wire] = {"/v1/responses": Responses(), "/v1/messages": Messages()}
