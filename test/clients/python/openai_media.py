import base64
import io
import wave

import openai
from _checks import run, token, url

client = openai.OpenAI(base_url=f"{url}/std/v1", api_key=token, max_retries=0)


def sound() -> io.BytesIO:
    file = io.BytesIO()
    with wave.open(file, "wb") as wav:
        wav.setnchannels(1)
        wav.setsampwidth(2)
        wav.setframerate(16_000)
        wav.writeframes(b"tone" * 16_000)
    file.seek(0)
    file.name = "speech.wav"
    return file


def check_image():
    answer = client.images.generate(model="drawn", prompt="a cat", size="256x256", response_format="b64_json")
    assert base64.b64decode(answer.data[0].b64_json).startswith(b"\x89PNG")


def check_image_edit():
    made = client.images.generate(model="drawn", prompt="a cat", size="256x256", response_format="b64_json")
    picture = ("cat.png", base64.b64decode(made.data[0].b64_json), "image/png")
    answer = client.images.edit(model="drawn", image=picture, prompt="a dog", response_format="b64_json")
    assert base64.b64decode(answer.data[0].b64_json).startswith(b"\x89PNG")


def check_video():
    video = client.videos.create_and_poll(model="film", prompt="a cat", seconds="1", size="256x128", poll_interval_ms=50)
    assert video.status == "completed" and video.progress == 100
    assert client.videos.download_content(video.id).read()[4:8] == b"ftyp"
    assert client.videos.delete(video.id).deleted


def check_speech():
    answer = client.audio.speech.create(model="tones", voice="alto", input="Hello", response_format="wav")
    assert answer.content.startswith(b"RIFF")


def check_speech_streamed():
    with client.audio.speech.with_streaming_response.create(
        model="tones", voice="alto", input="Hello", response_format="wav"
    ) as answer:
        assert b"".join(answer.iter_bytes()).startswith(b"RIFF")


def check_transcription():
    answer = client.audio.transcriptions.create(model="far", file=sound())
    assert answer.text == "The cat sat on the mat. The dog barked."


def check_transcription_with_words():
    answer = client.audio.transcriptions.create(
        model="far", file=sound(), response_format="verbose_json", timestamp_granularities=["word"]
    )
    assert answer.words and answer.duration == 2


def check_translation():
    assert client.audio.translations.create(model="far", file=sound()).text


run()
