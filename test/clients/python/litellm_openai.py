import litellm
from _checks import run, token, url

asked = {"model": "openai/fake", "api_base": f"{url}/std/v1", "api_key": token, "num_retries": 0}
messages = [{"role": "user", "content": "Hello"}]


def check_chat_whole_and_streamed():
    whole = litellm.completion(messages=messages, **asked).choices[0].message.content
    pieces = litellm.completion(messages=messages, stream=True, **asked)
    assert whole and "".join(piece.choices[0].delta.content or "" for piece in pieces) == whole


def check_embedding():
    answer = litellm.embedding(input=["a", "b"], encoding_format="float", **asked)
    assert len(answer.data) == 2


def check_an_error_has_its_class():
    try:
        litellm.completion(messages=messages, **{**asked, "model": "openai/none"})
    except litellm.NotFoundError:
        return
    raise AssertionError("NotFoundError was not raised")


run()
