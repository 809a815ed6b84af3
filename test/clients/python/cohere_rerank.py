import cohere
from _checks import run, token, url

client = cohere.ClientV2(api_key=token, base_url=f"{url}/std")
documents = ["a bicycle", "a cat on a mat", "a tax form"]


def check_rerank():
    answer = client.rerank(model="fake", query="a cat", documents=documents, top_n=2)
    assert len(answer.results) == 2
    assert answer.results[0].relevance_score >= answer.results[1].relevance_score


run()
