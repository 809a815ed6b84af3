import openai
from _checks import run, token, url
from pydantic import BaseModel

client = openai.OpenAI(base_url=f"{url}/std/v1", api_key=token, max_retries=0)


def check_whole_and_streamed():
    whole = client.responses.create(model="fake", input="Hello")
    assert whole.output_text and whole.status == "completed" and whole.usage.total_tokens > 0
    with client.responses.stream(model="fake", input="Hello") as stream:
        final = stream.get_final_response()
    assert final.output_text == whole.output_text


def check_stored_and_continued():
    first = client.responses.create(model="fake", input="Hello", store=True)
    assert client.responses.retrieve(first.id).output_text == first.output_text
    assert [item.type for item in client.responses.input_items.list(first.id)] == ["message"]
    second = client.responses.create(model="fake", input="And then?", previous_response_id=first.id)
    assert second.previous_response_id == first.id
    client.responses.delete(first.id)
    try:
        client.responses.retrieve(first.id)
    except openai.NotFoundError:
        return
    raise AssertionError("the response is still there")


def check_structured_output():
    class Place(BaseModel):
        city: str

    assert isinstance(client.responses.parse(model="fake", input="Where?", text_format=Place).output_parsed, Place)


def check_tools():
    tool = {
        "type": "function",
        "name": "weather",
        "strict": False,
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    }
    answer = client.responses.create(model="fake", input="Hello", tools=[tool], tool_choice="required")
    assert [item.name for item in answer.output if item.type == "function_call"] == ["weather"]


run()
