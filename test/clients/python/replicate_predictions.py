import urllib.request

import replicate
from _checks import run, token, url

client = replicate.Client(api_token=token, base_url=f"{url}/replicate")
asked = {"prompt": "a cat"}


def check_prediction():
    made = client.models.predictions.create(model="acme/drawn", input=asked)
    made.wait()
    assert made.status == "succeeded" and made.output
    assert client.predictions.get(made.id).status == "succeeded"
    assert made.id in [one.id for one in client.predictions.list().results]


def check_run():
    output = client.run("acme/drawn", input=asked)
    picture = output[0] if isinstance(output, list) else output
    # The client wraps https addresses only.
    content = urllib.request.urlopen(picture).read() if isinstance(picture, str) else picture.read()
    assert content.startswith(b"\x89PNG")


run()
