"""The wire format of Claude Code: Anthropic Messages, streamed."""

import json
from collections.abc import Iterator

from tests.e2e.exchange import Api, Reply, Request
from tests.e2e.wire import Json, TypedEvents, is_typed, new_id, pieces, texts_of

SHELL = "Bash"


class Messages(TypedEvents):
    api: Api = "messages"

    def read(self, _path: str, body: Json, at: float) -> Request:
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
            block = {"type": "tool_use", "id": new_id("toolu"), "name": SHELL, "input": {}}
            wish = {"command": reply.command, "description": "scripted step"}
            arguments = json.dumps(wish | ({"run_in_background": True} if reply.background else {}))
            deltas = [{"type": "input_json_delta", "partial_json": arguments}]
        yield {"type": "content_block_start", "index": 0, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": 0, "delta": delta}

    def error(self, reply: Reply) -> Json:
        return {"type": "error", "error": {"type": "api_error", "message": reply.text, **reply.error}}
