from _checks import run, token, url
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel

model = ChatOpenAI(model="fake", base_url=f"{url}/std/v1", api_key=token, max_retries=0, use_responses_api=False)


class Weather(BaseModel):
    """The weather in a city."""

    city: str


def check_invoke():
    answer = model.invoke("Hello")
    assert answer.content and answer.usage_metadata["total_tokens"] > 0


def check_stream():
    assert "".join(chunk.content for chunk in model.stream("Hello")) == model.invoke("Hello").content


def check_tools():
    answer = model.bind_tools([Weather], tool_choice="required").invoke("Hello")
    assert answer.tool_calls[0]["name"] == "Weather"


def check_structured_output():
    assert isinstance(model.with_structured_output(Weather, method="json_schema").invoke("Hello"), Weather)


def check_embeddings():
    # Otherwise the client sends tokens, for which it downloads OpenAI's vocabulary.
    own = OpenAIEmbeddings(
        model="fake", base_url=f"{url}/std/v1", api_key=token, check_embedding_ctx_length=False, max_retries=0
    )
    assert len(own.embed_documents(["a", "b"])) == 2


run()
