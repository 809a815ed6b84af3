from _checks import run, token, url
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike

model = OpenAILike(
    model="fake", api_base=f"{url}/std/v1", api_key=token, is_chat_model=True, max_retries=0, context_window=4096
)
messages = [ChatMessage(role="user", content="Hello")]


def check_chat_whole_and_streamed():
    whole = model.chat(messages).message.content
    assert whole
    assert "".join(piece.delta or "" for piece in model.stream_chat(messages)) == whole


def check_complete():
    assert model.complete("Hello").text


async def check_asynchronously():
    assert (await model.achat(messages)).message.content


run()
