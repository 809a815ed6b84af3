"""Makes tiny pipelines of diffusers with random weights: FOLDER/sd (images), FOLDER/wan (videos), FOLDER/style.safetensors (LoRA).

Usage: python make-diffusion-models.py FOLDER
"""

import os
import sys

import torch
from diffusers import (
    AutoencoderKL,
    AutoencoderKLWan,
    DDIMScheduler,
    FlowMatchEulerDiscreteScheduler,
    StableDiffusionPipeline,
    UNet2DConditionModel,
    WanPipeline,
    WanTransformer3DModel,
)
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    CLIPTextConfig,
    CLIPTextModel,
    PreTrainedTokenizerFast,
    UMT5Config,
    UMT5EncoderModel,
)

folder = sys.argv[1]
torch.manual_seed(0)


def byte_tokenizer(length: int) -> PreTrainedTokenizerFast:
    """A token for each byte."""
    vocabulary = {'<pad>': 0, '</s>': 1, '<unk>': 2}
    for character in sorted(pre_tokenizers.ByteLevel.alphabet()):
        vocabulary[character] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token='<unk>'))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in ('<pad>', '</s>', '<unk>')])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token='<pad>', eos_token='</s>', unk_token='<unk>', model_max_length=length
    )


def stable_diffusion() -> None:
    tokenizer = byte_tokenizer(77)
    text = CLIPTextModel(
        CLIPTextConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=37,
            num_attention_heads=4,
            num_hidden_layers=2,
            max_position_embeddings=77,
            bos_token_id=0,
            eos_token_id=1,
            pad_token_id=0,
        )
    )
    unet = UNet2DConditionModel(
        block_out_channels=(32, 64),
        layers_per_block=1,
        sample_size=32,
        in_channels=4,
        out_channels=4,
        down_block_types=('DownBlock2D', 'CrossAttnDownBlock2D'),
        up_block_types=('CrossAttnUpBlock2D', 'UpBlock2D'),
        cross_attention_dim=32,
        norm_num_groups=8,
    )
    vae = AutoencoderKL(
        block_out_channels=[8, 16, 16, 16],
        in_channels=3,
        out_channels=3,
        down_block_types=['DownEncoderBlock2D'] * 4,
        up_block_types=['UpDecoderBlock2D'] * 4,
        latent_channels=4,
        norm_num_groups=4,
    )
    scheduler = DDIMScheduler(beta_start=0.00085, beta_end=0.012, beta_schedule='scaled_linear', clip_sample=False)
    StableDiffusionPipeline(
        vae=vae,
        text_encoder=text,
        tokenizer=tokenizer,
        unet=unet,
        scheduler=scheduler,
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    ).save_pretrained(os.path.join(folder, 'sd'))
    lora = {}
    for name, module in unet.named_modules():
        if name.endswith(('to_q', 'to_v')) and isinstance(module, torch.nn.Linear):
            lora[f'unet.{name}.lora_A.weight'] = torch.randn(4, module.in_features)
            lora[f'unet.{name}.lora_B.weight'] = torch.randn(module.out_features, 4)
    save_file(lora, os.path.join(folder, 'style.safetensors'))


def wan() -> None:
    tokenizer = byte_tokenizer(512)
    text = UMT5EncoderModel(
        UMT5Config(
            vocab_size=len(tokenizer),
            d_model=32,
            d_kv=8,
            d_ff=37,
            num_layers=2,
            num_heads=4,
            relative_attention_num_buckets=8,
        )
    )
    vae = AutoencoderKLWan(
        base_dim=3, z_dim=16, dim_mult=[1, 1, 1, 1], num_res_blocks=1, temperal_downsample=[False, True, True]
    )
    transformer = WanTransformer3DModel(
        patch_size=(1, 2, 2),
        num_attention_heads=2,
        attention_head_dim=12,
        in_channels=16,
        out_channels=16,
        text_dim=32,
        freq_dim=256,
        ffn_dim=32,
        num_layers=2,
        cross_attn_norm=True,
        qk_norm='rms_norm_across_heads',
        rope_max_seq_len=1024,
    )
    # One set of weights for text and images, as the model of Wan 2.2 with 5 billion weights.
    WanPipeline(
        tokenizer=tokenizer,
        text_encoder=text.eval(),
        vae=vae,
        transformer=transformer,
        scheduler=FlowMatchEulerDiscreteScheduler(shift=7.0),
        expand_timesteps=True,
    ).save_pretrained(os.path.join(folder, 'wan'))


os.makedirs(folder, exist_ok=True)
stable_diffusion()
wan()
