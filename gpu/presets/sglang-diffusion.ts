import { definePreset, onLoopback } from './preset.ts'
import { diffusionFields, routesOf } from './routes.ts'
import { sglang } from './sglang.ts'

/**
 * SGLang for diffusion models, which it recognises by their `model_index.json`. It computes one request at a time and
 * reports the steps of videos, though not with its diffusers backend. Without `output_format` it makes JPEG. It ignores
 * masks. Source: the server arguments, request models, `/health` and video routes of 0.5.23, whose server was run for videos
 * on the processor (`test/fixtures/sglang-session.json`); not on a GPU.
 */
export const sglangDiffusion = definePreset({
  ...sglang,
  adapters: undefined,
  // That of `infer engine setup` has no libraries for diffusion.
  environments: undefined,
  programs: undefined,
  parking: undefined,
  settings: undefined,
  name: 'sglang-diffusion',
  installation: { program: 'sglang', advice: "Install it with: pip install 'sglang[diffusion]'" },
  configurationFault: () => undefined,
  slots: 1,
  command: (model, { gpus }) => [
    ['sglang', 'serve', '--model-path', model.source ?? model.id, ...onLoopback],
    ['--num-gpus', String(Math.max(1, gpus))],
    // Otherwise it keeps every input and output; the folder of a video is a field of its request.
    ['--output-path', '', '--input-save-path', ''],
    model.args,
  ],
  abilities: () => ({
    routes: {
      ...routesOf(
        { openaiImages: ['create-image', 'edit-image'] },
        { fields: [...diffusionFields, 'response_format', 'output_format'] },
      ),
      // A deletion only removes the entry of the video.
      ...routesOf(
        { openaiVideos: 'all' },
        { fields: [...diffusionFields, 'num_frames', 'fps', 'output_path'], deletion: 'continues' },
      ),
    },
  }),
})
