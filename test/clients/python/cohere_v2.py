import cohere
from _checks import run, token, url

client = cohere.ClientV2(api_key=token, base_url=f"{url}/std")
messages = [{"role": "user", "content": "Hello"}]


def check_chat_whole_and_streamed():
    whole = client.chat(model="fake", messages=messages)
    events = list(client.chat_stream(model="fake", messages=messages))
    assert [events[0].type, events[-1].type] == ["message-start", "message-end"]
    text = "".join(event.delta.message.content.text for event in events if event.type == "content-delta")
    assert text == whole.message.content[0].text


def check_embed():
    answer = client.embed(model="fake", texts=["a", "b"], input_type="search_document", embedding_types=["float"])
    assert len(answer.embeddings.float_) == 2


run()
