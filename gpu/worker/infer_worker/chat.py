"""Text and vision-language models of transformers: POST /v1/chat/completions and /v1/completions."""

import inspect
import io
import json
import os
import re
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from .errors import Cancelled, EngineError, invalid
from .options import Options
from .server import Handle, Reply, Request
from .text_generator import Generated, TextGenerator
from .text_request import read_messages, read_sampling
from .torch_device import open_device
from .transformers_model import check_characters, context_length, load_weights

# Decompressed, an image of more pixels would take gigabytes.
MOST_PIXELS = 50_000_000

MEDIA = ('text', 'images', 'videos', 'audio', 'audios')
"""Arguments of processors that hold media."""

PROCESSORS = ('processor_config', 'preprocessor_config', 'image_processor_config')


def load(options: Options, progress: Callable[[float], None]) -> dict[str, Handle]:
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText, AutoProcessor, AutoTokenizer

    device = open_device(options)
    config = AutoConfig.from_pretrained(options.model, local_files_only=True)
    vision = reads_images(options.model, config)
    auto = AutoModelForImageTextToText if vision else AutoModelForCausalLM
    # With the template of a processor for vision models.
    reader = (AutoProcessor if vision else AutoTokenizer).from_pretrained(options.model, local_files_only=True)
    tokenizer = reader.tokenizer if vision else reader
    if 'std/chat-completion' in options.tasks and reader.chat_template is None:
        raise ValueError('The files have no chat template, so the model can only do std/completion.')
    progress(0.1)
    model = load_weights(auto, options.model, device)
    generator = TextGenerator(device, model, tokenizer, context_length(model.config, tokenizer))
    text = TextRoutes(options.id, generator, reader, vision)
    return {'POST /v1/chat/completions': text.chat, 'POST /v1/completions': text.completion}


def reads_images(path: str, config: Any) -> bool:
    """Whether it is a vision-language model: some architectures exist also without the part for images."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES

    has_processor = any(os.path.exists(os.path.join(path, f'{name}.json')) for name in PROCESSORS)
    return config.model_type in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES and has_processor


class TextRoutes:
    def __init__(self, model_id: str, generator: TextGenerator, reader: Any, vision: bool) -> None:
        self.id = model_id
        self.generator = generator
        self.reader = reader
        self.vision = vision
        # Tokenizers keep settings of a call in themselves.
        self._tokenizing = threading.Lock()

    def chat(self, request: Request, reply: Reply) -> None:
        body = request.json()
        messages = read_messages(body.get('messages'), self.vision)
        variables = body.get('chat_template_kwargs') or {}
        if not isinstance(variables, dict):
            raise invalid("'chat_template_kwargs' must be an object.")
        prompt = self.chat_prompt(messages, variables)

        def delta(piece: str) -> dict:
            return {'delta': {'content': piece}}

        def message(text: str) -> dict:
            return {'message': {'role': 'assistant', 'content': text}}

        self.answer(request, body, reply, [prompt], 'chat.completion', delta, message, {'delta': {'role': 'assistant', 'content': ''}})

    def completion(self, request: Request, reply: Reply) -> None:
        body = request.json()
        prompts = [self.text_prompt(prompt, 'prompt') for prompt in prompts_of(body.get('prompt'))]

        def content(text: str) -> dict:
            return {'text': text}

        self.answer(request, body, reply, prompts, 'text_completion', content, content)

    def answer(
        self,
        request: Request,
        body: dict,
        reply: Reply,
        prompts: list[dict[str, Any]],
        kind: str,
        delta: Callable[[str], dict],
        whole: Callable[[str], dict],
        first: dict | None = None,
    ) -> None:
        """Generates one choice for each prompt, as a stream if the request wants one."""
        sampling = read_sampling(body)
        head = {'id': f'{"chatcmpl" if first else "cmpl"}-{uuid.uuid4().hex}', 'created': int(time.time()), 'model': self.id}

        def run(at: int, on_text: Callable[[str], None]) -> Generated:
            return self.generator.generate(prompts[at], sampling, request.cancelled, on_text)

        if not body.get('stream'):
            texts: list[list[str]] = [[] for _ in prompts]
            results = [run(at, texts[at].append) for at in range(len(prompts))]
            choices = [
                {'index': at, **whole(''.join(texts[at])), 'logprobs': None, 'finish_reason': result.finish_reason}
                for at, result in enumerate(results)
            ]
            return reply.send({**head, 'object': kind, 'choices': choices, 'usage': usage_of(results)})

        chunk = {**head, 'object': 'chat.completion.chunk' if first else kind}
        with_usage = bool((body.get('stream_options') or {}).get('include_usage'))

        def event(data: dict) -> None:
            # Nothing is sent before the first text, so that errors of the prompt have their own status.
            if not reply.begun:
                reply.begin('text/event-stream')
            reply.write(b'data: ' + json.dumps(data).encode() + b'\n\n')

        def choice(at: int, content: dict, finish: str | None = None) -> None:
            event({**chunk, 'choices': [{'index': at, **content, 'logprobs': None, 'finish_reason': finish}]})

        results = []
        try:
            for at in range(len(prompts)):
                started = False

                def on_text(piece: str, at: int = at) -> None:
                    nonlocal started
                    if first and not started:
                        choice(at, first)
                    started = True
                    if piece:
                        choice(at, delta(piece))

                results.append(run(at, on_text))
                choice(at, {'delta': {}} if first else {'text': ''}, results[-1].finish_reason)
        except Cancelled:
            raise
        except Exception as error:  # noqa: BLE001: an answer that has begun can only report it in the stream
            if not reply.begun:
                raise
            known = error if isinstance(error, EngineError) else EngineError(500, f'{type(error).__name__}: {error}')
            event({'error': {**known.body()['error'], 'code': known.code or known.status}})
            return reply.end()
        if with_usage:
            event({**chunk, 'choices': [], 'usage': usage_of(results)})
        reply.write(b'data: [DONE]\n\n')
        reply.end()

    def chat_prompt(self, messages: list[dict], variables: dict) -> dict[str, Any]:
        """Applies the chat template. Raises EngineError 400 if the template refuses the messages."""
        images = [part for message in messages if isinstance(message['content'], list) for part in message['content']]
        for message in messages:
            self.check(message['content'])
            if self.vision and isinstance(message['content'], str):
                message['content'] = [{'type': 'text', 'text': message['content']}]
        for part in images:
            if part['type'] == 'image':
                part['image'] = opened(part.pop('bytes'))
        options = {'add_generation_prompt': True, 'tokenize': True, 'return_dict': True, 'return_tensors': 'pt'}
        with self._tokenizing:
            return self.applied(messages, {**self.template_variables(variables), **options})

    def template_variables(self, given: dict) -> dict[str, Any]:
        """
        The variables that the template uses. Other names could be arguments of the tokenizer or the processor, which reads
        images from addresses and files.
        """
        reserved = {*MEDIA, *inspect.signature(type(self.reader).apply_chat_template).parameters}
        template = str(self.reader.chat_template)
        return {
            name: value
            for name, value in given.items()
            if name not in reserved and re.search(rf'\b{re.escape(name)}\b', template)
        }

    def applied(self, messages: list[dict], options: dict) -> dict[str, Any]:
        from jinja2 import TemplateError

        try:
            try:
                # The names of control tokens in messages are text.
                prompt = self.reader.apply_chat_template(messages, **options, sanitize_control_tokens=True)
            except NotImplementedError:
                # Of a template without control tokens.
                prompt = self.reader.apply_chat_template(messages, **options)
        except TemplateError as error:
            raise invalid(f'The chat template of the model refuses the messages: {error}') from None
        return dict(prompt)

    def text_prompt(self, prompt: str | list[int], name: str) -> dict[str, Any]:
        import torch

        if isinstance(prompt, str):
            self.check(prompt)
            with self._tokenizing:
                return dict(self.generator.tokenizer(prompt, return_tensors='pt'))
        vocabulary = self.generator.model.get_input_embeddings().num_embeddings
        if not all(0 <= token < vocabulary for token in prompt):
            raise invalid(f"'{name}' contains a token that the model lacks; it has tokens 0 to {vocabulary - 1}.")
        ids = torch.tensor([prompt])
        return {'input_ids': ids, 'attention_mask': torch.ones_like(ids)}

    def check(self, content: str | list[dict]) -> None:
        texts = [content] if isinstance(content, str) else [part['text'] for part in content if part['type'] == 'text']
        for text in texts:
            check_characters(text, self.generator.context, 'messages')


def opened(content: bytes) -> Any:
    """Decodes an image. Raises EngineError 400."""
    from PIL import Image

    try:
        image = Image.open(io.BytesIO(content))
        if image.width * image.height <= MOST_PIXELS:
            return image.convert('RGB')
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        raise invalid('An image cannot be decoded.', 'invalid_image') from None
    raise invalid(f'An image has {image.width} × {image.height} pixels; at most {MOST_PIXELS} are allowed.', 'invalid_image')


def prompts_of(value: object) -> list[str | list[int]]:
    """The prompts of a request: one or several, as text or as token ids. Raises EngineError 400."""

    def is_prompt(one: object) -> bool:
        return isinstance(one, str) or (isinstance(one, list) and bool(one) and all(type(token) is int for token in one))

    if is_prompt(value):
        return [value]
    if isinstance(value, list) and value and all(is_prompt(one) for one in value):
        return value
    raise invalid("'prompt' must be a text, a list of token ids, or a list of either.")


def usage_of(results: list[Generated]) -> dict:
    prompt = sum(result.prompt_tokens for result in results)
    completion = sum(result.completion_tokens for result in results)
    return {'prompt_tokens': prompt, 'completion_tokens': completion, 'total_tokens': prompt + completion}
