import json
import time

import openai
from _checks import run, token, url

client = openai.OpenAI(base_url=f"{url}/std/v1", api_key=token, max_retries=0)


def check_batch():
    body = {"model": "fake", "messages": [{"role": "user", "content": "Hello"}]}
    lines = [
        json.dumps({"custom_id": f"line-{at}", "method": "POST", "url": "/v1/chat/completions", "body": body})
        for at in range(3)
    ]
    file = client.files.create(file=("lines.jsonl", "\n".join(lines).encode()), purpose="batch")
    batch = client.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"of": "a test"}
    )
    until = time.monotonic() + 30
    while batch.status not in ("completed", "failed", "expired", "cancelled") and time.monotonic() < until:
        time.sleep(0.1)
        batch = client.batches.retrieve(batch.id)
    assert batch.status == "completed", batch
    assert (batch.request_counts.completed, batch.request_counts.failed) == (3, 0)
    found = [json.loads(line) for line in client.files.content(batch.output_file_id).text.splitlines()]
    assert sorted(line["custom_id"] for line in found) == ["line-0", "line-1", "line-2"]
    assert all(line["response"]["status_code"] == 200 for line in found)
    assert batch.id in [one.id for one in client.batches.list()]


run()
