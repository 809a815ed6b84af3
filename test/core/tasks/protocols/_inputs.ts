import type { EngineInputs } from '../../../../core/tasks/protocols/generation-call.ts'

/** Inputs of a small image, with every field. */
export const engineInputs = (more: Partial<EngineInputs>): EngineInputs => ({
  prompt: 'a cat',
  negative_prompt: 'dogs',
  seed: 7,
  width: 64,
  height: 32,
  num_images: 1,
  num_frames: 1,
  fps: 16,
  num_inference_steps: 4,
  guidance_scale: 6.5,
  strength: 0.5,
  output_format: 'png',
  image: null,
  mask: null,
  video: null,
  audio: null,
  extra: {},
  ...more,
})
