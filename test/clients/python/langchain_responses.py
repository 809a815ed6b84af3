from _checks import run, token, url
from langchain_openai import ChatOpenAI

model = ChatOpenAI(model="fake", base_url=f"{url}/std/v1", api_key=token, max_retries=0, use_responses_api=True)


def check_invoke_and_stream():
    whole = model.invoke("Hello")
    streamed = None
    for chunk in model.stream("Hello"):
        streamed = chunk if streamed is None else streamed + chunk
    assert whole.text and streamed.text == whole.text


run()
