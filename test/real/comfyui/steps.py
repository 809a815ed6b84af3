"""A node for the tests: it samples nothing, but reports steps and previews as samplers of ComfyUI do."""

import time

import comfy.model_management
import comfy.utils
import torch
from PIL import Image


class InferTestSampler:
    CATEGORY = "test"
    FUNCTION = "sample"
    RETURN_TYPES = ("IMAGE",)

    @classmethod
    def INPUT_TYPES(cls):
        return {
            "required": {
                "image": ("IMAGE",),
                "text": ("STRING", {"default": ""}),
                "seed": ("INT", {"default": 0, "min": 0, "max": 2**64 - 1}),
                "steps": ("INT", {"default": 4, "min": 1, "max": 1000}),
                "seconds": ("FLOAT", {"default": 0.05, "min": 0.0, "max": 10.0}),
            }
        }

    def sample(self, image, text, seed, steps, seconds):
        if "more than there is" in text:
            raise torch.cuda.OutOfMemoryError("Allocation on device 0 would exceed allowed memory. (out of memory)")
        if "impossible" in text:
            raise ValueError("tensors of /opt/ComfyUI have different sizes")
        bar = comfy.utils.ProgressBar(steps)
        for step in range(steps):
            comfy.model_management.throw_exception_if_processing_interrupted()
            time.sleep(seconds)
            shade = int(255 * step / steps)
            bar.update_absolute(step + 1, steps, ("JPEG", Image.new("RGB", (32, 32), (shade, shade, shade)), 64))
        generator = torch.Generator().manual_seed(seed)
        return (torch.clamp(image + 0.5 * torch.rand(image.shape, generator=generator), 0, 1),)


NODE_CLASS_MAPPINGS = {"InferTestSampler": InferTestSampler}
