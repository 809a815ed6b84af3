import instructor
import openai
from _checks import run, token, url
from pydantic import BaseModel

client = openai.OpenAI(base_url=f"{url}/std/v1", api_key=token, max_retries=0)
messages = [{"role": "user", "content": "Where?"}]


class Place(BaseModel):
    city: str
    inhabitants: int


def answers(mode):
    own = instructor.from_openai(client, mode=mode)
    assert isinstance(own.chat.completions.create(model="fake", messages=messages, response_model=Place), Place)


def check_tools():
    answers(instructor.Mode.TOOLS)


def check_json_schema():
    answers(instructor.Mode.JSON_SCHEMA)


run()
