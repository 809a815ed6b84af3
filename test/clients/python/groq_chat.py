import groq
from _checks import run, token, url

client = groq.Groq(base_url=f"{url}/std", api_key=token, max_retries=0)
messages = [{"role": "user", "content": "Hello"}]


def check_chat_whole_and_streamed():
    whole = client.chat.completions.create(model="fake", messages=messages)
    pieces = client.chat.completions.create(model="fake", messages=messages, stream=True)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in pieces if chunk.choices)
    assert text == whole.choices[0].message.content


def check_models():
    assert "fake" in [model.id for model in client.models.list().data]


def check_an_error_has_its_class():
    try:
        client.chat.completions.create(model="none", messages=messages)
    except groq.NotFoundError:
        return
    raise AssertionError("NotFoundError was not raised")


run()
