import anthropic
from _checks import run, token, url

client = anthropic.Anthropic(base_url=f"{url}/anthropic", api_key=token, max_retries=0)
asked = {"model": "fake", "max_tokens": 200, "messages": [{"role": "user", "content": "Hello"}]}
weather = {"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}


def check_whole_and_streamed():
    whole = client.messages.create(**asked)
    assert whole.content[0].text and whole.usage.output_tokens > 0
    with client.messages.stream(**asked) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == whole.content[0].text and final.stop_reason == whole.stop_reason


def check_tools():
    answer = client.messages.create(**asked, tools=[weather], tool_choice={"type": "any"})
    assert [block.name for block in answer.content if block.type == "tool_use"] == ["weather"]
    assert answer.stop_reason == "tool_use"


def check_count_tokens():
    counted = client.messages.count_tokens(model="fake", messages=asked["messages"])
    assert counted.input_tokens > 0


def check_models():
    assert "fake" in [model.id for model in client.models.list()]


def check_an_error_has_its_class():
    try:
        client.messages.create(**{**asked, "model": "none"})
    except anthropic.NotFoundError as error:
        assert error.request_id
        return
    raise AssertionError("NotFoundError was not raised")


run()
