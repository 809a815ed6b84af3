import openai
from _checks import run, token, url

client = openai.OpenAI(base_url=f"{url}/std/v1", api_key=token, max_retries=0)
messages = [{"role": "user", "content": "Hello"}]
tools = [
    {
        "type": "function",
        "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
    }
]


def check_chat():
    answer = client.chat.completions.create(model="fake", messages=messages)
    assert answer.choices[0].message.content
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer._request_id.startswith("req_")


def check_stream_has_the_same_text():
    whole = client.chat.completions.create(model="fake", messages=messages)
    stream = client.chat.completions.create(
        model="fake", messages=messages, stream=True, stream_options={"include_usage": True}
    )
    text, usage = "", None
    for chunk in stream:
        text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
        usage = chunk.usage or usage
    assert text == whole.choices[0].message.content
    assert usage.completion_tokens > 0


async def check_asynchronous_client():
    async with openai.AsyncOpenAI(base_url=f"{url}/std/v1", api_key=token, max_retries=0) as own:
        stream = await own.chat.completions.create(model="fake", messages=messages, stream=True)
        assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])


def check_tools_whole_and_streamed():
    asked = {"model": "fake", "messages": messages, "tools": tools, "tool_choice": "required"}
    whole = client.chat.completions.create(**asked)
    assert whole.choices[0].message.tool_calls[0].function.name == "weather"
    assert whole.choices[0].finish_reason == "tool_calls"
    with client.chat.completions.stream(**asked) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.tool_calls[0].function.name == "weather"


def check_structured_output():
    from pydantic import BaseModel

    class Place(BaseModel):
        city: str
        inhabitants: int

    answer = client.chat.completions.parse(model="fake", messages=messages, response_format=Place)
    assert isinstance(answer.choices[0].message.parsed, Place)


def check_completions_with_logprobs():
    whole = client.completions.create(model="fake", prompt="Once upon a time", logprobs=2)
    assert whole.choices[0].text
    assert "".join(whole.choices[0].logprobs.tokens) == whole.choices[0].text
    pieces = client.completions.create(model="fake", prompt="Once upon a time", stream=True)
    assert "".join(chunk.choices[0].text for chunk in pieces if chunk.choices) == whole.choices[0].text


def check_embeddings():
    found = client.embeddings.create(model="fake", input=["a", "b"])
    floats = client.embeddings.create(model="fake", input=["a", "b"], encoding_format="float")
    assert [one.index for one in found.data] == [0, 1]
    for one, other in zip(found.data[0].embedding, floats.data[0].embedding, strict=True):
        assert abs(one - other) < 1e-5


def check_models():
    assert "fake" in [model.id for model in client.models.list()]
    assert client.models.retrieve("fake").owned_by == "local"


def check_errors_are_of_their_classes():
    for failing, kind in [
        (lambda: client.models.retrieve("org/none"), openai.NotFoundError),
        (lambda: client.chat.completions.create(model="none", messages=messages), openai.NotFoundError),
        (lambda: client.chat.completions.create(model="fake", messages=[]), openai.BadRequestError),
        (lambda: client.with_options(api_key="sk-wrong").models.list(), openai.AuthenticationError),
    ]:
        try:
            failing()
        except kind as error:
            assert error.request_id.startswith("req_")
        else:
            raise AssertionError(f"{kind.__name__} was not raised")


def check_an_error_in_a_stream_is_raised():
    asked = [{"role": "user", "content": "mode:error-frame"}]
    try:
        for _ in client.chat.completions.create(model="fake", messages=asked, stream=True):
            pass
    except openai.APIError as error:
        assert error.code == "worker_error"
    else:
        raise AssertionError("no error was raised")


run()
