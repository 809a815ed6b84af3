"""Writes a model in the shape of Stable Diffusion 1.5 with random weights, as a diffusers folder of 2.1 GB in half precision.

Usage: make-sd15-random.py FOLDER
"""

import json
import sys
from pathlib import Path

import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from safetensors.torch import load_file, save_file
from transformers import CLIPTextConfig, CLIPTextModel

folder = Path(sys.argv[1])
torch.set_num_threads(2)
torch.set_default_dtype(torch.float16)
torch.manual_seed(0)
# The weights are filled below, and the usual initialisation takes minutes.
for name in ("kaiming_uniform_", "xavier_uniform_", "normal_", "uniform_", "trunc_normal_"):
    setattr(torch.nn.init, name, lambda tensor, *_, **__: tensor)
noise = torch.randn(1 << 20)


def write(model, part):
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 1:
                weight.fill_(1.0 if name.endswith("weight") else 0.0)
                continue
            count = weight.numel()
            values = noise.repeat(count // noise.numel() + 1)[:count]
            weight.copy_((values * (0.5 / (count / weight.shape[0]) ** 0.5)).view_as(weight))
    model.save_pretrained(folder / part, safe_serialization=True)


blocks = {
    "block_out_channels": (128, 256, 512, 512),
    "down_block_types": ("DownEncoderBlock2D",) * 4,
    "up_block_types": ("UpDecoderBlock2D",) * 4,
}
text = {"vocab_size": 49408, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12}
write(UNet2DConditionModel(sample_size=64, cross_attention_dim=768, attention_head_dim=8), "unet")
write(AutoencoderKL(**blocks, layers_per_block=2, latent_channels=4, sample_size=512), "vae")
write(CLIPTextModel(CLIPTextConfig(**text, num_attention_heads=12, max_position_embeddings=77)), "text_encoder")

# transformers 5 omits a prefix that stable-diffusion.cpp looks for.
clip = folder / "text_encoder" / "model.safetensors"
prefix = "text_model."
named = {name if name.startswith(prefix) else prefix + name: weight for name, weight in load_file(clip).items()}
save_file(named, clip, metadata={"format": "pt"})
(folder / "model_index.json").write_text(json.dumps({"_class_name": "StableDiffusionPipeline"}))
