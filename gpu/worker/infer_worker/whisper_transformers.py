"""Whisper models of transformers."""

import threading
from collections.abc import Iterator

from .errors import Cancelled, invalid
from .options import Options
from .server import Request
from .transcription import Call, Segment, Transcribe, Transcription, read_samples

RATE = 16_000
"""Samples per second that Whisper reads."""


def load_transformers(options: Options) -> Transcribe:
    try:
        import torch
        from transformers import StoppingCriteria, StoppingCriteriaList, pipeline
    except ImportError as error:
        raise ValueError(
            f'it needs the Python packages torch and transformers ({error}). Install them with: infer engine setup python'
        ) from None
    torch.set_num_threads(options.threads)
    usual = torch.float32 if options.device == 'cpu' else torch.float16
    recognizer = pipeline(
        'automatic-speech-recognition',
        model=options.model,
        device=options.device,
        dtype=usual if options.dtype == 'auto' else getattr(torch, options.dtype),
    )
    settings = recognizer.model.generation_config
    multilingual = bool(getattr(settings, 'is_multilingual', True))
    # Keys are tokens: <|en|>.
    languages = {token[2:-2]: id for token, id in (getattr(settings, 'lang_to_id', None) or {}).items()}
    computing = threading.Lock()

    class Disconnected(StoppingCriteria):
        """Ends the generation of tokens once the caller has disconnected."""

        def __init__(self, request: Request) -> None:
            self._request = request

        def __call__(self, input_ids, _scores, **_more):  # noqa: ANN001, ANN204
            return torch.full((input_ids.shape[0],), self._request.cancelled.is_set(), device=input_ids.device)

    def detect(samples) -> str | None:  # noqa: ANN001: numpy is imported late
        """The spoken language. `generate` would detect it as well, but does not tell it."""
        if not multilingual:
            return 'en'
        features = recognizer.feature_extractor(samples, sampling_rate=RATE, return_tensors='pt').input_features
        with torch.inference_mode():
            found = int(recognizer.model.detect_language(features.to(recognizer.device, recognizer.model.dtype))[0])
        return next((code for code, id in languages.items() if id == found), None)

    def transcribe(call: Call, request: Request) -> Transcription:
        samples, rate = read_samples(call.audio)
        if rate != RATE:
            raise invalid(f'The audio must have {RATE} samples per second, not {rate}.', 'invalid_audio')
        if call.translates and not multilingual:
            raise invalid('The model knows English only, so it cannot translate.', 'unsupported_parameter')
        known = sorted(languages) if multilingual else ['en']
        if call.language is not None and known and call.language not in known:
            raise invalid(f"'language' is {call.language}, but the model knows: {', '.join(known)}.")
        language = call.language
        if language is None and (languages or not multilingual):
            with computing:
                language = detect(samples)
        choices: dict = {'stopping_criteria': StoppingCriteriaList([Disconnected(request)])}
        if multilingual:
            choices['task'] = 'translate' if call.translates else 'transcribe'
            if language is not None:
                choices['language'] = language
        if call.temperature is not None:
            choices |= {'temperature': call.temperature, 'do_sample': True}
        if call.prompt is not None:
            choices['prompt_ids'] = recognizer.tokenizer.get_prompt_ids(call.prompt, return_tensors='pt').to(
                recognizer.device
            )

        def segments() -> Iterator[Segment]:
            with computing:
                if request.cancelled.is_set():
                    raise Cancelled
                found = recognizer(
                    {'raw': samples, 'sampling_rate': rate},
                    return_timestamps='word' if call.words else True,
                    generate_kwargs=choices,
                )
            if request.cancelled.is_set():
                raise Cancelled
            yield from pieces(found.get('chunks') or [], len(samples) / rate, call.words)

        return Transcription(language, len(samples) / rate, segments())

    return transcribe


def pieces(chunks: list[dict], duration: float, words: bool) -> Iterator[Segment]:
    """The chunks as segments; with times of words they are one segment for each sentence."""
    sentence: list[tuple[str, float, float]] = []
    for at, chunk in enumerate(chunks):
        start, end = chunk['timestamp']
        # Whisper leaves the end open where the audio ends within a word.
        word = (chunk['text'], float(start or 0.0), float(duration if end is None else end))
        if not words:
            yield Segment(word[1], word[2], word[0])
            continue
        sentence.append(word)
        if word[0].rstrip().endswith(('.', '?', '!')) or at == len(chunks) - 1:
            yield Segment(sentence[0][1], word[2], ''.join(text for text, _, _ in sentence), tuple(sentence))
            sentence = []
