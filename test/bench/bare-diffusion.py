"""A pipeline of diffusers without infer, for diffusion.ts: one line of JSON in, the seconds of one image out.

Usage: python bare-diffusion.py MODEL DEVICE THREADS FILE
"""

import json
import sys
import time

import torch
from diffusers import DiffusionPipeline
from diffusers.utils import logging

model, device, threads, file = sys.argv[1:]
torch.set_num_threads(int(threads))
logging.disable_progress_bar()
dtype = torch.bfloat16 if device == 'cuda' else torch.float32
pipeline = DiffusionPipeline.from_pretrained(model, local_files_only=True, dtype=dtype).to(device)
pipeline.set_progress_bar_config(disable=True)
# As the worker sets it.
for saving in ('enable_tiling', 'enable_slicing'):
    if hasattr(pipeline.vae, saving):
        getattr(pipeline.vae, saving)()
print('ready', flush=True)
for line in sys.stdin:
    arguments = json.loads(line)
    began = time.perf_counter()
    generator = torch.Generator('cpu').manual_seed(arguments.pop('seed'))
    with torch.inference_mode():
        [image] = pipeline(**arguments, generator=generator).images
    image.save(file)
    print(time.perf_counter() - began, flush=True)
