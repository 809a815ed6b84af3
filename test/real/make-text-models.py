"""
Makes tiny models with random weights: make-text-models.py FOLDER [MODEL …], all of them without MODEL. Needs torch and
transformers; speech-video also needs diffusers. `expected.json` has what these libraries compute themselves.
"""

import json
import sys
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    CLIPVisionConfig,
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    LlavaConfig,
    LlavaForConditionalGeneration,
    PreTrainedTokenizerFast,
)

FOLDER = Path(sys.argv[1])
TEXTS = ['a cat', 'the weather in Paris is warm today', 'x']
QUERY = 'weather'
WIDTH = 64
# Heads of 32, because vLLM has no smaller ones on the processor.
LAYERS = {'num_hidden_layers': 2, 'num_attention_heads': 2}
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['content'] is string %}{{ m['content'] }}{% else %}{% for p in m['content'] %}"
    "{% if p['type'] == 'image' %}<image>{% else %}{{ p['text'] }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n"
    '{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}'
)


def byte_tokenizer(specials: list[str], **named: str) -> PreTrainedTokenizerFast:
    """Every byte is a token."""
    vocabulary = {character: at for at, character in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token=None))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in specials])
    if '[CLS]' in specials:
        tokenizer.post_processor = processors.TemplateProcessing(
            single='[CLS] $A [SEP]',
            pair='[CLS] $A [SEP] $B:1 [SEP]:1',
            special_tokens=[(name, tokenizer.token_to_id(name)) for name in ('[CLS]', '[SEP]')],
        )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **named)


def bert_tokenizer() -> PreTrainedTokenizerFast:
    return byte_tokenizer(['[CLS]', '[SEP]', '[PAD]'], cls_token='[CLS]', sep_token='[SEP]', pad_token='[PAD]')


def bert_config(tokenizer: PreTrainedTokenizerFast, **more: object) -> BertConfig:
    return BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=128,
        max_position_embeddings=512,
        # SGLang reads it, and transformers has no default for it any more.
        position_embedding_type='absolute',
        **LAYERS,
        **more,
    )


def embedding() -> dict:
    """A folder of sentence-transformers for each way of pooling, and the vectors, each text alone."""
    tokenizer = bert_tokenizer()
    model = BertModel(bert_config(tokenizer)).eval()
    vectors = {}
    for how, field in (('mean', 'mean_tokens'), ('cls', 'cls_token'), ('last', 'lasttoken')):
        folder = FOLDER / f'embed-{how}'
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        (folder / '1_Pooling').mkdir(exist_ok=True)
        modules = [('Transformer', ''), ('Pooling', '1_Pooling'), ('Normalize', '2_Normalize')]
        write(
            folder / 'modules.json',
            [
                {'idx': at, 'name': str(at), 'path': path, 'type': f'sentence_transformers.models.{kind}'}
                for at, (kind, path) in enumerate(modules)
            ],
        )
        # TEI does not start without the fields of the other ways.
        modes = {f'pooling_mode_{name}': name == field for name in ('mean_tokens', 'cls_token', 'lasttoken')}
        write(folder / '1_Pooling' / 'config.json', {'word_embedding_dimension': WIDTH, **modes})
        vectors[how] = []
        for text in TEXTS:
            hidden = model(**tokenizer(text, return_tensors='pt')).last_hidden_state[0]
            pooled = {'mean': hidden.mean(0), 'cls': hidden[0], 'last': hidden[-1]}[how]
            vectors[how].append((pooled / pooled.norm()).tolist())
    return {'vectors': vectors, 'texts': TEXTS, 'tokens': sum(len(tokenizer(text)['input_ids']) for text in TEXTS)}


def ranking() -> dict:
    tokenizer = bert_tokenizer()
    model = BertForSequenceClassification(bert_config(tokenizer, num_labels=1)).eval()
    # Random scores are too similar to prove an order.
    model.classifier.weight *= 50
    model.save_pretrained(FOLDER / 'rerank')
    tokenizer.save_pretrained(FOLDER / 'rerank')
    scores = [model(**tokenizer(QUERY, text, return_tensors='pt')).logits.sigmoid().item() for text in TEXTS]
    return {'query': QUERY, 'scores': scores}


def chat_tokenizer() -> PreTrainedTokenizerFast:
    specials = ['<|im_start|>', '<|im_end|>', '<pad>', '<image>']
    tokenizer = byte_tokenizer(specials, eos_token='<|im_end|>', pad_token='<pad>', bos_token='<|im_start|>')
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def llama_config(tokenizer: PreTrainedTokenizerFast) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=128,
        max_position_embeddings=2048,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        **LAYERS,
    )


def chat() -> dict:
    """A model that writes readable letters: the head prefers them to all other bytes."""
    tokenizer = chat_tokenizer()
    model = LlamaForCausalLM(llama_config(tokenizer)).eval()
    readable = [tokenizer.convert_tokens_to_ids(letter) for letter in 'abcdefghijklmnopqrstuvwxyz']
    others = [token for token in range(len(tokenizer)) if token not in readable]
    model.lm_head.weight *= 20
    model.lm_head.weight[others] = 0
    model.save_pretrained(FOLDER / 'chat')
    tokenizer.save_pretrained(FOLDER / 'chat')
    ends = {'eos_token_id': tokenizer.eos_token_id, 'pad_token_id': tokenizer.pad_token_id}
    GenerationConfig(**ends).save_pretrained(FOLDER / 'chat')
    messages = [{'role': 'user', 'content': 'Hello'}]
    prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True, return_tensors='pt')
    tokens = model.generate(**prompt, do_sample=False, max_new_tokens=24)[0, prompt['input_ids'].shape[1] :]
    return {'text': tokenizer.decode(tokens, skip_special_tokens=True), 'prompt': prompt['input_ids'].shape[1]}


def vision() -> None:
    from transformers import CLIPImageProcessor, LlavaProcessor

    tokenizer = chat_tokenizer()
    eyes = CLIPVisionConfig(hidden_size=32, intermediate_size=64, image_size=28, patch_size=14, **LAYERS)
    image_token = tokenizer.convert_tokens_to_ids('<image>')
    config = LlavaConfig(
        vision_config=eyes,
        text_config=llama_config(tokenizer),
        image_token_index=image_token,
        vision_feature_layer=-1,
    )
    LlavaForConditionalGeneration(config).save_pretrained(FOLDER / 'vision')
    size = {'height': 28, 'width': 28}
    pixels = CLIPImageProcessor(size={'shortest_edge': 28}, crop_size=size)
    LlavaProcessor(
        pixels,
        tokenizer,
        patch_size=14,
        vision_feature_select_strategy='default',
        chat_template=TEMPLATE,
        image_token='<image>',
        num_additional_image_tokens=1,
    ).save_pretrained(FOLDER / 'vision')


def whisper() -> None:
    from transformers import (
        WhisperConfig,
        WhisperFeatureExtractor,
        WhisperForConditionalGeneration,
        WhisperProcessor,
        WhisperTokenizerFast,
    )
    from transformers.models.whisper.tokenization_whisper import LANGUAGES

    languages, modes = [f'<|{code}|>' for code in LANGUAGES], ['<|translate|>', '<|transcribe|>']
    marks = ['<|startoflm|>', '<|startofprev|>', '<|nospeech|>', '<|notimestamps|>']
    specials = ['<|endoftext|>', '<|startoftranscript|>', *languages, *modes, *marks]
    times = [f'<|{at * 0.02:.2f}|>' for at in range(1501)]
    plain = byte_tokenizer(specials + times)
    token = plain.convert_tokens_to_ids
    end = {name: '<|endoftext|>' for name in ('eos_token', 'pad_token', 'bos_token', 'unk_token')}
    tokenizer = WhisperTokenizerFast(tokenizer_object=plain.backend_tokenizer, **end)
    ends = {name: token('<|endoftext|>') for name in ('eos_token_id', 'pad_token_id', 'bos_token_id')}
    config = WhisperConfig(
        vocab_size=len(plain),
        d_model=WIDTH,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        decoder_start_token_id=token('<|startoftranscript|>'),
        **ends,
    )
    model = WhisperForConditionalGeneration(config)
    # It writes readable letters: the head, which is the embedding, prefers them to all other tokens.
    model.proj_out.weight[[token(letter) for letter in 'abcdefghijklmnopqrstuvwxyz']] *= 20
    model.generation_config = GenerationConfig(
        decoder_start_token_id=token('<|startoftranscript|>'),
        no_timestamps_token_id=token('<|notimestamps|>'),
        prev_sot_token_id=token('<|startofprev|>'),
        is_multilingual=True,
        lang_to_id={name: token(name) for name in languages},
        task_to_id={name.strip('<|>'): token(name) for name in modes},
        max_length=448,
        **ends,
    )
    model.save_pretrained(FOLDER / 'whisper')
    WhisperProcessor(WhisperFeatureExtractor(feature_size=80), tokenizer).save_pretrained(FOLDER / 'whisper')


def rife() -> None:
    """RIFE's network with random weights, and with such that each image moves by 4 pixels a frame to the right."""
    sys.path.insert(0, str(Path(__file__).parents[2] / 'gpu' / 'worker'))
    from infer_worker.rife import SCALES, Rife

    network = Rife()
    for name in ('rife', 'rife-moving'):
        (FOLDER / name).mkdir(exist_ok=True)
    torch.save({f'module.{key}': tensor for key, tensor in network.state_dict().items()}, FOLDER / 'rife' / 'flownet.pkl')
    for at in range(len(SCALES)):
        block = getattr(network, f'block{at}')
        block.lastconv[0].weight.zero_()
        block.lastconv[0].bias.zero_()
    # The pixel shuffle makes four values of each; the first block's flow is multiplied by its scale. Half-way between two
    # images the first is 4 pixels to the left and the second 4 pixels to the right.
    bias = network.block0.lastconv[0].bias
    bias[0:4], bias[8:12] = -4 / SCALES[0], 4 / SCALES[0]
    torch.save(network.state_dict(), FOLDER / 'rife-moving' / 'flownet.pkl')


def speech_video() -> None:
    from diffusers import (
        AutoencoderKLLTX2Audio,
        AutoencoderKLLTX2Video,
        FlowMatchEulerDiscreteScheduler,
        LTX2ImageToVideoPipeline,
        LTX2Pipeline,
        LTX2VideoTransformer3DModel,
    )
    from diffusers.pipelines.ltx2 import LTX2TextConnectors
    from diffusers.pipelines.ltx2.vocoder import LTX2Vocoder
    from transformers import Gemma3Config, Gemma3ForConditionalGeneration, Gemma3TextConfig, SiglipVisionConfig

    tokenizer = byte_tokenizer(['<pad>', '<bos>', '<eos>'], pad_token='<pad>', bos_token='<bos>', eos_token='<eos>')
    tokenizer.padding_side = 'left'
    text = Gemma3TextConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_key_value_heads=2, head_dim=8, **LAYERS
    )
    eyes = SiglipVisionConfig(hidden_size=32, intermediate_size=64, image_size=28, patch_size=14, **LAYERS)
    encoder = Gemma3ForConditionalGeneration(
        Gemma3Config(text_config=text, vision_config=eyes, mm_tokens_per_image=4, image_token_index=0)
    )
    transformer = LTX2VideoTransformer3DModel(
        in_channels=4,
        out_channels=4,
        num_attention_heads=2,
        attention_head_dim=8,
        cross_attention_dim=16,
        audio_in_channels=4,
        audio_out_channels=4,
        audio_num_attention_heads=2,
        audio_attention_head_dim=4,
        audio_cross_attention_dim=8,
        num_layers=2,
        caption_channels=text.hidden_size,
        rope_double_precision=False,
        rope_type='split',
    )
    heads = {
        f'{kind}_connector_{name}': value
        for kind in ('video', 'audio')
        for name, value in (
            ('num_attention_heads', 4),
            ('attention_head_dim', 8),
            ('num_layers', 1),
            ('num_learnable_registers', None),
        )
    }
    connectors = LTX2TextConnectors(
        caption_channels=text.hidden_size,
        text_proj_in_factor=text.num_hidden_layers + 1,
        connector_rope_base_seq_len=32,
        rope_theta=10000.0,
        rope_double_precision=False,
        causal_temporal_positioning=False,
        rope_type='split',
        **heads,
    )
    vae = AutoencoderKLLTX2Video(
        latent_channels=4,
        block_out_channels=(8,),
        decoder_block_out_channels=(8,),
        layers_per_block=(1,),
        decoder_layers_per_block=(1, 1),
        spatio_temporal_scaling=(True,),
        decoder_spatio_temporal_scaling=(True,),
        decoder_inject_noise=(False, False),
        downsample_type=('spatial',),
        upsample_residual=(False,),
        upsample_factor=(1,),
        patch_size=1,
        patch_size_t=1,
        encoder_causal=True,
        decoder_causal=False,
    )
    audio = AutoencoderKLLTX2Audio(
        base_channels=4, ch_mult=(1, 1, 1), num_res_blocks=1, resolution=32, latent_channels=2, mel_bins=8
    )
    vocoder = LTX2Vocoder(
        in_channels=16,
        hidden_channels=32,
        out_channels=2,
        upsample_kernel_sizes=[4, 4],
        upsample_factors=[2, 2],
        resnet_kernel_sizes=[3],
        resnet_dilations=[[1, 3, 5]],
        output_sampling_rate=16000,
    )
    for pipeline, name in ((LTX2ImageToVideoPipeline, 'speech-video'), (LTX2Pipeline, 'text-video')):
        pipeline(
            scheduler=FlowMatchEulerDiscreteScheduler(),
            vae=vae,
            audio_vae=audio,
            text_encoder=encoder,
            tokenizer=tokenizer,
            connectors=connectors,
            transformer=transformer,
            vocoder=vocoder,
        ).save_pretrained(FOLDER / name)


def write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding='utf-8')


torch.manual_seed(0)
torch.set_num_threads(2)
torch.set_grad_enabled(False)
FOLDER.mkdir(parents=True, exist_ok=True)
makers = {
    'embedding': embedding,
    'ranking': ranking,
    'chat': chat,
    'vision': vision,
    'whisper': whisper,
    'rife': rife,
    'speech-video': speech_video,
}
expected = {name: makers[name]() for name in sys.argv[2:] or makers}
write(FOLDER / 'expected.json', expected)
