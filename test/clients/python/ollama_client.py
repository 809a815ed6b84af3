import ollama
from _checks import run, token, url

client = ollama.Client(host=f"{url}/ollama", headers={"authorization": f"Bearer {token}"})
messages = [{"role": "user", "content": "Hello"}]


def check_chat_whole_and_streamed():
    whole = client.chat(model="fake", messages=messages)
    pieces = list(client.chat(model="fake", messages=messages, stream=True))
    assert whole.message.content and pieces[-1].done
    assert "".join(piece.message.content or "" for piece in pieces) == whole.message.content


def check_generate():
    assert client.generate(model="fake", prompt="Hello").response


def check_embed():
    assert len(client.embed(model="fake", input=["a", "b"]).embeddings) == 2


def check_models():
    assert any(model.model.split(":")[0] == "fake" for model in client.list().models)
    client.show("fake")
    client.ps()


def check_an_error_is_raised():
    try:
        client.chat(model="none", messages=messages)
    except ollama.ResponseError as error:
        assert error.status_code == 404
        return
    raise AssertionError("ResponseError was not raised")


run()
