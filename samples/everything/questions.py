"""The tools that ask the client a question. They work in every revision of the protocol.

Before 2026-07-28 the server sends the question while the tool waits. Since then the call ends with the questions, the
client sends it again with the answers, and the tool runs again from its beginning. So a tool asks first, and acts then.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from funcmcp import Context, Elicit, ListRoots, Sample, tool


def form(name: str, kind: str = "string") -> dict[str, Any]:
    """Return the schema of a form with one required field."""
    return {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}


NAME_FORM = form("name")


def _titled(count: int, *, value: str, title: str) -> list[dict[str, str]]:
    """Return a form's choices: const and title."""
    return [{"const": f"{value}{n}", "title": f"{title} {n}"} for n in range(1, count + 1)]


class Questions:
    """Tools in a class; ``mcp.add(Questions)`` adds them all."""

    @tool
    async def test_sampling(
        self, prompt: Annotated[str, Field(description="What the model is asked")], context: Context
    ) -> str:
        """Ask the client's model to answer a prompt."""
        answer = await context.sample(prompt, max_tokens=100)
        return f"LLM response: {answer.text}"

    @tool
    async def test_missing_capability(self, context: Context) -> str:
        """Ask the client's model, for which 2026-07-28 clients without the capability get -32021."""
        answer = await context.sample("Say something", max_tokens=100)
        return answer.text

    @tool
    async def test_elicitation(
        self, message: Annotated[str, Field(description="What the user is asked")], context: Context
    ) -> str:
        """Ask the user for a response."""
        schema = {
            "type": "object",
            "properties": {"response": {"type": "string", "description": "User's response"}},
            "required": ["response"],
        }
        answer = await context.elicit(message, schema)
        return f"User response: action={answer.action}, content={answer.content}"

    @tool
    async def test_streaming_elicitation(self, context: Context) -> str:
        """Ask the user for a name after reporting progress."""
        await context.report_progress(0, total=1)
        answer = await context.elicit("What is your name?", NAME_FORM)
        await context.report_progress(1, total=1)
        return f"User response: {answer.action}"

    @tool
    async def test_elicitation_sep1034_defaults(self, context: Context) -> str:
        """Ask with a form whose fields have defaults."""
        properties = {
            "name": {"type": "string", "description": "User name", "default": "John Doe"},
            "age": {"type": "integer", "description": "User age", "default": 30},
            "score": {"type": "number", "description": "User score", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "description": "Verification status", "default": True},
        }
        answer = await context.elicit(
            "Please review and update the form fields with defaults", {"type": "object", "properties": properties}
        )
        return f"Elicitation completed: action={answer.action}, content={answer.content}"

    @tool
    async def test_elicitation_sep1330_enums(self, context: Context) -> str:
        """Ask with a form that has every kind of choice."""
        properties = {
            "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
            "titledSingle": {"type": "string", "oneOf": _titled(3, value="value", title="Option")},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
            "titledMulti": {"type": "array", "items": {"anyOf": _titled(3, value="value", title="Choice")}},
        }
        answer = await context.elicit(
            "Please select options from the enum fields", {"type": "object", "properties": properties}
        )
        return f"Elicitation completed: action={answer.action}, content={answer.content}"

    @tool(confirm="Delete {name}?")
    async def test_confirmation(self, name: str) -> str:
        """Say that something was deleted, after a person has confirmed it."""
        return f"Deleted {name}"


class KeyedQuestions:
    """Tools whose questions have the keys that the conformance suite answers in 2026-07-28."""

    @tool
    async def test_input_required_result_elicitation(self, context: Context) -> str:
        """Greet the user by a name that is asked for."""
        answer = await context.elicit("What is your name?", NAME_FORM, key="user_name")
        return f"Hello, {(answer.content or {}).get('name', 'stranger')}!"

    @tool
    async def test_input_required_result_sampling(self, context: Context) -> str:
        """Ask the client's model a question."""
        answer = await context.sample("What is the capital of France?", max_tokens=100, key="capital_question")
        return f"LLM response: {answer.text}"

    @tool
    async def test_input_required_result_list_roots(self, context: Context) -> str:
        """Return the number of the client's roots."""
        roots = await context.list_roots(key="client_roots")
        return f"Client has {len(roots)} root(s)"

    @tool
    async def test_input_required_result_request_state(self, context: Context) -> str:
        """Ask for a confirmation, and return a text after the sealed state has come back."""
        await context.elicit("Please confirm", form("ok", "boolean"), key="confirm")
        return "state-ok"

    @tool
    async def test_input_required_result_tampered_state(self, context: Context) -> str:
        """Ask for a confirmation; a client that changed the state is refused before the tool runs."""
        await context.elicit("Please confirm", form("ok", "boolean"), key="confirm")
        return "state-ok"

    @tool
    async def test_input_required_result_multiple_inputs(self, context: Context) -> str:
        """Ask three questions at once."""
        answers = await context.ask(
            {
                "user_name": Elicit("What is your name?", NAME_FORM),
                "greeting": Sample("Generate a greeting", max_tokens=50),
                "client_roots": ListRoots(),
            }
        )
        return f"Received {len(answers)} answers"

    @tool
    async def test_input_required_result_multi_round(self, context: Context) -> str:
        """Ask a question, and another one after its answer."""
        first = await context.elicit("Step 1: What is your name?", NAME_FORM, key="step1")
        second = await context.elicit("Step 2: What is your favorite color?", form("color"), key="step2")
        return f"First: {first.action}, second: {second.action}"

    @tool
    async def test_input_required_result_capabilities(self, context: Context) -> str:
        """Ask only questions that the client can answer."""
        questions: dict[str, Elicit[Any] | Sample] = {}
        if context.can("elicitation"):
            questions["user_name"] = Elicit("What is your name?", NAME_FORM)
        if context.can("sampling"):
            questions["greeting"] = Sample("Generate a greeting", max_tokens=50)
        answers = await context.ask(questions)
        return f"Received {len(answers)} answers"
