import voyageai
from _checks import run, token, url

client = voyageai.Client(api_key=token, base_url=f"{url}/std/v1", max_retries=0)
documents = ["a bicycle", "a cat on a mat", "a tax form"]


def check_rerank():
    answer = client.rerank("a cat", documents, model="fake", top_k=2, truncation=True)
    assert len(answer.results) == 2
    assert answer.results[0].document == documents[answer.results[0].index]
    assert answer.results[0].relevance_score >= answer.results[1].relevance_score


def check_embed():
    answer = client.embed(["a", "b"], model="fake", input_type="document")
    assert len(answer.embeddings) == 2 and len(answer.embeddings[0]) > 1


run()
