import { definePreset, onLoopback, option, upstreamId } from './preset.ts'
import { diffusionFields, routesOf } from './routes.ts'
import { vllm } from './vllm.ts'

/**
 * vLLM-Omni 0.26 and later for images, videos and speech. Its diffusion models compute one request at a time and report
 * progress only at the end. The memory fraction of vLLM does not apply to them. Its edits take no `mask`. Source: the
 * request models, `/health` and the video routes of 0.30, read; not run.
 */
export const vllmOmni = definePreset({
  ...vllm,
  name: 'vllm-omni',
  adapters: undefined,
  // That of `infer engine setup` has no vLLM-Omni.
  environments: undefined,
  programs: undefined,
  // Started without vLLM's switches for it.
  parking: undefined,
  channel: () => 'port',
  settings: ['speculative'],
  installation: { program: 'vllm', advice: 'Install it with: pip install vllm vllm-omni' },
  slots: 1,
  command: (model, { gpus }) => [
    ['vllm', 'serve', model.source ?? model.id, '--omni', ...onLoopback],
    ['--served-model-name', upstreamId(model)],
    option('--tensor-parallel-size', gpus > 1 ? gpus : undefined),
    model.args,
  ],
  abilities: () => ({
    routes: {
      ...routesOf({ openaiAudio: ['synthesize'] }),
      ...routesOf({ openaiImages: ['create-image'] }, { fields: [...diffusionFields, 'response_format'] }),
      ...routesOf({ openaiImages: ['edit-image'] }, { fields: [...diffusionFields, 'response_format', 'strength'] }),
      ...routesOf({ openaiVideos: 'all' }, { fields: [...diffusionFields, 'num_frames', 'fps'], deletion: 'stops' }),
    },
    features: ['voice_cloning'],
    speech: { reference: { audio: 'ref_audio', text: 'ref_text' } },
  }),
})
