import type { EngineField } from '../../core/models/engine-traits.ts'
import { openaiAudio } from '../../core/tasks/protocols/openai-audio.ts'
import { openaiImages } from '../../core/tasks/protocols/openai-images.ts'
import { openaiVideos } from '../../core/tasks/protocols/openai-videos.ts'
import { definePreset, upstreamId } from './preset.ts'
import { routesOf, withDeletion, withFields } from './routes.ts'
import { vllm } from './vllm.ts'

const fields: readonly EngineField[] = ['seed', 'negative_prompt', 'num_inference_steps', 'guidance_scale']

/**
 * vLLM-Omni 0.26 and later for images, videos and speech. Its diffusion models compute one request at a time and report
 * progress only at the end. The memory fraction of vLLM does not apply to them. Its edits take no `mask`. Source: the
 * request models, `/health` and the video routes of 0.30, read; not run.
 */
export const vllmOmni = definePreset({
  ...vllm,
  name: 'vllm-omni',
  installation: () => ({ program: 'vllm', advice: 'Install it with: pip install vllm vllm-omni' }),
  slots: 1,
  command: (model, { gpus }) =>
    [
      ['vllm', 'serve', model.source ?? model.id, '--omni', '--host', '127.0.0.1', '--port', '{port}'],
      ['--served-model-name', upstreamId(model)],
      gpus > 1 ? ['--tensor-parallel-size', String(gpus)] : [],
      model.args,
    ].flat(),
  abilities: () => ({
    routes: {
      ...routesOf([openaiAudio], ['synthesize']),
      ...withFields(routesOf([openaiImages], ['create-image']), [...fields, 'response_format']),
      ...withFields(routesOf([openaiImages], ['edit-image']), [...fields, 'response_format', 'strength']),
      ...withDeletion(withFields(routesOf([openaiVideos]), [...fields, 'num_frames', 'fps']), 'stops'),
    },
    features: ['voice_cloning'],
    speech: { reference: { audio: 'ref_audio', text: 'ref_text' } },
  }),
})
