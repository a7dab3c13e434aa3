"""The wire format of Codex: OpenAI Responses, streamed."""

import json
from collections.abc import Iterator

from tests.e2e.exchange import Api, Reply, Request
from tests.e2e.wire import Json, TypedEvents, is_typed, new_id, pieces, texts_of

SHELLS = ("exec_command", "shell_command", "shell")


class Responses(TypedEvents):
    api: Api = "responses"

    def read(self, _path: str, body: Json, at: float) -> Request:
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
        name = next((shell for shell in SHELLS if shell in request.tools), SHELLS[0])
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
