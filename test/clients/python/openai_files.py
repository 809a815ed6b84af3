import openai
from _checks import run, token, url

client = openai.OpenAI(base_url=f"{url}/std/v1", api_key=token, max_retries=0)
content = b'{"text": "one"}\n'


def check_file():
    made = client.files.create(file=("notes.jsonl", content), purpose="user_data")
    assert made.bytes == len(content) and made.filename == "notes.jsonl"
    assert client.files.retrieve(made.id).purpose == "user_data"
    assert made.id in [file.id for file in client.files.list(purpose="user_data")]
    assert client.files.content(made.id).content == content
    assert client.files.delete(made.id).deleted
    try:
        client.files.retrieve(made.id)
    except openai.NotFoundError:
        return
    raise AssertionError("the file is still there")


def check_upload_in_parts():
    upload = client.uploads.create(
        filename="notes.jsonl", bytes=2 * len(content), mime_type="application/jsonl", purpose="user_data"
    )
    parts = [client.uploads.parts.create(upload.id, data=content).id for _ in range(2)]
    done = client.uploads.complete(upload.id, part_ids=parts)
    assert done.status == "completed"
    assert client.files.content(done.file.id).content == 2 * content


run()
