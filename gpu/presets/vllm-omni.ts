import { openaiAudio } from '../../core/tasks/protocols/openai-audio.ts'
import { openaiImages } from '../../core/tasks/protocols/openai-images.ts'
import { openaiVideos } from '../../core/tasks/protocols/openai-videos.ts'
import { noText, type Preset, traitsFor } from './preset.ts'
import { routesOf, withFields } from './routes.ts'
import { vllm } from './vllm.ts'

/**
 * vLLM-Omni 0.26 and later for images, videos and speech. Its diffusion models compute one request at a time. The memory
 * fraction of vLLM does not apply to them. Source: the request models and `/health` of 0.30, read; not run.
 */
export const vllmOmni: Preset = {
  ...vllm,
  name: 'vllm-omni',
  installation: () => ({ program: 'vllm', advice: 'Install it with: pip install vllm vllm-omni' }),
  slots: 1,
  command: (model, { gpus }) =>
    [
      ['vllm', 'serve', model.source ?? model.id, '--omni', '--host', '127.0.0.1', '--port', '{port}'],
      ['--served-model-name', model.upstream_id ?? model.id],
      gpus > 1 ? ['--tensor-parallel-size', String(gpus)] : [],
      model.args,
    ].flat(),
  traits: model =>
    traitsFor(model, {
      ...noText,
      routes: {
        ...routesOf([openaiAudio], ['std/audio-speech']),
        ...withFields(routesOf([openaiImages]), [
          'response_format',
          'seed',
          'negative_prompt',
          'num_inference_steps',
          'guidance_scale',
        ]),
        ...withFields(routesOf([openaiVideos]), [
          'seed',
          'negative_prompt',
          'num_inference_steps',
          'guidance_scale',
          'num_frames',
          'fps',
        ]),
      },
      features: ['voice_cloning'],
      speech: { reference: { audio: 'ref_audio', text: 'ref_text' } },
    }),
}
